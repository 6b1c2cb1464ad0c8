//! Which device file a call is on. The few kernel fields needed have their offsets from the
//! running kernel's BTF, through the configuration.

use aya_ebpf::helpers::{bpf_get_current_task, bpf_probe_read_kernel};
use tbv_common::{Config, Loss};

use crate::atomic::lost;

/// Minor numbers below this belong to other files of the shared fixed major (umad, issm).
const FIXED_MAJOR: u32 = 231;
const FIRST_MINOR: u32 = 192;
const MINOR_BITS: u32 = 20;

#[inline(always)]
fn read<T>(base: u64, offset: u32) -> Option<T> {
    // SAFETY: the helper checks the address.
    unsafe { bpf_probe_read_kernel((base + offset as u64) as *const T) }.ok()
}

/// `dev_t` behind a `struct file *`; 0 if the offsets are unknown.
#[inline(always)]
pub fn of_file(config: &Config, file: u64) -> u32 {
    if config.files_known == 0 {
        return 0;
    }
    let device = read::<u64>(file, config.file_inode).and_then(|inode| read::<u32>(inode, config.inode_rdev));
    match device {
        Some(device) => device,
        None => {
            lost(Loss::FileUnreadable);
            0
        }
    }
}

/// An open uverbs device file.
pub struct Uverbs {
    /// Its `dev_t`.
    pub device: u32,
    file: u64,
}

impl Uverbs {
    /// Whether system calls on its contents are let through: one opened with O_PATH is only a name.
    #[inline(always)]
    pub fn usable(&self, config: &Config) -> bool {
        /// `FMODE_PATH` (linux/fs.h).
        const FMODE_PATH: u32 = 1 << 14;
        read::<u32>(self.file, config.file_mode).is_some_and(|mode| mode & FMODE_PATH == 0)
    }

    /// Whether it is open for writing; a write(2) on one that isn't never reaches the driver.
    #[inline(always)]
    pub fn writable(&self, config: &Config) -> bool {
        /// `FMODE_WRITE` (linux/fs.h).
        const FMODE_WRITE: u32 = 2;
        read::<u32>(self.file, config.file_mode).is_some_and(|mode| mode & FMODE_WRITE != 0)
    }
}

/// `struct fdtable`: its first members lie side by side, so that one read gets both.
#[repr(C)]
struct Fdtable {
    max_fds: u32,
    padding: u32,
    fd: u64,
}

impl Fdtable {
    #[inline(always)]
    fn read(config: &Config, fdt: u64) -> Option<Self> {
        if config.fdtable_fd == config.fdtable_max_fds + 8 {
            return read(fdt, config.fdtable_max_fds);
        }
        let (max_fds, fd) = (read(fdt, config.fdtable_max_fds)?, read(fdt, config.fdtable_fd)?);
        Some(Fdtable { max_fds, padding: 0, fd })
    }
}

/// What the calling thread's `fd` is open on, if that is an uverbs device file.
#[inline(always)]
pub fn of_uverbs_fd(config: &Config, fd: u32) -> Option<Uverbs> {
    // SAFETY: takes no arguments.
    let task = unsafe { bpf_get_current_task() };
    let files: u64 = read(task, config.task_files)?;
    let fdt: u64 = read(files, config.files_fdt)?;
    let table = Fdtable::read(config, fdt)?;
    if fd >= table.max_fds {
        return None;
    }
    let array = table.fd;
    let file: u64 = read(array + fd as u64 * 8, 0)?;
    if file == 0 {
        return None;
    }
    let device = of_file(config, file);
    is_uverbs(config, device).then_some(Uverbs { device, file })
}

/// Whether the current system call was made the 32-bit way, where numbers mean other calls.
#[inline(always)]
pub fn in_32_bit_call(config: &Config) -> bool {
    /// `TS_COMPAT` (asm/thread_info.h).
    const TS_COMPAT: u32 = 2;
    if config.task_status == 0 {
        return false;
    }
    // SAFETY: takes no arguments.
    let task = unsafe { bpf_get_current_task() };
    read::<u32>(task, config.task_status).is_some_and(|status| status & TS_COMPAT != 0)
}

#[inline(always)]
fn is_uverbs(config: &Config, device: u32) -> bool {
    let (major, minor) = (device >> MINOR_BITS, device & ((1 << MINOR_BITS) - 1));
    if major == 0 || (major != config.majors[0] && major != config.majors[1]) {
        return false;
    }
    major != FIXED_MAJOR || minor >= FIRST_MINOR
}
