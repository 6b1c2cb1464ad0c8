//! Distributions for people: a bar for each power of two.

use tbv_core::{
    Report,
    latency::{Distribution, RELATIVE_ERROR},
};

use super::{
    queues,
    rows::{By, CALL, Row, Rows, octaves},
};
use crate::text::{duration, header, losses, of_interval, printable};

/// Characters of the longest bar.
const WIDTH: u64 = 40;

/// The whole text, ending in a newline.
pub(crate) fn render(report: &Report, by: By, unicode: bool) -> anyhow::Result<String> {
    let rows = Rows::of(report, by)?;
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = header(&mut out, report);
    if report.interval.is_none() && report.environment.driver_trace_abi.is_none() {
        out.push_str(
            "messages are not timed: thunderbolt_ibverbs is not loaded, or not of this tbv-trace's kind\n\n",
        );
    }
    for row in &rows.0 {
        out.push_str(&distribution(row, unicode));
        out.push('\n');
    }
    if rows.0.is_empty() {
        out.push_str("nothing was timed\n\n");
    }
    let exact = if report.interval.is_some() { "all" } else { "min and max exact, percentiles" };
    out.push_str(&format!("latency  {exact} ±{:.1} %\n", RELATIVE_ERROR * 100.0));
    out.push_str(&queues::text(report));
    out.push_str(of_interval(report));
    out.push_str(&format!("{}\n", losses(&report.loss)));
    Ok(out)
}

/// What the row is of, its bars and its figures.
fn distribution(row: &Row, unicode: bool) -> String {
    let mut out = format!("{}\n", heading(row));
    match octaves(&row.times) {
        None => out.push_str("no histogram was free for all of it\n"),
        Some(octaves) => out.push_str(&bars(&octaves, unicode)),
    }
    out.push_str(&format!("{}\n", figures(&row.times)));
    out
}

fn heading(row: &Row) -> String {
    let labels = &row.labels;
    let mut parts = Vec::new();
    parts
        .extend(labels.process.as_ref().map(|(pid, comm)| format!("pid {pid} {comm}").trim_end().to_owned()));
    parts.push(labels.device.clone());
    parts.extend(labels.qpn.map(|qpn| format!("qp {qpn}")));
    parts.extend(labels.opcode.clone());
    let what = if row.what == CALL { "call (time inside it)" } else { &row.what };
    printable(&format!("{what}  {}", parts.join(", ")))
}

/// Half-open rows; the largest count has the longest bar, and no count but 0 has none.
fn bars(octaves: &[(u64, u64, u64)], unicode: bool) -> String {
    let most = octaves.iter().map(|(_, _, n)| *n).max().unwrap_or(0);
    let named: Vec<String> = octaves
        .iter()
        .map(|(low, high, _)| {
            let high = if *high == u64::MAX { "inf".to_owned() } else { bound(*high) };
            format!("[{}, {high})", bound(*low))
        })
        .collect();
    let wide = named.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let digits = most.to_string().len();
    let rows = named.iter().zip(octaves).map(|(name, (_, _, n))| {
        let bar = bar(*n, most, unicode);
        format!("{name:<wide$}  {bar:<width$}  {n:>digits$}\n", width = WIDTH as usize)
    });
    rows.collect()
}

fn bar(n: u64, most: u64, unicode: bool) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let steps = if unicode { 8 } else { 1 };
    let scaled = u128::from(n) * u128::from(WIDTH * steps);
    let length = scaled.div_ceil(u128::from(most.max(1))) as u64;
    if unicode {
        let rest = EIGHTHS.get((length % steps) as usize).copied().unwrap_or_default();
        "█".repeat((length / steps) as usize) + rest
    } else {
        "#".repeat(length as usize)
    }
}

/// A power of two of nanoseconds, as exactly as three decimals allow: it is no round number of another unit.
fn bound(ns: u64) -> String {
    let (value, unit) = match ns {
        0..=999 => return format!("{ns} ns"),
        1_000..=999_999 => (ns as f64 / 1e3, "µs"),
        1_000_000..=999_999_999 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    format!("{value:.3} {unit}")
}

fn figures(times: &Distribution) -> String {
    let known = times.min <= times.max;
    let time = |ns: Option<u64>| ns.map_or_else(|| "n/a".to_owned(), duration);
    let share = |q| time(times.percentile(q));
    format!(
        "count {}  min {}  p50 {}  p90 {}  p99 {}  p99.9 {}  max {}",
        times.count,
        time(known.then_some(times.min)),
        share(0.5),
        share(0.9),
        share(0.99),
        share(0.999),
        time(known.then_some(times.max))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_scaled_to_the_largest_and_show_whatever_is_there() {
        assert_eq!([0, 1, 50, 100].map(|n| bar(n, 100, false).len()), [0, 1, 20, 40]);
        assert_eq!(bar(0, 0, false), "");
        assert_eq!(bar(u64::MAX, u64::MAX, false).len(), 40);
        assert_eq!([0, 1, 4, 320].map(|n| bar(n, 320, true).chars().count()), [0, 1, 1, 40]);
        assert_eq!(bar(12, 320, true), "█▌");
    }

    #[test]
    fn bounds_are_told_as_they_are() {
        assert_eq!([0, 512, 1 << 14, 1 << 20].map(bound), ["0 ns", "512 ns", "16.384 µs", "1.049 ms"]);
    }
}
