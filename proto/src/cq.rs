//! Mirror of `tbv_cq_shm.h`: a completion queue published to user space.

/// Version of the layout (`TBV_CQ_SHM_ABI`).
pub const CQ_SHM_ABI: u32 = 1;

/// Bytes of an entry, a `struct ib_uverbs_wc` (`TBV_CQ_SHM_ENTRY_SIZE`).
pub const CQ_SHM_ENTRY_SIZE: usize = 48;

/// Head of the ring mapping (`struct tbv_cq_shm`); entries follow right behind it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CqShm {
    /// [`CQ_SHM_ABI`].
    pub abi: u32,
    /// Capacity.
    pub cqe: u32,
    /// [`CQ_SHM_ENTRY_SIZE`].
    pub entry_size: u32,
    /// The device number that tracepoints use.
    pub device_index: u32,
    /// The number of the queue that tracepoints use; zero in the ring of an older kernel module, which says neither.
    pub cqn: u32,
    /// Zero.
    pub reserved: [u32; 11],
    /// Completions ever put in.
    pub produced: u64,
    /// Completions ever lost because the queue was full.
    pub ovf_seq: u64,
    /// Not zero once nothing will ever be put in again.
    pub dead: u32,
    /// Zero.
    pub reserved_line: [u32; 11],
}

/// Head of the consumer page (`struct tbv_cq_consumer`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CqConsumer {
    /// Completions ever taken out.
    pub consumed: u64,
}

/// Slots of a ring of capacity `cqe`.
pub const fn cq_slots(cqe: u32) -> usize {
    (cqe as usize).next_power_of_two()
}

/// Bytes of the ring mapping of a queue of capacity `cqe`.
pub const fn cq_ring_len(cqe: u32, page_size: usize) -> usize {
    (size_of::<CqShm>() + cq_slots(cqe) * CQ_SHM_ENTRY_SIZE).next_multiple_of(page_size)
}

const _: () = assert!(size_of::<CqShm>() == 128);
