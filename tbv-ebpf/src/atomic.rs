//! Atomic read-modify-write on map values, which several CPUs update at once.

use core::intrinsics::{AtomicOrdering, atomic_cxchg, atomic_xadd};

use tbv_common::Loss;

use crate::maps::LOSS;

/// Attempts to install a new extreme before it is given up and counted as raced.
const TRIES: usize = 8;

/// `*p += n`.
///
/// # Safety
/// `p` points into a live map value.
#[inline(always)]
pub unsafe fn add(p: *mut u64, n: u64) {
    // SAFETY: the caller's promise; the access is atomic.
    unsafe { atomic_xadd::<u64, u64, { AtomicOrdering::Relaxed }>(p, n) };
}

/// `*p += 1`, returning the value before. Sequentially consistent because LLVM turns a relaxed
/// one into the BPF instruction that returns nothing.
///
/// # Safety
/// As [`add`].
#[inline(always)]
pub unsafe fn take_next(p: *mut u64) -> u64 {
    // SAFETY: the caller's promise; the access is atomic.
    unsafe { atomic_xadd::<u64, u64, { AtomicOrdering::SeqCst }>(p, 1) }
}

/// Replaces `*p` by `value` while `better(value, *p)`.
///
/// # Safety
/// As [`add`].
#[inline(always)]
pub unsafe fn extreme(p: *mut u64, value: u64, better: impl Fn(u64, u64) -> bool) {
    // SAFETY: the caller's promise.
    let mut seen = unsafe { p.read_volatile() };
    for _ in 0..TRIES {
        if !better(value, seen) {
            return;
        }
        // SAFETY: the caller's promise; the access is atomic.
        let (now, done) = unsafe {
            atomic_cxchg::<u64, { AtomicOrdering::SeqCst }, { AtomicOrdering::SeqCst }>(p, seen, value)
        };
        if done {
            return;
        }
        seen = now;
    }
    lost(Loss::ExtremesRaced);
}

/// Counts one loss.
#[inline(always)]
pub fn lost(what: Loss) {
    if let Some(counter) = LOSS.get_ptr_mut(what as u32) {
        // SAFETY: a live map value.
        unsafe { add(counter, 1) };
    }
}
