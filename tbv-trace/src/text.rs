//! The report as a table for people.

use std::{fmt::Write as _, io};

use comfy_table::{CellAlignment, Table, presets};
use tbv_core::{
    Report,
    latency::RELATIVE_ERROR,
    loss::Losses,
    report::{Call, Completions},
};

pub(crate) use tbv_core::display::{duration, printable};

use crate::{diff::Difference, stream_line::Line};

/// What is to be known of the numbers of an interval.
const OF_INTERVALS: &str = "interval its tables are read one after another, so they may be apart by what came meanwhile; produced and\n         \
                            consumed count a queue's whole life\n";
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
    out.push_str(&polls(report));
    let _ = footer(&mut out, report, iterations);
    out
}

pub(crate) fn header(out: &mut String, report: &Report) -> std::fmt::Result {
    let e = &report.environment;
    if let Some(part) = &report.interval {
        let seconds = |ns: u64| ns as f64 / 1e9;
        writeln!(
            out,
            "interval {}  {:.3} s to {:.3} s\n",
            part.number,
            seconds(part.start_ns),
            seconds(part.end_ns)
        )?;
        return Ok(());
    }
    if !report.command.is_empty() {
        writeln!(out, "command  {}", command(&report.command))?;
    }
    write!(out, "where    kernel {}, hook {}", printable(&e.kernel), printable(&e.hook))?;
    for device in &e.devices {
        write!(out, ", {} ({})", printable(&device.name), printable(&device.uverbs))?;
    }
    writeln!(out)?;
    if !report.filters.is_empty() {
        writeln!(out, "only     {}", printable(&report.filters.join(" ")))?;
    }
    if let Some(cgroup) = only_cgroup(report) {
        writeln!(out, "cgroup   {}", printable(cgroup))?;
    }
    if let Some(limits) = &e.hook_limits {
        writeln!(out, "note     this hook {}", printable(limits))?;
    }
    for other in &e.hooks_passed_over {
        let why = other.reason.lines().next().unwrap_or_default();
        writeln!(out, "note     not by {}: {}", printable(&other.hook), printable(why))?;
    }
    if !e.devices_known {
        writeln!(out, "note     devices are unknown: this kernel shows no BTF")?;
    }
    if let Some(why) = &e.existing_left_out {
        writeln!(out, "note     existing queues left out: {}", printable(why))?;
    }
    if report.ran_at_begin > 0 {
        writeln!(
            out,
            "note     calls that ran when counting began, and are not counted: {}",
            report.ran_at_begin
        )?;
    }
    for file in &e.probes {
        writeln!(out, "probes   {}", printable(file))?;
    }
    writeln!(out, "traced   {:.3} s\n", report.duration_ns as f64 / 1e9)
}

fn table(report: &Report, iterations: Option<u64>) -> String {
    if report.calls.is_empty() {
        let none =
            if report.totals().0 > 0 { "none of the calls is shown" } else { "no calls into ib_uverbs" };
        return format!("{none}\n");
    }
    let shown = Shown {
        iterations,
        ns_pid: contained(report),
        cgroup: only_cgroup(report).is_none() && has_cgroup(report),
    };
    let mut head = vec!["PID"];
    head.extend(shown.ns_pid.then_some("NSPID"));
    head.push("COMM");
    head.extend(shown.cgroup.then_some("CGROUP"));
    head.extend(["DEVICE", "VIA", "OPERATION", "CALLS", "ERRORS"]);
    let numbers = head.len() - 2;
    if iterations.is_some() {
        head.push("CALLS/ITER");
    }
    head.extend(["MIN", "P50", "P99", "MAX"]);
    let mut calls: Vec<&Call> = report.calls.iter().collect();
    calls.sort_by(|a, b| (a.pid, &a.comm).cmp(&(b.pid, &b.comm)).then(b.count.cmp(&a.count)));
    columns(head, calls.into_iter().map(|call| row(call, shown)), numbers)
}

/// Columns that a table has only if they tell something.
#[derive(Clone, Copy)]
struct Shown {
    iterations: Option<u64>,
    ns_pid: bool,
    cgroup: bool,
}

/// Whether a process has another id where it lives than for the kernel.
fn contained(report: &Report) -> bool {
    report.calls.iter().any(|call| call.ns_pid.is_some_and(|pid| pid != call.pid))
}

fn has_cgroup(report: &Report) -> bool {
    report.calls.iter().any(|call| call.cgroup.is_some())
}

/// The cgroup of all rows, if they have one in common.
fn only_cgroup(report: &Report) -> Option<&str> {
    let (first, rest) = report.calls.split_first()?;
    rest.iter().all(|call| call.cgroup == first.cgroup).then_some(first.cgroup.as_deref())?
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
            w.device.clone(),
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
        "IN USER SPACE",
        "PURGED",
        "FAILED",
        "OVERFLOWS",
        "MEAN AT PUSH",
        "MOST",
    ];
    let rows = report.completions.iter().map(|c| {
        vec![
            c.pid.to_string(),
            c.device.clone(),
            queue(c, report),
            c.entries.to_string(),
            c.produced.to_string(),
            c.consumed.to_string(),
            c.consumed_by_ioctl.to_string(),
            c.consumed_in_user_space_meanwhile().map_or_else(|| ABSENT.to_owned(), |n| n.to_string()),
            c.purged.to_string(),
            c.failed.to_string(),
            c.overflows.to_string(),
            c.occupancy_mean.map_or_else(|| ABSENT.to_owned(), |mean| format!("{mean:.1}")),
            c.occupancy_max.to_string(),
        ]
    });
    let existed = report.interval.is_none() && report.completions.iter().any(|c| c.before.is_some());
    let note =
        "existed: before tracing began, so that only produced and consumed count from its creation on\n";
    format!("\n{}{}", columns(head, rows, 3), if existed { note } else { "" })
}

/// What the provider's probes tell: polls in user space, and queues that are not polled there; or nothing.
pub(crate) fn polls(report: &Report) -> String {
    let mut out = String::new();
    let told: Vec<_> = report.completions.iter().filter(|c| c.polled.is_some()).collect();
    if !told.is_empty() {
        let head = vec![
            "PID",
            "DEVICE",
            "CQ",
            "POLLS THAT TOOK SOME",
            "COMPLETIONS TAKEN",
            "POLLS EMPTY",
            "TOLD OF LOSS",
        ];
        let rows = told.into_iter().map(|c| {
            let mut row = vec![c.pid.to_string(), c.device.clone(), queue(c, report)];
            let counts = [c.polls_hit, c.polled, c.polls_empty, c.polls_overflow];
            row.extend(counts.map(|n| n.map_or_else(|| ABSENT.to_owned(), |n| n.to_string())));
            row
        });
        out.push_str(&format!("\n{}", columns(head, rows, 3)));
    }
    if !report.fall_backs.is_empty() {
        let head = vec!["PID", "COMM", "POLLED BY SYSTEM CALL BECAUSE", "QUEUES"];
        let rows = report.fall_backs.iter().map(|fell| {
            vec![fell.pid.to_string(), fell.comm.clone(), fell.reason.clone(), fell.queues.to_string()]
        });
        out.push_str(&format!("\n{}", columns(head, rows, 3)));
    }
    out
}

/// Number of a completion queue and what is special about it. At an interval's begin most of them existed.
fn queue(c: &Completions, report: &Report) -> String {
    let existed = c.before.filter(|_| report.interval.is_none());
    let special = [c.mapped.then_some("mapped"), existed.map(|_| "existed")];
    let special: Vec<&str> = special.into_iter().flatten().collect();
    if special.is_empty() { c.cqn.to_string() } else { format!("{} ({})", c.cqn, special.join(", ")) }
}

/// A table whose columns from `numbers` on are aligned to the right.
pub(crate) fn columns(head: Vec<&str>, rows: impl Iterator<Item = Vec<String>>, numbers: usize) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(head);
    rows.for_each(|row| {
        table.add_row(row.iter().map(|cell| printable(cell)));
    });
    for column in table.column_iter_mut().skip(numbers) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn row(call: &Call, shown: Shown) -> Vec<String> {
    let mut row = vec![call.pid.to_string()];
    row.extend(shown.ns_pid.then(|| call.ns_pid.map_or_else(|| ABSENT.to_owned(), |pid| pid.to_string())));
    row.push(call.comm.clone());
    row.extend(shown.cgroup.then(|| call.cgroup.clone().unwrap_or_else(|| ABSENT.to_owned())));
    row.extend([
        call.device.clone(),
        call.entry.clone(),
        call.op.clone(),
        call.count.to_string(),
        errors(call),
    ]);
    if let Some(n) = shown.iterations {
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
    let (total, errors) = report.totals();
    write!(out, "\ntotal    {total} calls, {errors} errors")?;
    if let Some(n) = iterations {
        write!(out, ", {:.2} calls per iteration", total as f64 / n as f64)?;
    }
    let exact = if report.has_exact_extremes() { "min and max exact, percentiles" } else { "all" };
    writeln!(out, "\nlatency  inside the call; {exact} ±{:.1} %", RELATIVE_ERROR * 100.0)?;
    out.push_str(of_interval(report));
    writeln!(out, "{}", losses(&report.loss))
}

/// The note of a report that is of an interval, or of several.
pub(crate) fn of_interval(report: &Report) -> &'static str {
    if report.has_exact_extremes() { "" } else { OF_INTERVALS }
}

/// What was lost, each way by its name.
pub(crate) fn losses(loss: &Losses) -> String {
    if loss.total == 0 {
        return "loss     none: the counts are exact".to_owned();
    }
    let parts: Vec<String> =
        loss.parts().iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name} {n}")).collect();
    format!(
        "LOSS     {}: {}\n         so some results are incomplete; `tbv-trace schema` says what each name means",
        loss.total,
        parts.join(", ")
    )
}

/// A line of `events`, for people.
pub(crate) fn event(line: &Line<'_>, begin_ns: u64, out: &mut dyn io::Write) -> io::Result<()> {
    match line {
        Line::Begin(begin) => {
            let e = &begin.environment;
            let only =
                if begin.filters.is_empty() { "every process".to_owned() } else { begin.filters.join(" ") };
            writeln!(
                out,
                "# {}; kernel {}, hook {}",
                printable(&only),
                printable(&e.kernel),
                printable(&e.hook)
            )?;
            writeln!(
                out,
                "{:>14}  {:>7} {:>7}  {:<15}  {:<11}  {:<5}  {:<20} {:<9} {:>8}  RESULT",
                "TIME", "PID", "TID", "COMM", "DEVICE", "VIA", "OPERATION", "QUEUE", "LATENCY"
            )
        }
        Line::Call(call) => {
            let handles = [("cq", call.cq_handle), ("qp", call.qp_handle), ("srq", call.srq_handle)];
            let queue = handles.into_iter().find_map(|(kind, handle)| Some(format!("{kind} {}", handle?)));
            let since = call.time_ns.saturating_sub(begin_ns);
            writeln!(
                out,
                "{:>4}.{:09}  {:>7} {:>7}  {:<15}  {:<11}  {:<5}  {:<20} {:<9} {:>8}  {}",
                since / 1_000_000_000,
                since % 1_000_000_000,
                call.pid,
                call.tid,
                printable(&call.comm),
                printable(&call.device),
                call.entry,
                call.op,
                queue.as_deref().unwrap_or("-"),
                call.latency_ns.map_or_else(|| ABSENT.to_owned(), duration),
                call.errno.as_deref().unwrap_or("ok")
            )
        }
        Line::Lost(lost) => writeln!(out, "# LOST {} calls here: the ring buffer was full", lost.count),
        Line::End(end) => {
            writeln!(out, "# {} calls, {} shown, {} lost", end.calls, end.delivered, end.lost)?;
            losses(&end.loss).lines().try_for_each(|line| writeln!(out, "# {line}"))
        }
    }
}

/// Two reports beside each other.
pub(crate) fn difference(difference: &Difference, iterations: Option<u64>) -> String {
    let mut out = String::new();
    for part in &difference.environment {
        let [a, b] = &part.values;
        out.push_str(&format!("differs  {}: {} | {}\n", part.what, printable(a), printable(b)));
    }
    let [a, b] = difference.filters.each_ref().map(|filters| filters.join(" "));
    if a != b {
        let text = format!("differs  shown: {a} | {b}; a row that one leaves out shows as 0");
        out.push_str(&format!("{}\n", printable(&text)));
    }
    if !difference.environment.is_empty() {
        out.push_str("note     times are not compared: the environments differ\n\n");
    }
    let mut head = vec!["COMM", "DEVICE", "VIA", "OPERATION", "A", "B", "B - A", "ERRORS A", "ERRORS B"];
    head.extend(iterations.iter().flat_map(|_| ["A/ITER", "B/ITER"]));
    let timed = difference.environment.is_empty();
    head.extend(timed.then_some(["MEAN A", "MEAN B"]).into_iter().flatten());
    let rows = difference.rows.iter().map(|row| {
        let [a, b] = row.count;
        let mut cells = vec![row.comm.clone(), row.device.clone(), row.entry.clone(), row.op.clone()];
        cells.extend([a.to_string(), b.to_string(), change(a, b)]);
        cells.extend(row.errors.map(|n| n.to_string()));
        cells.extend(
            iterations.iter().flat_map(|n| row.count.map(|c| format!("{:.2}", c as f64 / *n as f64))),
        );
        let mean = |ns: Option<u64>| ns.map_or_else(|| ABSENT.to_owned(), duration);
        cells.extend(timed.then(|| row.mean_ns.map(mean)).into_iter().flatten());
        cells
    });
    if difference.rows.is_empty() {
        out.push_str("no calls in either report\n");
    } else {
        out.push_str(&columns(head, rows, 4));
    }
    let [a, b] = difference.total;
    out.push_str(&format!("\ntotal    {a} | {b} calls ({})\n", change(a, b)));
    let [a, b] = difference.loss;
    out.push_str(&match (a, b) {
        (0, 0) => "loss     none: the counts are exact\n".to_owned(),
        _ => format!("LOSS     {a} | {b}: the counts are not exact\n"),
    });
    out
}

fn change(a: u64, b: u64) -> String {
    if b >= a { format!("+{}", b - a) } else { format!("-{}", a - b) }
}

/// A command as a shell takes it back, if it is not too long.
pub(crate) fn command(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| printable(&quoted(word))).collect();
    shortened(&words.join(" "))
}

/// A word as a shell takes it back.
fn quoted(word: &str) -> std::borrow::Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', "'\\''")).into()
}

/// The beginning of a command that is long, such as a whole script; the JSON form has all of it.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 100;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_can_be_given_to_a_shell() {
        assert_eq!(
            ["-n", "a b", "", "kill $$", "it's"].map(quoted),
            ["-n", "'a b'", "''", "'kill $$'", "'it'\\''s'"]
        );
    }

    #[test]
    fn long_commands_are_cut_between_characters() {
        assert_eq!(shortened("ibv_devinfo -v"), "ibv_devinfo -v");
        assert_eq!(shortened(&"µ".repeat(100)), "µ".repeat(100));
        assert_eq!(shortened(&"µ".repeat(101)), format!("{}…", "µ".repeat(100)));
    }
}
