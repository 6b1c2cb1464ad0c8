//! What is shown of one time: the rows of all tables.

use std::{collections::HashMap, sync::Arc};

use tbv_core::{
    Report,
    fields::{DeviceRow, ProcessRow, QueueRow, State},
    messages::QueuePair,
    report::Call,
    system::Cost,
};

use super::{history::History, table::Key};

/// Rows of an interval, or of all the time up to its end.
#[derive(Clone, Debug)]
pub struct Shown {
    /// What they are of.
    pub report: Arc<Report>,
    /// Its length.
    pub seconds: f64,
    /// Processes.
    pub processes: Vec<ProcessRow>,
    /// Completion queues.
    pub queues: Vec<QueueRow>,
    /// Ports of devices.
    pub devices: Vec<DeviceRow>,
    /// Share of one processor that the eBPF programs take, and nanoseconds of one run; `None` if that is not known.
    pub cost: Option<(f64, f64)>,
}

impl Shown {
    /// Of the interval at a place, or of the `whole` time up to its end.
    pub fn of(history: &History, at: usize, whole: bool) -> Option<Self> {
        let entry = history.get(at)?;
        let before = at.checked_sub(1).and_then(|at| history.get(at)).map(|entry| entry.report.as_ref());
        let (report, earlier) = match whole {
            true => (Arc::new(history.whole(at)?), None),
            false => (entry.report.clone(), before.filter(|before| follows(&entry.report, before))),
        };
        let mut shown = Shown::new(report, earlier, history);
        let mut places: HashMap<(u32, String), usize> =
            shown.processes.iter().enumerate().map(|(at, row)| ((row.pid, row.comm.clone()), at)).collect();
        for (known, state, so_far) in history.processes(at) {
            let place = *places.entry((known.pid, known.comm.clone())).or_insert_with(|| {
                shown.processes.push(ProcessRow::idle(known.pid, &known.comm));
                shown.processes.len() - 1
            });
            if let Some(row) = shown.processes.get_mut(place) {
                row.calls_so_far = Some(so_far);
                // One that only takes completions from memory is active, too.
                if state != State::Idle {
                    row.state = state;
                }
            }
        }
        if whole {
            // Of those that are not listed any more, too.
            shown
                .processes
                .iter_mut()
                .for_each(|row| row.calls_so_far = row.calls_so_far.or(Some(row.calls)));
        }
        shown.processes.sort_by(|a, b| (a.pid, &a.comm).cmp(&(b.pid, &b.comm)));
        Some(shown)
    }

    /// Of a report, given the one before it if nothing came in between.
    pub fn new(report: Arc<Report>, earlier: Option<&Report>, history: &History) -> Self {
        let seconds = report.duration_ns as f64 / 1e9;
        let queues = QueueRow::all(&report);
        let cost = cost(&report, seconds);
        Shown {
            processes: ProcessRow::all(&report, &queues, &history.names()),
            devices: DeviceRow::all(&report, earlier, &queues),
            queues,
            seconds,
            report,
            cost,
        }
    }

    /// Operations of a process.
    pub fn operations(&self, process: &Key) -> Vec<&Call> {
        let is = |call: &&Call| (call.pid, &call.comm) == (process.0, &process.2);
        self.report.calls.iter().filter(is).collect()
    }

    /// Queue pairs of a process.
    pub fn queue_pairs(&self, process: &Key) -> Vec<&QueuePair> {
        self.report.queue_pairs.iter().filter(|qp| qp.pid == process.0).collect()
    }

    /// Completion queues of a process.
    pub fn queues_of(&self, process: &Key) -> Vec<&QueueRow> {
        self.queues.iter().filter(|row| row.queue.pid == process.0).collect()
    }
}

/// Whether a report begins where another one ends: not after tracing was off, or lines of a recording were left out.
fn follows(report: &Report, before: &Report) -> bool {
    report.interval.zip(before.interval).is_some_and(|(now, then)| now.start_ns == then.end_ns)
}

fn cost(report: &Report, seconds: f64) -> Option<(f64, f64)> {
    let Cost { run_ns, runs } = report.system.as_ref()?.cost?;
    (runs > 0 && seconds > 0.0).then(|| (run_ns as f64 / (seconds * 1e9), run_ns as f64 / runs as f64))
}

/// The key of a process.
pub fn process_key(row: &ProcessRow) -> Key {
    Key(row.pid, 0, row.comm.clone())
}

/// The key of a completion queue.
pub fn queue_key(row: &QueueRow) -> Key {
    Key(row.queue.pid, row.queue.cqn, row.queue.device.clone())
}

/// The key of a port.
pub fn device_key(row: &DeviceRow) -> Key {
    Key(row.link.as_ref().map_or(0, |link| link.port), 0, row.device.clone())
}

/// The key of an operation.
pub fn call_key(call: &Call) -> Key {
    Key(call.pid, 0, format!("{} {} {}", call.device, call.entry, call.op))
}

/// The key of a queue pair.
pub fn queue_pair_key(qp: &QueuePair) -> Key {
    Key(qp.pid, qp.qpn, qp.device.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn idle_processes_stay_and_totals_go_on() {
        let mut history = History::default();
        history.push(fixture::interval(1, 2), |_| {});
        let mut quiet = fixture::interval(2, 2);
        quiet.calls.clear();
        quiet.completions.clear();
        quiet.work_requests.clear();
        history.push(quiet, |_| {});
        let calls = |shown: &Shown| {
            shown.processes.iter().map(|row| (row.calls, row.calls_so_far.unwrap())).collect::<Vec<_>>()
        };
        let [first, second] = [0, 1].map(|at| Shown::of(&history, at, false).unwrap());
        assert_eq!(first.processes.len(), 2);
        assert_eq!(calls(&first).iter().map(|(n, _)| n).sum::<u64>(), first.report.totals().0);
        assert!(calls(&first).iter().all(|(n, so_far)| n == so_far));
        assert!(second.processes.iter().all(|row| row.state == State::Idle && row.calls == 0));
        assert_eq!(calls(&second).iter().map(|(_, n)| *n).sum::<u64>(), first.report.totals().0);
    }

    #[test]
    fn the_whole_time_is_the_sum_of_its_intervals() {
        let mut history = History::default();
        (1..=5).for_each(|number| history.push(fixture::interval(number, 3), |_| {}));
        let whole = Shown::of(&history, 4, true).unwrap();
        let sum: u64 = (1..=5).map(|number| fixture::interval(number, 3).totals().0).sum();
        assert_eq!(whole.processes.iter().map(|row| row.calls).sum::<u64>(), sum);
        assert_eq!(whole.seconds, 5.0);
        // Produced over its life, since it was created while traced.
        assert_eq!(whole.queues[0].produced, 150);
        let part = Shown::of(&history, 4, false).unwrap();
        assert_eq!(part.queues[0].produced, 30);
    }

    #[test]
    fn a_recording_may_begin_late_and_have_gaps() {
        let mut history = History::default();
        [58, 59, 64].into_iter().for_each(|number| history.push(fixture::interval(number, 1), |_| {}));
        let ends = [0, 1, 2].map(|at| history.get(at).unwrap().end_ns / 1_000_000_000);
        assert_eq!(ends, [1, 2, 7]);
        let seen = |at| {
            let shown = Shown::of(&history, at, false).unwrap();
            (shown.queues[0].produced, shown.devices[0].sent)
        };
        // What happened while nobody looked is in no rate.
        assert_eq!([seen(0), seen(1), seen(2)], [(30, None), (30, Some(65_536 * 30)), (30, None)]);
        assert_eq!(Shown::of(&history, 1, true).unwrap().queues[0].produced, 60);
    }

    #[test]
    fn sums_go_on_from_the_last_one_and_begin_anew_where_they_cannot() {
        let mut history = History::default();
        (1..=4).for_each(|number| history.push(fixture::interval(number, 2), |_| {}));
        let calls = |at| history.whole(at).unwrap().totals().0;
        let sum = |until| (1..=until).map(|number| fixture::interval(number, 2).totals().0).sum::<u64>();
        for at in [1, 3, 3, 0, 2] {
            assert_eq!(calls(at), sum(at as u64 + 1));
        }
    }

    #[test]
    fn only_calls_on_devices_that_tell_are_a_price_of_completions() {
        let mut report = fixture::interval(1, 2);
        report
            .calls
            .iter_mut()
            .filter(|call| call.op == "QUERY_PORT")
            .for_each(|call| call.device = "rxe0".into());
        report.completions.iter_mut().for_each(|cq| cq.produced = 0);
        report.work_requests.clear();
        let shown = Shown::new(Arc::new(report), None, &History::default());
        let row = &shown.processes[0];
        assert_eq!((row.calls_told, row.completions, row.posted), (row.calls - 1, Some(0), Some(0)));
    }

    #[test]
    fn cost_is_of_the_interval() {
        let mut history = History::default();
        (1..=2).for_each(|number| history.push(fixture::interval(number, 1), |_| {}));
        let cost = |at| Shown::of(&history, at, false).unwrap().cost.unwrap();
        assert_eq!(cost(1), (0.00125, 500.0));
    }
}
