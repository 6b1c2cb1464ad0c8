//! The provider's probes: static markers (USDT) for tracers, a `nop` each while nobody is attached.
//!
//! They tell what the kernel cannot see, because polling a published queue does not enter it. A queue is named as in the
//! driver's tracepoints, by device index and number; both are zero with a kernel module that tells the process neither.

/// Provider of the probes, as tracers name it.
pub const PROBE_PROVIDER: &str = "usb4_rdma";

/// A poll took completions: device index, queue number, number in the ring of the first, how many (0 if the caller had
/// no room).
pub const POLL_HIT: &str = "poll_hit";
/// A poll found nothing: device index, queue number.
pub const POLL_EMPTY: &str = "poll_empty";
/// A poll told that completions were lost: device index, queue number.
pub const OVERFLOW: &str = "overflow";
/// A queue is polled by system call from now on, though publishing it was wanted: a [`FallBack`].
pub const FALL_BACK: &str = "fall_back";

/// All of them, with the number of their arguments.
pub const PROBES: [(&str, usize); 4] = [(POLL_HIT, 4), (POLL_EMPTY, 2), (OVERFLOW, 2), (FALL_BACK, 1)];

/// Why a queue is polled by system call. Numbers are only added.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FallBack {
    /// The kernel module does not offer the queue.
    NotOffered = 1,
    /// A forked child could not be told from this process.
    ForksUnseen = 2,
    /// The module's offer does not add up.
    BadOffer = 3,
    /// What was offered could not be mapped.
    NotMapped = 4,
    /// What was mapped is not what was offered.
    BadRing = 5,
    /// The device is gone, and the kernel has the last word.
    DeviceGone = 6,
}

impl FallBack {
    /// All of them, in the order of their numbers.
    pub const ALL: [FallBack; 6] = [
        FallBack::NotOffered,
        FallBack::ForksUnseen,
        FallBack::BadOffer,
        FallBack::NotMapped,
        FallBack::BadRing,
        FallBack::DeviceGone,
    ];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            FallBack::NotOffered => "not_offered",
            FallBack::ForksUnseen => "forks_unseen",
            FallBack::BadOffer => "bad_offer",
            FallBack::NotMapped => "not_mapped",
            FallBack::BadRing => "bad_ring",
            FallBack::DeviceGone => "device_gone",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FallBack;

    #[test]
    fn reasons_are_numbered_and_named_apart() {
        for (at, reason) in FallBack::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, at + 1);
            assert!(FallBack::ALL[..at].iter().all(|other| other.name() != reason.name()));
        }
    }
}
