//! Completion queues that the kernel publishes: polled by reading memory.

use std::env;
use std::ffi::{OsString, c_int};
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use tbv_cq_ring::{Consumer, Entry, Mapped, Nothing};
use tbv_proto::{CQ_SHM_ABI, CQ_SHM_ENTRY_SIZE, CqShm, CreateCqResp, FallBack, cq_ring_len};
use tbv_verbs_sys::ibv_wc;

use crate::mapping::{Mapping, page_size};
use crate::probes;

/// Capacities beyond this are no queue's.
const MAX_CQE: u32 = 1 << 24;

// A completion is copied as it is: the layouts are equal (abi/tests.rs).
const _: () =
    assert!(size_of::<ibv_wc>() == size_of::<Entry>() && align_of::<ibv_wc>() == align_of::<Entry>());

/// A queue that is mapped.
pub(crate) struct Published {
    consumer: Consumer<Mapped>,
    name: probes::Name,
    /// Whether a probe has told that the device is gone.
    gone: AtomicBool,
    _ring: Mapping,
    _page: Mapping,
}

/// Whether to ask the kernel for it: `USB4_RDMA_CQ=ioctl` says no.
pub(crate) fn wanted() -> bool {
    !cfg!(feature = "double-old") && variable("USB4_RDMA_CQ").is_none_or(|value| value != "ioctl")
}

impl Published {
    /// Maps what the kernel offers, if it does and the offer adds up; else the queue is polled by system call, which
    /// is always possible. `cqe` is the capacity that the kernel told libibverbs; `forks` says whether a forked child can
    /// be told from this process.
    pub(crate) fn map(fd: c_int, cqe: c_int, offer: &CreateCqResp, forks: bool) -> Option<Self> {
        if *offer == CreateCqResp::default() {
            if wanted() {
                fall_back(FallBack::NotOffered, "the kernel does not offer the queue to user space");
            }
            return None;
        }
        if !forks {
            // There the queue would not be mapped, and polling it would crash.
            fall_back(FallBack::ForksUnseen, "a forked child could not be told from this process");
            return None;
        }
        match Self::try_map(fd, cqe, offer) {
            Ok(published) => Some(published),
            Err((kind, reason)) => {
                fall_back(kind, &reason);
                None
            }
        }
    }

    fn try_map(fd: c_int, cqe: c_int, offer: &CreateCqResp) -> Result<Self, (FallBack, String)> {
        check(offer, cqe, page_size()).map_err(|reason| (FallBack::BadOffer, reason))?;
        let shared = |what, offset, length, protection| {
            Mapping::shared(fd, offset, length, protection)
                .map_err(|e| (FallBack::NotMapped, format!("cannot map the {what}: {e}")))
        };
        let ring = shared("ring", offer.ring_offset, offer.ring_len as usize, libc::PROT_READ)?;
        let page =
            shared("consumer page", offer.consumer_offset, page_size(), libc::PROT_READ | libc::PROT_WRITE)?;
        let shm = ring.start::<CqShm>();
        // SAFETY: mapped and at least as long. The kernel may write, but not to what is read here.
        let (abi, capacity, entry_size, name) = unsafe {
            let shm = shm.as_ptr();
            let name = probes::Name { device: (*shm).device_index, cqn: (*shm).cqn };
            ((*shm).abi, (*shm).cqe, (*shm).entry_size, name)
        };
        if (abi, capacity, entry_size as usize) != (CQ_SHM_ABI, offer.cqe, CQ_SHM_ENTRY_SIZE) {
            let reason =
                format!("the ring says layout {abi}, capacity {capacity}, entries of {entry_size} bytes");
            return Err((FallBack::BadRing, reason));
        }
        // SAFETY: both are mapped, aligned to pages, as long as the capacity wants, and live as long as the consumer.
        let memory = unsafe { Mapped::new(shm, page.start(), offer.cqe) };
        let consumer = Consumer::new(memory);
        Ok(Published { consumer, name, gone: AtomicBool::new(false), _ring: ring, _page: page })
    }

    /// Takes completions; returns how many, a negative errno value, or `None` if the kernel has to be asked.
    ///
    /// # Safety
    /// `wc` has room for `num_entries`.
    pub(crate) unsafe fn poll(&self, num_entries: c_int, wc: *mut ibv_wc) -> Option<c_int> {
        let room = usize::try_from(num_entries).unwrap_or(0);
        // SAFETY: a number below the room is inside the caller's array.
        let keep = |i, entry: &Entry| unsafe { wc.add(i).cast::<Entry>().write(*entry) };
        match self.consumer.take(room, keep) {
            Ok(taken) => {
                probes::poll_hit(self.name, taken);
                Some(c_int::try_from(taken.count).unwrap_or(c_int::MAX))
            }
            Err(Nothing::Empty) => {
                probes::poll_empty(self.name);
                Some(0)
            }
            Err(Nothing::Overflow) => {
                probes::overflow(self.name);
                Some(-libc::EOVERFLOW)
            }
            Err(Nothing::Corrupt) => Some(-libc::EIO),
            // The device is gone; the kernel says so.
            Err(Nothing::Dead) => {
                if !self.gone.swap(true, Ordering::Relaxed) {
                    probes::fall_back(FallBack::DeviceGone);
                }
                None
            }
        }
    }
}

/// Whether an offer adds up, or what doesn't.
fn check(offer: &CreateCqResp, cqe: c_int, page_size: usize) -> Result<(), String> {
    let refuse = |what: &str, said, expected| {
        if said == expected {
            Ok(())
        } else {
            Err(format!("the kernel's reply says {what} {said}, not {expected}"))
        }
    };
    refuse("layout", offer.shm_abi, CQ_SHM_ABI)?;
    refuse("reserved", offer.reserved, 0)?;
    refuse("capacity", offer.cqe, u32::try_from(cqe).unwrap_or(0))?;
    if offer.cqe == 0 || offer.cqe > MAX_CQE {
        return Err(format!("the kernel's reply says capacity {}", offer.cqe));
    }
    refuse("length", offer.ring_len, u32::try_from(cq_ring_len(offer.cqe, page_size)).unwrap_or(0))
}

/// Tells tracers why a queue is polled by system call, and the user if `USB4_RDMA_DEBUG` is set.
fn fall_back(kind: FallBack, reason: &str) {
    probes::fall_back(kind);
    if variable("USB4_RDMA_DEBUG").is_some() {
        let _ = writeln!(io::stderr(), "usb4_rdma: polling a completion queue by system call: {reason}");
    }
}

/// An environment variable; none is heeded where the program has more rights than its user.
fn variable(name: &str) -> Option<OsString> {
    // SAFETY: no preconditions.
    let privileged = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    if privileged { None } else { env::var_os(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: CreateCqResp = CreateCqResp {
        ring_offset: 0x1000,
        cqe: 100,
        shm_abi: CQ_SHM_ABI,
        ring_len: 8192,
        reserved: 0,
        consumer_offset: 0x4000,
    };

    #[test]
    fn an_offer_that_does_not_add_up_is_refused() {
        let reason = |offer: CreateCqResp| check(&offer, 100, 4096).err().unwrap_or_default();
        assert_eq!(reason(GOOD), "");
        assert!(reason(CreateCqResp { shm_abi: 2, ..GOOD }).contains("layout 2, not 1"));
        assert!(reason(CreateCqResp { reserved: 1, ..GOOD }).contains("reserved 1"));
        assert!(reason(CreateCqResp { cqe: 200, ..GOOD }).contains("capacity 200, not 100"));
        assert!(reason(CreateCqResp { ring_len: 4096, ..GOOD }).contains("length 4096, not 8192"));
        assert!(check(&CreateCqResp { cqe: 0, ..GOOD }, 0, 4096).is_err());
        assert!(check(&CreateCqResp { cqe: u32::MAX, ..GOOD }, -1, 4096).is_err());
    }
}
