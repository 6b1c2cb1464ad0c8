//! The counts of tbv-trace against strace's, of the same run: identical per process, entry point,
//! ioctl number or write command, and errno.
#![cfg(feature = "vm")]

use anyhow::{Context, Result, ensure};
use vm_tests::calls::{self, Counts};
use vm_tests::command::LIMIT;
use vm_tests::strace::{self, Trace};
use vm_tests::{perftest, report, rxe, tier};

const RAW: &str = env!("CARGO_BIN_EXE_uverbs-raw");

/// Runs `workload` under strace under tbv-trace; fails unless both saw the same and nothing was lost.
fn same(workload: &[&str], exit: i32) -> Result<(Counts, Trace)> {
    rxe::set_up()?;
    let path = std::env::temp_dir().join("strace.out");
    let file = path.to_string_lossy();
    let words = [strace::COMMAND, &["-o", &file], workload].concat();
    let (report, output) = report::run(&[], &words, LIMIT)?;
    ensure!(output.code() == exit, "exit {}\n{}{}", output.code(), output.stdout, output.stderr);
    let trace = strace::parse(&std::fs::read_to_string(&path)?)?;
    strace::agrees(&trace, &calls::as_seen_by_strace(&report.calls))?;
    ensure!(report.lost()? == 0, "loss: {}", report.json["loss"]);
    ensure!(calls::total(&trace.finished) > 0, "no calls");
    println!("{} calls of {} processes", calls::total(&report.calls), calls::pids(&report.calls).len());
    Ok((report.calls, trace))
}

/// The same for a shell script with a server and a client.
fn same_of_pair(script: &str) -> Result<Counts> {
    let (counts, trace) = same(&["sh", "-c", script], 0).context(script.to_owned())?;
    ensure!(calls::total(&trace.cut) == 0, "cut off: {:?}", trace.cut);
    ensure!(calls::pids(&counts).len() == 2, "not two processes: {counts:?}");
    ensure!(calls::of(&counts, "ioctl", "QUERY_GID_ENTRY") > 0, "{counts:?}");
    Ok(counts)
}

#[test]
fn ib_send_lat_equals_strace() -> Result<()> {
    let counts = same_of_pair(&perftest::perftest("ib_send_lat", "-n 200"))?;
    ensure!(calls::of(&counts, "ioctl", "QUERY_GID_ENTRY") > 1000, "{counts:?}");
    ensure!(calls::of(&counts, "write", "POST_SEND") == 400, "{counts:?}");
    Ok(())
}

#[test]
fn ib_write_bw_equals_strace() -> Result<()> {
    let counts = same_of_pair(&perftest::perftest("ib_write_bw", "-x 1 -n 200 -s 4096"))?;
    ensure!(calls::of(&counts, "write", "POST_SEND") > 0, "{counts:?}");
    Ok(())
}

#[test]
fn ib_read_lat_equals_strace() -> Result<()> {
    let counts = same_of_pair(&perftest::perftest("ib_read_lat", "-x 1 -n 200"))?;
    ensure!(calls::of(&counts, "write", "POST_SEND") >= 200, "{counts:?}");
    Ok(())
}

#[test]
fn ib_atomic_bw_equals_strace() -> Result<()> {
    let counts = same_of_pair(&perftest::perftest("ib_atomic_bw", "-x 1 -n 200"))?;
    ensure!(calls::of(&counts, "write", "POST_SEND") > 0, "{counts:?}");
    Ok(())
}

#[test]
fn ibv_rc_pingpong_equals_strace() -> Result<()> {
    let counts = same_of_pair(&perftest::pingpong("ibv_rc_pingpong", "-n 100"))?;
    ensure!(calls::of(&counts, "write", "POST_SEND") == 200, "{counts:?}");
    Ok(())
}

#[test]
fn ibv_srq_pingpong_equals_strace() -> Result<()> {
    let counts = same_of_pair(&perftest::pingpong("ibv_srq_pingpong", "-n 100 -q 4"))?;
    ensure!(calls::of(&counts, "write", "POST_SEND") >= 200, "{counts:?}");
    Ok(())
}

#[test]
fn ibv_devinfo_equals_strace() -> Result<()> {
    let (counts, _) = same(&["ibv_devinfo", "-v"], 0)?;
    ensure!(calls::pids(&counts).len() == 1, "{counts:?}");
    ensure!(calls::total(&counts) > 100, "{counts:?}");
    Ok(())
}

#[test]
fn eight_threads_equal_strace() -> Result<()> {
    let rounds = tier::pick(8, 20);
    let (counts, _) = same(&[RAW, "--threads", "8", "--count", &rounds.to_string()], 0)?;
    ensure!(calls::pids(&counts).len() == 1, "{counts:?}");
    // Each thread sends this case once a round.
    ensure!(calls::of(&counts, "ioctl", "IOCTL_0x5401") == 8 * rounds, "{counts:?}");
    Ok(())
}

#[test]
fn twenty_forked_children_equal_strace() -> Result<()> {
    let (counts, _) = same(&[RAW, "--procs", "20", "--count", "2"], 0)?;
    ensure!(calls::pids(&counts).len() == 20, "{counts:?}");
    ensure!(calls::of(&counts, "ioctl", "IOCTL_0x5401") == 20 * 2, "{counts:?}");
    Ok(())
}

#[test]
fn killed_halfway_equals_strace() -> Result<()> {
    let (counts, trace) = same(&[RAW, "--threads", "4", "--count", "1000000", "--kill-after", "300"], 137)?;
    ensure!(calls::total(&counts) > 300, "{counts:?}");
    ensure!(calls::total(&trace.cut) <= 4, "cut off: {:?}", trace.cut);
    Ok(())
}

#[test]
fn ib_send_lat_killed_halfway_equals_strace() -> Result<()> {
    let script = perftest::killed("ib_send_lat", "-x 1 -n 1000000", 200);
    let (counts, trace) = same(&["sh", "-c", &script], 0).context(script)?;
    let sent = calls::of(&counts, "write", "POST_SEND");
    ensure!(sent > 50 && sent < 1_000_000, "{counts:?}");
    ensure!(calls::total(&trace.cut) <= 2, "cut off: {:?}", trace.cut);
    Ok(())
}
