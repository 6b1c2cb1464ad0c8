//! What the maps hold at one moment.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap as StdHashMap},
    os::fd::AsFd as _,
    time::{Duration, Instant},
};

use aya::{
    Ebpf, Pod,
    maps::{Array, HashMap, Map, MapData},
};
use tbv_common::{
    Before, Cq, CqKey, ErrnoKey, FallBackKey, Histogram, Loss, NEXT_PROCESS, NEXT_SLOT, NO_SLOT, Process,
    QpKey, Row, RowKey, SpanKey, Thread, Work, WorkKey,
};

use crate::{
    error::{Error, Result},
    latency::Distribution,
    loss::Losses,
    names::OnlyDevices,
    spans::{Left, QueuePairTotals},
    sys,
};

/// One row: what was counted of one operation of one process on one device.
#[derive(Clone, Debug)]
pub struct Counted {
    /// What it counts.
    pub key: RowKey,
    /// Calls that returned.
    pub count: u64,
    /// Those that failed.
    pub errors: u64,
    /// Failures by errno.
    pub errnos: BTreeMap<u32, u64>,
    /// Latencies.
    pub latency: Distribution,
}

/// Everything counted.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The rows, in the order of their keys.
    pub rows: Vec<Counted>,
    /// Processes by number.
    pub processes: BTreeMap<u32, Process>,
    /// Completion queues of our own driver.
    pub cqs: BTreeMap<CqKey, Cq>,
    /// Work requests posted to our own driver.
    pub work: BTreeMap<WorkKey, Work>,
    /// Spans of messages of our own driver, if they were measured.
    pub spans: BTreeMap<SpanKey, Distribution>,
    /// Queue pairs of our own driver, if spans were measured.
    pub qps: BTreeMap<QpKey, QueuePairTotals>,
    /// Queues that are polled by system call, though not wanted so, as the provider's probes tell.
    pub fall_backs: BTreeMap<FallBackKey, u64>,
    /// What was lost.
    pub losses: Losses,
    /// Calls that ran when counting began and have returned.
    pub ran_at_begin: u64,
}

impl Snapshot {
    /// Leaves out what happened on other devices of our own driver.
    #[must_use]
    pub fn on(mut self, devices: &OnlyDevices) -> Snapshot {
        self.cqs.retain(|key, _| devices.has(key.device));
        self.work.retain(|key, _| devices.has(key.device));
        self.spans.retain(|key, _| devices.has(key.device));
        self.qps.retain(|key, _| devices.has(key.device));
        self
    }

    /// What came since an earlier snapshot of the same run. Of a row's latencies only the histogram says when they
    /// were: minimum and maximum are its outermost buckets' bounds, where the totals don't tell more. Totals of a
    /// completion queue's life and the most that was in it stay as they are; what had happened before is what had
    /// happened up to the earlier snapshot.
    #[must_use]
    pub fn since(&self, earlier: &Snapshot) -> Snapshot {
        let before: BTreeMap<RowKey, &Counted> = earlier.rows.iter().map(|row| (row.key, row)).collect();
        let rows = self
            .rows
            .iter()
            .map(|row| before.get(&row.key).map_or_else(|| row.clone(), |old| row.since(old)))
            .filter(|row| row.count > 0 || row.latency.sum > 0 || !row.errnos.is_empty())
            .collect();
        let cqs = self.cqs.iter().map(|(key, cq)| {
            // A number that is used again belongs to another queue, whose totals begin anew.
            let same = |old: &&Cq| old.produced <= cq.produced && old.consumed <= cq.consumed;
            let known = earlier.cqs.get(key).filter(same);
            let old = known.copied().unwrap_or_default();
            let began = known.is_some() && cq.before == Before::No as u32;
            let cq = Cq {
                before: if began { Before::Touched as u32 } else { cq.before },
                produced_before: cq.produced_before.max(old.produced),
                consumed_before: cq.consumed_before.max(old.consumed),
                pushed: cq.pushed.saturating_sub(old.pushed),
                failed: cq.failed.saturating_sub(old.failed),
                consumed_by_ioctl: cq.consumed_by_ioctl.saturating_sub(old.consumed_by_ioctl),
                overflows: cq.overflows.saturating_sub(old.overflows),
                occupancy_sum: cq.occupancy_sum.saturating_sub(old.occupancy_sum),
                purged: cq.purged.saturating_sub(old.purged),
                untimed: cq.untimed.saturating_sub(old.untimed),
                polls_hit: cq.polls_hit.saturating_sub(old.polls_hit),
                polls_empty: cq.polls_empty.saturating_sub(old.polls_empty),
                polls_overflow: cq.polls_overflow.saturating_sub(old.polls_overflow),
                polled: cq.polled.saturating_sub(old.polled),
                ..*cq
            };
            (*key, cq)
        });
        let work = self.work.iter().map(|(key, work)| {
            let old = earlier.work.get(key).copied().unwrap_or_default();
            let posted = work.posted.saturating_sub(old.posted);
            (*key, Work { posted, signalled: work.signalled.saturating_sub(old.signalled) })
        });
        let spans = self.spans.iter().map(|(key, now)| {
            (
                *key,
                earlier
                    .spans
                    .get(key)
                    .map_or_else(|| now.since(&Distribution::default()), |old| now.since(old)),
            )
        });
        // One that was gone already has nothing new.
        let gone = |key| earlier.qps.get(key).is_some_and(|old| old.qp.destroyed != 0);
        let qps = self
            .qps
            .iter()
            .filter(|(key, _)| !gone(key))
            .map(|(key, now)| (*key, now.since(&earlier.qps.get(key).copied().unwrap_or_default())));
        let fall_backs = self.fall_backs.iter().map(|(key, now)| {
            (*key, now.saturating_sub(earlier.fall_backs.get(key).copied().unwrap_or_default()))
        });
        Snapshot {
            rows,
            fall_backs: fall_backs.filter(|(_, queues)| *queues > 0).collect(),
            spans: spans.filter(|(_, span)| span.count > 0 || span.sum > 0).collect(),
            qps: qps.collect(),
            processes: self.processes.clone(),
            cqs: cqs.collect(),
            work: work.filter(|(_, work)| work.posted > 0).collect(),
            losses: self.losses.since(&earlier.losses),
            ran_at_begin: self.ran_at_begin.saturating_sub(earlier.ran_at_begin),
        }
    }
}

impl Counted {
    fn since(&self, old: &Counted) -> Counted {
        let errnos = self.errnos.iter().map(|(errno, n)| (*errno, n - old.errnos.get(errno).unwrap_or(&0)));
        Counted {
            key: self.key,
            count: self.count.saturating_sub(old.count),
            errors: self.errors.saturating_sub(old.errors),
            errnos: errnos.filter(|(_, n)| *n > 0).collect(),
            latency: self.latency.since(&old.latency),
        }
    }
}

/// What is known of losses outside of the maps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outside {
    pub(crate) recursion_misses: u64,
    pub(crate) kretprobe_missed: u64,
    pub(crate) hook_off: u64,
    pub(crate) left_running: u64,
    /// Whether nothing more is to come.
    pub(crate) ended: bool,
}

/// What need not be read at every look: a map costs a walk through all that it has room for.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// They don't change once they are there.
    processes: BTreeMap<u32, Process>,
    /// Numbers given to them: an entry comes a moment after its number.
    numbers: Grown,
    /// Failures by errno, in the order of their rows.
    errnos: BTreeMap<ErrnoKey, u64>,
    rows: Keys<RowKey>,
    spans: Keys<SpanKey>,
}

/// So many rows are asked for one by one, if they are known to be all.
const FEW: usize = 256;
/// After this time, what was counted is there, too.
const SETTLED: Duration = Duration::from_secs(2);

/// A counter of what is about to be put into a map, as it was when the map was last read.
#[derive(Debug, Default)]
struct Grown {
    counted: u64,
    /// When it was last seen to have grown.
    at: Option<Instant>,
}

impl Grown {
    /// Whether the map can have anything new, or has never been read.
    fn see(&mut self, counted: u64, now: Instant) -> bool {
        if self.at.is_none() || counted != self.counted {
            *self = Grown { counted, at: Some(now) };
        }
        self.at.is_none_or(|at| now.duration_since(at) < SETTLED)
    }
}

/// The rows of a map.
#[derive(Debug)]
struct Keys<K> {
    keys: Vec<K>,
    /// Histogram slots handed out: every new row takes one a moment before it is there.
    slots: Grown,
}

impl<K> Default for Keys<K> {
    fn default() -> Self {
        Keys { keys: Vec::new(), slots: Grown::default() }
    }
}

impl<K: Pod + Ord> Keys<K> {
    /// Every row; `whole` for whoever will not look again.
    fn read(&mut self, ebpf: &Ebpf, name: &'static str, whole: bool) -> Result<BTreeMap<K, Row>> {
        let grown = self.slots.see(next(ebpf, NEXT_SLOT)?, Instant::now());
        if !(whole || grown || self.keys.len() > FEW) {
            let map = hash::<K, Row>(ebpf, name)?;
            let row = |key: &K| Ok((*key, map.get(key, 0).map_err(|e| Error::Map(name, e))?));
            return self.keys.iter().map(row).collect();
        }
        let rows: BTreeMap<K, Row> = collect(ebpf, name)?;
        self.keys = rows.keys().copied().collect();
        Ok(rows)
    }
}

fn next(ebpf: &Ebpf, what: u32) -> Result<u64> {
    array::<u64>(ebpf, "NEXT")?.get(&what, 0).map_err(|e| Error::Map("NEXT", e))
}

impl Known {
    /// Every process, if all rows have theirs; `whole` for whoever will not look again.
    fn processes(
        &mut self,
        ebpf: &Ebpf,
        rows: &BTreeMap<RowKey, Row>,
        whole: bool,
    ) -> Result<&BTreeMap<u32, Process>> {
        let grown = self.numbers.see(next(ebpf, NEXT_PROCESS)?, Instant::now());
        if whole || grown || rows.keys().any(|key| !self.processes.contains_key(&key.process)) {
            self.processes = collect(ebpf, "PROCESSES")?;
        }
        Ok(&self.processes)
    }

    /// Every errno; rows tell whether there can be new ones.
    fn errnos(&mut self, ebpf: &Ebpf, rows: &BTreeMap<RowKey, Row>) -> Result<&BTreeMap<ErrnoKey, u64>> {
        let sum = |counts: &mut dyn Iterator<Item = u64>| counts.fold(0, u64::wrapping_add);
        if sum(&mut rows.values().map(|row| row.errors)) != sum(&mut self.errnos.values().copied()) {
            self.errnos = collect(ebpf, "ERRNOS")?;
        }
        Ok(&self.errnos)
    }
}

/// Which maps of events there are to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sources {
    /// Our own driver tells of queues and work requests.
    pub(crate) driver: bool,
    /// Its provider tells of polls.
    pub(crate) probes: bool,
}

pub(crate) fn take(
    ebpf: &Ebpf,
    sources: Sources,
    outside: Outside,
    left: Option<Left>,
    known: &mut Known,
) -> Result<Snapshot> {
    let counted = known.rows.read(ebpf, "ROWS", outside.ended)?;
    let mut errnos: StdHashMap<RowKey, BTreeMap<u32, u64>> = StdHashMap::new();
    for (key, count) in known.errnos(ebpf, &counted)? {
        errnos.entry(key.row).or_default().insert(key.errno, *count);
    }
    let processes = known.processes(ebpf, &counted, outside.ended)?.clone();
    let histograms = array::<Histogram>(ebpf, "HISTOGRAMS")?;
    let distribution = |row: &Row| -> Result<Distribution> {
        let histogram = || histograms.get(&row.slot, 0).map_err(|e| Error::Map("HISTOGRAMS", e));
        let buckets = if row.slot == NO_SLOT { None } else { Some(histogram()?.buckets.to_vec()) };
        Ok(Distribution {
            count: row.count.saturating_sub(row.untimed),
            sum: row.sum,
            min: row.min,
            max: row.max,
            buckets,
        })
    };
    let mut rows = Vec::new();
    for (key, row) in counted {
        rows.push(Counted {
            key,
            count: row.count,
            errors: row.errors,
            errnos: errnos.remove(&key).unwrap_or_default(),
            latency: distribution(&row)?,
        });
    }
    let (losses, ran_at_begin) = losses(ebpf, outside)?;
    let (mut cqs, mut work, mut fall_backs) = Default::default();
    if sources.driver {
        (cqs, work) = (collect(ebpf, "CQS")?, collect(ebpf, "WORK")?);
    }
    if sources.probes {
        fall_backs = collect(ebpf, "FALL_BACKS")?;
    }
    let (mut spans, mut qps) = (BTreeMap::new(), BTreeMap::new());
    if let Some(left) = left {
        for (key, row) in known.spans.read(ebpf, "SPAN_ROWS", outside.ended)? {
            spans.insert(key, distribution(&row)?);
        }
        qps = left.totals(ebpf)?;
    }
    Ok(Snapshot { rows, processes, cqs, work, spans, qps, fall_backs, losses, ran_at_begin })
}

/// What was lost, and the calls that ran when counting began.
fn losses(ebpf: &Ebpf, outside: Outside) -> Result<(Losses, u64)> {
    let counters: BTreeMap<u32, u64> = collect(ebpf, "LOSS")?;
    let counter = |loss: Loss| counters.get(&(loss as u32)).copied().unwrap_or(0);
    let mut losses = Losses::from_counters(counter);
    // On the way, a call that runs is one that will be counted.
    if outside.ended {
        let threads = collect::<u32, Thread>(ebpf, "THREADS")?;
        losses.in_flight = threads.values().filter(|thread| thread.start != 0).count() as u64;
    }
    losses.recursion_misses = outside.recursion_misses;
    losses.kretprobe_missed = outside.kretprobe_missed;
    losses.hook_off = outside.hook_off;
    losses.left_running = outside.left_running;
    Ok((losses.summed(), counter(Loss::RanAtBegin)))
}

pub(crate) fn loss(ebpf: &Ebpf, which: Loss) -> Result<u64> {
    array::<u64>(ebpf, "LOSS")?.get(&(which as u32), 0).map_err(|e| Error::Map("LOSS", e))
}

/// Process ids that are followed now.
pub(crate) fn targets(ebpf: &Ebpf) -> Result<BTreeSet<u32>> {
    Ok(collect::<u32, u8>(ebpf, "TARGETS")?.into_keys().collect())
}

pub(crate) fn process(ebpf: &Ebpf, number: u32) -> Option<Process> {
    hash::<u32, Process>(ebpf, "PROCESSES").ok()?.get(&number, 0).ok()
}

pub(crate) fn collect<K: Pod + Ord, V: Pod>(ebpf: &Ebpf, name: &'static str) -> Result<BTreeMap<K, V>> {
    let map = match ebpf.map(name) {
        Some(Map::HashMap(map) | Map::Array(map)) => map,
        _ => return Err(Error::Missing(name)),
    };
    let entries = sys::entries(map.fd().as_fd()).map_err(|e| Error::System("reading a map", e))?;
    Ok(entries.into_iter().collect())
}

fn hash<'a, K: Pod, V: Pod>(ebpf: &'a Ebpf, name: &'static str) -> Result<HashMap<&'a MapData, K, V>> {
    HashMap::try_from(ebpf.map(name).ok_or(Error::Missing(name))?).map_err(|e| Error::Map(name, e))
}

pub(crate) fn array<'a, V: Pod>(ebpf: &'a Ebpf, name: &'static str) -> Result<Array<&'a MapData, V>> {
    Array::try_from(ebpf.map(name).ok_or(Error::Missing(name))?).map_err(|e| Error::Map(name, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_read_at_first_and_for_a_time_after_it_has_grown() {
        let (begin, mut grown) = (Instant::now(), Grown::default());
        let mut seen = |counted, ms| grown.see(counted, begin + Duration::from_millis(ms));
        assert_eq!([0, 1_999, 2_000, 9_000].map(|ms| seen(0, ms)), [true, true, false, false]);
        assert_eq!([9_100, 11_099, 11_100].map(|ms| seen(3, ms)), [true, true, false]);
    }
}
