//! Running tbv-trace and reading its JSON report.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::calls::{Call, Counts};
use crate::command::{self, Output};
use crate::schema::{self, Schema};
use crate::{rxe, usb4};

/// Whether reports of intervals follow each other without a gap from the begin to the end of `total`, a report of the
/// whole time; however long each is, which is the machine's affair.
pub fn without_gap<'a>(intervals: impl Iterator<Item = &'a Value>, total: &Value) -> Result<()> {
    ensure!(total["interval"].is_null(), "no report of the whole time: {}", total["interval"]);
    let mut end = 0;
    for (number, part) in intervals.enumerate() {
        let when = &part["interval"];
        ensure!(when["number"] == number + 1 && when["start_ns"] == end, "{when} after {end}");
        end = when["end_ns"].as_u64().context("end_ns")?;
    }
    ensure!(total["duration_ns"] == end, "the intervals end at {end}, tracing at {}", total["duration_ns"]);
    Ok(())
}

/// A report as written by `tbv-trace run -f json`.
pub struct Report {
    /// Calls by process, entry point, operation and errno.
    pub calls: Counts,
    /// The whole of it.
    pub json: Value,
}

impl Report {
    /// Reads a report file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let json: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        ensure!(json["schema_version"] == 1, "schema_version is {}", json["schema_version"]);
        schema::check(Schema::Report, &json)?;
        let devices_known = json["environment"]["devices_known"] == true;
        let mut calls = Counts::new();
        for row in json["calls"].as_array().context("no calls")? {
            add(&mut calls, row, devices_known).with_context(|| row.to_string())?;
        }
        Ok(Report { calls, json })
    }

    /// The calls with the ids that processes have in their own pid namespace.
    pub fn calls_in_namespaces(&self) -> Result<Counts> {
        let mut calls = Counts::new();
        for row in self.json["calls"].as_array().context("no calls")? {
            let mut row = row.clone();
            row["pid"] = row["ns_pid"].clone();
            add(&mut calls, &row, true).with_context(|| row.to_string())?;
        }
        Ok(calls)
    }

    /// The name of the hook that was used.
    pub fn hook(&self) -> &str {
        self.json["environment"]["hook"].as_str().unwrap_or_default()
    }

    /// Why a better hook was not used; empty if it was, or was not tried.
    pub fn passed_over(&self, hook: &str) -> &str {
        let all = self.json["environment"]["hooks_passed_over"].as_array().into_iter().flatten();
        all.filter(|other| other["hook"] == hook)
            .find_map(|other| other["reason"].as_str())
            .unwrap_or_default()
    }

    /// All losses together.
    pub fn lost(&self) -> Result<u64> {
        self.json["loss"]["total"].as_u64().context("no loss.total")
    }
}

fn add(calls: &mut Counts, row: &Value, devices_known: bool) -> Result<()> {
    let text =
        |field: &str| Ok::<_, anyhow::Error>(row[field].as_str().context(field.to_owned())?.to_owned());
    let (entry, op) = (text("entry")?, text("op")?);
    let pid = u32::try_from(row["pid"].as_u64().context("pid")?)?;
    ensure!(matches!(entry.as_str(), "ioctl" | "write"), "entry");
    let device = text("device")?;
    let ours =
        [rxe::DEVICE, rxe::SECOND].contains(&device.as_str()) || usb4::DEVICES.contains(&device.as_str());
    ensure!(if devices_known { ours } else { device == "unknown" }, "device {device}");
    let (all, failed) = (row["count"].as_u64().context("count")?, row["errors"].as_u64().context("errors")?);
    let succeeded = all.checked_sub(failed).context("more errors than calls")?;
    let mut named = 0;
    for (errno, count) in row["errnos"].as_object().context("errnos")? {
        let count = count.as_u64().context("errnos")?;
        named += count;
        let call = Call { pid, entry: entry.clone(), op: op.clone(), errno: Some(errno.clone()) };
        *calls.entry(call).or_default() += count;
    }
    ensure!(named == failed, "errnos and errors differ");
    if succeeded > 0 {
        *calls.entry(Call { pid, entry, op, errno: None }).or_default() += succeeded;
    }
    Ok(())
}

/// `tbv-trace run` with `options` on `words`; its report and what the command left.
pub fn run(options: &[&str], words: &[&str], limit: Duration) -> Result<(Report, Output)> {
    run_by(&["tbv-trace"], options, words, limit)
}

/// As [`run`], with the tbv-trace that `tracer` starts.
pub fn run_by(
    tracer: &[&str],
    options: &[&str],
    words: &[&str],
    limit: Duration,
) -> Result<(Report, Output)> {
    let path = std::env::temp_dir().join("tbv-report.json");
    let _ = std::fs::remove_file(&path);
    let file = path.to_string_lossy();
    let all = [tracer, &["run", "-f", "json", "-o", &file], options, &["--"], words].concat();
    let output = command::run(&all, limit)?;
    let report = Report::read(&path).with_context(|| format!("exit {}: {}", output.code(), output.stderr))?;
    Ok((report, output))
}
