//! What is loaded in the kernel: eBPF objects and probes.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

use crate::command::must;

/// `BPF_PROG_GET_NEXT_ID`, `BPF_MAP_GET_NEXT_ID`, `BPF_LINK_GET_NEXT_ID` (`linux/bpf.h`).
const NEXT_ID: [(&str, libc::c_long); 3] = [("prog", 11), ("map", 12), ("link", 31)];
const KPROBES: &str = "/sys/kernel/debug/kprobes/list";

/// The start of `union bpf_attr` for the three commands.
#[repr(C)]
struct NextId {
    start: u32,
    next: u32,
    flags: u32,
}

/// Every eBPF program, map and link and every kprobe, one line each.
pub fn loaded() -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for (kind, command) in NEXT_ID {
        let mut attr = NextId { start: 0, next: 0, flags: 0 };
        // SAFETY: the kernel reads and writes at most the size that is passed.
        while unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut attr, size_of::<NextId>()) } == 0 {
            found.insert(format!("{kind} {}", attr.next));
            attr.start = attr.next;
        }
        let error = std::io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::ENOENT) {
            return Err(error).context(kind);
        }
    }
    if !Path::new(KPROBES).exists() {
        must(&["mount", "-t", "debugfs", "debugfs", "/sys/kernel/debug"])?;
    }
    let probes = std::fs::read_to_string(KPROBES).context(KPROBES)?;
    found.extend(probes.lines().map(|line| format!("kprobe {line}")));
    Ok(found)
}

/// Whether a process of this name runs.
pub fn running(name: &str) -> Result<bool> {
    Ok(!pids(name)?.is_empty())
}

/// The processes of this name.
pub fn pids(name: &str) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let comm = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if comm.trim() == name {
            found.extend(entry.file_name().to_string_lossy().parse::<u32>());
        }
    }
    Ok(found)
}
