//! Extended completion queues, read one completion at a time.
//!
//! Whoever polls holds the queue's lock from start to end, unless it was created for a single thread.

use std::ffi::{c_int, c_uint};
use std::ptr::null_mut;

use tbv_verbs_sys::{
    IBV_CQ_INIT_ATTR_MASK_FLAGS, IBV_CREATE_CQ_ATTR_SINGLE_THREADED, IBV_WC_STANDARD_FLAGS, ibv_context,
    ibv_cq_ex, ibv_cq_init_attr_ex, ibv_poll_cq_attr, ibv_wc,
};

use crate::cq::{Cq, FOREIGN, create_cq, is_foreign, poll_cq};
use crate::errno;

/// What an extended queue is polled by.
#[repr(C)]
pub(crate) struct Current {
    wc: ibv_wc,
    /// Zero is an unlocked one.
    lock: libc::pthread_mutex_t,
    single_threaded: bool,
}

pub(crate) unsafe extern "C" fn create_cq_ex(
    context: *mut ibv_context,
    attr: *mut ibv_cq_init_attr_ex,
) -> *mut ibv_cq_ex {
    // SAFETY: the caller's attributes.
    let attr = unsafe { &*attr };
    let flags = if attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS != 0 { attr.flags } else { 0 };
    let (Ok(cqe), Ok(comp_vector)) = (c_int::try_from(attr.cqe), c_int::try_from(attr.comp_vector)) else {
        return errno::fail(libc::EINVAL);
    };
    if attr.comp_mask & !IBV_CQ_INIT_ATTR_MASK_FLAGS != 0
        || flags & !IBV_CREATE_CQ_ATTR_SINGLE_THREADED != 0
        || attr.wc_flags & !IBV_WC_STANDARD_FLAGS != 0
    {
        return errno::fail(libc::EOPNOTSUPP);
    }
    // SAFETY: a live context and channel.
    let object = unsafe { create_cq(context, cqe, attr.channel, comp_vector) }.cast::<Cq>();
    if object.is_null() {
        return null_mut();
    }
    // SAFETY: created above, and known to nobody else.
    unsafe {
        (*object).current.single_threaded = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED != 0;
        let cq = &raw mut (*object).cq;
        (*cq).start_poll = Some(start_poll);
        (*cq).next_poll = Some(next_poll);
        (*cq).end_poll = Some(end_poll);
        (*cq).read_opcode = Some(read_opcode);
        (*cq).read_vendor_err = Some(read_vendor_err);
        (*cq).read_byte_len = Some(read_byte_len);
        (*cq).read_imm_data = Some(read_imm_data);
        (*cq).read_qp_num = Some(read_qp_num);
        (*cq).read_src_qp = Some(read_src_qp);
        (*cq).read_wc_flags = Some(read_wc_flags);
        (*cq).read_slid = Some(read_slid);
        (*cq).read_sl = Some(read_sl);
        (*cq).read_dlid_path_bits = Some(read_dlid_path_bits);
        cq
    }
}

unsafe extern "C" fn start_poll(cq: *mut ibv_cq_ex, attr: *mut ibv_poll_cq_attr) -> c_int {
    // SAFETY: the caller's attributes.
    if unsafe { (*attr).comp_mask } != 0 {
        return libc::EINVAL;
    }
    // SAFETY: a live queue.
    unsafe {
        // Another thread of the parent may have held the lock when it forked.
        if is_foreign(cq.cast()) {
            return FOREIGN;
        }
        lock(cq);
        let error = next_poll(cq);
        if error != 0 {
            end_poll(cq);
        }
        error
    }
}

/// Returns ENOENT if there is none.
unsafe extern "C" fn next_poll(cq: *mut ibv_cq_ex) -> c_int {
    // SAFETY: a live queue, whose lock the caller holds.
    unsafe {
        let wc = &raw mut (*cq.cast::<Cq>()).current.wc;
        match poll_cq(cq.cast(), 1, wc) {
            0 => libc::ENOENT,
            1 => {
                (*cq).status = (*wc).status;
                (*cq).wr_id = (*wc).wr_id;
                0
            }
            // What libibverbs' own functions return says nothing.
            -1 => libc::EIO,
            error => -error,
        }
    }
}

unsafe extern "C" fn end_poll(cq: *mut ibv_cq_ex) {
    // SAFETY: a live queue, locked by this thread.
    unsafe {
        let current = &raw mut (*cq.cast::<Cq>()).current;
        if !(*current).single_threaded {
            libc::pthread_mutex_unlock(&raw mut (*current).lock);
        }
    }
}

/// # Safety
/// `cq` is live.
unsafe fn lock(cq: *mut ibv_cq_ex) {
    // SAFETY: a live queue.
    unsafe {
        let current = &raw mut (*cq.cast::<Cq>()).current;
        if !(*current).single_threaded {
            libc::pthread_mutex_lock(&raw mut (*current).lock);
        }
    }
}

/// Declares functions that read a member of the current completion.
macro_rules! readers {
    ($($name:ident: $member:ident as $kind:ty,)*) => {$(
        unsafe extern "C" fn $name(cq: *mut ibv_cq_ex) -> $kind {
            // SAFETY: a live queue, whose lock the caller holds.
            unsafe { (*cq.cast::<Cq>()).current.wc.$member }
        }
    )*};
}

unsafe extern "C" fn read_slid(cq: *mut ibv_cq_ex) -> u32 {
    // SAFETY: a live queue, whose lock the caller holds.
    unsafe { (*cq.cast::<Cq>()).current.wc.slid.into() }
}

readers! {
    read_opcode: opcode as c_uint,
    read_vendor_err: vendor_err as u32,
    read_byte_len: byte_len as u32,
    read_imm_data: imm_data as u32,
    read_qp_num: qp_num as u32,
    read_src_qp: src_qp as u32,
    read_wc_flags: wc_flags as c_uint,
    read_sl: sl as u8,
    read_dlid_path_bits: dlid_path_bits as u8,
}
