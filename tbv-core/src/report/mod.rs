//! The report: the stable form of a result, written and read as JSON.

use std::{collections::BTreeMap, path::Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tbv_common::{Entry, Op, Process};

use crate::{
    devices::Devices,
    driver,
    environment::Environment,
    error::{Error, Result},
    latency::Latency,
    loss::Losses,
    messages::{self, QueuePair, SpanRow},
    names::Names,
    recording,
    snapshot::{Counted, Snapshot},
    system::System,
    uapi,
};

mod queues;

pub use queues::{Completions, FallBacks, TotalsBefore, WorkRequests};
use queues::{completions, work_requests};

/// The version this code writes and reads. Fields are only added within a version.
pub const SCHEMA_VERSION: u32 = 1;
/// Stands for a device that could not be told.
pub const UNKNOWN_DEVICE: &str = "unknown";

/// A result of tbv-trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Version of this form, [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Where it was measured.
    pub environment: Environment,
    /// The command that was run; empty if there was none.
    pub command: Vec<String>,
    /// How long was traced, in nanoseconds.
    pub duration_ns: u64,
    /// What was left out, in the words of the command line: `--comm x`, `--failed`, `--top 10`. Empty if nothing was.
    #[serde(default)]
    pub filters: Vec<String>,
    /// The interval that this is of; absent in a report of the whole time.
    #[serde(default)]
    pub interval: Option<Interval>,
    /// Whether intervals were added up to it, as the whole time was not written: minimum and maximum latencies are then
    /// known as exactly as percentiles are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub added_up: bool,
    /// One element per process, device and operation.
    pub calls: Vec<Call>,
    /// Sums over all rows, those that a filter left out of `calls` too; absent in reports of older versions.
    #[serde(default)]
    pub totals: Option<Totals>,
    /// One element per completion queue of our own driver.
    #[serde(default)]
    pub completions: Vec<Completions>,
    /// One element per process, device, queue and opcode of our own driver.
    #[serde(default)]
    pub work_requests: Vec<WorkRequests>,
    /// Where the time of messages of our own driver went: one element per span, process, queue pair and opcode; empty
    /// if it was not measured.
    #[serde(default)]
    pub spans: Vec<SpanRow>,
    /// One element per queue pair of our own driver; empty if spans were not measured.
    #[serde(default)]
    pub queue_pairs: Vec<QueuePair>,
    /// Why completion queues are polled by system call, on any of our devices; empty if none is, or the provider's probes
    /// were not attached.
    #[serde(default)]
    pub fall_backs: Vec<FallBacks>,
    /// What was lost: all zero means that the counts are exact.
    pub loss: Losses,
    /// Calls that ran when counting began and have returned: they are in no count, and no loss.
    #[serde(default)]
    pub ran_at_begin: u64,
    /// The system at that moment; only in recordings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<System>,
    /// Exit status of the command (128 + signal if it was killed); absent without a command.
    pub exit_status: Option<i32>,
}

/// Sums over rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Calls that returned.
    pub count: u64,
    /// Those that returned an error.
    pub errors: u64,
}

impl Totals {
    fn of(calls: &[Call]) -> Self {
        let sum = |read: fn(&Call) -> u64| calls.iter().map(read).fold(0, u64::saturating_add);
        Totals { count: sum(|call| call.count), errors: sum(|call| call.errors) }
    }

    fn pair(self) -> (u64, u64) {
        (self.count, self.errors)
    }
}

/// A part of the time that was traced. Minimum and maximum latencies of an interval are known as exactly as
/// percentiles are. What still runs at its end counts as lost only in the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Number of the interval, from 1.
    pub number: u64,
    /// Its begin, in nanoseconds since tracing began.
    pub start_ns: u64,
    /// Its end.
    pub end_ns: u64,
}

/// What one process called how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    /// Process id, in the initial pid namespace.
    pub pid: u32,
    /// Process id in its own pid namespace, a container's say; absent if it could not be told.
    #[serde(default)]
    pub ns_pid: Option<u32>,
    /// The process's name at its first call.
    pub comm: String,
    /// Path of the cgroup (version 2) that it was in at its first call; absent if that was gone when looked for.
    #[serde(default)]
    pub cgroup: Option<String>,
    /// RDMA device, such as `rxe0`; `unknown` if it could not be told.
    pub device: String,
    /// `ioctl` or `write`.
    pub entry: String,
    /// The operation, named as in the uapi headers.
    pub op: String,
    /// Calls that returned.
    pub count: u64,
    /// Those that returned an error.
    pub errors: u64,
    /// The errors by name.
    pub errnos: BTreeMap<String, u64>,
    /// Latency of the calls; absent if none was timed.
    pub latency_ns: Option<Latency>,
    /// Sum of the latencies in nanoseconds; absent in reports of older versions.
    #[serde(default)]
    pub latency_sum_ns: Option<u64>,
    /// The latency histogram: `[low, high, calls]` per bucket that is not empty, half-open,
    /// in nanoseconds. Absent if no histogram was free.
    pub latency_buckets: Option<Vec<(u64, u64, u64)>>,
}

impl Report {
    /// Names what a snapshot counted.
    pub fn new(snapshot: &Snapshot, mut environment: Environment, names: &Names) -> Self {
        let devices = &names.devices;
        let calls: Vec<Call> =
            snapshot.rows.iter().map(|row| call(row, &snapshot.processes, names)).collect();
        environment.mode = mode(&calls).to_owned();
        Report {
            schema_version: SCHEMA_VERSION,
            environment,
            command: Vec::new(),
            duration_ns: 0,
            filters: Vec::new(),
            interval: None,
            added_up: false,
            totals: Some(Totals::of(&calls)),
            calls,
            completions: snapshot
                .cqs
                .iter()
                .map(|(key, cq)| completions(*key, cq, devices, !snapshot.qps.is_empty()))
                .collect(),
            work_requests: snapshot
                .work
                .iter()
                .map(|(key, work)| work_requests(*key, work, devices))
                .collect(),
            spans: snapshot
                .spans
                .iter()
                .map(|(key, span)| messages::span(*key, span, snapshot, devices))
                .collect(),
            queue_pairs: snapshot
                .qps
                .iter()
                .map(|(key, qp)| messages::queue_pair(*key, qp, snapshot, devices))
                .collect(),
            fall_backs: snapshot
                .fall_backs
                .iter()
                .map(|(key, queues)| messages::fall_backs(*key, *queues, snapshot))
                .collect(),
            loss: snapshot.losses.clone(),
            ran_at_begin: snapshot.ran_at_begin,
            system: None,
            exit_status: None,
        }
    }

    /// Says that it is of an interval only.
    pub fn set_interval(&mut self, interval: Interval) {
        self.interval = Some(interval);
        // Known for a queue's life only: the kernel doesn't see when it happens.
        self.completions.iter_mut().for_each(|cq| cq.consumed_in_user_space = None);
    }

    /// What intervals that follow are to be merged into: this one, as a time of its own.
    #[must_use]
    pub fn to_add_up(&self) -> Self {
        Report { interval: None, added_up: true, ..self.clone() }
    }

    /// Whether minimum and maximum latencies are exact.
    pub fn has_exact_extremes(&self) -> bool {
        self.interval.is_none() && !self.added_up
    }

    /// Leaves only rows with failures.
    pub fn keep_failed(&mut self) {
        self.calls.retain(|call| call.errors > 0);
        self.filters.push("--failed".to_owned());
    }

    /// Leaves only the `n` rows with the most calls.
    pub fn keep_top(&mut self, n: usize) {
        self.calls.sort_by_key(|call| std::cmp::Reverse(call.count));
        self.calls.truncate(n);
        self.filters.push(format!("--top {n}"));
    }

    /// Reads a report file, `-` for standard input, and says what is wrong with one that can't be used.
    pub fn read(path: &Path) -> Result<Self> {
        let mut reports = recording::read(path)?;
        let fail =
            |reason: &str| Error::Report { path: path.display().to_string(), reason: reason.to_owned() };
        let report = reports.next().ok_or_else(|| fail("the file is empty"))??;
        match reports.next() {
            None => Ok(report),
            Some(_) => Err(fail("it holds more than one report: `tbv-trace report` shows the last one")),
        }
    }

    /// What in it cannot be true.
    pub(crate) fn contradiction(&self) -> Option<String> {
        let sum = self.loss.clone().summed().total;
        if self.loss.total != sum {
            return Some(format!("loss.total is {}, its parts add up to {sum}", self.loss.total));
        }
        let add = |sum: u64, call: &Call| sum.checked_add(call.count);
        if self.calls.iter().try_fold(0, add).is_none() {
            return Some("it counts more calls than there can be".to_owned());
        }
        let (rows, totals) =
            (Totals::of(&self.calls), self.totals.unwrap_or_else(|| Totals::of(&self.calls)));
        if rows.count > totals.count || rows.errors > totals.errors {
            return Some(format!("{} calls in all, and {} in its rows", totals.count, rows.count));
        }
        if let Some(odd) = self.calls.iter().find(|call| call.errors > call.count) {
            return Some(format!("{} calls of {}, and {} errors", odd.count, odd.op, odd.errors));
        }
        let odd = self.completions.iter().find(|cq| {
            cq.before.is_some_and(|before| before.produced > cq.produced || before.consumed > cq.consumed)
        });
        if let Some(odd) = odd {
            return Some(format!("completion queue {} has fewer completions than it had before", odd.cqn));
        }
        // An interval's names may be of a moment later than its numbers.
        if !self.has_exact_extremes() {
            return None;
        }
        let named = |call: &Call| call.errnos.values().fold(0, |sum: u64, n| sum.saturating_add(*n));
        let odd = self.calls.iter().find(|call| named(call) > call.errors)?;
        Some(format!("{} errors of {}, and {} with a name", odd.errors, odd.op, named(odd)))
    }

    /// Calls and errors in all, of rows that are not shown too.
    pub fn totals(&self) -> (u64, u64) {
        self.totals.unwrap_or_else(|| Totals::of(&self.calls)).pair()
    }

    /// Its JSON form, indented.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    /// The JSON schema of this form.
    pub fn json_schema() -> schemars::Schema {
        schemars::schema_for!(Report)
    }
}

fn call(row: &Counted, processes: &BTreeMap<u32, Process>, names: &Names) -> Call {
    let process = processes.get(&row.key.process);
    let device = names.devices.get(&row.key.device).map_or(UNKNOWN_DEVICE, |d| &d.name);
    Call {
        pid: process.map_or(0, |p| p.pid),
        ns_pid: process.map(|p| p.ns_pid).filter(|pid| *pid != 0),
        cgroup: process.and_then(|p| names.cgroups.path(p.cgroup)).map(str::to_owned),
        comm: process.map_or_else(String::new, comm),
        device: device.to_owned(),
        entry: entry_name(row.key.op).to_owned(),
        op: uapi::op_name(row.key.op).into_owned(),
        count: row.count,
        errors: row.errors,
        errnos: row.errnos.iter().map(|(e, n)| (uapi::errno_name(*e).into_owned(), *n)).collect(),
        latency_ns: row.latency.summary(),
        latency_sum_ns: Some(row.latency.sum),
        latency_buckets: row.latency.filled(),
    }
}

/// The system call that an operation came in by: `ioctl` or `write`.
pub fn entry_name(op: Op) -> &'static str {
    match op.entry() {
        Some(Entry::Write | Entry::WriteUnreadable) => "write",
        _ => "ioctl",
    }
}

/// The name of the device that the driver numbers `index`.
pub fn driver_device(index: u32, devices: &Devices) -> String {
    devices
        .values()
        .find(|device| driver::device_index(&device.node_guid) == Some(index))
        .map_or_else(|| UNKNOWN_DEVICE.to_owned(), |device| device.name.clone())
}

/// The name of a process.
pub fn comm(process: &Process) -> String {
    let bytes = process.comm.split(|b| *b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

fn mode(calls: &[Call]) -> &'static str {
    let has = |entry| calls.iter().any(|call| call.entry == entry);
    match (has("ioctl"), has("write")) {
        (true, true) => "mixed",
        (true, false) => "ioctl",
        (false, true) => "write",
        (false, false) => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_files_say_what_is_wrong() {
        let parse = |text: &str| recording::parse(text.as_bytes()).unwrap_err();
        assert!(parse("").contains("cut off"));
        assert!(parse(r#"{"schema_version": 1, "env"#).contains("cut off"));
        assert!(parse("garbage").contains("not a tbv-trace report"));
        assert!(parse(r#"{"schema_version": 2}"#).contains("schema version 2"));
        assert!(parse(r#"{"schema_version": 1}"#).contains("missing field"));
        assert!(parse(r#"{"a": 1}"#).contains("missing field `schema_version`"));
    }

    #[test]
    fn files_that_contradict_themselves_are_refused() {
        let environment = Environment::read(Path::new("/nowhere"), crate::Hook::Fentry, &[], &Devices::new());
        let good = Report::new(&Snapshot::default(), environment, &Names::default());
        let call = |count, errors| Call {
            pid: 1,
            ns_pid: None,
            comm: String::new(),
            cgroup: None,
            device: String::new(),
            entry: "ioctl".to_owned(),
            op: "POLL_CQ".to_owned(),
            count,
            errors,
            errnos: BTreeMap::new(),
            latency_ns: None,
            latency_sum_ns: None,
            latency_buckets: None,
        };
        let read = |change: &dyn Fn(&mut Report)| {
            let mut report = good.clone();
            change(&mut report);
            recording::parse(report.to_json().unwrap().as_bytes()).err().unwrap_or_default()
        };
        assert_eq!(read(&|_| {}), "");
        assert!(read(&|r| r.loss.rows_full = 7).contains("loss.total is 0, its parts add up to 7"));
        assert!(read(&|r| r.loss.total = 7).contains("add up to 0"));
        assert!(read(&|r| r.calls = vec![call(5, 0)]).contains("0 calls in all, and 5 in its rows"));
        let read = |change: &dyn Fn(&mut Report)| {
            read(&|r| {
                change(r);
                r.totals = None;
            })
        };
        assert!(read(&|r| r.calls = vec![call(5, 99)]).contains("5 calls of POLL_CQ, and 99 errors"));
        assert!(read(&|r| r.calls = vec![call(u64::MAX, 0), call(2, 0)]).contains("more calls than"));
        let errnos = BTreeMap::from([("EINVAL".to_owned(), 2), ("EPERM".to_owned(), 1)]);
        let named = |errors| vec![Call { errnos: errnos.clone(), ..call(5, errors) }];
        assert!(read(&|r| r.calls = named(2)).contains("2 errors of POLL_CQ, and 3 with a name"));
        assert_eq!(read(&|r| r.calls = named(4)), "");
    }
}
