//! Completion queues.

use std::collections::BTreeSet;
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{MutexGuard, PoisonError};

use tbv_proto::CreateCqResp;
use tbv_verbs_sys::{ibv_comp_channel, ibv_context, ibv_cq, ibv_cq_ex, ibv_wc};

use crate::abi::{
    ib_uverbs_create_cq_resp, ibv_cmd_create_cq, ibv_cmd_destroy_cq, ibv_cmd_poll_cq, ibv_cmd_req_notify_cq,
    ibv_create_cq,
};
use crate::context::Context;
use crate::extended::Current;
use crate::published::{self, Published};
use crate::{batch, errno, fork, memory};

/// A completion queue; ordinary ones, too, have room for what an extended one is polled by.
#[repr(C)]
pub(crate) struct Cq {
    pub(crate) cq: ibv_cq_ex,
    pub(crate) current: Current,
    /// Zero in a forked child; `None` if that cannot be told.
    mark: Option<&'static AtomicU64>,
    /// `None` if it is polled by system call.
    published: Option<Published>,
}

/// What a call on a queue of another process gets: one that forked this one. An errno value; not EPERM, whose negative
/// is what libibverbs' own polling returns for any error.
pub(crate) const FOREIGN: c_int = libc::EINVAL;

/// The reply to CREATE_CQ with our driver's part behind the standard one.
#[repr(C)]
struct CreateCqReply {
    core: ib_uverbs_create_cq_resp,
    driver: CreateCqResp,
}

pub(crate) unsafe extern "C" fn create_cq(
    context: *mut ibv_context,
    cqe: c_int,
    channel: *mut ibv_comp_channel,
    comp_vector: c_int,
) -> *mut ibv_cq {
    // SAFETY: numbers, nullable pointers, locks that libibverbs initialises or that are zero, and no published queue,
    // which is written below.
    let object: *mut Cq = unsafe { memory::zeroed() };
    if object.is_null() {
        return null_mut();
    }
    let cq = object.cast::<ibv_cq>();
    let mut cmd = ibv_create_cq::ZERO;
    let mut resp = CreateCqReply { core: ib_uverbs_create_cq_resp::ZERO, driver: CreateCqResp::default() };
    // Without room for its part the driver does not publish the queue.
    let resp_size = if published::wanted() { size_of_val(&resp) } else { size_of_val(&resp.core) };
    // SAFETY: a live context and channel, and buffers of the sizes given. The pointer to the core part is made from
    // the whole reply, so that it may be written behind its end.
    let error = unsafe {
        ibv_cmd_create_cq(
            context,
            cqe,
            channel,
            comp_vector,
            cq,
            &raw mut cmd,
            size_of_val(&cmd),
            (&raw mut resp).cast(),
            resp_size,
        )
    };
    if error != 0 {
        // SAFETY: never handed out.
        unsafe { memory::free(object) };
        return errno::fail(error);
    }
    // SAFETY: allocated above, and the context is live.
    unsafe {
        let mark = fork::mark().ok();
        let published = Published::map((*context).cmd_fd, (*cq).cqe, &resp.driver, mark.is_some());
        (&raw mut (*object).mark).write(mark);
        (&raw mut (*object).published).write(published);
        queues(context).insert(cq.expose_provenance());
    }
    cq
}

/// The queues of a context that are not destroyed, by address.
///
/// # Safety
/// `context` is live and one of ours.
unsafe fn queues<'a>(context: *mut ibv_context) -> MutexGuard<'a, BTreeSet<usize>> {
    // SAFETY: as the caller promises.
    unsafe { Context::of(context) }.queues.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Unmaps what a context leaves behind when it is closed: a mapping would keep the device's file open, and with it all
/// that the kernel holds for it.
///
/// # Safety
/// `context` is being closed: nobody uses its queues any more.
pub(crate) unsafe fn unmap_all(context: *mut ibv_context) {
    // SAFETY: the queues are live, for they were not destroyed.
    unsafe {
        for cq in std::mem::take(&mut *queues(context)) {
            (*std::ptr::with_exposed_provenance_mut::<Cq>(cq)).published = None;
        }
    }
}

/// Whether the queue is the parent's of this process, which must not use it.
///
/// # Safety
/// `cq` is live.
pub(crate) unsafe fn is_foreign(cq: *mut ibv_cq) -> bool {
    // SAFETY: the start of an object of create_cq.
    unsafe { (*cq.cast::<Cq>()).mark }.is_some_and(|mark| mark.load(Ordering::Relaxed) == 0)
}

pub(crate) unsafe extern "C" fn destroy_cq(cq: *mut ibv_cq) -> c_int {
    // SAFETY: a live CQ.
    let error = unsafe { if is_foreign(cq) { FOREIGN } else { ibv_cmd_destroy_cq(cq) } };
    if error == 0 {
        // SAFETY: the start of an object of create_cq; the kernel has let go of it, and so has the application.
        unsafe {
            queues((*cq).context).remove(&cq.expose_provenance());
            (&raw mut (*cq.cast::<Cq>()).published).drop_in_place();
            memory::free(cq.cast::<Cq>());
        }
    }
    error
}

pub(crate) unsafe extern "C" fn poll_cq(cq: *mut ibv_cq, num_entries: c_int, wc: *mut ibv_wc) -> c_int {
    // SAFETY: a live CQ.
    if unsafe { is_foreign(cq) } {
        return -FOREIGN;
    }
    // SAFETY: the start of an object of create_cq, which nobody writes while it is polled.
    let published = unsafe { &(*cq.cast::<Cq>()).published };
    if let Some(published) = published
        && !cfg!(feature = "double-regressed")
        // SAFETY: the caller's array.
        && let Some(taken) = unsafe { published.poll(num_entries, wc) }
    {
        return taken;
    }
    batch::poll(num_entries, |taken, room| {
        // SAFETY: the caller's array has room for num_entries, of which taken + room are part.
        unsafe { ibv_cmd_poll_cq(cq, room, wc.add(taken as usize)) }
    })
}

pub(crate) unsafe extern "C" fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: a live CQ.
    unsafe { if is_foreign(cq) { FOREIGN } else { ibv_cmd_req_notify_cq(cq, solicited_only) } }
}
