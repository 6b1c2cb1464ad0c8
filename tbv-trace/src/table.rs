//! A report as comma-separated values.

use anyhow::Result;
use tbv_core::{Report, report::Call};

/// Names of the columns. Times are in nanoseconds; `kind` is `call`, or `loss` for a row whose `op`
/// names a way to lose calls and whose `count` says how many were.
const COLUMNS: [&str; 20] = [
    "kind", "interval", "start_ns", "end_ns", "pid", "ns_pid", "comm", "cgroup", "device", "entry", "op",
    "count", "errors", "errnos", "min_ns", "mean_ns", "max_ns", "p50_ns", "p99_ns", "p99_9_ns",
];

/// The rows of one report, under the names of the columns if it is the first.
pub(crate) fn render(report: &Report, first: bool) -> Result<Vec<u8>> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    if first {
        csv.write_record(COLUMNS)?;
    }
    let when = when(report);
    for call in &report.calls {
        csv.write_record(row(call, &when))?;
    }
    for (name, count) in report.loss.parts() {
        let mut row: [String; 20] = Default::default();
        row[..4].clone_from_slice(&["loss".to_owned(), when[0].clone(), when[1].clone(), when[2].clone()]);
        (row[10], row[11]) = (name.to_owned(), count.to_string());
        csv.write_record(row)?;
    }
    csv.into_inner().map_err(|error| anyhow::anyhow!("writing CSV: {error}"))
}

/// Number of the interval (`total` for the whole time), its begin and end.
pub(crate) fn when(report: &Report) -> [String; 3] {
    match &report.interval {
        Some(part) => [part.number.to_string(), part.start_ns.to_string(), part.end_ns.to_string()],
        None => ["total".to_owned(), "0".to_owned(), report.duration_ns.to_string()],
    }
}

fn row(call: &Call, when: &[String; 3]) -> [String; 20] {
    let errnos: Vec<String> = call.errnos.iter().map(|(name, n)| format!("{name}={n}")).collect();
    let latency = call.latency_ns.as_ref();
    let number = |value: Option<u64>| value.map_or_else(String::new, |v| v.to_string());
    let [interval, start, end] = when.clone();
    [
        "call".to_owned(),
        interval,
        start,
        end,
        call.pid.to_string(),
        call.ns_pid.map_or_else(String::new, |pid| pid.to_string()),
        call.comm.clone(),
        call.cgroup.clone().unwrap_or_default(),
        call.device.clone(),
        call.entry.clone(),
        call.op.clone(),
        call.count.to_string(),
        call.errors.to_string(),
        errnos.join(" "),
        number(latency.map(|l| l.min)),
        number(latency.map(|l| l.mean)),
        number(latency.map(|l| l.max)),
        number(latency.and_then(|l| l.p50)),
        number(latency.and_then(|l| l.p99)),
        number(latency.and_then(|l| l.p99_9)),
    ]
}
