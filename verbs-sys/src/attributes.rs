//! What is asked and told about devices, ports and queue pairs.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::{ibv_cq, ibv_srq};

pub const IBV_ACCESS_LOCAL_WRITE: c_uint = 1 << 0;
pub const IBV_ACCESS_REMOTE_WRITE: c_uint = 1 << 1;
pub const IBV_ACCESS_REMOTE_READ: c_uint = 1 << 2;
pub const IBV_ACCESS_REMOTE_ATOMIC: c_uint = 1 << 3;

pub const IBV_QPT_RC: c_uint = 2;
pub const IBV_QPT_UC: c_uint = 3;

pub const IBV_QPS_RESET: c_uint = 0;
pub const IBV_QPS_INIT: c_uint = 1;
pub const IBV_QPS_RTR: c_uint = 2;
pub const IBV_QPS_RTS: c_uint = 3;
pub const IBV_QPS_ERR: c_uint = 6;

pub const IBV_QP_STATE: c_uint = 1 << 0;
pub const IBV_QP_ACCESS_FLAGS: c_uint = 1 << 3;
pub const IBV_QP_PKEY_INDEX: c_uint = 1 << 4;
pub const IBV_QP_PORT: c_uint = 1 << 5;
pub const IBV_QP_AV: c_uint = 1 << 7;
pub const IBV_QP_PATH_MTU: c_uint = 1 << 8;
pub const IBV_QP_TIMEOUT: c_uint = 1 << 9;
pub const IBV_QP_RETRY_CNT: c_uint = 1 << 10;
pub const IBV_QP_RNR_RETRY: c_uint = 1 << 11;
pub const IBV_QP_RQ_PSN: c_uint = 1 << 12;
pub const IBV_QP_MAX_QP_RD_ATOMIC: c_uint = 1 << 13;
pub const IBV_QP_MIN_RNR_TIMER: c_uint = 1 << 15;
pub const IBV_QP_SQ_PSN: c_uint = 1 << 16;
pub const IBV_QP_MAX_DEST_RD_ATOMIC: c_uint = 1 << 17;
pub const IBV_QP_CAP: c_uint = 1 << 19;
pub const IBV_QP_DEST_QPN: c_uint = 1 << 20;

/// A completion queue overflowed.
pub const IBV_EVENT_CQ_ERR: c_uint = 0;

pub const IBV_PORT_ACTIVE: c_uint = 4;

pub const IBV_LINK_LAYER_INFINIBAND: u8 = 1;
pub const IBV_LINK_LAYER_ETHERNET: u8 = 2;

/// Something that happened to a device or an object of it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ibv_async_event {
    /// The CQ, QP or SRQ, or in its first bytes a port number; a union in C.
    pub element: *mut c_void,
    pub event_type: c_uint,
}

/// A GID, bytes as on the wire.
pub type ibv_gid = [u8; 16];

/// Attributes and limits of a device.
#[repr(C)]
pub struct ibv_device_attr {
    pub fw_ver: [c_char; 64],
    pub node_guid: u64,
    pub sys_image_guid: u64,
    pub max_mr_size: u64,
    pub page_size_cap: u64,
    pub vendor_id: u32,
    pub vendor_part_id: u32,
    pub hw_ver: u32,
    pub max_qp: c_int,
    pub max_qp_wr: c_int,
    pub device_cap_flags: c_uint,
    pub max_sge: c_int,
    pub max_sge_rd: c_int,
    pub max_cq: c_int,
    pub max_cqe: c_int,
    _max_mr_to_max_srq_sge: [c_int; 22],
    pub max_pkeys: u16,
    pub local_ca_ack_delay: u8,
    pub phys_port_cnt: u8,
}

/// Attributes of a port, as the library's exported `ibv_query_port` fills them.
#[repr(C)]
#[derive(Default)]
pub struct ibv_port_attr {
    pub state: c_uint,
    pub max_mtu: c_uint,
    pub active_mtu: c_uint,
    pub gid_tbl_len: c_int,
    pub port_cap_flags: u32,
    /// Bytes of the longest message.
    pub max_msg_sz: u32,
    pub bad_pkey_cntr: u32,
    pub qkey_viol_cntr: u32,
    pub pkey_tbl_len: u16,
    pub lid: u16,
    pub sm_lid: u16,
    pub lmc: u8,
    pub max_vl_num: u8,
    pub sm_sl: u8,
    pub subnet_timeout: u8,
    pub init_type_reply: u8,
    pub active_width: u8,
    pub active_speed: u8,
    pub phys_state: u8,
    pub link_layer: u8,
    pub flags: u8,
    pub port_cap_flags2: u16,
    /// Newer libraries have more members here.
    _room: [u32; 4],
}

/// The global part of an address.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ibv_global_route {
    /// Eight-byte aligned in C.
    pub dgid: gid_words,
    pub flow_label: u32,
    pub sgid_index: u8,
    pub hop_limit: u8,
    pub traffic_class: u8,
}

/// A GID where C aligns it to eight bytes.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub struct gid_words(pub ibv_gid);

/// Address of a peer's port.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ibv_ah_attr {
    pub grh: ibv_global_route,
    pub dlid: u16,
    pub sl: u8,
    pub src_path_bits: u8,
    pub static_rate: u8,
    /// Non-zero if `grh` is to be used.
    pub is_global: u8,
    pub port_num: u8,
}

/// Capacities of a queue pair.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ibv_qp_cap {
    pub max_send_wr: u32,
    pub max_recv_wr: u32,
    pub max_send_sge: u32,
    pub max_recv_sge: u32,
    pub max_inline_data: u32,
}

/// How a queue pair is to be made.
#[repr(C)]
pub struct ibv_qp_init_attr {
    pub qp_context: *mut c_void,
    pub send_cq: *mut ibv_cq,
    pub recv_cq: *mut ibv_cq,
    pub srq: *mut ibv_srq,
    pub cap: ibv_qp_cap,
    pub qp_type: c_uint,
    pub sq_sig_all: c_int,
}

/// Attributes of a queue pair.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ibv_qp_attr {
    pub qp_state: c_uint,
    pub cur_qp_state: c_uint,
    pub path_mtu: c_uint,
    pub path_mig_state: c_uint,
    pub qkey: u32,
    pub rq_psn: u32,
    pub sq_psn: u32,
    pub dest_qp_num: u32,
    pub qp_access_flags: c_uint,
    pub cap: ibv_qp_cap,
    pub ah_attr: ibv_ah_attr,
    pub alt_ah_attr: ibv_ah_attr,
    pub pkey_index: u16,
    pub alt_pkey_index: u16,
    pub en_sqd_async_notify: u8,
    pub sq_draining: u8,
    pub max_rd_atomic: u8,
    pub max_dest_rd_atomic: u8,
    pub min_rnr_timer: u8,
    pub port_num: u8,
    pub timeout: u8,
    pub retry_cnt: u8,
    pub rnr_retry: u8,
    pub alt_port_num: u8,
    pub alt_timeout: u8,
    pub rate_limit: u32,
}
