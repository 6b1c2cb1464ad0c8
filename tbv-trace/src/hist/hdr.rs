//! Distributions as HdrHistogram's interval log, which its own tools and plotters read.

use std::{io::Write, time::Duration};

use anyhow::{Context as _, Result, anyhow};
use hdrhistogram::{
    Histogram,
    serialization::{
        V2DeflateSerializer,
        interval_log::{IntervalLogWriterBuilder, Tag},
    },
};
use tbv_core::{Report, latency::Distribution};

use super::rows::{By, Row, Rows, middle};

/// Our buckets are wrong by 1/64 at most; two digits add at most 1/128.
const SIGNIFICANT_DIGITS: u8 = 2;
/// Largest value that is told apart unless a row has a larger one: that of our own buckets.
const USUAL_HIGHEST: u64 = 1 << 38;
/// Largest value at all: other implementations count in signed numbers.
const HIGHEST: u64 = 1 << 62;
/// The names of the columns; other implementations write and skip this line.
const LEGEND: &str =
    "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";

/// The tagged intervals of one report, a row each, under the log's head if it is the first.
pub(crate) fn render(report: &Report, by: By, first: bool) -> Result<Vec<u8>> {
    let mut log = Vec::new();
    if first {
        head(&mut log)?;
    }
    let (start_ns, end_ns) =
        report.interval.map_or((0, report.duration_ns), |part| (part.start_ns, part.end_ns));
    let start = Duration::from_nanos(start_ns);
    let length = Duration::from_nanos(end_ns.saturating_sub(start_ns));
    let mut serializer = V2DeflateSerializer::new();
    let mut writer = IntervalLogWriterBuilder::new().begin_log_with(&mut log, &mut serializer)?;
    for row in &Rows::of(report, by)?.0 {
        let tag = tag(row);
        match histogram(&row.times, report.has_exact_extremes())? {
            Some(histogram) => writer
                .write_histogram(&histogram, start, length, Tag::new(&tag))
                .map_err(|error| anyhow!("writing the interval log: {error}"))?,
            None => writer.write_comment(&format!("{tag}: no histogram was free for all of it"))?,
        }
    }
    Ok(log)
}

fn head(log: &mut Vec<u8>) -> Result<()> {
    IntervalLogWriterBuilder::new()
        .add_comment("[Histogram log format version 1.3]")
        .add_comment(
            "tbv-trace: values and Interval_Max in nanoseconds, times in seconds since tracing began",
        )
        .begin_log_with(log, &mut V2DeflateSerializer::new())?;
    log.write_all(LEGEND.as_bytes())?;
    Ok(())
}

/// Each of our buckets as its middle. One value each of the outer two is the smallest and the largest where those are
/// `exact`. `None` if there is no histogram.
fn histogram(times: &Distribution, exact: bool) -> Result<Option<Histogram<u64>>> {
    let Some(mut filled) = times.filled() else { return Ok(None) };
    let highest = times.max.clamp(USUAL_HIGHEST, HIGHEST);
    let mut histogram = Histogram::new_with_bounds(1, highest, SIGNIFICANT_DIGITS)
        .map_err(|error| anyhow!("a histogram up to {highest} ns: {error}"))?;
    let known = times.min <= times.max;
    let within = |ns: u64| if known { ns.clamp(times.min, times.max) } else { ns }.min(HIGHEST);
    let mut record = |ns: u64, n: u64| {
        histogram
            .record_n(within(ns), n)
            .with_context(|| format!("{ns} ns in a histogram up to {highest} ns"))
    };
    if exact && known {
        if let Some((_, _, n)) = filled.first_mut() {
            *n -= 1;
            record(times.min, 1)?;
        }
        if let Some((_, _, n)) = filled.last_mut().filter(|(_, _, n)| *n > 0) {
            *n -= 1;
            record(times.max, 1)?;
        }
    }
    for (low, high, n) in filled.into_iter().filter(|(_, _, n)| *n > 0) {
        record(middle(low, high), n)?;
    }
    Ok(Some(histogram))
}

/// A row's name, without what separates fields and lines.
fn tag(row: &Row) -> String {
    let labels = &row.labels;
    let mut parts = vec![row.what.clone()];
    if let Some((pid, comm)) = &labels.process {
        parts.extend([format!("pid:{pid}"), format!("comm:{comm}")]);
    }
    parts.push(format!("device:{}", labels.device));
    parts.extend(labels.qpn.map(|qpn| format!("qp:{qpn}")));
    parts.extend(labels.opcode.as_ref().map(|opcode| format!("opcode:{opcode}")));
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_-.:".contains(c) { c } else { '_' };
    parts.iter().map(|part| part.chars().map(plain).collect::<String>()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hist::fixture;

    fn made(values: &[u64], exact: bool) -> Histogram<u64> {
        let mut times = Distribution::default();
        values.iter().for_each(|ns| times.record(*ns));
        histogram(&times, exact).unwrap().unwrap()
    }

    #[test]
    fn extremes_are_exact_and_nothing_is_lost() {
        for values in [&[0][..], &[777], &[777, 777], &[12_000, 12_001], &[1, 500, 1 << 40], &[u64::MAX]] {
            let histogram = made(values, true);
            let [min, max] = [values.iter().min(), values.iter().max()].map(|v| *v.unwrap());
            assert_eq!(histogram.len(), values.len() as u64);
            assert!(histogram.equivalent(histogram.min(), min.min(HIGHEST)), "{values:?}");
            assert!(histogram.equivalent(histogram.max(), max.min(HIGHEST)), "{values:?}");
        }
        assert_eq!(made(&[1000, 1000, 1031], false).len(), 3);
    }

    #[test]
    fn a_row_without_a_histogram_is_a_comment() {
        let mut report = fixture::report();
        report.calls.truncate(1);
        report.spans.clear();
        report.calls[0].latency_buckets = None;
        let log = String::from_utf8(render(&report, By::ALL, false).unwrap()).unwrap();
        assert!(
            log.starts_with("#call/pid:") && log.ends_with(": no histogram was free for all of it\n"),
            "{log}"
        );
    }

    #[test]
    fn tags_have_nothing_that_separates() {
        for row in Rows::of(&fixture::report(), By::ALL).unwrap().0 {
            let tag = tag(&row);
            assert!(Tag::new(&tag).is_some() && !tag.contains(char::is_control), "{tag}");
        }
    }
}
