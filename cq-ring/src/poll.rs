//! Polling, whatever the memory is.

use std::array::from_fn;

use crate::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// Words of an entry; fewer in the model, which tries every order of accesses to them.
pub const WORDS: usize = if cfg!(loom) { 2 } else { tbv_proto::CQ_SHM_ENTRY_SIZE / size_of::<u64>() };

/// A completion: a `struct ib_uverbs_wc` of `<rdma/ib_user_verbs.h>`.
pub type Entry = [u64; WORDS];

/// What kernel and process share of a queue.
pub trait Memory {
    /// Capacity.
    fn cqe(&self) -> u32;
    /// Completions ever put in.
    fn produced(&self) -> &AtomicU64;
    /// Completions ever taken out.
    fn consumed(&self) -> &AtomicU64;
    /// Completions ever lost.
    fn ovf_seq(&self) -> &AtomicU64;
    /// Not zero once nothing more will come.
    fn dead(&self) -> &AtomicU32;
    /// The slot of completion `number`.
    fn slot(&self, number: u64) -> &[AtomicU64; WORDS];
}

/// Why a poll took nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nothing {
    /// There is nothing, so far.
    Empty,
    /// There is nothing, and completions were lost since this was last said.
    Overflow,
    /// There is nothing, and never will be.
    Dead,
    /// The consumer page holds what cannot be: somebody wrote into it.
    Corrupt,
}

/// What a poll took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Number of the first completion in the ring: what `consumed` was.
    pub first: u64,
    /// How many.
    pub count: usize,
}

/// Takes completions out of a queue.
pub struct Consumer<M> {
    memory: M,
    /// The loss that was last told.
    told: AtomicU64,
}

impl<M: Memory> Consumer<M> {
    /// A consumer of a queue that has just been created.
    pub fn new(memory: M) -> Self {
        Consumer { memory, told: AtomicU64::new(0) }
    }

    /// What it polls.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Takes up to `room` completions, in order, and gives each with its number among them to `keep`. A number may
    /// be given again, when another thread was faster: the last one counts.
    ///
    /// Returns how many, or why none.
    #[inline]
    pub fn poll(&self, room: usize, keep: impl FnMut(usize, &Entry)) -> Result<usize, Nothing> {
        self.take(room, keep).map(|taken| taken.count)
    }

    /// As [`poll`](Self::poll); also tells which.
    #[inline]
    pub fn take(&self, room: usize, mut keep: impl FnMut(usize, &Entry)) -> Result<Taken, Nothing> {
        let memory = &self.memory;
        loop {
            let from = memory.consumed().load(Acquire);
            let there = acquire(memory.produced()).wrapping_sub(from);
            if there == 0 {
                match self.nothing(from) {
                    Some(nothing) => return Err(nothing),
                    None => continue,
                }
            }
            if there > u64::from(memory.cqe()) {
                // Others took some between the two loads, or it never was true.
                if memory.consumed().load(Acquire) == from {
                    return Err(Nothing::Corrupt);
                }
                continue;
            }
            let taken = room.min(usize::try_from(there).unwrap_or(room));
            for i in 0..taken {
                let slot = memory.slot(from.wrapping_add(i as u64));
                keep(i, &from_fn(|word| slot[word].load(Relaxed)));
            }
            // Release: the copies are made before the kernel learns that it may write there again.
            let to = from.wrapping_add(taken as u64);
            if memory.consumed().compare_exchange(from, to, Release, Relaxed).is_ok() {
                return Ok(Taken { first: from, count: taken });
            }
        }
    }

    /// What it means that nothing came after `from`; `None` if something has.
    #[inline]
    fn nothing(&self, from: u64) -> Option<Nothing> {
        let lost = acquire(self.memory.ovf_seq());
        let news = lost > self.told.load(Relaxed);
        let dead = self.memory.dead().load(Relaxed) != 0;
        fence(Acquire);
        if !news && !dead {
            return Some(Nothing::Empty);
        }
        // What preceded the loss or the end must be taken first.
        if acquire(self.memory.produced()) != from {
            return None;
        }
        // Each loss is told once, to one thread. Another may have told more by now: that stays told.
        if news && self.told.fetch_max(lost, Relaxed) < lost {
            return Some(Nothing::Overflow);
        }
        Some(if dead { Nothing::Dead } else { Nothing::Empty })
    }
}

/// Reads what the kernel has released. On memory that may only be read, the language knows no other load than a relaxed
/// one.
#[inline]
fn acquire(total: &AtomicU64) -> u64 {
    let value = total.load(Relaxed);
    fence(Acquire);
    value
}
