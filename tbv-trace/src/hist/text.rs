//! Distributions for people: a bar for each power of two.

use tbv_core::{
    Report,
    display::{bar, bound},
    latency::{Distribution, RELATIVE_ERROR, octaves},
};

use super::{
    queues,
    rows::{By, CALL, Row, Rows},
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
    let exact = if report.has_exact_extremes() { "min and max exact, percentiles" } else { "all" };
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
        let bar = bar(*n, most, WIDTH, unicode);
        format!("{name:<wide$}  {bar:<width$}  {n:>digits$}\n", width = WIDTH as usize)
    });
    rows.collect()
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
