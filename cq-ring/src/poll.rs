//! Polling, whatever the memory is.

use std::array::from_fn;

use tbv_proto::CQ_SHM_PURGED;

use crate::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
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
    pub fn poll(&self, room: usize, mut keep: impl FnMut(usize, &Entry)) -> Result<usize, Nothing> {
        let memory = &self.memory;
        loop {
            let from = memory.consumed().load(Acquire);
            let there = memory.produced().load(Acquire).wrapping_sub(from);
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
            let (mut number, mut kept) = (from, 0);
            while number.wrapping_sub(from) < there && kept < room {
                let entry: Entry = from_fn(|word| memory.slot(number)[word].load(Relaxed));
                if !is_purged(&entry) {
                    keep(kept, &entry);
                    kept += 1;
                }
                number = number.wrapping_add(1);
            }
            // Release: the copies are made before the kernel learns that it may write there again.
            if memory.consumed().compare_exchange(from, number, Release, Relaxed).is_ok()
                && (kept > 0 || room == 0)
            {
                return Ok(kept);
            }
        }
    }

    /// What it means that nothing came after `from`; `None` if something has.
    fn nothing(&self, from: u64) -> Option<Nothing> {
        let lost = self.memory.ovf_seq().load(Acquire);
        let news = lost > self.told.load(Relaxed);
        let dead = self.memory.dead().load(Acquire) != 0;
        if !news && !dead {
            return Some(Nothing::Empty);
        }
        // What preceded the loss or the end must be taken first.
        if self.memory.produced().load(Acquire) != from {
            return None;
        }
        // Each loss is told once, to one thread. Another may have told more by now: that stays told.
        if news && self.told.fetch_max(lost, Relaxed) < lost {
            return Some(Nothing::Overflow);
        }
        Some(if dead { Nothing::Dead } else { Nothing::Empty })
    }
}

/// Whether the queue pair of the completion is gone: the last byte of the entry says so.
fn is_purged(entry: &Entry) -> bool {
    entry[WORDS - 1].to_ne_bytes()[7] == CQ_SHM_PURGED
}
