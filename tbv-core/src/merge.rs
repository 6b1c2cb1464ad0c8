//! Reports of times that follow each other, added up.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    latency::Distribution,
    messages::{QueuePair, SpanRow},
    report::{Call, Completions, Report, Totals, TotalsBefore, WorkRequests},
    system::{Cost, System},
};

impl Report {
    /// Adds what came in a time after this one. Sums and histograms are exact; smallest and largest of a time are as
    /// exact as those of its parts. A queue's totals of its life are the later ones; what happened on it between the two
    /// times is part of what had happened before.
    pub fn merge(&mut self, later: &Report) {
        let (count, errors) = self.totals();
        let (more, more_errors) = later.totals();
        self.totals =
            Some(Totals { count: count.saturating_add(more), errors: errors.saturating_add(more_errors) });
        self.duration_ns = self.duration_ns.saturating_add(later.duration_ns);
        if let (Some(mine), Some(theirs)) = (&mut self.interval, later.interval) {
            (mine.number, mine.end_ns) = (theirs.number, theirs.end_ns);
        }
        merge_by(&mut self.calls, &later.calls, call_key, merge_call);
        // One that is new in the later time is another one, though it may have the number of one that is gone.
        let same = |_: &Completions, theirs: &Completions| theirs.before.is_some();
        merge_same(&mut self.completions, &later.completions, queue_key, same, merge_queue);
        merge_by(&mut self.work_requests, &later.work_requests, work_key, |mine, theirs| {
            mine.posted = mine.posted.saturating_add(theirs.posted);
            mine.signalled = mine.signalled.saturating_add(theirs.signalled);
        });
        merge_by(&mut self.spans, &later.spans, span_key, merge_span);
        merge_by(
            &mut self.queue_pairs,
            &later.queue_pairs,
            |qp| (qp.pid, qp.device.clone(), qp.qpn),
            merge_queue_pair,
        );
        merge_by(
            &mut self.fall_backs,
            &later.fall_backs,
            |fell| (fell.pid, fell.reason.clone()),
            |mine, theirs| mine.queues = mine.queues.saturating_add(theirs.queues),
        );
        self.loss = self.loss.plus(&later.loss);
        self.ran_at_begin = self.ran_at_begin.saturating_add(later.ran_at_begin);
        self.environment = later.environment.clone();
        self.system = merge_systems(self.system.take(), later);
        self.exit_status = later.exit_status;
    }
}

fn call_key(call: &Call) -> (u32, String, String, String, String) {
    (call.pid, call.comm.clone(), call.device.clone(), call.entry.clone(), call.op.clone())
}

fn queue_key(cq: &Completions) -> (u32, String, u32) {
    (cq.pid, cq.device.clone(), cq.cqn)
}

fn work_key(work: &WorkRequests) -> (u32, String, String, String) {
    (work.pid, work.device.clone(), work.queue.clone(), work.opcode.clone())
}

fn span_key(span: &SpanRow) -> (u32, String, u32, String, String, Option<String>) {
    let queue = span.queue.clone();
    (span.pid, span.device.clone(), span.qpn, span.span.clone(), queue, span.opcode.clone())
}

/// Adds every row to the one of the same key, or behind all.
fn merge_by<R: Clone, K: Ord>(
    mine: &mut Vec<R>,
    theirs: &[R],
    key: impl Fn(&R) -> K,
    merge: impl Fn(&mut R, &R),
) {
    merge_same(mine, theirs, key, |_, _| true, merge);
}

/// The same, but where the last of a key is not the same thing: that one stays as it is, and the new one stands for the
/// key from then on.
fn merge_same<R: Clone, K: Ord>(
    mine: &mut Vec<R>,
    theirs: &[R],
    key: impl Fn(&R) -> K,
    same: impl Fn(&R, &R) -> bool,
    merge: impl Fn(&mut R, &R),
) {
    let mut places: BTreeMap<K, usize> = mine.iter().enumerate().map(|(at, row)| (key(row), at)).collect();
    for row in theirs {
        let at = places.entry(key(row)).or_insert(mine.len());
        match mine.get_mut(*at) {
            Some(old) if same(old, row) => merge(old, row),
            _ => {
                *at = mine.len();
                mine.push(row.clone());
            }
        }
    }
}

/// A row's latencies, as far as they can be added.
fn times(
    count: u64,
    sum: u64,
    summary: Option<&crate::latency::Latency>,
    buckets: Option<&[(u64, u64, u64)]>,
) -> Distribution {
    let none = Distribution { buckets: None, count, sum, ..Distribution::default() };
    Distribution::from_row(count, sum, summary, buckets).unwrap_or(none)
}

fn added(mut mine: Distribution, theirs: &Distribution) -> Distribution {
    // Of a file, they may be anything.
    let fits = mine.count.checked_add(theirs.count).is_some() && mine.sum.checked_add(theirs.sum).is_some();
    let buckets_fit = match (&mine.buckets, &theirs.buckets) {
        (Some(a), Some(b)) => a.iter().chain(b).try_fold(0_u64, |sum, n| sum.checked_add(*n)).is_some(),
        _ => true,
    };
    if fits && buckets_fit {
        mine.merge(theirs);
    } else {
        mine.buckets = None;
    }
    mine
}

fn merge_call(mine: &mut Call, theirs: &Call) {
    let of = |call: &Call| {
        // Without a summary none was timed.
        let count = call.latency_ns.as_ref().map_or(0, |_| call.count);
        let mean = call.latency_ns.as_ref().map_or(0, |latency| latency.mean);
        let sum = call.latency_sum_ns.unwrap_or_else(|| mean.saturating_mul(count));
        // One that was not timed takes no histogram away.
        let empty = (count == 0).then(Vec::new);
        let buckets = call.latency_buckets.as_deref().or(empty.as_deref());
        times(count, sum, call.latency_ns.as_ref(), buckets)
    };
    let both = added(of(mine), &of(theirs));
    mine.count = mine.count.saturating_add(theirs.count);
    mine.errors = mine.errors.saturating_add(theirs.errors);
    for (name, n) in &theirs.errnos {
        let sum = mine.errnos.entry(name.clone()).or_default();
        *sum = sum.saturating_add(*n);
    }
    mine.ns_pid = mine.ns_pid.or(theirs.ns_pid);
    if mine.cgroup.is_none() {
        mine.cgroup.clone_from(&theirs.cgroup);
    }
    mine.latency_ns = both.summary();
    mine.latency_sum_ns = Some(both.sum);
    mine.latency_buckets = both.filled();
}

fn merge_queue(mine: &mut Completions, theirs: &Completions) {
    let sum = |a: u64, b: u64| a.saturating_add(b);
    // Told by a probe in one of the times, or in both.
    let told = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| sum(a, b)).or(a).or(b);
    let before = TotalsBefore {
        produced: theirs.produced.saturating_sub(sum(mine.produced_meanwhile(), theirs.produced_meanwhile())),
        consumed: theirs.consumed.saturating_sub(sum(mine.consumed_meanwhile(), theirs.consumed_meanwhile())),
    };
    *mine = Completions {
        consumed_by_ioctl: sum(mine.consumed_by_ioctl, theirs.consumed_by_ioctl),
        purged: sum(mine.purged, theirs.purged),
        untimed: told(mine.untimed, theirs.untimed),
        failed: sum(mine.failed, theirs.failed),
        overflows: sum(mine.overflows, theirs.overflows),
        polls_hit: told(mine.polls_hit, theirs.polls_hit),
        polls_empty: told(mine.polls_empty, theirs.polls_empty),
        polls_overflow: told(mine.polls_overflow, theirs.polls_overflow),
        polled: told(mine.polled, theirs.polled),
        occupancy_max: mine.occupancy_max.max(theirs.occupancy_max),
        // How many were put in between is not told exactly enough to weigh them.
        occupancy_mean: match (mine.occupancy_mean, theirs.occupancy_mean) {
            (Some(_), Some(_)) => None,
            (a, b) => a.or(b),
        },
        before: (mine.before.is_some() || before.produced > 0 || before.consumed > 0).then_some(before),
        ..theirs.clone()
    };
}

fn merge_span(mine: &mut SpanRow, theirs: &SpanRow) {
    let of = |span: &SpanRow| {
        times(span.count, span.sum_ns, span.latency_ns.as_ref(), span.latency_buckets.as_deref())
    };
    let both = added(of(mine), &of(theirs));
    mine.count = mine.count.saturating_add(theirs.count);
    mine.sum_ns = mine.sum_ns.saturating_add(theirs.sum_ns);
    mine.latency_ns = both.summary();
    mine.latency_buckets = both.filled();
}

fn merge_queue_pair(mine: &mut QueuePair, theirs: &QueuePair) {
    let sum = |a: u64, b: u64| a.saturating_add(b);
    *mine = QueuePair {
        posted: sum(mine.posted, theirs.posted),
        unsignalled: sum(mine.unsignalled, theirs.unsignalled),
        completed: sum(mine.completed, theirs.completed),
        unknown: sum(mine.unknown, theirs.unknown),
        unsignalled_failed: sum(mine.unsignalled_failed, theirs.unsignalled_failed),
        overflowed: sum(mine.overflowed, theirs.overflowed),
        forgotten: sum(mine.forgotten, theirs.forgotten),
        retransmits_timeout: sum(mine.retransmits_timeout, theirs.retransmits_timeout),
        retransmits_sequence_error: sum(mine.retransmits_sequence_error, theirs.retransmits_sequence_error),
        retransmits_rnr: sum(mine.retransmits_rnr, theirs.retransmits_rnr),
        rnr: sum(mine.rnr, theirs.rnr),
        credit_stalls: sum(mine.credit_stalls, theirs.credit_stalls),
        // What is open is so now.
        ..theirs.clone()
    };
}

/// The system is as it is later; who ended in both times, and what they cost, are added up.
fn merge_systems(mine: Option<System>, later: &Report) -> Option<System> {
    let (Some(mine), Some(theirs)) = (mine, &later.system) else { return later.system.clone() };
    // Whoever calls later has the number of one that ended.
    let calls: BTreeSet<u32> = later.calls.iter().map(|call| call.pid).collect();
    let mut ended: Vec<u32> = mine.ended.into_iter().filter(|pid| !calls.contains(pid)).collect();
    ended.extend(&theirs.ended);
    let cost = mine.cost.zip(theirs.cost).map(|(a, b)| Cost {
        run_ns: a.run_ns.saturating_add(b.run_ns),
        runs: a.runs.saturating_add(b.runs),
    });
    Some(System { ended, cost, ..theirs.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::Losses;

    /// A report of an interval in which `POLL_CQ` was called with these latencies.
    fn report(number: u64, latencies: &[u64], produced: u64) -> Report {
        let mut times = Distribution::default();
        latencies.iter().for_each(|ns| times.record(*ns));
        serde_json::from_value(serde_json::json!({
            "schema_version": 1,
            "environment": {
                "tool_version": "", "kernel": "", "machine": "", "cpu": "", "cpus": 1, "hook": "fentry",
                "hook_limits": null, "hooks_passed_over": [], "devices_known": true, "driver_trace_abi": 1,
                "modules": [], "devices": [], "mode": "ioctl"
            },
            "command": [], "duration_ns": 10,
            "interval": {"number": number, "start_ns": 10 * (number - 1), "end_ns": 10 * number},
            "calls": [{
                "pid": 1, "comm": "c", "device": "d", "entry": "ioctl", "op": "POLL_CQ", "count": latencies.len(),
                "errors": 1, "errnos": {"EINVAL": 1}, "latency_ns": times.summary(), "latency_sum_ns": times.sum,
                "latency_buckets": times.filled()
            }],
            "completions": [{
                "pid": 1, "device": "d", "cqn": 3, "entries": 4, "mapped": true, "produced": produced,
                "consumed": produced, "consumed_by_ioctl": 1, "failed": 0, "overflows": 2, "occupancy_max": number,
                "before": {"produced": if number == 1 { 3 } else { 5 }, "consumed": if number == 1 { 2 } else { 5 }},
                "untimed": if number == 1 { Some(1) } else { None }
            }],
            "system": {"ended": [1, number + 6], "devices": [], "links": [], "cost": {"run_ns": 5 * number, "runs": number}},
            "loss": serde_json::to_value(Losses { ring_full: 2, in_flight: 1, ..Losses::default() }.summed()).unwrap(),
            "exit_status": null
        }))
        .unwrap()
    }

    #[test]
    fn two_intervals_are_one_of_both() {
        let (a, b) = (report(1, &[10, 20], 5), report(2, &[30, 5_000], 9));
        let mut sum = a.clone();
        sum.merge(&b);
        let whole = report(2, &[10, 20, 30, 5_000], 9);
        let (call, other) = (&sum.calls[0], &whole.calls[0]);
        assert_eq!((call.count, call.errors, call.errnos["EINVAL"]), (4, 2, 2));
        assert_eq!((&call.latency_ns, &call.latency_buckets), (&other.latency_ns, &other.latency_buckets));
        assert_eq!(call.latency_sum_ns, Some(5_060));
        let queue = &sum.completions[0];
        assert_eq!(
            (queue.produced, queue.consumed_by_ioctl, queue.overflows, queue.occupancy_max),
            (9, 2, 4, 2)
        );
        // As at the begin of the first.
        assert_eq!((queue.produced_meanwhile(), queue.consumed_meanwhile()), (6, 7));
        assert_eq!(queue.untimed, Some(1));
        // Process 1 called after its number had ended.
        let system = sum.system.as_ref().unwrap();
        assert_eq!((&system.ended, system.cost), (&vec![7, 1, 8], Some(Cost { run_ns: 15, runs: 3 })));
        let interval = sum.interval.unwrap();
        assert_eq!((interval.number, interval.start_ns, interval.end_ns, sum.duration_ns), (2, 0, 20, 20));
        // Only the last interval before tracing ends tells of calls in flight; it may begin again.
        assert_eq!((sum.loss.ring_full, sum.loss.in_flight, sum.loss.total), (4, 2, 6));
        assert_eq!(sum.totals(), (4, 2));
        assert!(sum.contradiction().is_none());
    }

    #[test]
    fn a_queue_that_is_new_in_the_later_time_stands_beside_the_one_that_had_its_number() {
        let (mut a, mut b, mut c) = (report(1, &[10], 5), report(2, &[20], 9), report(3, &[20], 11));
        let first = a.completions[0].clone();
        b.completions[0].before = None;
        c.completions[0].before = Some(TotalsBefore { produced: 9, consumed: 9 });
        a.merge(&b);
        assert_eq!(a.completions, [first.clone(), b.completions[0].clone()]);
        a.merge(&c);
        assert_eq!((a.completions.len(), &a.completions[0]), (2, &first));
        assert_eq!((a.completions[1].produced_meanwhile(), a.completions[1].before), (11, None));
    }

    #[test]
    fn what_happened_between_two_times_is_in_neither() {
        let (mut a, mut b) = (report(1, &[10], 5), report(2, &[20], 100));
        b.completions[0].before = Some(TotalsBefore { produced: 98, consumed: 97 });
        a.merge(&b);
        let queue = &a.completions[0];
        assert_eq!((queue.produced, queue.produced_meanwhile(), queue.consumed_meanwhile()), (100, 4, 6));
    }

    #[test]
    fn rows_of_one_side_only_are_kept() {
        let (mut a, b) = (report(1, &[10], 5), report(2, &[20], 9));
        a.calls[0].op = "OTHER".to_owned();
        a.completions[0].cqn = 4;
        a.merge(&b);
        assert_eq!((a.calls.len(), a.completions.len()), (2, 2));
    }

    #[test]
    fn numbers_that_are_too_large_do_not_break_it() {
        let (mut a, mut b) = (report(1, &[10], 5), report(2, &[10], 9));
        for report in [&mut a, &mut b] {
            report.calls[0].latency_sum_ns = Some(u64::MAX);
            report.calls[0].latency_buckets = Some(vec![(10, 11, u64::MAX)]);
        }
        a.merge(&b);
        assert_eq!((a.calls[0].count, &a.calls[0].latency_buckets), (2, &None));
    }
}
