//! The uverbs path where it is: entry and return of `ib_uverbs_ioctl` and `ib_uverbs_write`
//! (drivers/infiniband/core), by fentry/fexit or by kprobe/kretprobe.
//!
//! `long ib_uverbs_ioctl(struct file *, unsigned int cmd, unsigned long arg)`
//! `ssize_t ib_uverbs_write(struct file *, const char *buf, size_t count, loff_t *pos)`

use aya_ebpf::{
    macros::{fentry, fexit, kprobe, kretprobe},
    programs::{FEntryContext, FExitContext, ProbeContext, RetProbeContext},
};
use tbv_common::{Op, Thread, op::RDMA_VERBS_IOCTL};

use crate::{count, decode, device, maps::config};

/// Index of the return value behind the arguments of each function.
const IOCTL_ARGS: usize = 3;
const WRITE_ARGS: usize = 4;

#[inline(always)]
fn enter_ioctl(file: u64, number: u32, address: u64) {
    let Some(config) = config() else { return };
    count::enter(config, device::of_file(config, file), decode::ioctl(number, address), address);
}

#[inline(always)]
fn enter_write(file: u64, address: u64, size: u64) {
    let Some(config) = config() else { return };
    let address = decode::write_address(address, size);
    count::enter(config, device::of_file(config, file), decode::write(address, size), address);
}

/// Reads an ioctl's request again. Only an `RDMA_VERBS_IOCTL` can have been unreadable.
#[inline(always)]
pub fn ioctl_again(thread: &Thread) -> Op {
    decode::ioctl(RDMA_VERBS_IOCTL, thread.address)
}

/// Reads a write's command again; one that was too short to have one kept no address.
#[inline(always)]
pub fn write_again(thread: &Thread) -> Op {
    if thread.address == 0 { thread.op } else { decode::write(thread.address, decode::WRITE_HEADER) }
}

#[inline(always)]
fn leave_ioctl(ret: i64) {
    if let Some(config) = config() {
        count::leave(config, ret, ioctl_again);
    }
}

#[inline(always)]
fn leave_write(ret: i64) {
    if let Some(config) = config() {
        count::leave(config, ret, write_again);
    }
}

#[fentry]
pub fn fentry_ioctl(ctx: FEntryContext) -> u32 {
    enter_ioctl(ctx.arg(0), ctx.arg(1), ctx.arg(2));
    0
}

#[fexit]
pub fn fexit_ioctl(ctx: FExitContext) -> u32 {
    leave_ioctl(ctx.arg(IOCTL_ARGS));
    0
}

#[fentry]
pub fn fentry_write(ctx: FEntryContext) -> u32 {
    enter_write(ctx.arg(0), ctx.arg(1), ctx.arg(2));
    0
}

#[fexit]
pub fn fexit_write(ctx: FExitContext) -> u32 {
    leave_write(ctx.arg(WRITE_ARGS));
    0
}

#[kprobe]
pub fn kprobe_ioctl(ctx: ProbeContext) -> u32 {
    enter_ioctl(ctx.arg(0).unwrap_or(0), ctx.arg(1).unwrap_or(0), ctx.arg(2).unwrap_or(0));
    0
}

#[kretprobe]
pub fn kretprobe_ioctl(ctx: RetProbeContext) -> u32 {
    leave_ioctl(ctx.ret());
    0
}

#[kprobe]
pub fn kprobe_write(ctx: ProbeContext) -> u32 {
    enter_write(ctx.arg(0).unwrap_or(0), ctx.arg(1).unwrap_or(0), ctx.arg(2).unwrap_or(0));
    0
}

#[kretprobe]
pub fn kretprobe_write(ctx: RetProbeContext) -> u32 {
    leave_write(ctx.ret());
    0
}
