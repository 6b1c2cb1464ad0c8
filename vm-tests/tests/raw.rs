//! The counts of tbv-trace against those of a client that knows exactly what it sent.
#![cfg(feature = "vm")]

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use vm_tests::calls::{self, Counts};
use vm_tests::command::LIMIT;
use vm_tests::report::{self, Report};
use vm_tests::{exact, perftest, rxe};

const RAW: &str = env!("CARGO_BIN_EXE_uverbs-raw");
const HOOKS: [&str; 4] = ["fentry", "kprobe", "syscall-fentry", "raw-syscall"];

/// Runs uverbs-raw under tbv-trace; fails unless the report has exactly what was sent.
fn exact(options: &[&str], arguments: &[&str]) -> Result<Report> {
    exact::run(&["tbv-trace"], options, &[&[RAW], arguments].concat())
}

#[test]
fn known_unknown_and_malformed_calls_are_counted_with_name_and_errno() -> Result<()> {
    let counts = exact(&[], &["--count", "3"])?.calls;
    let errnos: BTreeSet<_> = counts.keys().filter_map(|call| call.errno.as_deref()).collect();
    for errno in ["EINVAL", "EFAULT", "ENOTTY", "EPROTONOSUPPORT"] {
        ensure!(errnos.contains(errno), "no call failed with {errno}: {errnos:?}");
    }
    let names: BTreeSet<_> = counts.keys().map(|call| call.op.as_str()).collect();
    for name in [
        "QUERY_PORT",
        "CQ_METHOD_0x9",
        "OBJECT_0x212_METHOD_0x3",
        "MLX5_DEVX_OBJ_CREATE",
        "CMD_0x4f",
        "EX_CMD_0x4f",
        "IOCTL_UNREADABLE",
        "INVOKE_WRITE_UNREADABLE",
        "WRITE_UNREADABLE",
    ] {
        ensure!(names.contains(name), "{name}: {names:?}");
    }
    Ok(())
}

#[test]
fn a_command_by_ioctl_and_by_write_are_told_apart() -> Result<()> {
    let both = exact(&[], &["--cases", "invoke,invoke,write", "--count", "50"])?.calls;
    ensure!(calls::of(&both, "ioctl", "QUERY_DEVICE") == 100, "{both:?}");
    ensure!(calls::of(&both, "write", "QUERY_DEVICE") == 50, "{both:?}");
    ensure!(both.keys().all(|call| call.errno.is_none()), "{both:?}");
    Ok(())
}

#[test]
fn four_processes_flat_out_for_ten_seconds_are_counted_exactly() -> Result<()> {
    let cases = "query-port,write-unknown,terminal-ioctl,unknown-method,write";
    let report = exact(&[], &["--procs", "4", "--seconds", "10", "--cases", cases])?;
    ensure!(calls::pids(&report.calls).len() == 4, "{:?}", report.calls);
    // Some ten thousand; a machine that is late makes fewer.
    ensure!(calls::total(&report.calls) > 1_000, "only {} calls", calls::total(&report.calls));
    Ok(())
}

#[test]
fn threads_flat_out_are_counted_exactly() -> Result<()> {
    let report = exact(&[], &["--threads", "8", "--seconds", "5", "--cases", "query-port,write-unknown"])?;
    ensure!(calls::pids(&report.calls).len() == 1, "{:?}", report.calls);
    Ok(())
}

#[test]
fn calls_beyond_a_full_map_are_counted_as_lost() -> Result<()> {
    rxe::set_up()?;
    let words = [RAW, "--count", "10"];
    let (report, output) = report::run(&["--max-rows", "4"], &words, LIMIT)?;
    let sent = calls::total(&calls::from_json_lines(&output.success()?.stdout)?);
    let counted = calls::total(&report.calls);
    let full = report.json["loss"]["rows_full"].as_u64().unwrap_or_default();
    ensure!(counted > 0 && full > 0, "counted {counted}, lost {full}");
    ensure!(counted + full == sent, "sent {sent}, counted {counted}, lost {full}");
    ensure!(report.lost()? == full, "loss: {}", report.json["loss"]);

    let (_, strict) = report::run(&["--max-rows", "4", "--strict"], &words, LIMIT)?;
    ensure!(strict.code() == 4 && strict.stderr.contains("lost"), "{strict:?}");
    let (_, strict) = report::run(&["--strict"], &words, LIMIT)?;
    ensure!(strict.code() == 0, "{strict:?}");
    Ok(())
}

#[test]
fn every_hook_counts_raw_calls_alike() -> Result<()> {
    let mut first: Option<Counts> = None;
    for hook in HOOKS {
        let report = exact(&["--hook", hook], &["--threads", "4", "--count", "25"])?;
        ensure!(report.hook() == hook, "asked for {hook}, used {}", report.hook());
        let counts = calls::of_all_processes(&report.calls);
        let before = first.get_or_insert_with(|| counts.clone());
        let difference = calls::difference((HOOKS[0], before), (hook, &counts));
        ensure!(difference.is_empty(), "{difference}");
    }
    Ok(())
}

#[test]
fn no_hook_counts_what_never_reaches_ib_uverbs() -> Result<()> {
    for hook in HOOKS {
        let report = exact(&["--hook", hook], &["--unseen", "--cases", "query-port", "--count", "5"])?;
        ensure!(calls::of(&report.calls, "ioctl", "QUERY_PORT") == 5, "{hook}: {:?}", report.calls);
    }
    Ok(())
}

#[test]
fn every_hook_counts_ib_send_lat_alike() -> Result<()> {
    rxe::set_up()?;
    let script = perftest::perftest("ib_send_lat", "-n 500");
    let mut first: Option<Counts> = None;
    for hook in HOOKS {
        let (report, output) = report::run(&["--hook", hook], &["sh", "-c", &script], LIMIT)?;
        output.success()?;
        ensure!(report.hook() == hook, "asked for {hook}, used {}", report.hook());
        ensure!(report.lost()? == 0, "loss: {}", report.json["loss"]);
        let counts = calls::of_all_processes(&report.calls);
        ensure!(calls::of(&counts, "write", "POST_SEND") == 1000, "{counts:?}");
        let before = first.get_or_insert_with(|| counts.clone());
        let difference = calls::difference((HOOKS[0], before), (hook, &counts));
        ensure!(difference.is_empty(), "{difference}");
    }
    Ok(())
}
