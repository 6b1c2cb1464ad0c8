//! Single calls as a stream.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use vm_tests::calls::{self, Call, Counts};
use vm_tests::command;
use vm_tests::schema::{self, Schema};
use vm_tests::{perftest, rxe};

use super::{CASES, LIMIT, RAW, attached, file};

/// A stream that was read to its end.
struct Streamed {
    calls: Vec<Value>,
    lost: u64,
    end: Value,
}

impl Streamed {
    /// `tbv-trace events` with `options` on a workload that is let go when it is attached.
    fn of(options: &[&str], arguments: &[&str]) -> Result<(Self, Counts)> {
        rxe::set_up()?;
        let (lines, gate) = (file("events.jsonl"), file("events.gate"));
        let (lines_name, gate_name) = (lines.to_string_lossy(), gate.to_string_lossy());
        let workload = command::start(&[&[RAW, "--gate", &gate_name], arguments].concat())?;
        let words = ["tbv-trace", "-v", "events", "--comm", "uverbs-raw", "-f", "jsonl", "-o", &lines_name];
        let events = command::start(&[&words, options].concat())?;
        attached(&events)?;
        fs::write(&gate, "")?;
        let output = workload.finish(LIMIT)?.success()?;
        events.signal(libc::SIGINT)?;
        events.finish(LIMIT)?.success()?;
        Ok((Self::parse(&fs::read_to_string(&lines)?)?, calls::from_json_lines(&output.stdout)?))
    }

    fn parse(text: &str) -> Result<Self> {
        let mut streamed = Streamed { calls: Vec::new(), lost: 0, end: Value::Null };
        for (number, line) in text.lines().enumerate() {
            let line: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
            ensure!(streamed.end.is_null(), "a line after the end: {line}");
            // Of some hundred thousand, every tenth is enough.
            if number % 10 == 0 || line["event"] != "call" {
                schema::check(Schema::Events, &line)?;
            }
            match line["event"].as_str() {
                Some("begin") if number == 0 => {}
                Some("call") => streamed.calls.push(line),
                Some("lost") => streamed.lost += line["count"].as_u64().context("count")?,
                Some("end") => streamed.end = line,
                _ => bail!("line {number}: {line}"),
            }
        }
        ensure!(
            streamed.end["delivered"] == streamed.calls.len(),
            "{}: {}",
            streamed.calls.len(),
            streamed.end
        );
        ensure!(streamed.end["lost"] == streamed.lost, "{}: {}", streamed.lost, streamed.end);
        Ok(streamed)
    }

    fn counts(&self) -> Result<Counts> {
        let mut counts = Counts::new();
        for call in &self.calls {
            let text = |field: &str| call[field].as_str().map(str::to_owned);
            let pid = u32::try_from(call["pid"].as_u64().context("pid")?)?;
            let (entry, op) = (text("entry").context("entry")?, text("op").context("op")?);
            *counts.entry(Call { pid, entry, op, errno: text("errno") }).or_default() += 1;
        }
        Ok(counts)
    }
}

#[test]
fn with_a_tiny_ring_delivered_and_lost_are_all_calls() -> Result<()> {
    let arguments = ["--procs", "4", "--seconds", "3", "--cases", CASES];
    let (stream, sent) = Streamed::of(&["--ringbuf-size", "4K"], &arguments)?;
    let sent = calls::total(&sent);
    println!("{} delivered, {} lost of {sent}", stream.calls.len(), stream.lost);
    ensure!(stream.lost > 0 && !stream.calls.is_empty(), "{}", stream.end);
    ensure!(stream.calls.len() as u64 + stream.lost == sent, "{sent} sent: {}", stream.end);
    ensure!(stream.end["calls"] == sent && stream.end["loss"]["total"] == stream.lost, "{}", stream.end);
    Ok(())
}

#[test]
fn with_the_default_ring_nothing_is_lost_at_full_speed() -> Result<()> {
    // So many calls, and not for so long: how fast a machine is, is not judged.
    let arguments = ["--procs", "4", "--count", "1000", "--cases", CASES];
    let (stream, sent) = Streamed::of(&[], &arguments)?;
    println!("{} delivered", stream.calls.len());
    ensure!(stream.end["loss"]["total"] == 0, "{}", stream.end);
    let difference = calls::difference(("sent", &sent), ("streamed", &stream.counts()?));
    ensure!(difference.is_empty(), "{difference}");
    ensure!(stream.calls.len() >= 4 * 1000 * CASES.split(',').count(), "{} calls", stream.calls.len());
    Ok(())
}

#[test]
fn failures_alone_are_picked_in_the_kernel() -> Result<()> {
    let (stream, sent) = Streamed::of(&["--failed"], &["--cases", CASES, "--count", "30"])?;
    let failed: Counts = sent.into_iter().filter(|(call, _)| call.errno.is_some()).collect();
    let difference = calls::difference(("failed", &failed), ("streamed", &stream.counts()?));
    ensure!(difference.is_empty() && !failed.is_empty(), "{difference}");
    ensure!(stream.end["calls"] == calls::total(&failed), "{}", stream.end);
    Ok(())
}

#[test]
fn the_queue_that_a_request_names_is_shown() -> Result<()> {
    rxe::set_up()?;
    let (lines, script) = (file("handles.jsonl"), perftest::perftest("ib_send_lat", "-n 100"));
    let name = lines.to_string_lossy();
    let events = command::start(&["tbv-trace", "-v", "events", "-a", "-f", "jsonl", "-o", &name])?;
    attached(&events)?;
    command::run(&["sh", "-c", &script], LIMIT)?.success()?;
    events.signal(libc::SIGINT)?;
    events.finish(LIMIT)?.success()?;
    let stream = Streamed::parse(&fs::read_to_string(&lines)?)?;
    let handles = |op: &str, field: &str| -> Vec<Option<u64>> {
        stream.calls.iter().filter(|call| call["op"] == op).map(|call| call[field].as_u64()).collect()
    };
    for (op, field) in [
        ("POST_SEND", "qp_handle"),
        ("QP_DESTROY", "qp_handle"),
        ("MODIFY_QP", "qp_handle"),
        ("CQ_DESTROY", "cq_handle"),
    ] {
        let found = handles(op, field);
        ensure!(!found.is_empty() && found.iter().all(Option::is_some), "{op}: {found:?}");
    }
    // Of each process: the queue pair that it posts to is the one that it destroys.
    let by_process = |op: &str| -> BTreeMap<u64, u64> {
        let of_op = stream.calls.iter().filter(|call| call["op"] == op);
        of_op.filter_map(|call| Some((call["pid"].as_u64()?, call["qp_handle"].as_u64()?))).collect()
    };
    ensure!(by_process("POST_SEND") == by_process("QP_DESTROY"), "{:?}", by_process("POST_SEND"));
    ensure!(by_process("POST_SEND").len() == 2, "{:?}", by_process("POST_SEND"));
    Ok(())
}

#[test]
fn a_closed_pipe_ends_the_stream_quietly() -> Result<()> {
    rxe::set_up()?;
    let script = format!(
        "set -o pipefail; {{ tbv-trace events -a | head -n 3; }} & events=$!
         while kill -0 $events 2>/dev/null; do {RAW} --cases {CASES} >/dev/null; done; wait $events"
    );
    let output = command::run(&["bash", "-c", &script], LIMIT)?;
    ensure!(output.code() == 0 && output.stderr.is_empty(), "{output:?}");
    ensure!(output.stdout.lines().count() == 3, "{output:?}");
    Ok(())
}
