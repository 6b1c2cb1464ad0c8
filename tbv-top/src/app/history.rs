//! What has been seen: intervals, in a bounded amount of memory. What is old becomes coarser, and is never dropped
//! while it can be merged.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::Arc,
};

use tbv_core::{Report, fields::State, loss::Losses};

/// Memory that the intervals may take, estimated.
pub const MOST_BYTES: usize = 96 << 20;
/// Intervals at the end that are left as they came.
const UNTOUCHED: usize = 120;
/// How long a process that has ended is still listed.
pub const KEEP_ENDED_NS: u64 = 10_000_000_000;

/// One interval.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What came in it.
    pub report: Arc<Report>,
    /// Its end, in nanoseconds since the first one began.
    pub end_ns: u64,
    /// Number of the last interval that is part of it.
    last: u64,
    /// Calls of each process: in it, and up to its end.
    calls: HashMap<usize, (u64, u64)>,
    bytes: usize,
}

impl Entry {
    /// Its length in seconds.
    pub fn seconds(&self) -> f64 {
        self.report.duration_ns as f64 / 1e9
    }

    /// Calls of all processes.
    pub fn total_calls(&self) -> u64 {
        self.report.totals().0
    }
}

/// A process that was seen.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its id.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// When it was seen first.
    first_ns: u64,
    /// When its end was noticed.
    ended_ns: Option<u64>,
    so_far: u64,
}

/// The intervals, oldest first, and the processes in them.
#[derive(Debug)]
pub struct History {
    entries: VecDeque<Entry>,
    known: Vec<Known>,
    numbers: HashMap<(u32, String), usize>,
    bytes: usize,
    most_bytes: usize,
    losses: Losses,
    ran_at_begin: u64,
    /// When the first one began, in its source's time.
    origin_ns: Option<u64>,
    /// Intervals that came.
    came: u64,
    /// All the time up to the end of the interval of a number, as it was asked for last.
    summed: RefCell<Option<(u64, Report)>>,
}

impl Default for History {
    fn default() -> Self {
        History::with_most_bytes(MOST_BYTES)
    }
}

impl History {
    /// One that takes about so much memory.
    pub fn with_most_bytes(most_bytes: usize) -> Self {
        History {
            entries: VecDeque::new(),
            known: Vec::new(),
            numbers: HashMap::new(),
            bytes: 0,
            most_bytes,
            losses: Losses::default(),
            ran_at_begin: 0,
            origin_ns: None,
            came: 0,
            summed: RefCell::new(None),
        }
    }

    /// How many intervals there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing has come yet.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The interval at a place.
    pub fn get(&self, at: usize) -> Option<&Entry> {
        self.entries.get(at)
    }

    /// The end of the newest interval.
    pub fn end_ns(&self) -> u64 {
        self.entries.back().map_or(0, |entry| entry.end_ns)
    }

    /// The memory that the intervals take, estimated.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What was lost in all intervals.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Calls that ran when tracing began, in all intervals.
    pub fn ran_at_begin(&self) -> u64 {
        self.ran_at_begin
    }

    /// Adds an interval. Where it makes older ones coarser, `moved` is told the place of each interval that was merged
    /// into the one before it.
    pub fn push(&mut self, report: Report, mut moved: impl FnMut(usize)) {
        let end_ns = self.end_of(&report);
        self.losses = self.losses.plus(&report.loss);
        self.ran_at_begin = self.ran_at_begin.saturating_add(report.ran_at_begin);
        let mut calls: HashMap<usize, (u64, u64)> = HashMap::new();
        for call in &report.calls {
            let number = self.number(call.pid, &call.comm, end_ns);
            let of = calls.entry(number).or_default();
            of.0 = of.0.saturating_add(call.count);
        }
        for (number, of) in &mut calls {
            if let Some(known) = self.known.get_mut(*number) {
                known.so_far = known.so_far.saturating_add(of.0);
                // Someone else may have been given its number.
                known.ended_ns = None;
            }
        }
        if let Some(system) = &report.system {
            let ended: HashSet<u32> = system.ended.iter().copied().collect();
            for known in self.known.iter_mut().filter(|known| ended.contains(&known.pid)) {
                known.ended_ns.get_or_insert(end_ns);
            }
        }
        for (number, known) in self.known.iter().enumerate() {
            let gone = known.ended_ns.is_some_and(|ended| ended.saturating_add(KEEP_ENDED_NS) < end_ns);
            if !gone {
                calls.entry(number).or_default().1 = known.so_far;
            }
        }
        let bytes = size(&report) + calls.len() * 48;
        self.bytes += bytes;
        self.came += 1;
        self.entries.push_back(Entry { report: Arc::new(report), end_ns, last: self.came, calls, bytes });
        while self.bytes > self.most_bytes {
            match self.coarsen() {
                Some(place) => moved(place),
                None => break,
            }
        }
    }

    /// Times of a source that began anew begin anew, too; here they go on.
    fn end_of(&mut self, report: &Report) -> u64 {
        let last = self.end_ns();
        let (start, end) =
            report.interval.map_or((0, report.duration_ns), |part| (part.start_ns, part.end_ns));
        // A recording may have begun later than tracing.
        let origin = *self.origin_ns.get_or_insert(start);
        match (start.saturating_sub(origin), end.saturating_sub(origin)) {
            (start, end) if start >= last && end >= start => end,
            _ => last.saturating_add(report.duration_ns),
        }
    }

    fn number(&mut self, pid: u32, comm: &str, now_ns: u64) -> usize {
        if let Some(number) = self.numbers.get(&(pid, comm.to_owned())) {
            return *number;
        }
        self.known.push(Known { pid, comm: comm.to_owned(), first_ns: now_ns, ended_ns: None, so_far: 0 });
        self.numbers.insert((pid, comm.to_owned()), self.known.len() - 1);
        self.known.len() - 1
    }

    /// Merges two neighbours that are short together, the oldest of them; the place of the second. If all are new, the
    /// two oldest; one alone stays.
    fn coarsen(&mut self) -> Option<usize> {
        let old = self.entries.len().saturating_sub(UNTOUCHED.min(self.entries.len() / 2));
        let length = |at: usize| self.entries.get(at).map_or(u64::MAX, |entry| entry.report.duration_ns);
        let place = (1..old).min_by_key(|at| length(at - 1).saturating_add(length(*at))).unwrap_or(1);
        let later = self.entries.remove(place)?;
        let earlier = self.entries.get_mut(place - 1)?;
        self.bytes -= later.bytes + earlier.bytes;
        Arc::make_mut(&mut earlier.report).merge(&later.report);
        for (number, (calls, so_far)) in &later.calls {
            let of = earlier.calls.entry(*number).or_default();
            *of = (of.0.saturating_add(*calls), *so_far);
        }
        (earlier.end_ns, earlier.last) = (later.end_ns, later.last);
        earlier.bytes = size(&earlier.report) + earlier.calls.len() * 48;
        self.bytes += earlier.bytes;
        Some(place)
    }

    /// The last interval that has ended by then, or the first.
    pub fn at(&self, ns: u64) -> usize {
        self.entries.partition_point(|entry| entry.end_ns <= ns).saturating_sub(1)
    }

    /// All the time up to the end of the interval at a place.
    pub fn whole(&self, at: usize) -> Option<Report> {
        let until = self.entries.get(at)?.last;
        let mut summed = self.summed.borrow_mut();
        // What was summed goes on, if it ends where an interval does.
        let known = summed.take().filter(|(last, _)| {
            *last <= until && self.entries.binary_search_by_key(last, |entry| entry.last).is_ok()
        });
        let (last, mut whole) = match known {
            Some(known) => known,
            None => {
                let first = self.entries.front()?;
                (first.last, first.report.to_add_up())
            }
        };
        let later = self.entries.iter().take(at + 1).filter(|entry| entry.last > last);
        later.for_each(|entry| whole.merge(&entry.report));
        *summed = Some((until, whole.clone()));
        Some(whole)
    }

    /// Names by process id, as far as they are known.
    pub fn names(&self) -> BTreeMap<u32, String> {
        self.known.iter().map(|known| (known.pid, known.comm.clone())).collect()
    }

    /// Processes that are to be listed at the end of an interval, with what they are and their calls so far.
    pub fn processes(&self, at: usize) -> Vec<(&Known, State, u64)> {
        let Some(entry) = self.entries.get(at) else { return Vec::new() };
        let listed = self.known.iter().enumerate().filter_map(|(number, known)| {
            let (calls, so_far) = *entry.calls.get(&number)?;
            let state = match known.ended_ns {
                Some(ended) if ended <= entry.end_ns => State::Ended,
                _ if calls > 0 => State::Active,
                _ => State::Idle,
            };
            (known.first_ns <= entry.end_ns).then_some((known, state, so_far))
        });
        listed.collect()
    }

    /// Calls a second in each of the intervals that end at a place, oldest first: of a process, or of all.
    pub fn rates(&self, process: Option<(u32, &str)>, at: usize, most: usize) -> Vec<f64> {
        let number = process.map(|(pid, comm)| self.numbers.get(&(pid, comm.to_owned())).copied());
        let end = (at + 1).min(self.entries.len());
        let calls = |entry: &Entry| match number {
            None => entry.total_calls(),
            Some(number) => number.and_then(|n| entry.calls.get(&n)).map_or(0, |(calls, _)| *calls),
        };
        let rate = |entry: &Entry| match entry.seconds() {
            // Nobody knows in which time.
            seconds if seconds <= 0.0 => 0.0,
            seconds => calls(entry) as f64 / seconds,
        };
        self.entries.range(end.saturating_sub(most)..end).map(rate).collect()
    }
}

/// About how much memory a report takes.
fn size(report: &Report) -> usize {
    let buckets = |filled: &Option<Vec<(u64, u64, u64)>>| filled.as_ref().map_or(0, |all| all.len() * 24);
    let calls: usize = report.calls.iter().map(|call| 400 + buckets(&call.latency_buckets)).sum();
    let spans: usize = report.spans.iter().map(|span| 350 + buckets(&span.latency_buckets)).sum();
    let rows = report.completions.len() * 250 + report.work_requests.len() * 150;
    let devices = report.environment.devices.len() + report.system.as_ref().map_or(0, |s| s.links.len());
    4096 + calls + spans + rows + report.queue_pairs.len() * 250 + devices * 300
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_days_history_stays_within_its_memory_and_loses_no_call() {
        let mut history = History::with_most_bytes(2 << 20);
        const DAY: u64 = 8_640;
        let mut calls = 0;
        for number in 1..=DAY {
            let report = fixture::interval(number, 3);
            calls += report.totals().0;
            history.push(report, |_| {});
            assert!(history.bytes() <= 2 << 20);
        }
        assert!(history.len() > 50, "{}", history.len());
        let whole = history.whole(history.len() - 1).unwrap();
        assert_eq!((whole.totals().0, whole.duration_ns), (calls, DAY * 1_000_000_000));
        assert_eq!(history.end_ns(), DAY * 1_000_000_000);
        // What is new is as it came.
        assert_eq!(history.get(history.len() - 1).unwrap().report.duration_ns, 1_000_000_000);
        assert!(history.get(0).unwrap().report.duration_ns > 1_000_000_000);
    }

    #[test]
    fn however_little_room_there_is_no_call_is_lost() {
        let mut history = History::with_most_bytes(1);
        let mut calls = 0;
        for number in 1..=3 {
            calls += fixture::interval(number, 2).totals().0;
            history.push(fixture::interval(number, 2), |_| {});
        }
        assert_eq!((history.len(), history.whole(0).unwrap().totals().0), (1, calls));
    }

    #[test]
    fn an_interval_without_length_counts_and_has_no_rate() {
        let mut history = History::default();
        let mut report = fixture::interval(2, 1);
        let calls = report.totals().0;
        report.duration_ns = 0;
        report.interval =
            report.interval.map(|part| tbv_core::report::Interval { end_ns: part.start_ns, ..part });
        history.push(fixture::interval(1, 1), |_| {});
        history.push(report, |_| {});
        let first = history.whole(0).unwrap().totals().0;
        assert_eq!(history.whole(1).unwrap().totals().0, first + calls);
        assert_eq!(history.rates(None, 1, 9)[1..], [0.0]);
    }

    #[test]
    fn times_go_on_when_a_source_begins_anew() {
        let mut history = History::default();
        for number in [1, 2, 1, 2] {
            history.push(fixture::interval(number, 1), |_| {});
        }
        let ends: Vec<u64> = (0..4).map(|at| history.get(at).unwrap().end_ns / 1_000_000_000).collect();
        assert_eq!(ends, [1, 2, 3, 4]);
        assert_eq!([0, 2_500_000_000, u64::MAX].map(|ns| history.at(ns)), [0, 1, 3]);
    }

    #[test]
    fn a_process_that_ended_is_marked_and_leaves() {
        let mut history = History::default();
        history.push(fixture::interval(1, 2), |_| {});
        let gone = fixture::PID;
        for number in 2..=15 {
            let mut report = fixture::interval(number, 2);
            report.calls.retain(|call| call.pid != gone);
            report.system.as_mut().unwrap().ended = if number == 2 { vec![gone] } else { Vec::new() };
            history.push(report, |_| {});
        }
        let state = |at: usize| {
            let processes = history.processes(at);
            processes.iter().find(|(known, ..)| known.pid == gone).map(|(_, state, _)| *state)
        };
        assert_eq!(state(0), Some(State::Active));
        assert_eq!(state(1), Some(State::Ended));
        assert_eq!(state(14), None);
        assert_eq!(history.rates(Some((gone, fixture::COMM)), 3, 10)[1..], [0.0, 0.0, 0.0]);
    }
}
