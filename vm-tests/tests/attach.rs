//! tbv-trace on what runs already: who is counted, from when on, and single calls as a stream.
#![cfg(feature = "vm")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use vm_tests::calls::{self, Call, Counts};
use vm_tests::command::{self, Running};
use vm_tests::report::{self, Report};
use vm_tests::schema::{self, Schema};
use vm_tests::{kernel, perftest, rxe, scale, strace};

const RAW: &str = env!("CARGO_BIN_EXE_uverbs-raw");
const LIMIT: Duration = Duration::from_secs(240);
const CASES: &str = "query-port,write-unknown,terminal-ioctl,unknown-method,write";

/// A name for this test's files.
fn file(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(name);
    let _ = fs::remove_file(&path);
    path
}

/// A workload under strace that has made its first calls and waits.
struct Held {
    running: Running,
    trace: PathBuf,
    gate: PathBuf,
}

impl Held {
    /// `words` are the workload's, and have to pass on `gate`; `before` leads to it.
    fn start(before: &[&str], program: &str, arguments: &[&str]) -> Result<Self> {
        rxe::set_up()?;
        let (trace, gate) = (file("attach.strace"), file("attach.gate"));
        let (trace_name, gate_name) = (trace.to_string_lossy(), gate.to_string_lossy());
        let workload = [&[program, "--gate", &gate_name], arguments].concat();
        let words = [before, strace::COMMAND, &["-o", &trace_name], &workload].concat();
        let running = command::start(&words)?;
        command::wait_until("the workload at its gate", LIMIT, || {
            Ok(fs::read_to_string(&trace).is_ok_and(|text| strace::after_gate(&text).is_ok()))
        })?;
        Ok(Held { running, trace, gate })
    }

    /// The workload's own process.
    fn pid(&self, name: &str) -> Result<u32> {
        match kernel::pids(name)?[..] {
            [pid] => Ok(pid),
            ref pids => bail!("processes called {name}: {pids:?}"),
        }
    }

    /// Lets it go and waits for its end; what strace saw from then on, and what the workload says it sent.
    fn go(self) -> Result<(strace::Trace, Counts)> {
        fs::write(&self.gate, "")?;
        let output = self.running.finish(LIMIT)?.success()?;
        let text = fs::read_to_string(&self.trace)?;
        let trace = strace::parse(strace::after_gate(&text)?)?;
        ensure!(calls::total(&trace.cut) == 0, "cut off: {:?}", trace.cut);
        Ok((trace, calls::from_json_lines(&output.stdout)?))
    }
}

/// `tbv-trace attach`, counting.
struct Attached {
    running: Running,
    report: PathBuf,
}

impl Attached {
    fn start(before: &[&str], options: &[&str]) -> Result<Self> {
        let report = file("attach.json");
        let name = report.to_string_lossy();
        let words = ["tbv-trace", "-v", "attach", "-f", "json", "-o", &name];
        let running = command::start(&[before, &words, options].concat())?;
        attached(&running)?;
        Ok(Attached { running, report })
    }

    /// Ends it as Ctrl-C does, unless it ends by itself.
    fn finish(self, interrupt: bool) -> Result<Report> {
        if interrupt {
            self.running.signal_group(libc::SIGINT)?;
        }
        let output = self.running.finish(LIMIT)?.success()?;
        let report = Report::read(&self.report)?;
        ensure!(report.lost()? == 0, "loss: {}\n{}", report.json["loss"], output.stderr);
        Ok(report)
    }
}

/// Waits until tbv-trace says that it counts.
fn attached(running: &Running) -> Result<()> {
    command::wait_until("attaching", LIMIT, || {
        let stderr = running.stderr()?;
        ensure!(!stderr.contains("cannot"), "{stderr}");
        Ok(stderr.contains("attached by"))
    })
}

/// Fails unless tbv-trace, strace and the workload agree.
fn agree(seen: &Counts, (trace, sent): &(strace::Trace, Counts)) -> Result<()> {
    ensure!(calls::total(seen) > 0, "no calls");
    strace::agrees(trace, &calls::as_seen_by_strace(seen))?;
    let (sent, seen) = (calls::of_all_processes(sent), calls::of_all_processes(seen));
    let difference = calls::difference(("sent", &sent), ("counted", &seen));
    ensure!(difference.is_empty(), "{difference}");
    println!("{} calls", calls::total(&seen));
    Ok(())
}

#[test]
fn by_pid_from_the_moment_of_attach_with_children_that_come_later() -> Result<()> {
    let held = Held::start(&[], RAW, &["--cases", CASES, "--count", "20", "--procs", "5"])?;
    let pid = held.pid("uverbs-raw")?.to_string();
    let attached = Attached::start(&[], &["-p", &pid])?;
    let truth = held.go()?;
    // The process has ended, and tbv-trace with it.
    let report = attached.finish(false)?;
    ensure!(calls::pids(&report.calls).len() == 5, "{:?}", report.calls);
    agree(&report.calls, &truth)
}

#[test]
fn by_pid_inside_a_pid_namespace() -> Result<()> {
    // Its first process holds the namespace open: with it all others would go.
    let holder =
        command::start(&["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sleep", "1000"])?;
    command::wait_until("the namespace", LIMIT, || Ok(!kernel::pids("sleep")?.is_empty()))?;
    let [first] = kernel::pids("sleep")?[..] else { bail!("not one sleep") };
    let first = first.to_string();
    let enter = ["nsenter", "-t", &first, "-p", "-m"];
    let held = Held::start(&enter, RAW, &["--cases", CASES, "--count", "20", "--procs", "3"])?;
    let outside = held.pid("uverbs-raw")?;
    let status = fs::read_to_string(format!("/proc/{outside}/status"))?;
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:")).context("no NSpid")?;
    let inside = ids.split_whitespace().last().context("no NSpid")?;
    ensure!(inside.parse::<u32>()? != outside, "not in a namespace: {ids}");
    let attached = Attached::start(&enter, &["-p", inside])?;
    let truth = held.go()?;
    let report = attached.finish(false)?;
    agree(&report.calls_in_namespaces()?, &truth)?;
    // Both ids are there, and differ.
    for row in report.json["calls"].as_array().context("no calls")? {
        ensure!(row["pid"].is_u64() && row["ns_pid"].is_u64() && row["pid"] != row["ns_pid"], "{row}");
    }
    drop(holder);
    Ok(())
}

#[test]
fn by_cgroup_with_children_that_come_and_go() -> Result<()> {
    let cgroup = Path::new("/sys/fs/cgroup/tbv-test/inner");
    fs::create_dir_all(cgroup)?;
    let join = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", cgroup.display());
    let arguments = ["--cases", CASES, "--count", "20", "--procs", "6"];
    let held = Held::start(&["sh", "-c", &join, "sh"], RAW, &arguments)?;
    let attached = Attached::start(&[], &["--cgroup", "/tbv-test"])?;
    // Others are not counted.
    command::run(&[RAW, "--cases", CASES], LIMIT)?.success()?;
    let truth = held.go()?;
    let report = attached.finish(true)?;
    ensure!(calls::pids(&report.calls).len() == 6, "{:?}", report.calls);
    agree(&report.calls, &truth)?;
    for row in report.json["calls"].as_array().context("no calls")? {
        ensure!(row["cgroup"] == "/tbv-test/inner", "{row}");
    }
    ensure!(
        report.json["filters"] == serde_json::json!(["--cgroup /tbv-test"]),
        "{}",
        report.json["filters"]
    );
    Ok(())
}

#[test]
fn by_name() -> Result<()> {
    // Longer than the 15 bytes that the kernel keeps.
    let other = file("raw-by-another-name");
    fs::copy(RAW, &other)?;
    let held =
        Held::start(&[], &other.to_string_lossy(), &["--cases", CASES, "--count", "20", "--threads", "4"])?;
    let attached = Attached::start(&[], &["--comm", "raw-by-another-name"])?;
    command::run(&[RAW, "--cases", CASES], LIMIT)?.success()?;
    let truth = held.go()?;
    agree(&attached.finish(true)?.calls, &truth)
}

#[test]
fn by_device_of_two() -> Result<()> {
    rxe::set_up_second()?;
    let device = rxe::device_file(rxe::SECOND)?;
    let held = Held::start(&[], RAW, &["--device", &device, "--cases", CASES, "--count", "20"])?;
    let attached = Attached::start(&[], &["-a", "--dev", rxe::SECOND])?;
    command::run(&[RAW, "--cases", CASES], LIMIT)?.success()?;
    let truth = held.go()?;
    let report = attached.finish(true)?;
    agree(&report.calls, &truth)?;
    for row in report.json["calls"].as_array().context("no calls")? {
        ensure!(row["device"] == rxe::SECOND, "{row}");
    }
    Ok(())
}

#[test]
fn intervals_add_up_to_the_total() -> Result<()> {
    rxe::set_up()?;
    let lines = file("intervals.jsonl");
    let name = lines.to_string_lossy();
    let words = ["tbv-trace", "run", "-i", "0.5", "-f", "jsonl", "-o", &name, "--"];
    let workload = [RAW, "--seconds", "3", "--procs", "2", "--cases", CASES];
    let output = command::run(&[&words[..], &workload].concat(), LIMIT)?.success()?;
    let sent = calls::from_json_lines(&output.stdout)?;
    let text = fs::read_to_string(&lines)?;
    let reports = text.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let (total, parts) = reports.split_last().context("no reports")?;
    ensure!(parts.len() >= 3, "{} intervals", parts.len());
    ensure!(total["loss"]["total"] == 0, "{}", total["loss"]);
    report::without_gap(parts.iter(), total)?;
    let mut sums = BTreeMap::new();
    for part in parts {
        ensure!(part["loss"]["total"] == 0, "{}", part["loss"]);
        add(&mut sums, part)?;
    }
    let mut expected = BTreeMap::new();
    add(&mut expected, total)?;
    ensure!(sums == expected, "{sums:?}\n{expected:?}");
    let all: u64 = expected.values().map(|[count, ..]| count).sum();
    ensure!(all == calls::total(&sent), "{all} of {}", calls::total(&sent));
    Ok(())
}

/// They are in no count, and nothing is lost: the same holds for every moment of attach.
#[test]
fn calls_that_ran_at_the_begin_are_said_and_no_loss() -> Result<()> {
    rxe::set_up()?;
    let words = [RAW, "--cases", "query-port", "--threads", "8", "--seconds", "600"];
    let busy = command::start(&words)?;
    command::wait_until("the workload", LIMIT, || kernel::running("uverbs-raw"))?;
    let json = file("busy.json");
    let name = json.to_string_lossy();
    let attach =
        ["tbv-trace", "attach", "--comm", "uverbs-raw", "-d", "0.2", "--strict", "-f", "json", "-o", &name];
    let (mut ran, mut rounds) = (0, 0);
    while ran == 0 {
        rounds += 1;
        ensure!(rounds <= 20, "no call ever ran at the begin");
        command::run(&attach, LIMIT)?.success()?;
        let report = Report::read(&json)?;
        ensure!(calls::of(&report.calls, "ioctl", "QUERY_PORT") > 0, "{:?}", report.calls);
        ran = report.json["ran_at_begin"].as_u64().context("ran_at_begin")?;
        ensure!(ran <= 8, "{ran} calls of 8 threads");
    }
    busy.signal_group(libc::SIGKILL)?;
    busy.finish(LIMIT).map(drop)
}

#[test]
fn an_end_on_an_interval_leaves_no_empty_one() -> Result<()> {
    rxe::set_up()?;
    let words = ["tbv-trace", "attach", "-a", "-d", "1", "-i", "0.5", "-f", "jsonl"];
    let output = command::run(&words, LIMIT)?.success()?;
    let reports = output.stdout.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let (total, parts) = reports.split_last().context("no reports")?;
    // A machine that is late may miss a tick.
    ensure!((1..=2).contains(&parts.len()), "{}", output.stdout);
    let whole: u64 = parts.iter().filter_map(|part| part["duration_ns"].as_u64()).sum();
    ensure!(total["interval"].is_null() && total["duration_ns"] == whole, "{}", output.stdout);
    Ok(())
}

/// Count, errors and histogram entries by process and operation.
fn add(sums: &mut BTreeMap<String, [u64; 3]>, report: &Value) -> Result<()> {
    for row in report["calls"].as_array().context("no calls")? {
        let sum = sums.entry(format!("{} {} {}", row["pid"], row["entry"], row["op"])).or_default();
        let number = |field: &str| row[field].as_u64().with_context(|| field.to_owned());
        let buckets = row["latency_buckets"].as_array().context("latency_buckets")?;
        let timed: u64 = buckets.iter().filter_map(|bucket| bucket[2].as_u64()).sum();
        for (sum, more) in sum.iter_mut().zip([number("count")?, number("errors")?, timed]) {
            *sum += more;
        }
    }
    Ok(())
}

#[test]
fn only_failures_and_only_the_first_rows_are_shown_when_asked_for() -> Result<()> {
    rxe::set_up()?;
    let show = |options: &[&str]| -> Result<Value> {
        let path = file("shown.json");
        let name = path.to_string_lossy();
        let words =
            [&["tbv-trace", "run", "-f", "json", "-o", &name], options, &["--", RAW, "--cases", CASES]]
                .concat();
        command::run(&words, LIMIT)?.success()?;
        Ok(serde_json::from_str(&fs::read_to_string(&path)?)?)
    };
    let all = show(&[])?;
    let rows = |report: &Value| report["calls"].as_array().cloned().unwrap_or_default();
    let failed = show(&["--failed"])?;
    ensure!(!rows(&failed).is_empty() && rows(&failed).iter().all(|row| row["errors"] != 0), "{failed}");
    ensure!(rows(&failed).len() < rows(&all).len() && failed["filters"][0] == "--failed", "{failed}");
    let top = show(&["--top", "2"])?;
    ensure!(rows(&top).len() == 2 && top["filters"][0] == "--top 2", "{top}");
    for report in [&failed, &top] {
        ensure!(report["totals"] == all["totals"], "{} {}", report["totals"], all["totals"]);
    }
    Ok(())
}

#[test]
fn a_stream_that_cannot_begin_keeps_its_old_file() -> Result<()> {
    rxe::set_up()?;
    let old = file("old-stream.jsonl");
    fs::write(&old, "old")?;
    let name = old.to_string_lossy();
    let output = command::run(&["tbv-trace", "events", "-p", "4000000", "-o", &name], LIMIT)?;
    ensure!(output.code() == 3 && fs::read_to_string(&old)? == "old", "{output:?}");
    Ok(())
}

#[test]
fn what_is_not_there_is_said() -> Result<()> {
    rxe::set_up()?;
    for (options, words) in [
        (["-p", "4000000"], "no process 4000000"),
        (["--dev", "rxe7"], "no RDMA device is called rxe7; there are rxe0"),
        (["--cgroup", "/no/such"], "cgroup /no/such"),
    ] {
        let output = command::run(&[&["tbv-trace", "attach"], &options[..]].concat(), LIMIT)?;
        ensure!(output.code() == 3 && output.stderr.contains(words), "{output:?}");
        ensure!(output.stderr.lines().count() == 1, "{output:?}");
    }
    Ok(())
}

#[test]
fn under_sudo_the_command_is_the_callers() -> Result<()> {
    rxe::set_up()?;
    let script = "id -u; id -g; id -G; echo $HOME $USER";
    let sudo = ["env", "SUDO_UID=65534", "SUDO_GID=65534"];
    let run = |options: &[&str]| {
        command::run(
            &[&sudo[..], &["tbv-trace", "run"], options, &["--", "sh", "-c", script]].concat(),
            LIMIT,
        )
    };
    let nobody = run(&[])?.success()?;
    ensure!(nobody.stdout == "65534\n65534\n65534\n/nonexistent nobody\n", "{nobody:?}");
    let root = run(&["--as-root"])?.success()?;
    ensure!(root.stdout.starts_with("0\n0\n"), "{root:?}");
    Ok(())
}

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

#[test]
fn short_lived_processes_stay_within_the_limits() -> Result<()> {
    // As many rows as a tenth of the processes of the whole test would fill.
    scale::short_lived(RAW, 300, &["--max-rows", "6000"])
}
