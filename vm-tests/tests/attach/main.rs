//! tbv-trace on what runs already: who is counted, from when on, and single calls as a stream.
#![cfg(feature = "vm")]

mod stream;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use vm_tests::calls::{self, Counts};
use vm_tests::command::{self, LIMIT, Running};
use vm_tests::report::{self, Report};
use vm_tests::{kernel, rxe, scale, strace};

const RAW: &str = env!("CARGO_BIN_EXE_uverbs-raw");
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

#[test]
fn short_lived_processes_stay_within_the_limits() -> Result<()> {
    // As many rows as a tenth of the processes of the whole test would fill.
    scale::short_lived(RAW, 300, &["--max-rows", "6000"])
}
