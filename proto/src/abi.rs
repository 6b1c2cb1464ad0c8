//! Mirror of `usb4_rdma_abi.h`.

/// `ib_device_ops.uverbs_abi_ver` that this provider generation speaks (`USB4_RDMA_UVERBS_ABI_VERSION`).
pub const UVERBS_ABI_VERSION: u32 = 1;

/// Name of the provider (`USB4_RDMA_DRIVER_NAME`).
pub const DRIVER_NAME: &str = "usb4_rdma";

/// What a device's name starts with before udev renames it (`USB4_RDMA_DEVICE_NAME_FORMAT` without `%d`).
pub const DEVICE_NAME_PREFIX: &str = "usb4_rdma";

/// `vendor_id` of the device attributes (`USB4_RDMA_VENDOR_ID`).
pub const VENDOR_ID: u32 = 0x1d6b;

/// `vendor_part_id` of the device attributes (`USB4_RDMA_VENDOR_PART_ID`).
pub const VENDOR_PART_ID: u32 = 0x5442;

/// What the driver appends to the GET_CONTEXT reply (`struct usb4_rdma_alloc_ucontext_resp`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocUcontextResp {
    /// [`UVERBS_ABI_VERSION`] of the loaded module.
    pub uverbs_abi_version: u32,
    /// The device number that tracepoints and debugfs use; survives a rename by udev.
    pub device_index: u32,
}

/// What the driver appends to the CREATE_CQ reply (`struct usb4_rdma_create_cq_resp`).
///
/// All zero, which is also the [`Default`], means that the kernel doesn't offer the CQ to user space.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreateCqResp {
    /// mmap offset of the completion ring, to be mapped read-only.
    pub ring_offset: u64,
    /// Number of entries in the ring; may exceed what was asked for.
    pub cqe: u32,
    /// Version of the ring's layout.
    pub shm_abi: u32,
    /// Exact length of the ring mapping in bytes.
    pub ring_len: u32,
    /// Zero.
    pub reserved: u32,
    /// mmap offset of the consumer page, to be mapped writable, one page long.
    pub consumer_offset: u64,
}

const _: () = assert!(size_of::<AllocUcontextResp>() == 8);
const _: () = assert!(size_of::<CreateCqResp>() == 32);
