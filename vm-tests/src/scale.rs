//! Many processes that live shortly: map limits hold, and what is lost is counted.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::command::LIMIT;
use crate::{command, rxe};

fn file(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(name);
    let _ = fs::remove_file(&path);
    path
}

/// Memory that the eBPF maps of a process take, as the kernel says, in bytes.
pub fn map_memory(pid: u32) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(format!("/proc/{pid}/fdinfo"))? {
        let text = fs::read_to_string(entry?.path()).unwrap_or_default();
        let field =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        if field("map_id:").is_some() {
            sum += field("memlock:").unwrap_or(0);
        }
    }
    Ok(sum)
}

/// `processes` of the raw client, one after the other, each with 64 operations of its own; `options` are tbv-trace's.
pub fn short_lived(raw: &str, processes: u64, options: &[&str]) -> Result<()> {
    const OPERATIONS: u64 = 64;
    rxe::set_up()?;
    let doctor = command::run(&["tbv-trace", "doctor"], LIMIT)?.success()?;
    let (_, rest) = doctor.stdout.split_once("at most ").context("doctor says no limit")?;
    let promised: u64 = rest.split(' ').next().context("doctor says no limit")?.parse()?;
    let report = file("thousands.json");
    let (count, operations, name) = (processes.to_string(), OPERATIONS.to_string(), report.to_string_lossy());
    let words = [&["tbv-trace", "run", "-f", "json", "-o", &name], options, &["--"]].concat();
    let workload = [raw, "--procs", &count, "--spread", &operations];
    let running = command::start(&[words, workload.to_vec()].concat())?;
    let mut most = 0;
    command::wait_until("the report", Duration::from_secs(800), || {
        most = most.max(map_memory(running.pid())?);
        Ok(fs::metadata(&report).is_ok_and(|file| file.len() > 0))
    })?;
    running.finish(LIMIT)?.success()?;
    let json: Value = serde_json::from_str(&fs::read_to_string(&report)?)?;
    let loss = |name: &str| json["loss"][name].as_u64().with_context(|| name.to_owned());
    let counted = json["totals"]["count"].as_u64().context("totals")?;
    println!(
        "{counted} counted, {} had no row; maps took {} MiB of {promised}",
        loss("rows_full")?,
        most >> 20
    );
    ensure!(counted + loss("rows_full")? == processes * OPERATIONS, "{}", json["loss"]);
    ensure!(counted > 0 && loss("rows_full")? > 0, "{}", json["loss"]);
    // Every call failed: what has no name of its error is counted, too.
    let rows = json["calls"].as_array().context("calls")?;
    let named = rows.iter().flat_map(|row| row["errnos"].as_object()).flat_map(|errnos| errnos.values());
    let named: u64 = named.filter_map(Value::as_u64).sum();
    ensure!(named + loss("errnos_full")? == counted, "{named} named: {}", json["loss"]);
    let parts = ["rows_full", "errnos_full", "histograms_full"].map(loss).into_iter().sum::<Result<u64>>()?;
    ensure!(loss("total")? == parts, "{}", json["loss"]);
    ensure!(most > 0 && most <= promised << 20, "{most} bytes, doctor said {promised} MiB");
    Ok(())
}
