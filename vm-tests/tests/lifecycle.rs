//! How tbv-trace starts, ends and is ended.
#![cfg(feature = "vm")]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use vm_tests::command::LIMIT;
use vm_tests::report::{self, Report};
use vm_tests::{calls, command, kernel, rxe};

const RAW: &str = env!("CARGO_BIN_EXE_uverbs-raw");
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

#[test]
fn what_the_command_leaves_running_is_a_loss_or_waited_for() -> Result<()> {
    rxe::set_up()?;
    let script = format!("(sleep 1; exec {RAW} --cases query-port) >/dev/null & exit 7");
    let run = |options: &[&str]| -> Result<_> {
        let path = report_file();
        let file = path.to_string_lossy();
        let words = [&["tbv-trace", "run", "-f", "json", "-o", &file], options, &["--", "sh", "-c", &script]]
            .concat();
        let output = command::run(&words, LIMIT)?;
        Ok((output.code(), Report::read(&path)?))
    };
    let (code, report) = run(&[])?;
    ensure!(code == 7 && report.json["loss"]["left_running"] != 0, "{code}: {}", report.json["loss"]);
    ensure!(run(&["--strict"])?.0 == 4, "not strict");
    let (code, report) = run(&["--wait", "--strict"])?;
    ensure!(code == 7 && report.lost()? == 0, "{code}: {}", report.json["loss"]);
    ensure!(calls::of(&report.calls, "ioctl", "QUERY_PORT") == 1, "{:?}", report.calls);
    Ok(())
}

#[test]
fn hooks_that_do_not_fire_are_refused_and_their_end_is_a_loss() -> Result<()> {
    rxe::set_up()?;
    kernel::loaded()?; // mounts debugfs
    const FTRACE: &str = "/proc/sys/kernel/ftrace_enabled";
    const KPROBES: &str = "/sys/kernel/debug/kprobes/enabled";
    for (switch, hooks) in [(FTRACE, &HOOKS[..3]), (KPROBES, &HOOKS[1..2])] {
        std::fs::write(switch, "0")?;
        // Refused by name, and another hook is used if none was asked for.
        let refused: Result<Vec<_>> = hooks
            .iter()
            .map(|hook| command::run(&["tbv-trace", "run", "--hook", hook, "--", "true"], LIMIT))
            .collect();
        let other = report::run(&["--strict"], &[RAW, "--cases", "query-port"], LIMIT);
        std::fs::write(switch, "1")?;
        for refused in refused? {
            ensure!(refused.code() == 3 && refused.stderr.contains("switched off"), "{switch}: {refused:?}");
        }
        let (report, output) = other?;
        output.success()?;
        ensure!(!hooks.contains(&report.hook()), "{} was used", report.hook());
        ensure!(calls::of(&report.calls, "ioctl", "QUERY_PORT") == 1, "{:?}", report.calls);
    }
    // Switched off on the way. Not tried with ftrace: the kernel itself warns when that is off and a probe goes.
    // On again before the end, it is not forgotten.
    let script = format!(
        "echo 0 > {KPROBES}; {RAW} --cases query-port >/dev/null; sleep 1; echo 1 > {KPROBES}; sleep 1"
    );
    let run = report::run(&["--hook", "kprobe"], &["sh", "-c", &script], LIMIT);
    std::fs::write(KPROBES, "1")?;
    let (report, output) = run?;
    output.success()?;
    ensure!(report.json["loss"]["hook_off"] == 1, "{}", report.json["loss"]);
    Ok(())
}

#[test]
fn on_a_fully_preemptible_kernel_another_hook_comes_first() -> Result<()> {
    rxe::set_up()?;
    kernel::loaded()?; // mounts debugfs
    const MODEL: &str = "/sys/kernel/debug/sched/preempt";
    std::fs::write(MODEL, "full")?;
    let run = report::run(
        &["--strict"],
        &[RAW, "--threads", "12", "--count", "300", "--cases", "query-port"],
        LIMIT,
    );
    std::fs::write(MODEL, "voluntary")?;
    let (report, output) = run?;
    output.success()?;
    ensure!(report.hook() == "raw-syscall", "{}", report.hook());
    ensure!(calls::of(&report.calls, "ioctl", "QUERY_PORT") == 12 * 300, "{:?}", report.calls);
    let passed_over = report.json["environment"]["hooks_passed_over"].to_string();
    ensure!(passed_over.contains("preemptible"), "{passed_over}");
    Ok(())
}

#[test]
fn signals_that_were_ignored_stay_ignored() -> Result<()> {
    rxe::set_up()?;
    let script = "trap '' HUP; tbv-trace run -- sh -c 'kill -HUP $$; echo survived'";
    let output = command::run(&["sh", "-c", script], LIMIT)?.success()?;
    ensure!(output.stdout == "survived\n", "{output:?}");
    Ok(())
}

#[test]
fn a_standard_error_that_is_full_changes_no_status() -> Result<()> {
    rxe::set_up()?;
    for (words, code) in
        [("run -- no-such-command", 127), ("run -o /dev/full -- true", 2), ("report /no/such", 2)]
    {
        let output = command::run(&["sh", "-c", &format!("tbv-trace {words} 2>/dev/full")], LIMIT)?;
        ensure!(output.code() == code, "{words}: {output:?}");
    }
    Ok(())
}

#[test]
fn a_command_that_cannot_be_started_leaves_no_file() -> Result<()> {
    rxe::set_up()?;
    let path = report_file();
    let words = ["tbv-trace", "run", "-o", &path.to_string_lossy(), "--", "no-such-command"];
    ensure!(command::run(&words, LIMIT)?.code() == 127);
    ensure!(!path.exists(), "an empty report is left");
    std::fs::write(&path, "old")?;
    command::run(&words, LIMIT)?;
    ensure!(std::fs::read_to_string(&path)? == "old", "the old report is gone");
    Ok(())
}

#[test]
fn a_device_number_used_again_has_both_names() -> Result<()> {
    rxe::set_up()?;
    command::must(&["ip", "link", "add", "d2", "type", "dummy"])?;
    command::must(&["ip", "link", "set", "d2", "up"])?;
    let script = format!(
        "set -e; rdma link add first type rxe netdev d2
         {RAW} --device $(ls -d /dev/infiniband/uverbs* | tail -1) --cases query-port >/dev/null
         sleep 1.5; rdma link del first; rdma link add second type rxe netdev d2; sleep 1.5; rdma link del second"
    );
    let path = report_file();
    let file = path.to_string_lossy();
    // An interval, so that the first name is seen while it is there.
    let words = ["tbv-trace", "run", "-i", "0.3", "-f", "jsonl", "-o", &file, "--", "sh", "-c", &script];
    command::run(&words, LIMIT)?.success()?;
    let text = std::fs::read_to_string(&path)?;
    let last: serde_json::Value = serde_json::from_str(text.lines().last().context("no report")?)?;
    let names: Vec<&str> =
        last["calls"].as_array().context("calls")?.iter().filter_map(|c| c["device"].as_str()).collect();
    ensure!(!names.is_empty() && names.iter().all(|name| *name == "first/second"), "{last}");
    Ok(())
}
