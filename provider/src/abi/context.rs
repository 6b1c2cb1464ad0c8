//! An open device as libibverbs sees it, and the verbs that a provider can implement.

use std::ffi::{c_int, c_uint, c_void};

pub(crate) use tbv_verbs_sys::verbs_context;
use tbv_verbs_sys::{
    ibv_comp_channel, ibv_context, ibv_cq, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_mr, ibv_pd, ibv_port_attr,
    ibv_qp, ibv_qp_attr, ibv_qp_init_attr, ibv_recv_wr, ibv_send_wr, ibv_wc, opaque_fn,
};

/// A memory region with what libibverbs keeps beside it.
#[repr(C)]
pub(crate) struct verbs_mr {
    pub(crate) ibv_mr: ibv_mr,
    pub(crate) mr_type: c_uint,
    pub(crate) access: c_int,
}

/// The verbs of a provider; what is `None` keeps libibverbs' answer, "not supported".
#[repr(C)]
pub(crate) struct verbs_context_ops {
    pub(crate) advise_mr: opaque_fn,
    pub(crate) alloc_dm: opaque_fn,
    pub(crate) alloc_mw: opaque_fn,
    pub(crate) alloc_null_mr: opaque_fn,
    pub(crate) alloc_parent_domain: opaque_fn,
    pub(crate) alloc_pd: Option<unsafe extern "C" fn(*mut ibv_context) -> *mut ibv_pd>,
    pub(crate) alloc_td: opaque_fn,
    pub(crate) async_event: opaque_fn,
    pub(crate) attach_counters_point_flow: opaque_fn,
    pub(crate) attach_mcast: opaque_fn,
    pub(crate) bind_mw: opaque_fn,
    pub(crate) close_xrcd: opaque_fn,
    pub(crate) cq_event: opaque_fn,
    pub(crate) create_ah: opaque_fn,
    pub(crate) create_counters: opaque_fn,
    pub(crate) create_cq:
        Option<unsafe extern "C" fn(*mut ibv_context, c_int, *mut ibv_comp_channel, c_int) -> *mut ibv_cq>,
    pub(crate) create_cq_ex:
        Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_cq_init_attr_ex) -> *mut ibv_cq_ex>,
    pub(crate) create_flow: opaque_fn,
    pub(crate) create_flow_action_esp: opaque_fn,
    pub(crate) create_qp: Option<unsafe extern "C" fn(*mut ibv_pd, *mut ibv_qp_init_attr) -> *mut ibv_qp>,
    pub(crate) create_qp_ex: opaque_fn,
    pub(crate) create_rwq_ind_table: opaque_fn,
    pub(crate) create_srq: opaque_fn,
    pub(crate) create_srq_ex: opaque_fn,
    pub(crate) create_wq: opaque_fn,
    pub(crate) dealloc_mw: opaque_fn,
    pub(crate) dealloc_pd: Option<unsafe extern "C" fn(*mut ibv_pd) -> c_int>,
    pub(crate) dealloc_td: opaque_fn,
    pub(crate) dereg_mr: Option<unsafe extern "C" fn(*mut verbs_mr) -> c_int>,
    pub(crate) destroy_ah: opaque_fn,
    pub(crate) destroy_counters: opaque_fn,
    pub(crate) destroy_cq: Option<unsafe extern "C" fn(*mut ibv_cq) -> c_int>,
    pub(crate) destroy_flow: opaque_fn,
    pub(crate) destroy_flow_action: opaque_fn,
    pub(crate) destroy_qp: Option<unsafe extern "C" fn(*mut ibv_qp) -> c_int>,
    pub(crate) destroy_rwq_ind_table: opaque_fn,
    pub(crate) destroy_srq: opaque_fn,
    pub(crate) destroy_wq: opaque_fn,
    pub(crate) detach_mcast: opaque_fn,
    pub(crate) free_context: Option<unsafe extern "C" fn(*mut ibv_context)>,
    pub(crate) free_dm: opaque_fn,
    pub(crate) get_srq_num: opaque_fn,
    pub(crate) import_dm: opaque_fn,
    pub(crate) import_mr: opaque_fn,
    pub(crate) import_pd: opaque_fn,
    pub(crate) modify_cq: opaque_fn,
    pub(crate) modify_flow_action_esp: opaque_fn,
    pub(crate) modify_qp: Option<unsafe extern "C" fn(*mut ibv_qp, *mut ibv_qp_attr, c_int) -> c_int>,
    pub(crate) modify_qp_rate_limit: opaque_fn,
    pub(crate) modify_srq: opaque_fn,
    pub(crate) modify_wq: opaque_fn,
    pub(crate) open_qp: opaque_fn,
    pub(crate) open_xrcd: opaque_fn,
    pub(crate) poll_cq: Option<unsafe extern "C" fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int>,
    pub(crate) post_recv:
        Option<unsafe extern "C" fn(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int>,
    pub(crate) post_send:
        Option<unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int>,
    pub(crate) post_srq_ops: opaque_fn,
    pub(crate) post_srq_recv: opaque_fn,
    pub(crate) query_device_ex:
        Option<unsafe extern "C" fn(*mut ibv_context, *const c_void, *mut c_void, usize) -> c_int>,
    pub(crate) query_ece: opaque_fn,
    pub(crate) query_port: Option<unsafe extern "C" fn(*mut ibv_context, u8, *mut ibv_port_attr) -> c_int>,
    pub(crate) query_qp:
        Option<unsafe extern "C" fn(*mut ibv_qp, *mut ibv_qp_attr, c_int, *mut ibv_qp_init_attr) -> c_int>,
    pub(crate) query_qp_data_in_order: opaque_fn,
    pub(crate) query_rt_values: opaque_fn,
    pub(crate) query_srq: opaque_fn,
    pub(crate) read_counters: opaque_fn,
    pub(crate) reg_dm_mr: opaque_fn,
    pub(crate) reg_dmabuf_mr: opaque_fn,
    pub(crate) reg_mr:
        Option<unsafe extern "C" fn(*mut ibv_pd, *mut c_void, usize, u64, c_int) -> *mut ibv_mr>,
    pub(crate) req_notify_cq: Option<unsafe extern "C" fn(*mut ibv_cq, c_int) -> c_int>,
    pub(crate) rereg_mr: opaque_fn,
    pub(crate) resize_cq: opaque_fn,
    pub(crate) set_ece: opaque_fn,
    pub(crate) unimport_dm: opaque_fn,
    pub(crate) unimport_mr: opaque_fn,
    pub(crate) unimport_pd: opaque_fn,
}

impl verbs_context_ops {
    /// Implements nothing.
    pub(crate) const NONE: Self = {
        // SAFETY: every member is an optional function pointer, for which zero is None.
        unsafe { std::mem::zeroed() }
    };
}
