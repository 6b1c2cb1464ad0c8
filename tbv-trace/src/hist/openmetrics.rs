//! Distributions and counts as OpenMetrics text, which Prometheus and its relatives read.

use std::collections::BTreeMap;

use anyhow::Result;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _, text::encode},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::{Registry, Unit},
};
use tbv_core::{
    Report,
    environment::Environment,
    latency::{Distribution, octave},
};

use super::{
    counters::{self, Counters, Label},
    rows::{By, CALL, Row, Rows},
};

/// Bounds of the buckets, powers of two in nanoseconds: 256 ns to 137 s, the same ones in every file. A bound counts as
/// inclusive here and is exclusive in our buckets, so a value of exactly a bound is in the next bucket.
const BOUNDS: std::ops::RangeInclusive<u32> = 8..=37;
/// Our own driver's module.
const DRIVER: &str = "thunderbolt_ibverbs";

/// All of one report, down to `# EOF`.
pub(crate) fn render(report: &Report, by: By) -> Result<String> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Metrics {
        histograms: histograms(Rows::of(report, by)?),
        counters: counters::of(report),
        entries: counters::entries(report),
        environment: info(&report.environment),
    }));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// A kind of span, or call, and its rows.
type Family = (String, Vec<(Vec<Label>, Distribution)>);

/// What is written, made beforehand: a family must be in one piece, without two samples of the same labels.
#[derive(Debug)]
struct Metrics {
    histograms: Vec<Family>,
    counters: Vec<Counters>,
    entries: BTreeMap<Vec<Label>, u64>,
    environment: Vec<Label>,
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        encoder
            .encode_descriptor("tbv_environment", "Where it was measured.", None, MetricType::Info)?
            .encode_info(&self.environment)?;
        for (what, rows) in &self.histograms {
            let (name, help) = if what == CALL {
                ("tbv_call_duration".to_owned(), "Time of system calls into ib_uverbs.".to_owned())
            } else {
                (format!("tbv_{what}"), format!("Length of spans of the kind {what}."))
            };
            let help = format!("{help} A value of exactly a bound is in the next bucket.");
            let mut family =
                encoder.encode_descriptor(&name, &help, Some(&Unit::Seconds), MetricType::Histogram)?;
            for (labels, times) in rows {
                family.encode_family(labels)?.encode_histogram::<Vec<Label>>(
                    times.sum as f64 / 1e9,
                    times.count,
                    &buckets(times),
                    None,
                )?;
            }
        }
        for Counters { name, help, values } in self.counters.iter().filter(|c| !c.values.is_empty()) {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (labels, value) in values {
                ConstCounter::new(*value).encode(family.encode_family(labels)?)?;
            }
        }
        if !self.entries.is_empty() {
            let help = "Capacity of completion queues.";
            let mut family = encoder.encode_descriptor("tbv_cq_entries", help, None, MetricType::Gauge)?;
            for (labels, value) in &self.entries {
                ConstGauge::new(*value).encode(family.encode_family(labels)?)?;
            }
        }
        Ok(())
    }
}

fn histograms(rows: Rows) -> Vec<Family> {
    let mut families: Vec<Family> = Vec::new();
    for Row { what, labels, times } in rows.0 {
        let opcode = if what == CALL { "operation" } else { "opcode" };
        let mut named = Vec::new();
        if let Some((pid, comm)) = labels.process {
            named.extend([("pid", pid.to_string()), ("comm", comm)]);
        }
        named.push(("device", labels.device));
        named.extend(labels.qpn.map(|qpn| ("qpn", qpn.to_string())));
        named.extend(labels.opcode.map(|name| (opcode, name)));
        match families.last_mut().filter(|(last, _)| *last == what) {
            Some((_, family)) => family.push((named, times)),
            None => families.push((what, vec![(named, times)])),
        }
    }
    families
}

/// Upper bounds in seconds, and how many are below and not below the one before; without a histogram, only how many in
/// all.
fn buckets(times: &Distribution) -> Vec<(f64, u64)> {
    let Some(filled) = times.filled() else { return vec![(f64::INFINITY, times.count)] };
    let seconds = |exponent: u32| (1_u64 << exponent) as f64 / 1e9;
    let mut buckets: Vec<(f64, u64)> = BOUNDS.map(|exponent| (seconds(exponent), 0)).collect();
    buckets.push((f64::INFINITY, 0));
    for (low, _, n) in filled {
        let place = octave(low).clamp(*BOUNDS.start(), BOUNDS.end() + 1) - BOUNDS.start();
        if let Some(bucket) = buckets.get_mut(place as usize) {
            bucket.1 += n;
        }
    }
    buckets
}

fn info(e: &Environment) -> Vec<Label> {
    let driver = e.modules.iter().find(|module| module.name == DRIVER);
    let abi = e.driver_trace_abi.map_or_else(String::new, |abi| abi.to_string());
    vec![
        ("kernel", e.kernel.clone()),
        ("machine", e.machine.clone()),
        ("hook", e.hook.clone()),
        ("tool_version", e.tool_version.clone()),
        ("driver_version", driver.and_then(|m| m.srcversion.clone()).unwrap_or_default()),
        ("driver_trace_abi", abi),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hist::fixture;

    #[test]
    fn hostile_names_stay_inside_their_quotes() {
        let text = render(&fixture::report(), By::ALL).unwrap();
        assert!(text.contains(r#"comm="a,b \"\\n"#), "{text}");
        assert!(text.lines().all(|line| line.starts_with('#') || line.starts_with("tbv_")));
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn devices_that_cannot_be_told_apart_are_one_series() {
        let mut report = fixture::report();
        report.queue_pairs.extend(report.queue_pairs.clone());
        report.completions.extend(report.completions.clone());
        report.work_requests.extend(report.work_requests.clone());
        let text = render(&report, By::ALL).unwrap();
        let mut series: Vec<&str> = text.lines().filter_map(|l| Some(l.rsplit_once(' ')?.0)).collect();
        let all = series.len();
        series.sort_unstable();
        series.dedup();
        assert_eq!(series.len(), all);
    }

    #[test]
    fn whatever_was_counted_is_in_a_bucket() {
        let mut times = Distribution::default();
        [0, 255, 256, 1 << 36, 1 << 37, u64::MAX / 2].into_iter().for_each(|ns| times.record(ns));
        let buckets = buckets(&times);
        let filled: Vec<(f64, u64)> = buckets.into_iter().filter(|(_, n)| *n > 0).collect();
        assert_eq!(filled, [(2.56e-7, 2), (5.12e-7, 1), (137.438953472, 1), (f64::INFINITY, 2)]);
    }
}
