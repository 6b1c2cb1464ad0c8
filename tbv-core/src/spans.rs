//! Where a message's time goes: what the programs keep of it besides histograms.

use std::{collections::BTreeMap, io};

use aya::{
    Ebpf, Pod,
    maps::{HashMap, MapError},
};
use tbv_common::{Completion, CompletionKey, Cq, CqKey, NEXT_TIDY, Qp, QpKey, Request, RequestKey, late};

use crate::{
    error::{Error, Result},
    snapshot::{array, collect},
};

/// A queue pair: what the programs counted, and what became of the requests that have no completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueuePairTotals {
    /// What was counted.
    pub qp: Qp,
    /// Signalled requests that a reset or the queue pair's end has made the driver forget.
    pub forgotten: u64,
    /// Signalled requests that are still open.
    pub open: u64,
}

impl QueuePairTotals {
    /// What came since an earlier state; what is open is so now.
    #[must_use]
    pub fn since(&self, old: &QueuePairTotals) -> Self {
        let less = |now: u64, then: u64| now.saturating_sub(then);
        let [a, b, c] = self.qp.retransmits;
        let [x, y, z] = old.qp.retransmits;
        let qp = Qp {
            posted: less(self.qp.posted, old.qp.posted),
            unsignalled: less(self.qp.unsignalled, old.qp.unsignalled),
            completed: less(self.qp.completed, old.qp.completed),
            unknown: less(self.qp.unknown, old.qp.unknown),
            unsignalled_failed: less(self.qp.unsignalled_failed, old.qp.unsignalled_failed),
            overflowed: less(self.qp.overflowed, old.qp.overflowed),
            retransmits: [less(a, x), less(b, y), less(c, z)],
            rnr: less(self.qp.rnr, old.qp.rnr),
            stalls: less(self.qp.stalls, old.qp.stalls),
            ..self.qp
        };
        QueuePairTotals { qp, forgotten: less(self.forgotten, old.forgotten), open: self.open }
    }
}

/// Begins of spans that were taken out of the maps because their end will not come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Left {
    /// Requests that were forgotten, by queue pair.
    forgotten: BTreeMap<QpKey, u64>,
    /// State of the programs' counter when this was done.
    done: u64,
}

impl Left {
    /// Takes them out, if there can be any.
    pub(crate) fn tidy(&mut self, ebpf: &mut Ebpf) -> Result<()> {
        let reason = array::<u64>(ebpf, "NEXT")?.get(&NEXT_TIDY, 0).map_err(|e| Error::Map("NEXT", e))?;
        if reason == self.done {
            return Ok(());
        }
        self.done = reason;
        let qps = collect::<QpKey, Qp>(ebpf, "QPS")?;
        for (key, request) in collect::<RequestKey, Request>(ebpf, "REQUESTS")? {
            if is_forgotten(&qps, &key, &request) && remove::<_, Request>(ebpf, "REQUESTS", &key)? {
                *self.forgotten.entry(qp_of(&key)).or_default() += 1;
            }
        }
        let cqs = collect::<CqKey, Cq>(ebpf, "CQS")?;
        for key in collect::<CompletionKey, Completion>(ebpf, "COMPLETIONS")?.into_keys() {
            let cq = cqs.get(&CqKey { device: key.device, cqn: key.cqn });
            if cq.is_none_or(|cq| cq.destroyed != 0 || is_past(cq, key.number)) {
                remove::<_, Completion>(ebpf, "COMPLETIONS", &key)?;
            }
        }
        Ok(())
    }

    /// Every queue pair.
    pub(crate) fn totals(&self, ebpf: &Ebpf) -> Result<BTreeMap<QpKey, QueuePairTotals>> {
        // In this order: of a queue pair that is gone by then, no request is still to be forgotten.
        let qps = collect::<QpKey, Qp>(ebpf, "QPS")?;
        if qps.is_empty() {
            return Ok(BTreeMap::new());
        }
        let requests = collect::<RequestKey, Request>(ebpf, "REQUESTS")?;
        let (mut forgotten, mut open) = (self.forgotten.clone(), BTreeMap::<QpKey, u64>::new());
        for (key, request) in &requests {
            let counts = if is_forgotten(&qps, key, request) { &mut forgotten } else { &mut open };
            *counts.entry(qp_of(key)).or_default() += 1;
        }
        let totals = qps.into_iter().map(|(key, qp)| {
            let of = |counts: &BTreeMap<QpKey, u64>| counts.get(&key).copied().unwrap_or_default();
            (key, QueuePairTotals { qp, forgotten: of(&forgotten), open: of(&open) })
        });
        Ok(totals.collect())
    }
}

fn qp_of(key: &RequestKey) -> QpKey {
    QpKey { device: key.device, qpn: key.qpn }
}

/// Whether the queue pair was reset, or is gone, since it was posted.
fn is_forgotten(qps: &BTreeMap<QpKey, Qp>, key: &RequestKey, request: &Request) -> bool {
    qps.get(&qp_of(key)).is_some_and(|qp| request.time < qp.forgotten_before)
}

/// Whether nobody will tell any more that this completion is taken. Numbers in a ring may go round.
fn is_past(cq: &Cq, number: u64) -> bool {
    // Whoever takes from a published queue tells it later.
    let total = if cq.mapped == 0 { cq.consumed } else { cq.produced.wrapping_sub(late(cq.entries)) };
    (number.wrapping_sub(total.wrapping_add(cq.ring_first)) as i64) < 0
}

/// Takes an entry out; whether it was there.
fn remove<K: Pod, V: Pod>(ebpf: &mut Ebpf, name: &'static str, key: &K) -> Result<bool> {
    let map = ebpf.map_mut(name).ok_or(Error::Missing(name))?;
    let mut map = HashMap::<_, K, V>::try_from(map).map_err(|e| Error::Map(name, e))?;
    match map.remove(key) {
        Ok(()) => Ok(true),
        Err(MapError::KeyNotFound) => Ok(false),
        Err(MapError::SyscallError(e)) if e.io_error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(Error::Map(name, e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_ring_are_compared_where_they_go_round() {
        let cq = |consumed, ring_first| Cq { consumed, ring_first, ..Cq::default() };
        assert!(is_past(&cq(5, 0), 4) && !is_past(&cq(5, 0), 5));
        assert!(!is_past(&cq(0, 0), 0));
        let first = u64::MAX - 1;
        assert!(is_past(&cq(1, first), first) && !is_past(&cq(1, first), u64::MAX));
        assert!(is_past(&cq(3, first), u64::MAX) && is_past(&cq(3, first), 0) && !is_past(&cq(3, first), 1));
    }

    #[test]
    fn what_was_taken_from_a_published_queue_may_be_told_later() {
        let late = late(16);
        let cq = Cq { entries: 16, mapped: 1, produced: late + 5, consumed: late + 5, ..Cq::default() };
        assert!(is_past(&cq, 4) && !is_past(&cq, 5));
        let young = Cq { produced: 3, ..cq };
        assert!(!is_past(&young, 0));
    }
}
