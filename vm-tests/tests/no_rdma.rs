//! A host without any RDMA driver.
#![cfg(feature = "vm")]

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use vm_tests::command;

const LIMIT: Duration = Duration::from_secs(60);

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
    ensure!(output.stdout.contains("ib_uverbs") && output.stderr.is_empty(), "{output:?}");
    Ok(())
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
