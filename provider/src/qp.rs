//! Queue pairs.

use std::ffi::c_int;
use std::ptr::null_mut;

use tbv_verbs_sys::{ibv_pd, ibv_qp, ibv_qp_attr, ibv_qp_init_attr, ibv_recv_wr, ibv_send_wr};

use crate::abi::{
    ib_uverbs_create_qp_resp, ibv_cmd_create_qp, ibv_cmd_destroy_qp, ibv_cmd_modify_qp, ibv_cmd_post_recv,
    ibv_cmd_post_send, ibv_cmd_query_qp, ibv_create_qp, ibv_modify_qp, ibv_query_qp,
};
use crate::{batch, errno, memory};

/// A queue pair with what libibverbs may look for behind it: `ibv_qp_to_qp_ex` reads a flag there, and where it lies
/// differs between releases of the same private ABI. It stays zero, "not an extended QP".
#[repr(C)]
pub(crate) struct Qp {
    pub(crate) qp: ibv_qp,
    extended: [u64; 64],
}

pub(crate) unsafe extern "C" fn create_qp(pd: *mut ibv_pd, attr: *mut ibv_qp_init_attr) -> *mut ibv_qp {
    // SAFETY: numbers, nullable pointers, and locks that libibverbs initialises.
    let object: *mut Qp = unsafe { memory::zeroed() };
    if object.is_null() {
        return null_mut();
    }
    // SAFETY: allocated above.
    let qp = unsafe { &raw mut (*object).qp };
    let mut cmd = ibv_create_qp::ZERO;
    let mut resp = ib_uverbs_create_qp_resp::ZERO;
    let (cmd_size, resp_size) = (size_of_val(&cmd), size_of_val(&resp));
    // SAFETY: a live PD, the caller's attributes, and buffers of the sizes given.
    match unsafe { ibv_cmd_create_qp(pd, qp, attr, &raw mut cmd, cmd_size, &raw mut resp, resp_size) } {
        0 => qp,
        error => {
            // SAFETY: never handed out.
            unsafe { memory::free(object) };
            errno::fail(error)
        }
    }
}

pub(crate) unsafe extern "C" fn query_qp(
    qp: *mut ibv_qp,
    attr: *mut ibv_qp_attr,
    attr_mask: c_int,
    init_attr: *mut ibv_qp_init_attr,
) -> c_int {
    let mut cmd = ibv_query_qp::ZERO;
    // SAFETY: a live QP, the caller's attributes, and a request of the size given.
    unsafe { ibv_cmd_query_qp(qp, attr, attr_mask, init_attr, &raw mut cmd, size_of_val(&cmd)) }
}

pub(crate) unsafe extern "C" fn modify_qp(
    qp: *mut ibv_qp,
    attr: *mut ibv_qp_attr,
    attr_mask: c_int,
) -> c_int {
    let mut cmd = ibv_modify_qp::ZERO;
    // SAFETY: a live QP, the caller's attributes, and a request of the size given.
    unsafe { ibv_cmd_modify_qp(qp, attr, attr_mask, &raw mut cmd, size_of_val(&cmd)) }
}

pub(crate) unsafe extern "C" fn destroy_qp(qp: *mut ibv_qp) -> c_int {
    // SAFETY: a live QP.
    let error = unsafe { ibv_cmd_destroy_qp(qp) };
    if error == 0 {
        // SAFETY: the start of an object of create_qp; the kernel has let go of it, and so has the application.
        unsafe { memory::free(qp) };
    }
    error
}

pub(crate) unsafe extern "C" fn post_send(
    qp: *mut ibv_qp,
    wr: *mut ibv_send_wr,
    bad_wr: *mut *mut ibv_send_wr,
) -> c_int {
    // SAFETY: the caller's list, each part of which is a list too.
    unsafe { batch::post(wr, |part| ibv_cmd_post_send(qp, part, bad_wr)) }
}

pub(crate) unsafe extern "C" fn post_recv(
    qp: *mut ibv_qp,
    wr: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: the caller's list, each part of which is a list too.
    unsafe { batch::post(wr, |part| ibv_cmd_post_recv(qp, part, bad_wr)) }
}
