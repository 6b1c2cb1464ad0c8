//! Attached in mid-run: queues that existed before have their owners, and only what came since is counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use vm_tests::command::{self, Running};
use vm_tests::fault::counter;
use vm_tests::hist::Hist;
use vm_tests::report::Report;
use vm_tests::{calls, kernel, strace, tier, usb4};

use super::{LIMIT, number};

const ITERATIONS: u64 = 400;
const TRACE: &str = "/tmp/existing.strace";

/// What the driver counts on one device.
fn counters(device: &str) -> Result<[u64; 3]> {
    let completed = ["data_wr_success", "data_wr_flushed", "data_wr_error"];
    let completed: u64 = completed.iter().map(|name| counter(device, name)).sum::<Result<u64>>()?;
    Ok([counter(device, "data_wr_send")?, counter(device, "data_wr_recv")?, completed])
}

/// The completion queues of a process as iproute2 lists them, by the driver's number.
fn listed(pid: u32) -> Result<BTreeMap<u64, Value>> {
    let output = command::must(&["rdma", "-dd", "-j", "resource", "show", "cq"])?;
    let all: Vec<Value> = serde_json::from_str(&output.stdout).with_context(|| output.stdout.clone())?;
    let own = all.into_iter().filter(|cq| cq["pid"] == pid);
    own.map(|cq| Ok((number(&cq, "drv_cqn")?, cq))).collect()
}

/// `tbv-trace attach`, until it counts; `before` leads to it.
fn attach(before: &[&str], options: &[&str]) -> Result<(Running, String)> {
    let json = format!("/tmp/existing-{}.json", options.join("").replace('/', "-"));
    let words = ["tbv-trace", "-v", "attach", "-f", "json", "-o", &json];
    let running = command::start(&[before, &words, options].concat())?;
    command::wait_until("attaching", LIMIT, || {
        let stderr = running.stderr()?;
        ensure!(!stderr.contains("cannot"), "{stderr}");
        Ok(stderr.contains("attached by"))
    })?;
    Ok((running, json))
}

/// The report of a tbv-trace that attached for a time.
fn attached_for(seconds: &str, before: &[&str], options: &[&str]) -> Result<Report> {
    let (running, json) = attach(before, &[options, &["-d", seconds]].concat())?;
    running.finish(LIMIT)?.success()?;
    let report = Report::read(json.as_ref())?;
    ensure!(lost(&report)? == 0, "{}", report.json["loss"]);
    Ok(report)
}

/// What was lost, but for calls that ran when tracing ended.
fn lost(report: &Report) -> Result<u64> {
    let loss = &report.json["loss"];
    Ok(report.lost()? - number(loss, "in_flight")?)
}

fn completions(report: &Report) -> Result<&Vec<Value>> {
    report.json["completions"].as_array().context("no completions")
}

/// What strace saw of a process since it was let go.
fn since_continued(pid: u32) -> Result<strace::Trace> {
    let text = fs::read_to_string(TRACE)?;
    let own: Vec<&str> = text.lines().filter(|line| line.starts_with(&format!("{pid} "))).collect();
    let last = own.iter().rposition(|line| line.contains("--- SIGCONT")).context("it was not continued")?;
    strace::parse(&own[last..].join("\n"))
}

/// Both sides of ib_send_lat under strace, stopped in the middle.
struct Stopped {
    running: Running,
    /// Server and client.
    sides: [u32; 2],
    /// What was counted on the client's device before it began.
    begin: [u64; 3],
}

impl Stopped {
    fn start() -> Result<Self> {
        usb4::set_up()?;
        let [server, client] = usb4::DEVICES;
        let begin = counters(client)?;
        let script = super::workload(ITERATIONS);
        let _ = fs::remove_file(TRACE);
        let words = [strace::COMMAND, &["-o", TRACE, "sh", "-c", &script]].concat();
        let running = usb4::start(&words)?;
        command::wait_until("traffic", LIMIT, || Ok(counter(client, "data_wr_send")? > begin[0] + 100))?;
        let pids = kernel::pids("ib_send_lat")?;
        for pid in &pids {
            command::must(&["kill", "-STOP", &pid.to_string()])?;
        }
        let mut last = [0; 3];
        command::wait_until("silence", LIMIT, || {
            let text = fs::read_to_string(TRACE)?;
            let stopped = text.lines().filter(|line| line.contains("--- stopped by SIGSTOP")).count();
            std::thread::sleep(Duration::from_millis(200));
            let before = std::mem::replace(&mut last, counters(client)?);
            Ok(stopped == pids.len() && before == last)
        })?;
        let of = |device: &str| {
            let file = |pid: &&u32| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            pids.iter().find(|pid| file(pid).contains(device)).copied().context("no such side")
        };
        Ok(Stopped { sides: [of(server)?, of(client)?], running, begin })
    }

    fn finish(self) -> Result<()> {
        for pid in &self.sides {
            command::must(&["kill", "-CONT", &pid.to_string()])?;
        }
        self.running.finish(LIMIT)?.success()?;
        Ok(())
    }
}

/// Sum of a number of each row.
fn total(rows: &[Value], read: impl Fn(&Value) -> Result<u64>) -> Result<u64> {
    rows.iter().map(read).sum()
}

#[test]
fn a_queue_from_before_has_its_owner_and_counts_from_the_moment_of_attach() -> Result<()> {
    let stopped = Stopped::start()?;
    let ([_, client], begin) = (stopped.sides, stopped.begin);
    let (running, json) = attach(&[], &["-p", &client.to_string()])?;
    let (at_attach, listed) = (counters(usb4::DEVICES[1])?, listed(client)?);
    stopped.finish()?;
    running.finish(LIMIT)?.success()?;
    let end = counters(usb4::DEVICES[1])?;
    let report = Report::read(json.as_ref())?;
    ensure!(report.lost()? == 0, "{}", report.json["loss"]);
    ensure!(report.json["environment"]["existing_left_out"].is_null(), "{}", report.json["environment"]);

    let rows = completions(&report)?;
    ensure!(!listed.is_empty() && rows.len() == listed.len(), "{rows:?}\n{listed:?}");
    for row in rows {
        let cq = listed.get(&number(row, "cqn")?).with_context(|| format!("not listed: {row}"))?;
        ensure!(row["pid"] == client && row["device"] == usb4::DEVICES[1] && row["mapped"] == true, "{row}");
        ensure!(row["entries"] == cq["cqe"] && cq["drv_mapped"] == 1, "{row}\n{cq}");
        ensure!(row["before"]["produced"] == cq["drv_produced"], "{row}\n{cq}");
        ensure!(row["consumed_by_ioctl"] == 0 && row["overflows"] == 0 && row["failed"] == 0, "{row}");
    }
    // Posted and completed: by the driver's own counters, and by strace's calls.
    let [sent, received, completed] = [0, 1, 2].map(|i| end[i] - at_attach[i]);
    ensure!(sent > 0 && sent < ITERATIONS, "{sent} of {ITERATIONS} after attaching");
    let work = report.json["work_requests"].as_array().context("no work requests")?;
    let posted = |queue: &str| {
        let own: Vec<Value> = work.iter().filter(|row| row["queue"] == queue).cloned().collect();
        total(&own, |row| number(row, "posted"))
    };
    ensure!((posted("send")?, posted("receive")?) == (sent, received), "{work:?}, not {sent} and {received}");
    let pushed = total(rows, |row| Ok(number(row, "produced")? - number(&row["before"], "produced")?))?;
    ensure!(pushed == completed, "{pushed} of {completed}: {rows:?}");
    strace::agrees(&since_continued(client)?, &calls::as_seen_by_strace(&report.calls))?;
    // What was before: by the driver's counters and to the end by what ib_send_lat is known to do.
    let before = |what: &str| total(rows, |row| number(&row["before"], what));
    ensure!(before("produced")? == at_attach[2] - begin[2], "{rows:?}");
    for what in ["produced", "consumed"] {
        ensure!(total(rows, |row| number(row, what))? == 2 * ITERATIONS, "{what}: {rows:?}");
    }
    let in_user_space = total(rows, |row| number(row, "consumed_in_user_space"))?;
    ensure!(in_user_space == 2 * ITERATIONS - before("consumed")?, "{in_user_space}: {rows:?}");
    Ok(())
}

#[test]
fn only_queues_that_the_filter_wants_are_there() -> Result<()> {
    let stopped = Stopped::start()?;
    let [server, client] = stopped.sides;
    let cgroup = "/sys/fs/cgroup/tbv-existing/inner";
    fs::create_dir_all(cgroup)?;
    fs::write(format!("{cgroup}/cgroup.procs"), server.to_string())?;
    let all = [listed(server)?, listed(client)?];
    ensure!(all.iter().all(|queues| !queues.is_empty()), "{all:?}");
    let [first, second] = [server, client].map(|pid| pid.to_string());
    for (options, wanted) in [
        (&["-a"][..], &[server, client][..]),
        (&["-p", &second], &[client]),
        (&["--cgroup", "/tbv-existing"], &[server]),
        (&["--comm", "ib_send_lat"], &[server, client]),
        (&["--comm", "ib_send_la"], &[]),
        (&["-a", "--dev", usb4::DEVICES[1]], &[client]),
        (&["--comm", "ib_send_lat", "-p", &first, "--dev", usb4::DEVICES[0]], &[server]),
        (&["-p", &second, "--dev", usb4::DEVICES[0]], &[]),
    ] {
        let report = attached_for("0.1", &[], options)?;
        let rows = completions(&report)?;
        let pids = BTreeSet::from_iter(rows.iter().filter_map(|row| row["pid"].as_u64()));
        ensure!(pids == wanted.iter().map(|pid| u64::from(*pid)).collect(), "{options:?}: {rows:?}");
        let expected = all.iter().zip([server, client]).filter(|(_, pid)| wanted.contains(pid));
        ensure!(
            rows.len() == expected.map(|(queues, _)| queues.len()).sum::<usize>(),
            "{options:?}: {rows:?}"
        );
        for row in rows {
            let side = usize::from(row["pid"] == client);
            let cq = all[side].get(&number(row, "cqn")?).with_context(|| format!("not listed: {row}"))?;
            ensure!(row["device"] == usb4::DEVICES[side] && row["entries"] == cq["cqe"], "{row}\n{cq}");
            // Nothing happens: the totals are the driver's, and how far its consumers are is unknown.
            let totals = (&row["produced"], &row["consumed"], &row["before"]["produced"]);
            ensure!(totals == (&cq["drv_produced"], &cq["drv_consumed"], &cq["drv_produced"]), "{row}\n{cq}");
            ensure!(row["consumed_in_user_space"].is_null(), "{row}");
        }
    }
    stopped.finish()
}

#[test]
fn a_queue_pair_from_before_has_its_owner_and_its_spans() -> Result<()> {
    let stopped = Stopped::start()?;
    let [_, client] = stopped.sides;
    let pid = client.to_string();
    let hist = |seconds: &'static str, json: &str| {
        let words = ["tbv-trace", "-v", "hist", "-p", &pid, "-f", "json", "-o", json, "-d", seconds];
        let running = command::start(&words)?;
        command::wait_until("attaching", LIMIT, || Ok(running.stderr()?.contains("attached by")))?;
        Ok::<_, anyhow::Error>(running)
    };
    let read = |json: &str| -> Result<(Hist, Value)> {
        let hist = Hist::read(json)?;
        let [row] = &hist.rows("queue_pairs")?[..] else { bail!("{}", hist.0["queue_pairs"]) };
        ensure!(row["pid"] == client && row["device"] == usb4::DEVICES[1], "{row}");
        let row = row.clone();
        Ok((hist, row))
    };
    // Nothing happens, so it is known from the list alone.
    let idle = "/tmp/existing-idle.json";
    hist("0.1", idle)?.finish(LIMIT)?.success()?;
    let (_, row) = read(idle)?;
    ensure!(number(&row, "posted")? == 0 && row["destroyed"] == false, "{row}");
    let at_attach = counters(usb4::DEVICES[1])?;
    let busy = "/tmp/existing-busy.json";
    let running = hist("1000", busy)?;
    stopped.finish()?;
    running.finish(LIMIT)?.success()?;
    let end = counters(usb4::DEVICES[1])?;
    let (hist, row) = read(busy)?;
    hist.adds_up()?;
    let [sent, received, completed] = [0, 1, 2].map(|i| end[i] - at_attach[i]);
    ensure!(number(&row, "posted")? == sent + received && row["destroyed"] == true, "{row}");
    // What was posted before tracing began completes without a span.
    ensure!(number(&row, "completed")? + number(&row, "unknown")? == completed, "{row}, not {completed}");
    ensure!(number(&row, "open")? == 0 && number(&row, "unsignalled")? == 0, "{row}");
    Ok(())
}

/// Traffic that never ends by itself, when nobody else wants the processor.
fn load(options: &[&str]) -> Result<Running> {
    let [device, peer] = usb4::DEVICES;
    usb4::start(&[&["nice", "-n", "19", "cq-verify", "load", "-d", device, "-p", peer], options].concat())
}

#[test]
fn queues_that_end_while_tracing_begins_leave_no_ghost() -> Result<()> {
    // usb4::start has env execute the program: the process stays the same.
    let load = load(&["--destroy-for", "200000"])?;
    let pid = load.pid();
    command::wait_until("queues", LIMIT, || Ok(!listed(pid)?.is_empty()))?;
    // So late after it was listed a queue is known to the programs.
    let late = ["-e", "trace=recvfrom", "-e", "inject=recvfrom:delay_exit=300000"];
    let slow = [&["strace", "--seccomp-bpf", "-f", "-o", "/dev/null"][..], &late].concat();
    let mut existed = 0;
    for _ in 0..tier::pick(1, 3) {
        let report = attached_for("1", &slow, &["-p", &pid.to_string()])?;
        let rows = completions(&report)?;
        ensure!(!rows.is_empty(), "nothing");
        for row in rows.iter().filter(|row| !row["before"].is_null()) {
            existed += 1;
            // Whatever exists has traffic, or ends: a row without an event is of a queue that was gone.
            ensure!(!row["consumed_in_user_space"].is_null(), "{row}");
        }
    }
    println!("{existed} queues from before");
    Ok(())
}

/// What is unknown is said, and is no loss.
fn left_out(before: &[&str], why: &str) -> Result<()> {
    let json = "/tmp/left-out.json";
    let words = ["tbv-trace", "attach", "-a", "-d", "1", "-f", "json", "-o", json];
    command::run(&[before, &words].concat(), LIMIT)?.success()?;
    let report = Report::read(json.as_ref())?;
    let said = report.json["environment"]["existing_left_out"].as_str().context("nothing is left out")?;
    ensure!(said.contains(why), "{said}");
    ensure!(completions(&report)?.is_empty() && lost(&report)? == 0, "{}", report.json["loss"]);
    ensure!(!report.calls.is_empty(), "no call");
    Ok(())
}

#[test]
fn where_netlink_cannot_tell_the_report_says_so() -> Result<()> {
    let load = load(&[])?;
    command::wait_until("traffic", LIMIT, || Ok(load.stdout()?.contains("running")))?;
    left_out(&["unshare", "--pid", "--fork", "--mount-proc"], "pid namespace")?;
    let refuse = ["-o", "/dev/null", "-e", "trace=socket", "-e", "inject=socket:error=EACCES"];
    left_out(&[&["strace", "--seccomp-bpf", "-f"][..], &refuse].concat(), "rdma netlink does not tell: ")
}
