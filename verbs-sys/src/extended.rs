//! Completion queues that are polled one completion at a time (`ibv_create_cq_ex`).

use std::ffi::{c_int, c_uint, c_void};

use crate::{ibv_comp_channel, ibv_context, ibv_cq, ibv_pd, opaque_fn};

pub const IBV_WC_EX_WITH_BYTE_LEN: u64 = 1 << 0;
pub const IBV_WC_EX_WITH_IMM: u64 = 1 << 1;
pub const IBV_WC_EX_WITH_QP_NUM: u64 = 1 << 2;
pub const IBV_WC_EX_WITH_SRC_QP: u64 = 1 << 3;
pub const IBV_WC_EX_WITH_SLID: u64 = 1 << 4;
pub const IBV_WC_EX_WITH_SL: u64 = 1 << 5;
pub const IBV_WC_EX_WITH_DLID_PATH_BITS: u64 = 1 << 6;
/// All of the above.
pub const IBV_WC_STANDARD_FLAGS: u64 = (1 << 7) - 1;

pub const IBV_CQ_INIT_ATTR_MASK_FLAGS: u32 = 1 << 0;
pub const IBV_CREATE_CQ_ATTR_SINGLE_THREADED: u32 = 1 << 0;

/// What is asked of an extended completion queue.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_cq_init_attr_ex {
    pub cqe: u32,
    pub cq_context: *mut c_void,
    pub channel: *mut ibv_comp_channel,
    pub comp_vector: u32,
    /// What shall be readable of a completion.
    pub wc_flags: u64,
    /// Which of the members below are meant.
    pub comp_mask: u32,
    pub flags: u32,
    pub parent_domain: *mut ibv_pd,
}

/// How to poll; nothing is defined yet.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ibv_poll_cq_attr {
    pub comp_mask: u32,
}

type Read<T> = Option<unsafe extern "C" fn(*mut ibv_cq_ex) -> T>;

/// An extended completion queue, which begins as an ordinary one.
#[repr(C)]
pub struct ibv_cq_ex {
    pub cq: ibv_cq,
    pub comp_mask: u32,
    /// Of the current completion, like `wr_id`.
    pub status: c_uint,
    pub wr_id: u64,
    pub start_poll: Option<unsafe extern "C" fn(*mut ibv_cq_ex, *mut ibv_poll_cq_attr) -> c_int>,
    pub next_poll: Read<c_int>,
    pub end_poll: Option<unsafe extern "C" fn(*mut ibv_cq_ex)>,
    pub read_opcode: Read<c_uint>,
    pub read_vendor_err: Read<u32>,
    pub read_byte_len: Read<u32>,
    /// In network byte order.
    pub read_imm_data: Read<u32>,
    pub read_qp_num: Read<u32>,
    pub read_src_qp: Read<u32>,
    pub read_wc_flags: Read<c_uint>,
    pub read_slid: Read<u32>,
    pub read_sl: Read<u8>,
    pub read_dlid_path_bits: Read<u8>,
    pub read_completion_ts: opaque_fn,
    pub read_cvlan: opaque_fn,
    pub read_flow_tag: opaque_fn,
    pub read_tm_info: opaque_fn,
    pub read_completion_wallclock_ns: opaque_fn,
}

/// What lies around a context that applications see: verbs that came after the first ones.
#[repr(C)]
pub struct verbs_context {
    _before: [opaque_fn; 25],
    pub create_cq_ex:
        Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_cq_init_attr_ex) -> *mut ibv_cq_ex>,
    _after: [opaque_fn; 13],
    pub sz: usize,
    pub context: ibv_context,
}

/// Creates an extended completion queue; null with `errno` set if that fails.
///
/// # Safety
/// `context` is open, `attr` filled in.
pub unsafe fn ibv_create_cq_ex(context: *mut ibv_context, attr: *mut ibv_cq_init_attr_ex) -> *mut ibv_cq_ex {
    // SAFETY: an open context. Its marker says whether there is more around it, as libibverbs of the last ten years
    // has it.
    let create = unsafe {
        if (*context).abi_compat.addr() == usize::MAX {
            let around =
                context.byte_sub(std::mem::offset_of!(verbs_context, context)).cast::<verbs_context>();
            (*around).create_cq_ex
        } else {
            None
        }
    };
    match create {
        // SAFETY: as the caller promises.
        Some(create) => unsafe { create(context, attr) },
        None => {
            // SAFETY: this thread's own.
            unsafe { *libc::__errno_location() = libc::EOPNOTSUPP };
            std::ptr::null_mut()
        }
    }
}
