//! Fields of a process: what it asks of the kernel, and what that is per completion.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Field, QueueRow, Unit, Value, per_second};
use crate::report::{Call, Report};

/// Whether a process still does something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It called the kernel, or got completions.
    Active,
    /// It did neither in that time.
    #[default]
    Idle,
    /// It is no more.
    Ended,
}

impl State {
    /// As it is shown.
    pub const fn name(self) -> &'static str {
        match self {
            State::Active => "active",
            State::Idle => "idle",
            State::Ended => "ended",
        }
    }
}

/// What one process did in a time.
#[derive(Clone, Debug, Default)]
pub struct ProcessRow {
    /// Process id, in the initial pid namespace.
    pub pid: u32,
    /// Process id in its own pid namespace.
    pub ns_pid: Option<u32>,
    /// Its name; empty if it made no call while traced.
    pub comm: String,
    /// Its cgroup.
    pub cgroup: Option<String>,
    /// The devices that it uses.
    pub devices: BTreeSet<String>,
    /// Whether it does something.
    pub state: State,
    /// Calls that returned.
    pub calls: u64,
    /// Those that returned an error.
    pub errors: u64,
    /// Completions put into its queues; `None` if it has none that is known.
    pub completions: Option<u64>,
    /// Calls on devices whose driver tells of completions.
    pub calls_told: u64,
    /// Work requests posted; `None` if its device's driver does not tell.
    pub posted: Option<u64>,
    /// Calls since tracing or the recording began, up to the end of that time.
    pub calls_so_far: Option<u64>,
    /// Counts by bucket, `[low, high, calls]`, unordered; `None` if some calls have no histogram.
    buckets: Option<Vec<(u64, u64, u64)>>,
    max: Option<u64>,
}

impl ProcessRow {
    /// One that did nothing.
    pub fn idle(pid: u32, comm: &str) -> Self {
        ProcessRow { pid, comm: comm.to_owned(), buckets: Some(Vec::new()), ..ProcessRow::default() }
    }

    fn add(&mut self, call: &Call, told: bool) {
        if told {
            self.calls_told = self.calls_told.saturating_add(call.count);
        }
        self.calls = self.calls.saturating_add(call.count);
        self.errors = self.errors.saturating_add(call.errors);
        self.ns_pid = self.ns_pid.or(call.ns_pid);
        if self.cgroup.is_none() {
            self.cgroup.clone_from(&call.cgroup);
        }
        if !self.devices.contains(&call.device) {
            self.devices.insert(call.device.clone());
        }
        self.max = self.max.max(call.latency_ns.as_ref().map(|latency| latency.max));
        match (&mut self.buckets, &call.latency_buckets) {
            (Some(mine), Some(theirs)) => mine.extend(theirs),
            _ => self.buckets = None,
        }
    }

    /// All of a report, in the order of ids: those of its calls, and those that only have queues. `queues` are the
    /// report's, and `names` those of processes that are known from elsewhere.
    pub fn all(report: &Report, queues: &[QueueRow], names: &BTreeMap<u32, String>) -> Vec<Self> {
        let mut rows: Vec<ProcessRow> = Vec::new();
        let mut places: HashMap<(u32, &str), usize> = HashMap::new();
        let mut last_of: HashMap<u32, usize> = HashMap::new();
        let telling: BTreeSet<&str> = report.completions.iter().map(|cq| cq.device.as_str()).collect();
        for call in &report.calls {
            let place = *places.entry((call.pid, &call.comm)).or_insert_with(|| {
                rows.push(ProcessRow::idle(call.pid, &call.comm));
                last_of.insert(call.pid, rows.len() - 1);
                rows.len() - 1
            });
            if let Some(row) = rows.get_mut(place) {
                row.add(call, telling.contains(call.device.as_str()));
            }
        }
        let mut of = |rows: &mut Vec<ProcessRow>, pid: u32| {
            *last_of.entry(pid).or_insert_with(|| {
                rows.push(ProcessRow::idle(pid, names.get(&pid).map_or("", String::as_str)));
                rows.len() - 1
            })
        };
        for queue in queues.iter().filter(|row| row.queue.destroyed != Some(true) || row.produced > 0) {
            let place = of(&mut rows, queue.queue.pid);
            if let Some(row) = rows.get_mut(place) {
                row.completions = Some(row.completions.unwrap_or(0).saturating_add(queue.produced));
                row.devices.insert(queue.queue.device.clone());
            }
        }
        for work in &report.work_requests {
            let place = of(&mut rows, work.pid);
            if let Some(row) = rows.get_mut(place) {
                row.posted = Some(row.posted.unwrap_or(0).saturating_add(work.posted));
                row.devices.insert(work.device.clone());
            }
        }
        // What its devices would have told of and have not, it did not do.
        for row in
            rows.iter_mut().filter(|row| row.devices.iter().any(|device| telling.contains(device.as_str())))
        {
            row.completions = row.completions.or(Some(0));
            row.posted = row.posted.or(Some(0));
        }
        let ended: BTreeSet<u32> = report.system.iter().flat_map(|system| &system.ended).copied().collect();
        for row in &mut rows {
            if let Some(buckets) = &mut row.buckets {
                buckets.sort_unstable();
            }
            let active = row.calls > 0 || row.completions.is_some_and(|n| n > 0);
            row.state = match active {
                _ if ended.contains(&row.pid) => State::Ended,
                true => State::Active,
                false => State::Idle,
            };
        }
        rows.sort_by(|a, b| (a.pid, &a.comm).cmp(&(b.pid, &b.comm)));
        rows
    }

    /// The time inside a call at or below which that share of the calls lies.
    pub fn percentile(&self, share: f64) -> Option<u64> {
        let buckets = self.buckets.as_ref()?;
        let total: u64 = buckets.iter().fold(0, |sum: u64, (_, _, n)| sum.saturating_add(*n));
        let rank = ((share * total as f64).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0_u64;
        let (low, high, _) = buckets.iter().find(|(_, _, n)| {
            seen = n.saturating_add(seen);
            seen >= rank
        })?;
        let middle = if *high == u64::MAX {
            *low
        } else {
            // Of a file, they may be anything.
            low.saturating_add(high.saturating_sub(1).saturating_sub(*low) / 2)
        };
        Some(self.max.map_or(middle, |max| middle.min(max)))
    }
}

/// The fields, in the order of columns.
pub const FIELDS: &[Field<ProcessRow>] = &[
    Field::<ProcessRow>::new(
        "pid",
        "PID",
        Unit::Id,
        "Process id, in the initial pid namespace.",
        |row, _| Value::Number(row.pid.into()),
    ),
    Field::<ProcessRow>::new(
        "ns_pid",
        "NSPID",
        Unit::Id,
        "Process id in its own pid namespace.",
        |row, _| Value::number(row.ns_pid.map(u64::from)),
    )
    .on_demand(),
    Field::<ProcessRow>::new(
        "comm",
        "COMM",
        Unit::Word,
        "The process's name at its first call; n/a if it made none while traced.",
        |row, _| {
            if row.comm.is_empty() { Value::Absent } else { Value::text(&row.comm) }
        },
    ),
    Field::<ProcessRow>::new(
        "calls_per_second",
        "CALLS/S",
        Unit::PerSecond,
        "Calls into ib_uverbs that returned, a second.",
        |row, seconds| per_second(row.calls, seconds),
    ),
    Field::<ProcessRow>::new(
        "completions_per_second",
        "COMPL/S",
        Unit::PerSecond,
        "Completions put into its queues, a second; n/a if the device's driver does not tell.",
        |row, seconds| row.completions.map_or(Value::Absent, |n| per_second(n, seconds)),
    ),
    Field::<ProcessRow>::new(
        "calls_per_completion",
        "CALLS/COMPL",
        Unit::Ratio,
        "Calls for each completion, on devices whose driver tells; n/a without completions.",
        |row, _| {
            let completions = row.completions.filter(|n| *n > 0);
            Value::real(completions.map(|n| row.calls_told as f64 / n as f64))
        },
    ),
    Field::<ProcessRow>::new(
        "p99_ns",
        "P99",
        Unit::Nanoseconds,
        "99th percentile of the time inside its calls, ±1.6 %.",
        |row, _| Value::number(row.percentile(0.99)),
    ),
    Field::<ProcessRow>::new("errors", "ERRORS", Unit::Count, "Calls that returned an error.", |row, _| {
        Value::Number(row.errors)
    }),
    Field::<ProcessRow>::new(
        "state",
        "STATE",
        Unit::Word,
        "`active`, `idle` without a call or completion in that time, or `ended`.",
        |row, _| Value::text(row.state.name()),
    ),
    Field::<ProcessRow>::new(
        "posted_per_second",
        "POSTED/S",
        Unit::PerSecond,
        "Work requests posted, a second; n/a if the device's driver does not tell.",
        |row, seconds| row.posted.map_or(Value::Absent, |n| per_second(n, seconds)),
    ),
    Field::<ProcessRow>::new(
        "calls_so_far",
        "SO FAR",
        Unit::Count,
        "Calls since tracing or the recording began.",
        |row, _| Value::number(row.calls_so_far),
    ),
    Field::<ProcessRow>::new("devices", "DEVICE", Unit::Word, "The RDMA devices that it uses.", |row, _| {
        let names: Vec<&str> = row.devices.iter().map(String::as_str).collect();
        if names.is_empty() { Value::Absent } else { Value::Text(names.join(",").into()) }
    }),
    Field::<ProcessRow>::new(
        "p50_ns",
        "P50",
        Unit::Nanoseconds,
        "Median of the time inside its calls, ±1.6 %.",
        |row, _| Value::number(row.percentile(0.5)),
    )
    .on_demand(),
    Field::<ProcessRow>::new(
        "max_ns",
        "MAX",
        Unit::Nanoseconds,
        "Longest time inside one of its calls.",
        |row, _| Value::number(row.max),
    )
    .on_demand(),
    Field::<ProcessRow>::new(
        "calls",
        "CALLS",
        Unit::Count,
        "Calls into ib_uverbs that returned.",
        |row, _| Value::Number(row.calls),
    )
    .on_demand(),
    Field::<ProcessRow>::new(
        "completions",
        "COMPLETIONS",
        Unit::Count,
        "Completions put into its queues.",
        |row, _| Value::number(row.completions),
    )
    .on_demand(),
    Field::<ProcessRow>::new("posted", "POSTED", Unit::Count, "Work requests posted.", |row, _| {
        Value::number(row.posted)
    })
    .on_demand(),
    Field::<ProcessRow>::new(
        "cgroup",
        "CGROUP",
        Unit::Word,
        "The cgroup (version 2) that it was in at its first call.",
        |row, _| row.cgroup.as_deref().map_or(Value::Absent, Value::text),
    )
    .on_demand(),
];
