//! The report as a table for people.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};
use tbv_core::{Report, latency::RELATIVE_ERROR, report::Call};

/// Stands for a number that there is not.
const ABSENT: &str = "n/a";

/// The whole text, ending in a newline.
pub(crate) fn render(report: &Report, iterations: Option<u64>) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = header(&mut out, report);
    out.push_str(&table(report, iterations));
    out.push_str(&work(report, iterations));
    out.push_str(&completions(report));
    let _ = footer(&mut out, report, iterations);
    out
}

fn header(out: &mut String, report: &Report) -> std::fmt::Result {
    let e = &report.environment;
    if !report.command.is_empty() {
        let words: Vec<String> = report.command.iter().map(|w| printable(w)).collect();
        writeln!(out, "command  {}", shortened(&words.join(" ")))?;
    }
    write!(out, "where    kernel {}, hook {}", e.kernel, e.hook)?;
    for device in &e.devices {
        write!(out, ", {} ({})", device.name, device.uverbs)?;
    }
    writeln!(out)?;
    if let Some(limits) = &e.hook_limits {
        writeln!(out, "note     this hook {limits}")?;
    }
    if !e.devices_known {
        writeln!(out, "note     devices are unknown: this kernel shows no BTF")?;
    }
    writeln!(out, "traced   {:.3} s\n", report.duration_ns as f64 / 1e9)
}

fn table(report: &Report, iterations: Option<u64>) -> String {
    if report.calls.is_empty() {
        return "no calls into ib_uverbs\n".to_owned();
    }
    let mut head = vec!["PID", "COMM", "DEVICE", "VIA", "OPERATION", "CALLS", "ERRORS"];
    if iterations.is_some() {
        head.push("CALLS/ITER");
    }
    head.extend(["MIN", "P50", "P99", "MAX"]);
    let mut calls: Vec<&Call> = report.calls.iter().collect();
    calls.sort_by(|a, b| (a.pid, &a.comm).cmp(&(b.pid, &b.comm)).then(b.count.cmp(&a.count)));
    columns(head, calls.into_iter().map(|call| row(call, iterations)), 5)
}

/// Work requests of our own driver, or nothing.
fn work(report: &Report, iterations: Option<u64>) -> String {
    if report.work_requests.is_empty() {
        return String::new();
    }
    let mut head = vec!["PID", "DEVICE", "QUEUE", "WORK REQUEST", "POSTED", "SIGNALLED"];
    head.extend(iterations.map(|_| "POSTED/ITER"));
    let rows = report.work_requests.iter().map(|w| {
        let mut row = vec![
            w.pid.to_string(),
            printable(&w.device),
            w.queue.clone(),
            w.opcode.clone(),
            w.posted.to_string(),
            w.signalled.to_string(),
        ];
        row.extend(iterations.map(|n| format!("{:.2}", w.posted as f64 / n as f64)));
        row
    });
    format!("\n{}", columns(head, rows, 4))
}

/// Completion queues of our own driver, or nothing.
fn completions(report: &Report) -> String {
    if report.completions.is_empty() {
        return String::new();
    }
    let head = vec![
        "PID",
        "DEVICE",
        "CQ",
        "ENTRIES",
        "PRODUCED",
        "CONSUMED",
        "BY IOCTL",
        "FAILED",
        "OVERFLOWS",
        "MOST AT ONCE",
    ];
    let rows = report.completions.iter().map(|c| {
        vec![
            c.pid.to_string(),
            printable(&c.device),
            format!("{}{}", c.cqn, if c.mapped { " (mapped)" } else { "" }),
            c.entries.to_string(),
            c.produced.to_string(),
            c.consumed.to_string(),
            c.consumed_by_ioctl.to_string(),
            c.failed.to_string(),
            c.overflows.to_string(),
            c.occupancy_max.to_string(),
        ]
    });
    format!("\n{}", columns(head, rows, 3))
}

/// A table whose columns from `numbers` on are aligned to the right.
fn columns(head: Vec<&str>, rows: impl Iterator<Item = Vec<String>>, numbers: usize) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(head);
    rows.for_each(|row| {
        table.add_row(row);
    });
    for column in table.column_iter_mut().skip(numbers) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn row(call: &Call, iterations: Option<u64>) -> Vec<String> {
    let mut row = vec![
        call.pid.to_string(),
        printable(&call.comm),
        printable(&call.device),
        call.entry.clone(),
        call.op.clone(),
        call.count.to_string(),
        errors(call),
    ];
    if let Some(n) = iterations {
        row.push(format!("{:.2}", call.count as f64 / n as f64));
    }
    let times = call.latency_ns.as_ref();
    let time = |ns: Option<u64>| ns.map_or_else(|| ABSENT.to_owned(), duration);
    row.extend([
        time(times.map(|t| t.min)),
        time(times.and_then(|t| t.p50)),
        time(times.and_then(|t| t.p99)),
        time(times.map(|t| t.max)),
    ]);
    row
}

fn errors(call: &Call) -> String {
    if call.errors == 0 {
        return "0".to_owned();
    }
    let named: Vec<String> = call.errnos.iter().map(|(name, n)| format!("{name} {n}")).collect();
    format!("{} ({})", call.errors, named.join(", "))
}

fn footer(out: &mut String, report: &Report, iterations: Option<u64>) -> std::fmt::Result {
    let total: u64 = report.calls.iter().map(|call| call.count).sum();
    let errors: u64 = report.calls.iter().map(|call| call.errors).sum();
    write!(out, "\ntotal    {total} calls, {errors} errors")?;
    if let Some(n) = iterations {
        write!(out, ", {:.2} calls per iteration", total as f64 / n as f64)?;
    }
    writeln!(
        out,
        "\nlatency  inside the call; min and max exact, percentiles ±{:.1} %",
        RELATIVE_ERROR * 100.0
    )?;
    if report.loss.total == 0 {
        return writeln!(out, "loss     none: the counts are exact");
    }
    let parts: Vec<String> =
        report.loss.parts().iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name} {n}")).collect();
    writeln!(out, "LOSS     {}: {}", report.loss.total, parts.join(", "))
}

/// Nanoseconds with three or four significant digits and a unit.
fn duration(ns: u64) -> String {
    let value = ns as f64;
    match ns {
        0..=999 => format!("{ns} ns"),
        1_000..=999_999 => format!("{:.*} µs", digits(value / 1e3), value / 1e3),
        1_000_000..=999_999_999 => format!("{:.*} ms", digits(value / 1e6), value / 1e6),
        _ => format!("{:.*} s", digits(value / 1e9), value / 1e9),
    }
}

fn digits(value: f64) -> usize {
    if value < 10.0 {
        2
    } else if value < 100.0 {
        1
    } else {
        0
    }
}

/// The beginning of a command that is long, such as a whole script; the JSON form has all of it.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 100;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A name from the kernel or a command line, made harmless for a terminal.
fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let escape = c.is_control();
            let plain = (!escape).then_some(c);
            plain.into_iter().chain(escape.then(|| c.escape_default()).into_iter().flatten())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        let shown = [0, 999, 1_000, 15_540, 123_456, 2_500_000, 75_000_000_000].map(duration);
        assert_eq!(shown, ["0 ns", "999 ns", "1.00 µs", "15.5 µs", "123 µs", "2.50 ms", "75.0 s"]);
    }

    #[test]
    fn long_commands_are_cut_between_characters() {
        assert_eq!(shortened("ibv_devinfo -v"), "ibv_devinfo -v");
        assert_eq!(shortened(&"µ".repeat(100)), "µ".repeat(100));
        assert_eq!(shortened(&"µ".repeat(101)), format!("{}…", "µ".repeat(100)));
    }

    #[test]
    fn names_cannot_drive_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\n"), "a\\u{1b}[31mb\\n");
        assert_eq!(printable("näme"), "näme");
    }
}
