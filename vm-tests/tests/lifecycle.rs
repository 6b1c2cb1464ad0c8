//! How tbv-trace starts, ends and is ended.
#![cfg(feature = "vm")]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use vm_tests::report::Report;
use vm_tests::{calls, command, kernel, rxe};

const RAW: &str = env!("CARGO_BIN_EXE_uverbs-raw");
const LIMIT: Duration = Duration::from_secs(60);
const HOOKS: [&str; 4] = ["fentry", "kprobe", "syscall-fentry", "raw-syscall"];

fn report_file() -> PathBuf {
    let path = std::env::temp_dir().join("lifecycle.json");
    let _ = std::fs::remove_file(&path);
    path
}

#[test]
fn sigkill_leaves_no_program_map_or_probe() -> Result<()> {
    rxe::set_up()?;
    for hook in HOOKS {
        let before = kernel::loaded()?;
        let running = command::start(&["tbv-trace", "run", "--hook", hook, "--", RAW, "--seconds", "600"])?;
        command::wait_until("the workload", LIMIT, || kernel::running("uverbs-raw"))?;
        let during: Vec<_> = kernel::loaded()?.difference(&before).cloned().collect();
        for kind in ["prog ", "map "] {
            ensure!(during.iter().any(|object| object.starts_with(kind)), "{hook}: no {kind}in {during:?}");
        }
        if hook == "kprobe" {
            ensure!(during.iter().any(|object| object.contains("ib_uverbs_ioctl")), "{during:?}");
        }
        running.signal(libc::SIGKILL)?;
        let _ = running.finish(LIMIT)?;
        let mut left = Vec::new();
        command::wait_until("clean-up", LIMIT, || {
            left = kernel::loaded()?.difference(&before).cloned().collect();
            Ok(left.is_empty())
        })
        .with_context(|| format!("{hook}: {left:?}"))?;
        let gone = || Ok(!kernel::running("uverbs-raw")?);
        command::wait_until("the workload's end", LIMIT, gone)?;
    }
    Ok(())
}

#[test]
fn an_ended_run_leaves_no_program_map_or_probe() -> Result<()> {
    rxe::set_up()?;
    let before = kernel::loaded()?;
    command::run(&["tbv-trace", "run", "--", RAW], LIMIT)?.success()?;
    let mut left = Vec::new();
    command::wait_until("clean-up", LIMIT, || {
        left = kernel::loaded()?.difference(&before).cloned().collect();
        Ok(left.is_empty())
    })
    .with_context(|| format!("{left:?}"))
}

#[test]
fn ctrl_c_prints_the_report() -> Result<()> {
    rxe::set_up()?;
    let path = report_file();
    let file = path.to_string_lossy();
    let words = [
        "tbv-trace",
        "run",
        "-f",
        "json",
        "-o",
        &file,
        "--",
        RAW,
        "--seconds",
        "600",
        "--cases",
        "query-port",
    ];
    let running = command::start(&words)?;
    command::wait_until("the workload", LIMIT, || kernel::running("uverbs-raw"))?;
    std::thread::sleep(Duration::from_secs(2));
    running.signal_group(libc::SIGINT)?;
    let output = running.finish(LIMIT)?;
    ensure!(output.code() == 130, "exit {}: {}", output.code(), output.stderr);
    let report = Report::read(&path)?;
    ensure!(calls::of(&report.calls, "ioctl", "QUERY_PORT") > 100, "{:?}", report.calls);
    Ok(())
}

#[test]
fn sigint_to_tbv_trace_alone_prints_the_report() -> Result<()> {
    rxe::set_up()?;
    let running =
        command::start(&["tbv-trace", "run", "--", RAW, "--seconds", "600", "--cases", "query-port"])?;
    command::wait_until("the workload", LIMIT, || kernel::running("uverbs-raw"))?;
    std::thread::sleep(Duration::from_secs(2));
    running.signal(libc::SIGINT)?;
    let output = running.finish(LIMIT)?;
    let printed = format!("{}{}", output.stdout, output.stderr);
    ensure!(printed.contains("QUERY_PORT"), "exit {}: {printed}", output.code());
    Ok(())
}

#[test]
fn the_exit_status_is_the_commands_own() -> Result<()> {
    rxe::set_up()?;
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -SEGV $$", 139)] {
        let path = report_file();
        let file = path.to_string_lossy();
        let words = ["tbv-trace", "run", "-f", "json", "-o", &file, "--", "sh", "-c", script];
        let output = command::run(&words, LIMIT)?;
        ensure!(output.code() == code, "{script}: exit {}: {}", output.code(), output.stderr);
        let report = Report::read(&path)?;
        ensure!(report.json["exit_status"] == code, "{script}: {}", report.json["exit_status"]);
    }
    Ok(())
}

#[test]
fn a_command_that_cannot_be_started_gives_126_or_127() -> Result<()> {
    rxe::set_up()?;
    let plain = std::env::temp_dir().join("not-executable");
    std::fs::write(&plain, "#!/bin/sh\n")?;
    std::fs::set_permissions(&plain, std::fs::Permissions::from_mode(0o644))?;
    let plain = plain.to_string_lossy();
    for (word, code) in [("no-such-command", 127), ("/no/such/command", 127), (&plain, 126), ("/tmp", 126)] {
        let output = command::run(&["tbv-trace", "run", "--", word], LIMIT)?;
        ensure!(output.code() == code, "{word}: exit {}: {}", output.code(), output.stderr);
        ensure!(output.stderr.contains(word), "{word} isn't named: {}", output.stderr);
    }
    Ok(())
}

#[test]
fn a_closed_pipe_does_not_change_the_exit_status() -> Result<()> {
    rxe::set_up()?;
    let script = "set -o pipefail; tbv-trace run -f json -- sh -c 'sleep 1; exit 7' | true";
    let output = command::run(&["bash", "-c", script], LIMIT)?;
    ensure!(output.code() == 7 && output.stderr.is_empty(), "{output:?}");
    Ok(())
}

#[test]
fn a_run_that_cannot_measure_keeps_the_old_report() -> Result<()> {
    let path = report_file();
    std::fs::write(&path, "old")?;
    let file = path.to_string_lossy();
    let words =
        ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /sys/class && exec tbv-trace \"$@\"", "sh"];
    let words = [&words[..], &["run", "-o", &file, "--", "true"]].concat();
    let output = command::run(&words, LIMIT)?;
    ensure!(output.code() == 3, "{output:?}");
    ensure!(std::fs::read_to_string(&path)? == "old", "the old report is gone");
    Ok(())
}

#[test]
fn the_commands_output_is_its_own() -> Result<()> {
    rxe::set_up()?;
    let path = report_file();
    let file = path.to_string_lossy();
    let script = "echo out; echo err >&2";
    let words = ["tbv-trace", "run", "-f", "json", "-o", &file, "--", "sh", "-c", script];
    let output = command::run(&words, LIMIT)?.success()?;
    ensure!((output.stdout.as_str(), output.stderr.as_str()) == ("out\n", "err\n"), "{output:?}");
    Ok(())
}
