//! Work requests that were posted and have no completion yet.

use std::collections::BTreeMap;

/// A queue of a queue pair: the driver's index of the device, number, [`tbv_core::Queue`].
pub(crate) type QueueKey = (u32, u32, u32);

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Posted {
    pub(crate) seq: u64,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub(crate) time: u64,
    pub(crate) pid: u32,
    pub(crate) opcode: u32,
}

/// All signalled ones that are open. A queue's requests complete in its order, so one whose completion was not seen is
/// known to be done when a later one is.
#[derive(Debug, Default)]
pub(crate) struct Requests(BTreeMap<QueueKey, BTreeMap<u64, Posted>>);

impl Requests {
    pub(crate) fn post(&mut self, queue: QueueKey, posted: Posted) {
        self.0.entry(queue).or_default().insert(posted.seq, posted);
    }

    /// A completion came: its request, if the posting was seen, and those before it that have none of their own.
    pub(crate) fn complete(&mut self, queue: QueueKey, seq: u64) -> (Option<Posted>, Vec<Posted>) {
        let Some(open) = self.0.get_mut(&queue) else { return (None, Vec::new()) };
        let done = open.remove(&seq);
        let later = open.split_off(&seq);
        let passed = std::mem::replace(open, later);
        (done, passed.into_values().collect())
    }

    /// The queue pair was reset, or is gone, or is new: nothing of it is open any more.
    pub(crate) fn forget(&mut self, device: u32, qpn: u32) -> Vec<(QueueKey, Posted)> {
        flat(self.0.extract_if((device, qpn, 0)..=(device, qpn, u32::MAX), |_, _| true))
    }

    /// All that are left.
    pub(crate) fn take(&mut self) -> Vec<(QueueKey, Posted)> {
        flat(std::mem::take(&mut self.0).into_iter())
    }
}

fn flat(queues: impl Iterator<Item = (QueueKey, BTreeMap<u64, Posted>)>) -> Vec<(QueueKey, Posted)> {
    queues.flat_map(|(queue, open)| open.into_values().map(move |posted| (queue, posted))).collect()
}
