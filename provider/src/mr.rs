//! Memory regions.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use tbv_verbs_sys::{ibv_mr, ibv_pd};

use crate::abi::{ib_uverbs_reg_mr_resp, ibv_cmd_dereg_mr, ibv_cmd_reg_mr, ibv_reg_mr, verbs_mr};
use crate::{errno, memory};

pub(crate) unsafe extern "C" fn reg_mr(
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    hca_va: u64,
    access: c_int,
) -> *mut ibv_mr {
    // SAFETY: numbers and nullable pointers.
    let mr: *mut verbs_mr = unsafe { memory::zeroed() };
    if mr.is_null() {
        return null_mut();
    }
    let mut cmd = ibv_reg_mr::ZERO;
    let mut resp = ib_uverbs_reg_mr_resp::ZERO;
    // SAFETY: a live PD, the caller's range, and buffers of the sizes given.
    let error = unsafe {
        ibv_cmd_reg_mr(
            pd,
            addr,
            length,
            hca_va,
            access,
            mr,
            &raw mut cmd,
            size_of_val(&cmd),
            &raw mut resp,
            size_of_val(&resp),
        )
    };
    if error != 0 {
        // SAFETY: never handed out.
        unsafe { memory::free(mr) };
        return errno::fail(error);
    }
    // SAFETY: allocated above.
    unsafe { &raw mut (*mr).ibv_mr }
}

pub(crate) unsafe extern "C" fn dereg_mr(mr: *mut verbs_mr) -> c_int {
    // SAFETY: a live MR.
    let error = unsafe { ibv_cmd_dereg_mr(mr) };
    if error == 0 {
        // SAFETY: the kernel has let go of it, and so has the application.
        unsafe { memory::free(mr) };
    }
    error
}
