//! The memory that kernel and process share.

use std::ptr::NonNull;

use tbv_proto::{CqConsumer, CqShm, cq_slots};

use crate::{
    Memory,
    atomic::{AtomicU32, AtomicU64},
    poll::WORDS,
};

/// A queue at two addresses.
pub struct Mapped {
    shm: NonNull<CqShm>,
    consumer: NonNull<CqConsumer>,
    cqe: u32,
    mask: u64,
}

// SAFETY: the memory is shared with the kernel anyway, and only accessed by atomic operations.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// # Safety
    /// `shm` points to the head of a ring of capacity `cqe` with its entries behind it, `consumer` to the head of the
    /// consumer page, both aligned, for as long as this lives; others access them by atomic operations only.
    pub unsafe fn new(shm: NonNull<CqShm>, consumer: NonNull<CqConsumer>, cqe: u32) -> Self {
        Mapped { shm, consumer, cqe, mask: cq_slots(cqe) as u64 - 1 }
    }
}

impl Memory for Mapped {
    #[inline]
    fn cqe(&self) -> u32 {
        self.cqe
    }

    #[inline]
    fn produced(&self) -> &AtomicU64 {
        // SAFETY: as promised to new().
        unsafe { AtomicU64::from_ptr(&raw mut (*self.shm.as_ptr()).produced) }
    }

    #[inline]
    fn consumed(&self) -> &AtomicU64 {
        // SAFETY: as promised to new().
        unsafe { AtomicU64::from_ptr(&raw mut (*self.consumer.as_ptr()).consumed) }
    }

    #[inline]
    fn ovf_seq(&self) -> &AtomicU64 {
        // SAFETY: as promised to new().
        unsafe { AtomicU64::from_ptr(&raw mut (*self.shm.as_ptr()).ovf_seq) }
    }

    #[inline]
    fn dead(&self) -> &AtomicU32 {
        // SAFETY: as promised to new().
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shm.as_ptr()).dead) }
    }

    #[inline]
    fn slot(&self, number: u64) -> &[AtomicU64; WORDS] {
        // SAFETY: the mask keeps it inside the ring, whatever the number is. Entries begin behind the head, aligned as
        // it is, and atomic words are laid out as plain ones.
        unsafe { self.shm.add(1).cast::<[AtomicU64; WORDS]>().add((number & self.mask) as usize).as_ref() }
    }
}
