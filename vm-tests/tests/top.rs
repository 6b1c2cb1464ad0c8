//! tbv-top on a real kernel: its numbers are tbv-trace's, and what ends or goes is told.
#![cfg(feature = "vm")]

#[path = "../../tbv-top/tests/terminal/pty.rs"]
#[expect(dead_code, clippy::unwrap_used, reason = "the helper of tbv-top's own tests, which use the rest")]
mod pty;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use pty::{Pty, Status};
use serde_json::Value;
use vm_tests::command::{self, LIMIT, Running};
use vm_tests::report::Report;
use vm_tests::{rxe, usb4};

const RAW: &str = env!("CARGO_BIN_EXE_uverbs-raw");

fn file(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(name);
    let _ = fs::remove_file(&path);
    path
}

/// `tbv-top` that prints a line for each interval, once it counts.
fn top(options: &[&str]) -> Result<Running> {
    let running = command::start(&[&["tbv-top", "--batch", "-f", "jsonl", "-i", "0.5"], options].concat())?;
    command::wait_until("tbv-top's first interval", LIMIT, || {
        let stderr = running.stderr()?;
        ensure!(stderr.is_empty(), "{stderr}");
        Ok(running.stdout()?.contains('\n'))
    })?;
    Ok(running)
}

/// What it printed: intervals, and all of the time.
fn ended(running: Running) -> Result<(Vec<Value>, Value)> {
    running.signal(libc::SIGINT)?;
    let output = running.finish(LIMIT)?.success()?;
    let lines =
        output.stdout.lines().map(|line| Ok(serde_json::from_str(line)?)).collect::<Result<Vec<Value>>>()?;
    let (last, intervals) = lines.split_last().context("no line")?;
    ensure!(last["interval"].is_null() && last["loss"]["total"] == 0, "{}", last["loss"]);
    Ok((intervals.to_vec(), last.clone()))
}

/// Calls and errors by process, device, entry and operation.
fn calls(rows: &Value) -> Result<BTreeMap<String, (u64, u64)>> {
    let mut calls = BTreeMap::new();
    for row in rows.as_array().context("no rows")? {
        let key = ["pid", "comm", "device", "entry", "op"].map(|field| row[field].to_string()).join(" ");
        let number = |field: &str| row[field].as_u64().with_context(|| row.to_string());
        let sum: &mut (u64, u64) = calls.entry(key).or_default();
        sum.0 += number("count")?;
        sum.1 += number("errors")?;
    }
    Ok(calls)
}

/// What was put into completion queues and taken out.
fn queues(rows: &Value) -> Result<BTreeMap<String, [Value; 5]>> {
    let rows = rows.as_array().context("no queues")?.iter();
    let fields = ["produced", "consumed", "consumed_by_ioctl", "consumed_in_user_space", "overflows"];
    let of = |row: &Value| {
        let key = ["pid", "device", "cqn"].map(|field| row[field].to_string()).join(" ");
        (key, fields.map(|field| row[field].clone()))
    };
    Ok(rows.map(of).collect())
}

#[test]
fn the_totals_of_a_fixed_workload_are_those_of_tbv_trace() -> Result<()> {
    usb4::set_up()?;
    let (report, recording) = (file("top.json"), file("top.jsonl"));
    let (report_name, recording_name) = (report.to_string_lossy(), recording.to_string_lossy());
    let trace = command::start(&["tbv-trace", "-v", "attach", "-a", "-f", "json", "-o", &report_name])?;
    command::wait_until("attaching", LIMIT, || Ok(trace.stderr()?.contains("attached by")))?;
    let top = top(&["--record", &recording_name])?;
    let device = ["-d", "usb4_rdma0", "-p", "usb4_rdma1"];
    for words in [&["message-times", "latency"], &["message-times", "one-way"]] {
        usb4::run(&[&words[..], &device, &["--count", "700"]].concat(), LIMIT)?.success()?;
    }
    let raw = rxe::device_file("usb4_rdma0")?;
    command::run(&[RAW, "--device", &raw, "--cases", "query-port,unknown-method", "--count", "40"], LIMIT)?;
    let (intervals, all) = ended(top)?;
    trace.signal(libc::SIGINT)?;
    trace.finish(LIMIT)?.success()?;
    let theirs = Report::read(&report)?;
    ensure!(theirs.lost()? == 0, "{}", theirs.json["loss"]);
    let expected = calls(&theirs.json["calls"])?;
    ensure!(expected.len() > 5, "{expected:?}");
    let ours = calls(&all["operations"])?;
    ensure!(ours == expected, "{ours:?}\n{expected:?}");
    let expected_queues = queues(&theirs.json["completions"])?;
    ensure!(expected_queues.len() >= 4, "{expected_queues:?}");
    let ours = queues(&all["completion_queues"])?;
    ensure!(ours == expected_queues, "{ours:?}\n{expected_queues:?}");
    // The same by adding up what was shown, and by the recording.
    let mut sum: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for interval in &intervals {
        for (key, (count, errors)) in calls(&interval["operations"])? {
            let of = sum.entry(key).or_default();
            *of = (of.0 + count, of.1 + errors);
        }
    }
    ensure!(sum == expected, "{sum:?}\n{expected:?}");
    let replayed = command::must(&["tbv-top", "--replay", &recording_name, "--once", "-f", "json"])?;
    let replayed: Value = serde_json::from_str(&replayed.stdout)?;
    ensure!(calls(&replayed["operations"])? == expected, "the recording differs");
    let shown = command::must(&["tbv-trace", "report", "-f", "json", &recording_name])?;
    let shown: Value = serde_json::from_str(&shown.stdout)?;
    ensure!(calls(&shown["calls"])? == expected, "tbv-trace reads something else out of the recording");
    println!("{} rows, {} calls", expected.len(), expected.values().map(|(count, _)| count).sum::<u64>());
    Ok(())
}

/// The row of a process of this name in an interval.
fn process<'a>(interval: &'a Value, comm: &str) -> Option<&'a Value> {
    interval["processes"].as_array()?.iter().find(|row| row["comm"] == comm)
}

/// What an interval says of a device.
fn presence(interval: &Value, device: &str) -> Option<Value> {
    let row = interval["devices"].as_array()?.iter().find(|row| row["device"] == device)?;
    Some(row["presence"].clone())
}

#[test]
fn a_process_that_ends_and_a_device_that_is_unplugged_are_marked() -> Result<()> {
    rxe::set_up_second()?;
    let top = top(&[])?;
    let raw = rxe::device_file(rxe::SECOND)?;
    command::run(&[RAW, "--device", &raw, "--cases", "query-port", "--count", "40"], LIMIT)?.success()?;
    command::must(&["rdma", "link", "del", rxe::SECOND])?;
    let wait_for = |what: &str, is: &dyn Fn(&Value) -> bool| {
        command::wait_until(what, LIMIT, || {
            let printed = top.stdout()?;
            Ok(printed.lines().filter_map(|line| serde_json::from_str(line).ok()).any(|line| is(&line)))
        })
    };
    let has_ended = |line: &Value| process(line, "uverbs-raw").is_some_and(|row| row["state"] == "ended");
    let is_gone = |line: &Value| presence(line, rxe::SECOND).is_some_and(|is| is == "gone");
    wait_for("the process's end", &has_ended)?;
    wait_for("the device's end", &is_gone)?;
    // It is kept for ten seconds.
    let has_left = |line: &Value| is_gone(line) && process(line, "uverbs-raw").is_none();
    wait_for("the process's leaving", &has_left)?;
    let (intervals, all) = ended(top)?;
    let rows: Vec<&Value> = intervals.iter().filter_map(|line| process(line, "uverbs-raw")).collect();
    let calls: u64 = rows.iter().filter_map(|row| row["calls"].as_u64()).sum();
    ensure!(calls > 0 && process(&all, "uverbs-raw").context("gone")?["calls"] == calls, "{calls}");
    // No rate is left of a time that is over.
    let stale =
        |row: &&&Value| row["state"] == "ended" && row["calls"] == 0 && row["calls_per_second"] != 0.0;
    ensure!(rows.iter().find(stale).is_none(), "{rows:?}");
    ensure!(rows.last().is_some_and(|row| row["state"] == "ended" && row["calls"] == 0), "{rows:?}");
    let was_there = |line: &Value| presence(line, rxe::SECOND).is_some_and(|is| is == "there");
    ensure!(intervals.iter().any(was_there), "never there");
    let last = intervals.last().context("no interval")?;
    ensure!(presence(last, rxe::DEVICE).is_some_and(|is| is == "there"), "{}", last["devices"]);
    Ok(())
}

#[test]
fn it_holds_the_module_lets_go_by_a_key_and_comes_back() -> Result<()> {
    usb4::set_up()?;
    let program = command::must(&["sh", "-c", "command -v tbv-top"])?.stdout;
    let mut pty = Pty::start(program.trim(), &["-i", "0.5"], &[]);
    pty.wait_for_word("ib_uverbs");
    pty.wait_for_word("thunderbolt_ibverbs");
    pty.wait_for_word("LIVE");
    let refused = command::run(&["rmmod", "thunderbolt_ibverbs"], LIMIT)?;
    ensure!(!refused.status.success() && refused.stderr.contains("in use"), "{refused:?}");
    pty.press("D");
    pty.wait_for_word("LET");
    pty.wait_for_word("anew");
    command::must(&["rmmod", "thunderbolt_ibverbs"])?;
    usb4::reload()?;
    pty.wait_for_word("LIVE");
    // It counts again, and streams single calls.
    let raw = rxe::device_file("usb4_rdma0")?;
    // It leaves the processor to whoever wants it.
    let words = ["nice", "-n", "19", RAW, "--device", &raw, "--cases", "query-port", "--count", "100000000"];
    let endless = command::start(&words)?;
    pty.wait_for_word("uverbs-raw");
    pty.press("4");
    pty.wait_for_word("QUERY_PORT");
    drop(endless);
    pty.press("q");
    ensure!(pty.status() == Status::Exited(0), "{:?}", pty.output());
    pty.assert_restored();
    // Nothing is held any more.
    command::must(&["rmmod", "thunderbolt_ibverbs"])?;
    usb4::reload()
}

#[test]
fn a_signal_ends_it_with_the_recording_complete() -> Result<()> {
    usb4::set_up()?;
    let program = command::must(&["sh", "-c", "command -v tbv-top"])?.stdout;
    let recording = file("signal.jsonl");
    let name = recording.to_string_lossy();
    let mut pty = Pty::start(program.trim(), &["-i", "0.5", "--record", &name], &[]);
    pty.wait_for_word("recording");
    let raw = rxe::device_file("usb4_rdma0")?;
    command::run(&[RAW, "--device", &raw, "--cases", "query-port", "--count", "40"], LIMIT)?.success()?;
    pty.wait_for_word("uverbs-raw");
    pty.signal(libc::SIGTERM);
    ensure!(pty.status() == Status::Signalled(libc::SIGTERM), "{:?}", pty.output());
    pty.assert_restored();
    let whole = command::must(&["tbv-trace", "report", "-f", "json", &name])?;
    let whole: Value = serde_json::from_str(&whole.stdout)?;
    let queries = calls(&whole["calls"])?;
    let queries: Vec<_> = queries.iter().filter(|(key, _)| key.contains("\"QUERY_PORT\"")).collect();
    ensure!(queries.iter().map(|(_, (count, _))| count).sum::<u64>() == 40, "{queries:?}");
    Ok(())
}

#[test]
fn whoever_lacks_permission_is_told_before_the_terminal_is_touched() -> Result<()> {
    usb4::set_up()?;
    let words = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "tbv-top"];
    let setpriv = command::must(&["sh", "-c", "command -v setpriv"])?.stdout;
    let program = command::must(&["sh", "-c", "command -v tbv-top"])?.stdout;
    let words = [&words[1..6], &[program.trim()]].concat();
    let mut pty = Pty::start(setpriv.trim(), &words, &[]);
    ensure!(pty.status() == Status::Exited(3), "{:?}", pty.output());
    pty.wait_for("no permission");
    ensure!(!pty.output().contains('\u{1b}') && !pty.is_raw(), "{:?}", pty.output());
    Ok(())
}
