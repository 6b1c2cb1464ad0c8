//! Protection domains.

use std::ffi::c_int;

use tbv_verbs_sys::{ibv_context, ibv_pd};

use crate::abi::{ib_uverbs_alloc_pd_resp, ibv_alloc_pd, ibv_cmd_alloc_pd, ibv_cmd_dealloc_pd};
use crate::{errno, memory};

pub(crate) unsafe extern "C" fn alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
    // SAFETY: numbers and nullable pointers.
    let pd: *mut ibv_pd = unsafe { memory::zeroed() };
    if pd.is_null() {
        return pd;
    }
    let mut cmd = ibv_alloc_pd::ZERO;
    let mut resp = ib_uverbs_alloc_pd_resp::ZERO;
    let (cmd_size, resp_size) = (size_of_val(&cmd), size_of_val(&resp));
    // SAFETY: a live context, and buffers of the sizes given.
    match unsafe { ibv_cmd_alloc_pd(context, pd, &raw mut cmd, cmd_size, &raw mut resp, resp_size) } {
        0 => pd,
        error => {
            // SAFETY: never handed out.
            unsafe { memory::free(pd) };
            errno::fail(error)
        }
    }
}

pub(crate) unsafe extern "C" fn dealloc_pd(pd: *mut ibv_pd) -> c_int {
    // SAFETY: a live PD.
    let error = unsafe { ibv_cmd_dealloc_pd(pd) };
    if error == 0 {
        // SAFETY: the kernel has let go of it, and so has the application.
        unsafe { memory::free(pd) };
    }
    error
}
