//! Completion queues.

use std::ffi::c_int;

use tbv_verbs_sys::{ibv_comp_channel, ibv_context, ibv_cq, ibv_wc};

use crate::abi::{
    ib_uverbs_create_cq_resp, ibv_cmd_create_cq, ibv_cmd_destroy_cq, ibv_cmd_poll_cq, ibv_cmd_req_notify_cq,
    ibv_create_cq,
};
use crate::{batch, errno, memory};

pub(crate) unsafe extern "C" fn create_cq(
    context: *mut ibv_context,
    cqe: c_int,
    channel: *mut ibv_comp_channel,
    comp_vector: c_int,
) -> *mut ibv_cq {
    // SAFETY: numbers, nullable pointers, and locks that libibverbs initialises.
    let cq: *mut ibv_cq = unsafe { memory::zeroed() };
    if cq.is_null() {
        return cq;
    }
    let mut cmd = ibv_create_cq::ZERO;
    let mut resp = ib_uverbs_create_cq_resp::ZERO;
    // SAFETY: a live context and channel, and buffers of the sizes given.
    let error = unsafe {
        ibv_cmd_create_cq(
            context,
            cqe,
            channel,
            comp_vector,
            cq,
            &raw mut cmd,
            size_of_val(&cmd),
            &raw mut resp,
            size_of_val(&resp),
        )
    };
    if error != 0 {
        // SAFETY: never handed out.
        unsafe { memory::free(cq) };
        return errno::fail(error);
    }
    cq
}

pub(crate) unsafe extern "C" fn destroy_cq(cq: *mut ibv_cq) -> c_int {
    // SAFETY: a live CQ.
    let error = unsafe { ibv_cmd_destroy_cq(cq) };
    if error == 0 {
        // SAFETY: the kernel has let go of it, and so has the application.
        unsafe { memory::free(cq) };
    }
    error
}

pub(crate) unsafe extern "C" fn poll_cq(cq: *mut ibv_cq, num_entries: c_int, wc: *mut ibv_wc) -> c_int {
    batch::poll(num_entries, |taken, room| {
        // SAFETY: the caller's array has room for num_entries, of which taken + room are part.
        unsafe { ibv_cmd_poll_cq(cq, room, wc.add(taken as usize)) }
    })
}

pub(crate) unsafe extern "C" fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: a live CQ.
    unsafe { ibv_cmd_req_notify_cq(cq, solicited_only) }
}
