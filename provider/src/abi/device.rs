//! How a provider is registered, and how it recognises its devices.

use std::ffi::{c_char, c_int, c_uint, c_void};

use tbv_verbs_sys::{IBV_SYSFS_NAME_MAX, IBV_SYSFS_PATH_MAX, ibv_device, opaque_fn};

use super::verbs_context;

/// End of a match table.
pub(crate) const VERBS_MATCH_SENTINEL: u8 = 0;

/// Set in [`verbs_sysfs_dev::flags`] if `node_guid` has been read.
pub(crate) const VSYSFS_READ_NODE_GUID: c_uint = 1 << 1;

/// `RDMA_DRIVER_UNKNOWN` of `<rdma/ib_user_ioctl_verbs.h>`: the driver has no number of its own.
pub(crate) const RDMA_DRIVER_UNKNOWN: u32 = 0;

#[repr(C)]
pub(crate) struct list_node {
    pub(crate) next: *mut list_node,
    pub(crate) prev: *mut list_node,
}

#[repr(C)]
pub(crate) struct verbs_match_ent {
    pub(crate) driver_data: *mut c_void,
    /// A union in C: a pattern or a number.
    pub(crate) u: u64,
    pub(crate) vendor: u16,
    pub(crate) device: u16,
    pub(crate) kind: u8,
}

/// A device that libibverbs found and asks providers about.
#[repr(C)]
pub(crate) struct verbs_sysfs_dev {
    pub(crate) entry: list_node,
    pub(crate) provider_data: *mut c_void,
    pub(crate) match_: *const verbs_match_ent,
    pub(crate) flags: c_uint,
    pub(crate) sysfs_name: [c_char; IBV_SYSFS_NAME_MAX],
    pub(crate) sysfs_cdev: libc::dev_t,
    pub(crate) ibdev_name: [c_char; IBV_SYSFS_NAME_MAX],
    pub(crate) ibdev_path: [c_char; IBV_SYSFS_PATH_MAX],
    pub(crate) modalias: [c_char; 512],
    /// First byte of the GUID most significant.
    pub(crate) node_guid: u64,
    pub(crate) driver_id: u32,
    pub(crate) node_type: c_int,
    pub(crate) ibdev_idx: c_int,
    pub(crate) num_ports: u32,
    pub(crate) abi_ver: u32,
    pub(crate) time_created: libc::timespec,
}

#[repr(C)]
pub(crate) struct verbs_device_ops {
    pub(crate) name: *const c_char,
    pub(crate) match_min_abi_version: u32,
    pub(crate) match_max_abi_version: u32,
    pub(crate) match_table: *const verbs_match_ent,
    pub(crate) static_providers: *const c_void,
    pub(crate) match_device: Option<unsafe extern "C" fn(*mut verbs_sysfs_dev) -> bool>,
    pub(crate) alloc_context:
        Option<unsafe extern "C" fn(*mut ibv_device, c_int, *mut c_void) -> *mut verbs_context>,
    pub(crate) import_context: opaque_fn,
    pub(crate) alloc_device: Option<unsafe extern "C" fn(*mut verbs_sysfs_dev) -> *mut verbs_device>,
    pub(crate) uninit_device: Option<unsafe extern "C" fn(*mut verbs_device)>,
}

// SAFETY: only pointers to immutable statics, and functions.
unsafe impl Sync for verbs_device_ops {}

#[repr(C)]
pub(crate) struct verbs_device {
    pub(crate) device: ibv_device,
    pub(crate) ops: *const verbs_device_ops,
    pub(crate) refcount: c_int,
    pub(crate) entry: list_node,
    pub(crate) sysfs: *mut verbs_sysfs_dev,
    pub(crate) core_support: u64,
}
