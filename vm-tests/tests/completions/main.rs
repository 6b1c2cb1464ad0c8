//! Work requests and completions of our own driver, against what ib_send_lat is known to do and
//! against strace of the same run.
#![cfg(feature = "vm")]

mod existing;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use vm_tests::report::Report;
use vm_tests::{calls, command, perftest, strace, usb4};

const ITERATIONS: u64 = 200;
const LIMIT: Duration = Duration::from_secs(300);

/// Both sides of ib_send_lat.
fn workload(iterations: u64) -> String {
    perftest::over_cable("ib_send_lat", &format!("-F -n {iterations}"))
}

/// Runs both sides of ib_send_lat under strace under tbv-trace, with completions polled in one way.
fn traced(way: &str) -> Result<(Report, strace::Trace)> {
    usb4::set_up()?;
    let (json, trace) = ("/tmp/completions.json", "/tmp/completions.strace");
    let script = format!("export USB4_RDMA_CQ={way}\n{}", workload(ITERATIONS));
    let words = [
        &["tbv-trace", "run", "--strict", "-f", "json", "-o", json, "--"],
        strace::COMMAND,
        &["-o", trace, "sh", "-c", &script],
    ]
    .concat();
    usb4::run(&words, LIMIT)?.success()?;
    let trace = strace::parse(&std::fs::read_to_string(trace)?)?;
    Ok((Report::read(json.as_ref())?, trace))
}

fn number(row: &Value, field: &str) -> Result<u64> {
    row[field].as_u64().with_context(|| format!("no {field} in {row}"))
}

/// Rows of `table` that belong to process `pid`.
fn of<'a>(report: &'a Report, table: &str, pid: u32) -> Result<Vec<&'a Value>> {
    let rows = report.json[table].as_array().with_context(|| format!("no {table}"))?;
    Ok(rows.iter().filter(|row| row["pid"] == pid).collect())
}

/// What ib_send_lat is known to do, and that strace saw the same calls; how often each side polled by system call.
fn polls(report: &Report, trace: &strace::Trace, mapped: bool) -> Result<Vec<u64>> {
    ensure!(report.json["environment"]["driver_trace_abi"] == 1, "{}", report.json["environment"]);
    ensure!(report.lost()? == 0, "{}", report.json["loss"]);
    strace::agrees(trace, &calls::as_seen_by_strace(&report.calls))?;
    ensure!(report.calls.keys().all(|call| call.entry == "ioctl"), "a write: {:?}", report.calls);
    let pids = calls::pids(&report.calls);
    ensure!(pids.len() == 2, "{pids:?}");
    let mut polls = Vec::new();
    for pid in pids {
        let mut posted = [0, 0];
        for row in of(report, "work_requests", pid)? {
            posted[usize::from(row["queue"] == "receive")] += number(row, "posted")?;
            ensure!(number(row, "posted")? == number(row, "signalled")?, "unsignalled: {row}");
        }
        ensure!(posted == [ITERATIONS; 2], "pid {pid} posted {posted:?}");
        let (mut produced, mut consumed, mut by_ioctl, mut in_user_space) = (0, 0, 0, 0);
        for row in of(report, "completions", pid)? {
            ensure!(row["mapped"] == mapped, "{row}");
            produced += number(row, "produced")?;
            consumed += number(row, "consumed")?;
            by_ioctl += number(row, "consumed_by_ioctl")?;
            if mapped {
                in_user_space += number(row, "consumed_in_user_space")?;
            } else {
                ensure!(row["consumed_in_user_space"].is_null(), "{row}");
            }
            let clean = ["overflows", "failed", "purged"];
            ensure!(clean.iter().all(|field| row[field] == 0), "{row}");
            let (most, mean) = (number(row, "occupancy_max")?, row["occupancy_mean"].as_f64());
            ensure!(most <= number(row, "entries")?, "{row}");
            ensure!(mean.is_none_or(|mean| mean >= 1.0 && mean <= most as f64), "{row}");
        }
        ensure!(
            produced == 2 * ITERATIONS && consumed == produced,
            "pid {pid}: {produced}, {consumed} taken"
        );
        let expected = if mapped { (0, produced) } else { (produced, 0) };
        ensure!((by_ioctl, in_user_space) == expected, "pid {pid}: {by_ioctl} by ioctl, {in_user_space} not");
        let calls_of = |op: &str| -> u64 {
            let own = report.calls.iter().filter(|(call, _)| call.pid == pid && call.op == op);
            own.map(|(_, count)| count).sum()
        };
        let posts = (calls_of("POST_SEND"), calls_of("POST_RECV"));
        ensure!(posts == (ITERATIONS, ITERATIONS), "{:?}", report.calls);
        polls.push(calls_of("POLL_CQ"));
    }
    Ok(polls)
}

#[test]
fn ib_send_lat_polls_only_by_system_call_if_it_is_told_to() -> Result<()> {
    let (report, trace) = traced("ioctl")?;
    let by_ioctl = polls(&report, &trace, false)?;
    ensure!(by_ioctl.iter().all(|polls| *polls >= 2 * ITERATIONS), "{by_ioctl:?}");
    // Its send queue holds one completion.
    let (report, trace) = traced("mapped")?;
    let smallest = report.json["completions"].as_array().context("no completions")?;
    ensure!(smallest.iter().any(|row| row["entries"] == 1), "{smallest:?}");
    let mapped = polls(&report, &trace, true)?;
    ensure!(mapped == [0, 0], "{mapped:?}");
    Ok(())
}

#[test]
fn a_device_that_is_renamed_still_counts_by_the_name_that_it_had() -> Result<()> {
    usb4::set_up()?;
    let json = "/tmp/renamed-meanwhile.json";
    let [device, peer] = usb4::DEVICES;
    let load = usb4::start(&["cq-verify", "load", "-d", device, "-p", peer])?;
    command::wait_until("traffic", LIMIT, || Ok(load.stdout()?.contains("running")))?;
    let attach = ["tbv-trace", "-v", "attach", "--dev", device, "-f", "json", "-o", json];
    let attached = usb4::start(&attach)?;
    command::wait_until("attaching", LIMIT, || Ok(attached.stderr()?.contains("attached by")))?;
    command::must(&["rdma", "dev", "set", device, "name", "rdma_renamed"])?;
    attached.signal(libc::SIGINT)?;
    let done = attached.finish(LIMIT);
    command::must(&["rdma", "dev", "set", "rdma_renamed", "name", device])?;
    done?.success()?;
    load.signal_group(libc::SIGKILL)?;
    let report: Value = serde_json::from_str(&std::fs::read_to_string(json)?)?;
    for what in ["work_requests", "completions"] {
        let rows = report[what].as_array().context("no rows")?;
        ensure!(
            !rows.is_empty() && rows.iter().all(|row| row["device"] == "rdma_renamed"),
            "{what}: {rows:?}"
        );
    }
    Ok(())
}

/// Tracing ends before the program does: what it posts afterwards must not count.
#[test]
fn for_a_time_there_are_as_many_work_requests_as_calls_that_post_them() -> Result<()> {
    let json = "/tmp/for-a-time.json";
    let [device, peer] = usb4::DEVICES;
    let load = usb4::start(&["cq-verify", "load", "-d", device, "-p", peer])?;
    command::wait_until("traffic", LIMIT, || Ok(load.stdout()?.contains("running")))?;
    let attach = ["tbv-trace", "attach", "--comm", "cq-verify", "-d", "2", "-f", "json", "-o", json];
    usb4::run(&attach, LIMIT)?.success()?;
    load.signal_group(libc::SIGKILL)?;
    let report = Report::read(json.as_ref())?;
    let posts = |(call, _): &(&calls::Call, &u64)| ["POST_SEND", "POST_RECV"].contains(&call.op.as_str());
    let calls: u64 = report.calls.iter().filter(posts).map(|(_, count)| count).sum();
    let rows = report.json["work_requests"].as_array().context("no work requests")?;
    let posted: u64 = rows.iter().map(|row| number(row, "posted")).sum::<Result<u64>>()?;
    let loss = &report.json["loss"];
    // A call that was running at the begin or the end may have posted and not count.
    let unsure = number(&report.json, "ran_at_begin")? + number(loss, "in_flight")?;
    ensure!(
        calls > 100 && (calls..=calls + unsure).contains(&posted),
        "{posted} posted by {calls} calls; {loss}"
    );
    Ok(())
}

#[test]
fn tracepoint_formats_are_those_the_programs_read() -> Result<()> {
    usb4::set_up()?;
    // Event, and its arguments in the order in which tbv-ebpf/src/driver.rs counts them.
    let read: [(&str, &str); 8] = [
        ("post_send", "dev qpn seq wr_id opcode signalled length num_sge"),
        ("post_recv", "dev qpn seq wr_id opcode signalled length num_sge"),
        ("cq_create", "dev cqn pid cqe mapped"),
        ("cq_destroy", "dev cqn produced consumed"),
        ("cq_push", "dev qpn seq wr_id opcode signalled cqn status byte_len produced consumed ring_first"),
        ("cq_poll", "dev cqn asked returned produced consumed ring_first"),
        ("cq_purge", "dev cqn qpn purged produced consumed ring_first"),
        ("cq_overflow", "dev cqn qpn seq wr_id produced consumed overflows opcode signalled"),
    ];
    for (event, fields) in read {
        let path = format!("/sys/kernel/tracing/events/tbv/{event}/format");
        let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
        let names: Vec<&str> = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("field:")?.split(';').next()?.split(' ').next_back())
            .filter(|name| !name.starts_with("common_"))
            .collect();
        ensure!(names.join(" ") == fields, "{event}: {names:?}");
    }
    Ok(())
}

#[test]
fn a_device_is_named_as_sysfs_names_it_now() -> Result<()> {
    usb4::set_up()?;
    let json = "/tmp/renamed.json";
    let [old, new] = [usb4::DEVICES[1], "rdma_renamed"];
    command::must(&["rdma", "dev", "set", old, "name", new])?;
    let pingpong = format!("ibv_rc_pingpong -d {new} -n 10");
    let script = perftest::both_sides(&pingpong, &format!("{pingpong} 127.0.0.1"));
    let done = usb4::run(&["tbv-trace", "run", "-f", "json", "-o", json, "--", "sh", "-c", &script], LIMIT);
    command::must(&["rdma", "dev", "set", new, "name", old])?;
    done?.success()?;
    let report: Value = serde_json::from_str(&std::fs::read_to_string(json)?)?;
    let rows = report["completions"].as_array().context("no completions")?;
    ensure!(!rows.is_empty() && rows.iter().all(|row| row["device"] == new), "{rows:?}");
    let calls = report["calls"].as_array().context("no calls")?;
    ensure!(!calls.is_empty() && calls.iter().all(|row| row["device"] == new), "{calls:?}");
    Ok(())
}
