//! The report: the stable form of a result, written and read as JSON.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tbv_common::{Bucket, Entry, Process};

use crate::{
    devices::Devices,
    environment::Environment,
    error::{Error, Result},
    latency::Latency,
    loss::Losses,
    snapshot::{Counted, Snapshot},
    uapi,
};

/// The version this code writes and reads. Fields are only added within a version.
pub const SCHEMA_VERSION: u32 = 1;
/// Stands for a device that could not be told.
pub const UNKNOWN_DEVICE: &str = "unknown";

/// A result of tbv-trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Version of this form, [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Where it was measured.
    pub environment: Environment,
    /// The command that was run; empty if there was none.
    pub command: Vec<String>,
    /// How long was traced, in nanoseconds.
    pub duration_ns: u64,
    /// One element per process, device and operation.
    pub calls: Vec<Call>,
    /// What was lost: all zero means that the counts are exact.
    pub loss: Losses,
    /// Exit status of the command (128 + signal if it was killed); absent without a command.
    pub exit_status: Option<i32>,
}

/// What one process called how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    /// Process id, in the initial pid namespace.
    pub pid: u32,
    /// The process's name at its first call.
    pub comm: String,
    /// RDMA device, such as `rxe0`; `unknown` if it could not be told.
    pub device: String,
    /// `ioctl` or `write`.
    pub entry: String,
    /// The operation, named as in the uapi headers.
    pub op: String,
    /// Calls that returned.
    pub count: u64,
    /// Those that returned an error.
    pub errors: u64,
    /// The errors by name.
    pub errnos: BTreeMap<String, u64>,
    /// Latency of the calls; absent if none was timed.
    pub latency_ns: Option<Latency>,
    /// The latency histogram: `[low, high, calls]` per bucket that is not empty, half-open,
    /// in nanoseconds. Absent if no histogram was free.
    pub latency_buckets: Option<Vec<(u64, u64, u64)>>,
}

impl Report {
    /// Names what a snapshot counted.
    pub fn new(snapshot: &Snapshot, mut environment: Environment, devices: &Devices) -> Self {
        let calls: Vec<Call> =
            snapshot.rows.iter().map(|row| call(row, &snapshot.processes, devices)).collect();
        environment.mode = mode(&calls).to_owned();
        Report {
            schema_version: SCHEMA_VERSION,
            environment,
            command: Vec::new(),
            duration_ns: 0,
            calls,
            loss: snapshot.losses.clone(),
            exit_status: None,
        }
    }

    /// With what was run, for how long, and how it ended.
    #[must_use]
    pub fn of_command(mut self, command: Vec<String>, duration: Duration, exit_status: i32) -> Self {
        self.command = command;
        self.duration_ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.exit_status = Some(exit_status);
        self
    }

    /// Reads a report file, and says what is wrong with one that can't be used.
    pub fn read(path: &Path) -> Result<Self> {
        let fail = |reason: String| Error::Report { path: path.display().to_string(), reason };
        let text = fs::read(path).map_err(|e| fail(e.to_string()))?;
        Self::parse(&text).map_err(fail)
    }

    fn parse(text: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Version {
            schema_version: u32,
        }
        let not_a_report = |e: serde_json::Error| match e.classify() {
            serde_json::error::Category::Eof => "the file is cut off: its JSON ends too early".to_owned(),
            _ => format!("not a tbv-trace report: {e}"),
        };
        let version: Version = serde_json::from_slice(text).map_err(not_a_report)?;
        if version.schema_version != SCHEMA_VERSION {
            return Err(format!(
                "schema version {} is not the one this tbv-trace reads ({SCHEMA_VERSION}); \
                 use the tbv-trace that wrote it",
                version.schema_version
            ));
        }
        serde_json::from_slice(text).map_err(not_a_report)
    }

    /// Its JSON form, indented.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    /// The JSON schema of this form.
    pub fn json_schema() -> schemars::Schema {
        schemars::schema_for!(Report)
    }
}

fn call(row: &Counted, processes: &BTreeMap<u32, Process>, devices: &Devices) -> Call {
    let process = processes.get(&row.key.process);
    let device = devices.get(&row.key.device).map_or(UNKNOWN_DEVICE, |d| &d.name);
    let entry = match row.key.op.entry() {
        Some(Entry::Write | Entry::WriteUnreadable) => "write",
        _ => "ioctl",
    };
    let buckets = row.latency.buckets.as_ref().map(|buckets| {
        buckets
            .iter()
            .enumerate()
            .filter(|(_, n)| **n > 0)
            .map(|(i, n)| (Bucket::at(i).low, Bucket::at(i).high, *n))
            .collect()
    });
    Call {
        pid: process.map_or(0, |p| p.pid),
        comm: process.map_or_else(String::new, comm),
        device: device.to_owned(),
        entry: entry.to_owned(),
        op: uapi::op_name(row.key.op).into_owned(),
        count: row.count,
        errors: row.errors,
        errnos: row.errnos.iter().map(|(e, n)| (uapi::errno_name(*e).into_owned(), *n)).collect(),
        latency_ns: row.latency.summary(),
        latency_buckets: buckets,
    }
}

fn comm(process: &Process) -> String {
    let bytes = process.comm.split(|b| *b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

fn mode(calls: &[Call]) -> &'static str {
    let has = |entry| calls.iter().any(|call| call.entry == entry);
    match (has("ioctl"), has("write")) {
        (true, true) => "mixed",
        (true, false) => "ioctl",
        (false, true) => "write",
        (false, false) => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_files_say_what_is_wrong() {
        let parse = |text: &str| Report::parse(text.as_bytes()).unwrap_err();
        assert!(parse("").contains("cut off"));
        assert!(parse(r#"{"schema_version": 1, "env"#).contains("cut off"));
        assert!(parse("garbage").contains("not a tbv-trace report"));
        assert!(parse(r#"{"schema_version": 2}"#).contains("schema version 2"));
        assert!(parse(r#"{"schema_version": 1}"#).contains("missing field"));
        assert!(parse(r#"{"a": 1}"#).contains("missing field `schema_version`"));
    }
}
