//! Where the programs find the few kernel fields they read, and where user memory ends.

use std::{fs, path::Path};

use tbv_common::Config;

use crate::btf::Btf;

/// Fills in what BTF tells. What it doesn't stays zero, which the programs take as unknown.
pub(crate) fn from_btf(config: &mut Config, btf: &Btf) {
    config.task_pid = btf.offset("task_struct", "pid").unwrap_or(0);
    if let (Some(signal), Some(live)) =
        (btf.offset("task_struct", "signal"), btf.offset("signal_struct", "live"))
    {
        (config.task_signal, config.signal_live) = (signal, live);
    }
    if let (Some(info), Some(status)) =
        (btf.offset("task_struct", "thread_info"), btf.offset("thread_info", "status"))
    {
        config.task_status = info + status;
    }
    let ids = [
        btf.offset("task_struct", "group_leader"),
        btf.offset("task_struct", "comm"),
        btf.offset("task_struct", "thread_pid"),
        btf.offset("pid", "level"),
        btf.offset("pid", "numbers"),
    ];
    if let [Some(leader), Some(comm), Some(thread_pid), Some(level), Some(numbers)] = ids {
        config.task_group_leader = leader;
        config.task_comm = comm;
        config.task_thread_pid = thread_pid;
        config.pid_level = level;
        config.pid_numbers = numbers;
        config.ids_known = 1;
    }
    let files = [
        btf.offset("task_struct", "files"),
        btf.offset("files_struct", "fdt"),
        btf.offset("fdtable", "max_fds"),
        btf.offset("fdtable", "fd"),
        btf.offset("file", "f_inode"),
        btf.offset("inode", "i_rdev"),
        btf.offset("file", "f_mode"),
    ];
    if let [Some(files), Some(fdt), Some(max), Some(fd), Some(inode), Some(rdev), Some(mode)] = files {
        config.task_files = files;
        config.files_fdt = fdt;
        config.fdtable_max_fds = max;
        config.fdtable_fd = fd;
        config.file_inode = inode;
        config.inode_rdev = rdev;
        config.file_mode = mode;
        config.files_known = 1;
    }
}

/// First address behind user memory on x86-64: a page below 2^47, or below 2^56 with five
/// levels of page tables, which the kernel lists as the CPU flag `la57` only if it uses them.
pub(crate) fn user_end(root: &Path) -> u64 {
    const PAGE: u64 = 4096;
    let cpuinfo = fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default();
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let bits = if flags.split_whitespace().any(|flag| flag == "la57") { 56 } else { 47 };
    (1 << bits) - PAGE
}
