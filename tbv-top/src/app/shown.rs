//! What is shown of one time: the rows of all tables.

use std::sync::Arc;

use tbv_core::{
    Report,
    fields::{DeviceRow, ProcessRow, QueueRow, State},
    messages::QueuePair,
    report::Call,
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
        let before = at.checked_sub(1).and_then(|at| history.get(at)).map(|entry| &entry.report);
        let (report, earlier) = match whole {
            true => (Arc::new(history.whole(at)?), None),
            false => (entry.report.clone(), before),
        };
        let mut shown = Shown::new(report, earlier.map(Arc::as_ref), history);
        for (known, state, so_far) in history.processes(at) {
            let place =
                shown.processes.iter().position(|row| (row.pid, &row.comm) == (known.pid, &known.comm));
            let place = place.unwrap_or_else(|| {
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
        shown.processes.sort_by(|a, b| (a.pid, &a.comm).cmp(&(b.pid, &b.comm)));
        Some(shown)
    }

    /// Of a report, given the one before it.
    pub fn new(report: Arc<Report>, earlier: Option<&Report>, history: &History) -> Self {
        let seconds = report.duration_ns as f64 / 1e9;
        let queues = QueueRow::all(&report, earlier);
        let cost = cost(&report, earlier, seconds);
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

fn cost(report: &Report, earlier: Option<&Report>, seconds: f64) -> Option<(f64, f64)> {
    let of = |report: &Report| report.system.as_ref()?.cost;
    let now = of(report)?;
    let then = earlier.map_or_else(|| Some(Default::default()), of)?;
    // Tracing that began anew counts anew.
    let (ns, runs) = (now.run_ns.checked_sub(then.run_ns)?, now.runs.checked_sub(then.runs)?);
    (runs > 0 && seconds > 0.0).then(|| (ns as f64 / (seconds * 1e9), ns as f64 / runs as f64))
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
    fn cost_is_of_the_interval() {
        let mut history = History::default();
        (1..=2).for_each(|number| history.push(fixture::interval(number, 1), |_| {}));
        let cost = |at| Shown::of(&history, at, false).unwrap().cost.unwrap();
        assert_eq!(cost(1), (0.00125, 500.0));
    }
}
