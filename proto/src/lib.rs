//! The contract between `thunderbolt_ibverbs.ko` and user space.
//!
//! Mirrors the C headers beside this crate, which the kernel module includes. `tests/layout.rs` has
//! a C compiler hold every size, offset and constant against this mirror.

#![no_std]

mod abi;
mod cq;
mod guid;
mod probes;

pub use abi::{
    AllocUcontextResp, CreateCqResp, DEVICE_NAME_PREFIX, DRIVER_NAME, UVERBS_ABI_VERSION, VENDOR_ID,
    VENDOR_PART_ID,
};
pub use cq::{CQ_SHM_ABI, CQ_SHM_ENTRY_SIZE, CqConsumer, CqShm, cq_ring_len, cq_slots};
pub use guid::{GUID_PREFIX, GUID_PREFIX_SHIFT, is_usb4_rdma_guid};
pub use probes::{FALL_BACK, FallBack, OVERFLOW, POLL_EMPTY, POLL_HIT, PROBE_PROVIDER, PROBES};
