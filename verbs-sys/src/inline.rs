//! Functions that the header defines inline: calls through the context.

use std::ffi::c_int;

use crate::{ibv_cq, ibv_qp, ibv_recv_wr, ibv_send_wr, ibv_wc};

/// Takes up to `num_entries` completions; returns how many, or a negative number.
///
/// # Safety
/// `cq` is live and `wc` has room for `num_entries`.
pub unsafe fn ibv_poll_cq(cq: *mut ibv_cq, num_entries: c_int, wc: *mut ibv_wc) -> c_int {
    // SAFETY: a live CQ has a live context.
    match unsafe { (*(*cq).context).ops.poll_cq } {
        // SAFETY: as the caller promises.
        Some(poll_cq) => unsafe { poll_cq(cq, num_entries, wc) },
        None => -libc::EOPNOTSUPP,
    }
}

/// Asks for an event at the next completion; returns an errno value.
///
/// # Safety
/// `cq` is live.
pub unsafe fn ibv_req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: a live CQ has a live context.
    match unsafe { (*(*cq).context).ops.req_notify_cq } {
        // SAFETY: as the caller promises.
        Some(req_notify_cq) => unsafe { req_notify_cq(cq, solicited_only) },
        None => libc::EOPNOTSUPP,
    }
}

/// Posts a list of send requests; returns an errno value and sets `bad_wr` if one was refused.
///
/// # Safety
/// `qp` is live, `wr` a list of requests with valid scatter/gather lists, `bad_wr` writable.
pub unsafe fn ibv_post_send(qp: *mut ibv_qp, wr: *mut ibv_send_wr, bad_wr: *mut *mut ibv_send_wr) -> c_int {
    // SAFETY: a live QP has a live context.
    match unsafe { (*(*qp).context).ops.post_send } {
        // SAFETY: as the caller promises.
        Some(post_send) => unsafe { post_send(qp, wr, bad_wr) },
        None => libc::EOPNOTSUPP,
    }
}

/// Posts a list of receive requests; returns an errno value and sets `bad_wr` if one was refused.
///
/// # Safety
/// `qp` is live, `wr` a list of requests with valid scatter/gather lists, `bad_wr` writable.
pub unsafe fn ibv_post_recv(qp: *mut ibv_qp, wr: *mut ibv_recv_wr, bad_wr: *mut *mut ibv_recv_wr) -> c_int {
    // SAFETY: a live QP has a live context.
    match unsafe { (*(*qp).context).ops.post_recv } {
        // SAFETY: as the caller promises.
        Some(post_recv) => unsafe { post_recv(qp, wr, bad_wr) },
        None => libc::EOPNOTSUPP,
    }
}
