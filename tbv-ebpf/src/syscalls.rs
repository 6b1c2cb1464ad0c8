//! The same calls seen from the system call boundary, for kernels where the functions of the
//! uverbs module can't be probed. The file is looked up from the descriptor, because a
//! descriptor number alone says nothing about what it is open on.
//!
//! Not seen here: 32-bit programs on a 64-bit kernel, writev(2) and io_uring.

use core::mem::offset_of;

use aya_ebpf::{
    bindings::pt_regs,
    helpers::bpf_probe_read_kernel,
    macros::{fentry, fexit, raw_tracepoint},
    programs::{FEntryContext, FExitContext, RawTracePointContext},
};
use tbv_common::{Entry, Op, Thread};

use crate::{count, decode, device, maps::config, uverbs};

/// x86-64 system call numbers.
const WRITE: u64 = 1;
const IOCTL: u64 = 16;

/// ioctl numbers that the VFS answers for every file, as Linux 6.12 does (fs/ioctl.c): they
/// never reach ib_uverbs, so the hooks on its functions don't see them either.
#[inline(always)]
fn answered_by_vfs(number: u32) -> bool {
    matches!(
        number,
        2 // FIGETBSZ
            | 0x5421 // FIONBIO
            | 0x5450 // FIONCLEX
            | 0x5451 // FIOCLEX
            | 0x5452 // FIOASYNC
            | 0x5460 // FIOQSIZE
            | 0x4004_9409 // FICLONE
            | 0x4020_940d // FICLONERANGE
            | 0xc018_9436 // FIDEDUPERANGE
            | 0xc020_660b // FS_IOC_FIEMAP
            | 0xc004_5877 // FIFREEZE
            | 0xc004_5878 // FITHAW
            | 0x8011_1500 // FS_IOC_GETFSUUID
            | 0x8081_1501 // FS_IOC_GETFSSYSFSPATH
    )
}

#[inline(always)]
fn enter_ioctl(regs: &Arguments) {
    let Some(config) = config() else { return };
    let number = regs.rsi as u32;
    let Some(file) = device::of_uverbs_fd(config, regs.rdi as u32) else { return };
    if !answered_by_vfs(number) && file.usable(config) {
        count::enter(config, file.device, decode::ioctl(number, regs.rdx), regs.rdx);
    }
}

#[inline(always)]
fn enter_write(regs: &Arguments) {
    let Some(config) = config() else { return };
    let Some(file) = device::of_uverbs_fd(config, regs.rdi as u32) else { return };
    let (address, size) = (regs.rsi, regs.rdx);
    // What vfs_write refuses by itself: a size below zero, and memory that is not the user's.
    let users = (size as i64) >= 0 && address.checked_add(size).is_some_and(|end| end <= config.user_end);
    if users && file.writable(config) {
        let address = decode::write_address(address, size);
        count::enter(config, file.device, decode::write(address, size), address);
    }
}

/// Only calls that entered as uverbs calls are in the thread map in a call.
#[inline(always)]
fn leave(ret: i64) {
    if let Some(config) = config() {
        count::leave_if_entered(config, ret, again);
    }
}

#[inline(always)]
fn again(thread: &Thread) -> Op {
    if thread.op.0 >> 60 == Entry::WriteUnreadable as u64 {
        uverbs::write_again(thread)
    } else {
        uverbs::ioctl_again(thread)
    }
}

/// The first three arguments of a system call, which lie side by side in `struct pt_regs`, the third one first.
#[repr(C)]
struct Arguments {
    rdx: u64,
    rsi: u64,
    rdi: u64,
}

const _: () = {
    assert!(offset_of!(pt_regs, rsi) == offset_of!(pt_regs, rdx) + 8);
    assert!(offset_of!(pt_regs, rdi) == offset_of!(pt_regs, rdx) + 16);
};

#[inline(always)]
fn regs(pointer: u64) -> Option<Arguments> {
    let first = pointer + offset_of!(pt_regs, rdx) as u64;
    // SAFETY: the helper checks the address.
    unsafe { bpf_probe_read_kernel(first as *const Arguments) }.ok()
}

/// `__x64_sys_ioctl(const struct pt_regs *)`.
#[fentry]
pub fn fentry_sys_ioctl(ctx: FEntryContext) -> u32 {
    if let Some(regs) = regs(ctx.arg(0)) {
        enter_ioctl(&regs);
    }
    0
}

#[fexit]
pub fn fexit_sys_ioctl(ctx: FExitContext) -> u32 {
    leave(ctx.arg(1));
    0
}

/// `__x64_sys_write(const struct pt_regs *)`.
#[fentry]
pub fn fentry_sys_write(ctx: FEntryContext) -> u32 {
    if let Some(regs) = regs(ctx.arg(0)) {
        enter_write(&regs);
    }
    0
}

#[fexit]
pub fn fexit_sys_write(ctx: FExitContext) -> u32 {
    leave(ctx.arg(1));
    0
}

/// `sys_enter(struct pt_regs *regs, long id)`: every system call of the machine passes here.
#[raw_tracepoint(tracepoint = "sys_enter")]
pub fn raw_sys_enter(ctx: RawTracePointContext) -> i32 {
    let number: u64 = ctx.arg(1);
    if number != IOCTL && number != WRITE {
        return 0;
    }
    if config().is_none_or(device::in_32_bit_call) {
        return 0;
    }
    let Some(regs) = regs(ctx.arg(0)) else { return 0 };
    if number == IOCTL {
        enter_ioctl(&regs)
    } else {
        enter_write(&regs)
    }
    0
}

/// `sys_exit(struct pt_regs *regs, long ret)`.
#[raw_tracepoint(tracepoint = "sys_exit")]
pub fn raw_sys_exit(ctx: RawTracePointContext) -> i32 {
    leave(ctx.arg(1));
    0
}
