//! A report's latencies, in rows of the labels that were chosen.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use tbv_core::{
    Report, Span,
    latency::{Distribution, Latency},
    messages::span_name,
};

use crate::text::printable;

/// What a row of calls is of.
pub(crate) const CALL: &str = "call";

/// What tells rows apart, besides the kind of span and the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct By {
    pub(crate) process: bool,
    pub(crate) qp: bool,
    /// The opcode of a span, the operation of a call.
    pub(crate) opcode: bool,
}

impl By {
    /// By all that there is.
    pub(crate) const ALL: By = By { process: true, qp: true, opcode: true };
}

/// The labels of a row; those that were not chosen, or that it has not, are absent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Labels {
    pub(crate) device: String,
    /// Process id and name.
    pub(crate) process: Option<(u32, String)>,
    pub(crate) qpn: Option<u32>,
    pub(crate) opcode: Option<String>,
}

/// One distribution.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// A span's name, or [`CALL`].
    pub(crate) what: String,
    pub(crate) labels: Labels,
    /// How long it took. Of a report of an older version the sum of calls is their mean times their count.
    pub(crate) times: Distribution,
}

/// All distributions of a report that are not empty: spans in the order of a message's way, then calls.
#[derive(Clone, Debug)]
pub(crate) struct Rows(pub(crate) Vec<Row>);

impl Rows {
    /// Adds up rows that are equal in the chosen labels. An error if the report's histograms are not of our buckets or
    /// count more than there can be.
    pub(crate) fn of(report: &Report, by: By) -> Result<Self> {
        let mut rows: BTreeMap<(usize, String, Labels), Distribution> = BTreeMap::new();
        let mut all = (0, 0);
        let mut add = |what: &str, labels, times: Distribution| {
            all = checked_sum(all, &times).context("the report counts more than there can be")?;
            if times.count > 0 {
                rows.entry((rank(what), what.to_owned(), labels)).or_default().merge(&times);
            }
            anyhow::Ok(())
        };
        for span in &report.spans {
            let name = &span.span;
            let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            ensure!(plain && !name.is_empty() && !name.starts_with(CALL), "{name:?} is no kind of span");
            let labels = Labels {
                device: printable(&span.device),
                process: by.process.then(|| (span.pid, printable(&span.comm))),
                qpn: by.qp.then_some(span.qpn),
                opcode: span.opcode.as_deref().filter(|_| by.opcode).map(printable),
            };
            let (latency, buckets) = (span.latency_ns.as_ref(), span.latency_buckets.as_deref());
            add(&span.span, labels, times(span.count, span.sum_ns, latency, buckets)?)?;
        }
        for call in &report.calls {
            let labels = Labels {
                device: printable(&call.device),
                process: by.process.then(|| (call.pid, printable(&call.comm))),
                qpn: None,
                opcode: by.opcode.then(|| printable(&call.op)),
            };
            let latency = call.latency_ns.as_ref();
            // Without a summary none was timed.
            let count = latency.map_or(0, |_| call.count);
            let mut timed = times(count, 0, latency, call.latency_buckets.as_deref())?;
            let mean = latency.map_or(0, |latency| latency.mean);
            let sum = call.latency_sum_ns.or_else(|| mean.checked_mul(timed.count));
            timed.sum = sum.context("the report's times add up to too much")?;
            add(CALL, labels, timed)?;
        }
        Ok(Rows(rows.into_iter().map(|((_, what, labels), times)| Row { what, labels, times }).collect()))
    }
}

/// A row's distribution. Where there is a histogram, it is what counts: a call that took no time that could be told is
/// not in it.
fn times(
    count: u64,
    sum: u64,
    latency: Option<&Latency>,
    buckets: Option<&[(u64, u64, u64)]>,
) -> Result<Distribution> {
    let mut times = Distribution::from_row(count, sum, latency, buckets).context(
        "the histograms are not of this tbv-trace's buckets; use the tbv-trace that wrote the report",
    )?;
    if let Some(buckets) = &times.buckets {
        let counted = buckets.iter().try_fold(0_u64, |sum, n| sum.checked_add(*n));
        times.count = counted.context("the report counts more than there can be")?;
    }
    Ok(times)
}

fn checked_sum((count, sum): (u64, u64), times: &Distribution) -> Option<(u64, u64)> {
    Some((count.checked_add(times.count)?, sum.checked_add(times.sum)?))
}

/// Where a kind of row stands: in the order of a message's way, kinds of later versions after them, calls last.
fn rank(what: &str) -> usize {
    let spans = Span::ALL.into_iter().map(span_name);
    if what == CALL { usize::MAX } else { spans.take_while(|name| *name != what).count() }
}

/// The value that stands for a bucket, as percentiles take it.
pub(crate) fn middle(low: u64, high: u64) -> u64 {
    if high == u64::MAX { low } else { low + high.saturating_sub(1).saturating_sub(low) / 2 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hist::fixture;

    #[test]
    fn rows_that_are_equal_in_the_chosen_labels_are_one() {
        let report = fixture::report();
        let all = Rows::of(&report, By::ALL).unwrap().0;
        let one = Rows::of(&report, By { process: false, qp: false, opcode: false }).unwrap().0;
        let count = |rows: &[Row]| rows.iter().map(|row| row.times.count).sum::<u64>();
        assert_eq!(count(&all), count(&one));
        let kinds: Vec<&str> = one.iter().map(|row| row.what.as_str()).collect();
        let spans = ["post_to_completion", "completion_to_consumed", "recovery", "rnr_wait", "credit_stall"];
        assert_eq!(kinds, [&spans[..], &[CALL]].concat());
        assert!(one.iter().all(|row| row.labels.process.is_none() && row.labels.opcode.is_none()));
        assert!(all.iter().all(|row| (row.what == CALL) == row.labels.qpn.is_none()));
        let by_qp = Rows::of(&report, By { process: false, qp: true, opcode: false }).unwrap().0;
        assert!(by_qp.len() > one.len() && by_qp.len() < all.len());
    }

    #[test]
    fn a_histogram_of_other_buckets_or_of_too_many_is_an_error() {
        let broken = |buckets| {
            let mut report = fixture::report();
            report.spans[0].latency_buckets = Some(buckets);
            Rows::of(&report, By::ALL).unwrap_err().to_string()
        };
        assert!(broken(vec![(1000, 2000, 5)]).contains("not of this tbv-trace's buckets"));
        assert!(broken(vec![(1, 2, u64::MAX), (2, 3, 1)]).contains("more than there can be"));
        assert!(broken(vec![(1, 2, u64::MAX)]).contains("more than there can be"));
        let mut report = fixture::report();
        report.calls[0].latency_ns.as_mut().unwrap().mean = u64::MAX / 2;
        report.calls[0].latency_sum_ns = None;
        assert!(Rows::of(&report, By::ALL).is_err());
        report.calls[0].latency_sum_ns = Some(u64::MAX);
        assert!(Rows::of(&report, By::ALL).is_err());
        let mut report = fixture::report();
        for name in ["", "x\ntbv_posted_total 5", "call_duration", "call"] {
            report.spans[0].span = name.to_owned();
            assert!(Rows::of(&report, By::ALL).is_err(), "{name}");
        }
    }

    #[test]
    fn a_row_without_a_histogram_leaves_none() {
        let mut report = fixture::report();
        report.calls[0].latency_buckets = None;
        let rows = Rows::of(&report, By { process: false, qp: false, opcode: false }).unwrap().0;
        assert!(rows.iter().all(|row| row.times.buckets.is_none() == (row.what == CALL)));
    }
}
