//! Distributions as comma-separated values.

use anyhow::Result;
use tbv_core::Report;

use super::rows::{By, Row, Rows};
use crate::table::when;

/// Names of the columns. Times are in nanoseconds. `kind` is a span's name or `call`, or `loss` for a row whose `opcode`
/// names a way to lose something and whose `count` says how much was.
const COLUMNS: [&str; 17] = [
    "kind", "interval", "start_ns", "end_ns", "pid", "comm", "device", "qpn", "opcode", "count", "sum_ns",
    "min_ns", "p50_ns", "p90_ns", "p99_ns", "p99_9_ns", "max_ns",
];

/// The rows of one report, under the names of the columns if it is the first.
pub(crate) fn render(report: &Report, by: By, first: bool) -> Result<Vec<u8>> {
    let mut csv = ::csv::Writer::from_writer(Vec::new());
    if first {
        csv.write_record(COLUMNS)?;
    }
    let when = when(report);
    for row in &Rows::of(report, by)?.0 {
        csv.write_record(line(row, &when))?;
    }
    for (name, count) in report.loss.parts() {
        let mut row: [String; 17] = Default::default();
        let [interval, start, end] = when.clone();
        (row[0], row[1], row[2], row[3]) = ("loss".to_owned(), interval, start, end);
        (row[8], row[9]) = (name.to_owned(), count.to_string());
        csv.write_record(row)?;
    }
    csv.into_inner().map_err(|error| anyhow::anyhow!("writing CSV: {error}"))
}

fn line(row: &Row, when: &[String; 3]) -> [String; 17] {
    let Row { what, labels, times } = row;
    let number = |value: Option<u64>| value.map_or_else(String::new, |v| v.to_string());
    let known = times.min <= times.max;
    let [interval, start, end] = when.clone();
    [
        what.clone(),
        interval,
        start,
        end,
        number(labels.process.as_ref().map(|(pid, _)| u64::from(*pid))),
        labels.process.as_ref().map_or_else(String::new, |(_, comm)| comm.clone()),
        labels.device.clone(),
        number(labels.qpn.map(u64::from)),
        labels.opcode.clone().unwrap_or_default(),
        times.count.to_string(),
        times.sum.to_string(),
        number(known.then_some(times.min)),
        number(times.percentile(0.5)),
        number(times.percentile(0.9)),
        number(times.percentile(0.99)),
        number(times.percentile(0.999)),
        number(known.then_some(times.max)),
    ]
}
