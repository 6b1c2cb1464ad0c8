//! Calls as the tests compare them: who called, through which entry point, what, with which result.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::Value;

/// `RDMA_VERBS_IOCTL`, the ioctl that carries every verb.
pub const RDMA_VERBS_IOCTL: u64 = 0xc018_1b01;

/// One kind of call of one process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// Process (thread group) id.
    pub pid: u32,
    /// `ioctl` or `write`.
    pub entry: String,
    /// The operation's name, or what strace can tell of it.
    pub op: String,
    /// Name of the errno; `None` for success.
    pub errno: Option<String>,
}

/// How often each kind of call was made.
pub type Counts = BTreeMap<Call, u64>;

/// All calls together.
pub fn total(counts: &Counts) -> u64 {
    counts.values().sum()
}

/// `counts` without the process ids.
pub fn of_all_processes(counts: &Counts) -> Counts {
    let mut merged = Counts::new();
    for (call, count) in counts {
        *merged.entry(Call { pid: 0, ..call.clone() }).or_default() += count;
    }
    merged
}

/// `counts` with operations as far as strace can tell them apart: an ioctl by its number, a write by
/// its command.
pub fn as_seen_by_strace(counts: &Counts) -> Counts {
    let mut coarse = Counts::new();
    for (call, count) in counts {
        let op = match (call.entry.as_str(), call.op.strip_prefix("IOCTL_0x")) {
            ("ioctl", None) => format!("{RDMA_VERBS_IOCTL:#x}"),
            ("ioctl", Some(number)) => format!("0x{number}"),
            _ => call.op.clone(),
        };
        *coarse.entry(Call { op, ..call.clone() }).or_default() += count;
    }
    coarse
}

/// The class of all writes that faulted.
pub const FAULTED: &str = "WRITE_FAULTED";

/// `counts` with all writes that faulted in one class: strace shows nothing of a write if any byte of
/// it could not be read, while its command may well have been readable.
pub fn faulted_as_one(counts: &Counts) -> Counts {
    let mut merged = Counts::new();
    for (call, count) in counts {
        let faulted = call.entry == "write" && call.errno.as_deref() == Some("EFAULT");
        let op = if faulted { FAULTED.to_owned() } else { call.op.clone() };
        *merged.entry(Call { op, ..call.clone() }).or_default() += count;
    }
    merged
}

/// Says line by line where two tallies differ; empty if they don't.
pub fn difference(left: (&str, &Counts), right: (&str, &Counts)) -> String {
    let keys: BTreeSet<_> = left.1.keys().chain(right.1.keys()).collect();
    let mut text = String::new();
    for key in keys {
        let (a, b) = (left.1.get(key).unwrap_or(&0), right.1.get(key).unwrap_or(&0));
        if a != b {
            let errno = key.errno.as_deref().unwrap_or("ok");
            text += &format!(
                "pid {} {} {} {errno}: {} {a}, {} {b}\n",
                key.pid, key.entry, key.op, left.0, right.0
            );
        }
    }
    text
}

/// Reads what uverbs-raw printed.
pub fn from_json_lines(text: &str) -> Result<Counts> {
    let mut counts = Counts::new();
    for line in text.lines() {
        let json: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
        let call = Call {
            pid: json["pid"].as_u64().context("pid")?.try_into()?,
            entry: json["entry"].as_str().context("entry")?.into(),
            op: json["op"].as_str().context("op")?.into(),
            errno: json["errno"].as_str().map(str::to_owned),
        };
        *counts.entry(call).or_default() += json["count"].as_u64().context("count")?;
    }
    Ok(counts)
}

/// The processes that made calls.
pub fn pids(counts: &Counts) -> BTreeSet<u32> {
    counts.keys().map(|call| call.pid).collect()
}

/// How many calls went through `entry` as `op`, with any result.
pub fn of(counts: &Counts, entry: &str, op: &str) -> u64 {
    counts.iter().filter(|(call, _)| call.entry == entry && call.op == op).map(|(_, count)| count).sum()
}
