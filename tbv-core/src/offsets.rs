//! Where the programs find the few kernel fields they read.

use tbv_common::Config;

use crate::btf::Btf;

/// Fills in what BTF tells. What it doesn't stays zero, which the programs take as unknown.
pub(crate) fn from_btf(config: &mut Config, btf: &Btf) {
    let at = |name, member| btf.offset(name, member).unwrap_or(0);
    config.task_pid = at("task_struct", "pid");
    if let (Some(signal), Some(live)) =
        (btf.offset("task_struct", "signal"), btf.offset("signal_struct", "live"))
    {
        (config.task_signal, config.signal_live) = (signal, live);
    }
    let files = [
        btf.offset("task_struct", "files"),
        btf.offset("files_struct", "fdt"),
        btf.offset("fdtable", "max_fds"),
        btf.offset("fdtable", "fd"),
        btf.offset("file", "f_inode"),
        btf.offset("inode", "i_rdev"),
    ];
    if let [Some(files), Some(fdt), Some(max), Some(fd), Some(inode), Some(rdev)] = files {
        config.task_files = files;
        config.files_fdt = fdt;
        config.fdtable_max_fds = max;
        config.fdtable_fd = fd;
        config.file_inode = inode;
        config.inode_rdev = rdev;
        config.files_known = 1;
    }
}
