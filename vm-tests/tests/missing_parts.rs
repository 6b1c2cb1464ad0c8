//! Kernels that lack something, played by a kernel that hides it: counts stay exact by another hook, the report
//! says which and why, and only if none works is it an error.
#![cfg(feature = "vm")]

use std::fs;

use anyhow::{Result, ensure};
use vm_tests::command::LIMIT;
use vm_tests::doctor::Doctor;
use vm_tests::report::Report;
use vm_tests::without::{self, BTF, KPROBE_EVENTS, Setting, TRACING};
use vm_tests::{calls, command, exact, rxe};

const RAW: &str = env!("CARGO_BIN_EXE_uverbs-raw");
const HOOKS: [&str; 4] = ["fentry", "kprobe", "syscall-fentry", "raw-syscall"];
const KPROBES: &str = "/sys/kernel/debug/kprobes/enabled";
const FTRACE: &str = "/proc/sys/kernel/ftrace_enabled";

/// The words that start a tbv-trace which finds these folders empty.
fn without(folders: &[&str]) -> Vec<String> {
    let mut words = without::folders(folders);
    words.push("tbv-trace".to_owned());
    words
}

fn all<'a>(tracer: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    tracer.iter().map(String::as_str).chain(more.iter().copied()).collect()
}

/// Fails unless `run` ends with 3 and gives a reason, which contains `why`, for each hook.
fn no_hook_works(tracer: &[String], why: impl Fn(&str) -> &'static str) -> Result<()> {
    let witness = std::env::temp_dir().join("started");
    let output = command::run(&all(tracer, &["run", "--", "touch", &witness.to_string_lossy()]), LIMIT)?;
    ensure!(output.code() == 3 && output.stdout.is_empty(), "{output:?}");
    ensure!(!witness.exists(), "the command was started");
    let reasons: Vec<&str> = output.stderr.lines().skip(1).collect();
    ensure!(reasons.len() == HOOKS.len(), "{output:?}");
    for hook in HOOKS {
        let of_hook = reasons.iter().any(|line| line.contains(hook) && line.contains(why(hook)));
        ensure!(of_hook, "{hook}, {}: {reasons:#?}", why(hook));
    }
    let doctor = Doctor::ask(&all(tracer, &[]))?;
    for hook in HOOKS {
        doctor.says(hook, "degraded", &[why(hook)])?;
    }
    doctor.says("hook in use", "missing", &[])
}

#[test]
fn without_btf_counts_are_exact_and_devices_unknown() -> Result<()> {
    let tracer = without(&[BTF]);
    let report = exact::run(&all(&tracer, &[]), &[], &[RAW, "--threads", "2", "--count", "5"])?;
    ensure!(report.hook() == "kprobe", "hook {}", report.hook());
    ensure!(report.json["environment"]["devices_known"] == false, "{}", report.json["environment"]);
    ensure!(report.passed_over("fentry").contains("no BTF"), "{}", report.passed_over("fentry"));

    let output = command::run(&all(&tracer, &["run", "--", RAW]), LIMIT)?.success()?;
    ensure!(output.stderr.contains("hook kprobe"), "{output:?}");
    ensure!(output.stderr.contains("not by fentry: this kernel shows no BTF"), "{output:?}");
    ensure!(output.stderr.contains("devices are unknown: this kernel shows no BTF"), "{output:?}");

    let doctor = Doctor::ask(&all(&tracer, &[]))?;
    doctor.says("kernel BTF", "degraded", &["CONFIG_DEBUG_INFO_BTF", "devices show as unknown"])?;
    doctor.says("hook in use", "ok", &["kprobe"])
}

#[test]
fn without_btf_children_are_followed() -> Result<()> {
    let tracer = without(&[BTF]);
    let script = format!("for i in $(seq 10); do {RAW} --procs 2 --cases query-port,write & done; wait");
    let report = exact::run(&all(&tracer, &[]), &[], &["sh", "-c", &script])?;
    ensure!(calls::pids(&report.calls).len() == 20, "{:?}", calls::pids(&report.calls));
    Ok(())
}

#[test]
fn without_btf_devices_cannot_be_chosen_and_processes_can() -> Result<()> {
    rxe::set_up()?;
    let tracer = without(&[BTF]);
    let output = command::run(&all(&tracer, &["attach", "--dev", rxe::DEVICE]), LIMIT)?;
    ensure!(output.code() == 3 && output.stdout.is_empty(), "{output:?}");
    ensure!(output.stderr.contains("BTF"), "{output:?}");

    let folder = std::env::temp_dir();
    let (go, file) = (folder.join("go"), folder.join("attached.json"));
    let _ = fs::remove_file(&go);
    let script = format!("until [ -e {} ]; do sleep 0.1; done; exec {RAW} --count 3", go.display());
    let client = command::start(&["sh", "-c", &script])?;
    let (pid, path) = (client.pid().to_string(), file.to_string_lossy());
    let words = all(&tracer, &["attach", "-v", "-p", &pid, "-f", "json", "-o", &path]);
    let attached = command::start(&words)?;
    command::wait_until("attaching", LIMIT, || Ok(attached.stderr()?.contains("attached by kprobe")))?;
    fs::write(&go, "")?;
    let sent = client.finish(LIMIT)?.success()?.stdout;
    attached.finish(LIMIT)?.success()?;
    exact::check(&Report::read(&file)?, &sent)
}

#[test]
fn without_tracefs_and_debugfs_nothing_changes() -> Result<()> {
    let tracer = without(&TRACING);
    for (options, hook) in [(&[] as &[&str], "fentry"), (&["--hook", "kprobe"], "kprobe")] {
        let report = exact::run(&all(&tracer, &[]), options, &[RAW, "--count", "3"])?;
        ensure!(report.hook() == hook && report.passed_over("fentry").is_empty(), "hook {}", report.hook());
    }
    let doctor = Doctor::ask(&all(&tracer, &[]))?;
    doctor.says("tracefs", "ok", &["not needed"])?;
    doctor.says("hook in use", "ok", &["fentry"])
}

#[test]
fn without_btf_and_kprobes_no_hook_works() -> Result<()> {
    rxe::set_up()?;
    no_hook_works(&without(&[BTF, KPROBE_EVENTS]), |hook| match hook {
        "kprobe" => "this kernel has no kprobes",
        _ => "this kernel shows no BTF",
    })
}

#[test]
fn kprobes_that_are_switched_off_are_not_used() -> Result<()> {
    rxe::set_up()?;
    let _off = Setting::change(KPROBES, "0")?;
    no_hook_works(&without(&[BTF]), |hook| match hook {
        "kprobe" => "kprobes are switched off",
        _ => "this kernel shows no BTF",
    })?;
    let report = exact::run(&["tbv-trace"], &[], &[RAW, "--count", "3"])?;
    ensure!(report.hook() == "fentry", "hook {}", report.hook());
    Doctor::ask(&["tbv-trace"])?.says("kprobes", "degraded", &["echo 1 > /sys/kernel/debug/kprobes/enabled"])
}

#[test]
fn hooks_on_a_function_tracer_that_is_switched_off_are_not_used() -> Result<()> {
    rxe::set_up()?;
    let _off = Setting::change(FTRACE, "0")?;
    let report = exact::run(&["tbv-trace"], &[], &[RAW, "--count", "3"])?;
    ensure!(report.hook() == "raw-syscall", "hook {}", report.hook());
    for hook in ["fentry", "kprobe", "syscall-fentry"] {
        let why = report.passed_over(hook);
        ensure!(why.contains("kernel.ftrace_enabled is 0"), "{hook}: {why}");
    }
    let doctor = Doctor::ask(&["tbv-trace"])?;
    doctor.says("ftrace", "degraded", &["sysctl kernel.ftrace_enabled=1"])?;
    doctor.says("hook in use", "ok", &["raw-syscall"])
}
