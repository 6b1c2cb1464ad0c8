//! A host without any RDMA driver.
#![cfg(feature = "vm")]

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use vm_tests::command;
use vm_tests::command::LIMIT;
use vm_tests::doctor::Doctor;
use vm_tests::without::{self, BTF, KPROBE_EVENTS};

/// These tests only mean something where nothing of RDMA is loaded.
fn without_rdma() -> Result<()> {
    ensure!(!Path::new("/sys/module/ib_uverbs").exists(), "ib_uverbs is loaded");
    ensure!(!Path::new("/sys/class/infiniband_verbs").exists(), "there are verbs devices");
    Ok(())
}

#[test]
fn help_works() -> Result<()> {
    without_rdma()?;
    let output = command::run(&["tbv-trace", "--help"], LIMIT)?.success()?;
    ensure!(output.stdout.contains("run") && output.stderr.is_empty(), "{output:?}");
    Ok(())
}

#[test]
fn doctor_says_what_is_missing() -> Result<()> {
    without_rdma()?;
    let output = command::run(&["tbv-trace", "doctor"], LIMIT)?;
    ensure!(output.code() == 3 && output.stderr.is_empty(), "{output:?}");
    ensure!(output.stdout.contains("MISSING   ib_uverbs"), "{output:?}");
    let doctor = Doctor::ask(&["tbv-trace"])?;
    doctor.says("ib_uverbs", "missing", &["not loaded", "modprobe ib_uverbs"])?;
    for hook in ["fentry", "kprobe", "syscall-fentry", "raw-syscall"] {
        doctor.says(hook, "ok", &["can be used"])?;
    }
    Ok(())
}

#[test]
fn hooks_that_the_kernel_lacks_are_named_all_the_same() -> Result<()> {
    without_rdma()?;
    let tracer = [without::folders(&[BTF, KPROBE_EVENTS]), vec!["tbv-trace".to_owned()]].concat();
    let doctor = Doctor::ask(&tracer.iter().map(String::as_str).collect::<Vec<_>>())?;
    doctor.says("fentry", "degraded", &["no BTF"])?;
    doctor.says("kprobe", "degraded", &["no kprobes", "CONFIG_KPROBE_EVENTS"])?;
    doctor.says("hook in use", "missing", &[])
}

#[test]
fn where_the_module_cannot_be_loaded_nobody_is_told_to_load_it() -> Result<()> {
    without_rdma()?;
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let folder = fs::canonicalize(Path::new("/lib/modules").join(release.trim()))?;
    let tracer = without::folders(&[&folder.to_string_lossy()]);
    let tracer: Vec<&str> = tracer.iter().map(String::as_str).chain(["tbv-trace"]).collect();
    let output = command::run(&[&tracer[..], &["run", "--", "true"]].concat(), LIMIT)?;
    ensure!(output.code() == 3 && output.stdout.is_empty(), "{output:?}");
    ensure!(output.stderr.contains("no modules are installed here"), "{output:?}");
    ensure!(output.stderr.contains("on its host") && output.stderr.contains("cargo xtask vm"), "{output:?}");
    Doctor::ask(&tracer)?.says("ib_uverbs", "missing", &["no modules are installed here", "cargo xtask vm"])
}

#[test]
fn run_exits_3_with_one_message_and_starts_nothing() -> Result<()> {
    without_rdma()?;
    let witness = std::env::temp_dir().join("started");
    let script = format!("touch {}", witness.display());
    let output = command::run(&["tbv-trace", "run", "--", "sh", "-c", &script], LIMIT)?;
    ensure!(output.code() == 3, "{output:?}");
    ensure!(output.stdout.is_empty(), "{output:?}");
    ensure!(output.stderr.matches("tbv-trace:").count() == 1, "{output:?}");
    ensure!(output.stderr.contains("ib_uverbs") && output.stderr.contains("modprobe"), "{output:?}");
    ensure!(!witness.exists(), "the command was started");
    Ok(())
}
