//! What the provider tells by its probes (USDT; `tbv_proto::PROBES`): how completions are polled in user space. They run
//! in the polling thread, and a process can tell of its own queues only.

use aya_ebpf::{
    EbpfContext as _,
    bindings::BPF_NOEXIST,
    helpers::{
        bpf_get_current_pid_tgid, bpf_probe_read_kernel, bpf_probe_read_user,
        generated::bpf_get_attach_cookie,
    },
    macros::uprobe,
    programs::ProbeContext,
};
use tbv_common::*;

use crate::{
    atomic::{self, lost},
    driver::{counts, is_time},
    maps::{CQS, FALL_BACKS, PROBE_SITES, config},
    message,
};

#[inline(always)]
fn tgid() -> u32 {
    (bpf_get_current_pid_tgid() >> 32) as u32
}

#[inline(always)]
fn site(ctx: &ProbeContext) -> Option<&'static Site> {
    // SAFETY: the program's own context.
    let cookie = unsafe { bpf_get_attach_cookie(ctx.as_ptr()) };
    PROBE_SITES.get(cookie as u32)
}

#[inline(always)]
fn user<T>(address: u64) -> Option<T> {
    // SAFETY: the helper checks the address.
    unsafe { bpf_probe_read_user(address as *const T) }.ok()
}

/// An argument; `None` if it cannot be read.
#[inline(always)]
fn argument(ctx: &ProbeContext, arg: &SiteArg) -> Option<u64> {
    if arg.place == Place::Constant as u32 {
        return Some(arg.number);
    }
    let register = ctx.as_ptr() as u64 + arg.register as u64;
    // SAFETY: the helper checks the address.
    let mut value = unsafe { bpf_probe_read_kernel(register as *const u64) }.ok()?;
    if arg.place == Place::Memory as u32 {
        let address = value.wrapping_add(arg.number);
        // Not more than it is: it may end with its page.
        value = match arg.shift {
            0 => user::<u64>(address)?,
            32 => user::<u32>(address)? as u64,
            48 => user::<u16>(address)? as u64,
            _ => user::<u8>(address)? as u64,
        };
    }
    let shift = arg.shift & 63;
    let value = value << shift;
    Some(if arg.signed != 0 { (value as i64 >> shift) as u64 } else { value >> shift })
}

/// The queue that the first two arguments name, if it is one of this process's that is traced.
#[inline(always)]
fn queue(ctx: &ProbeContext) -> Option<(&'static Site, CqKey, *mut Cq)> {
    if !config().is_some_and(|config| is_time(config)) {
        return None;
    }
    let site = site(ctx)?;
    let (Some(device), Some(cqn)) = (argument(ctx, &site.args[0]), argument(ctx, &site.args[1])) else {
        lost(Loss::ProbesUnreadable);
        return None;
    };
    let key = CqKey { device: device as u32, cqn: cqn as u32 };
    let cq = CQS.get_ptr_mut(key)?;
    // SAFETY: a live map value.
    unsafe {
        if (*cq).pid != tgid() {
            return None;
        }
        (*cq).told = 1;
    }
    Some((site, key, cq))
}

/// `poll_hit(device, cqn, first, count)`.
#[uprobe]
pub fn poll_hit(ctx: ProbeContext) -> u32 {
    let Some((site, key, cq)) = queue(&ctx) else { return 0 };
    let (first, count) = (argument(&ctx, &site.args[2]), argument(&ctx, &site.args[3]));
    // SAFETY: a live map value.
    let entries = unsafe { (*cq).entries } as u64;
    let (Some(first), Some(count)) = (first, count.filter(|count| *count <= entries)) else {
        lost(Loss::ProbesUnreadable);
        return 0;
    };
    if count == 0 {
        return 0;
    }
    if message::wanted() {
        message::consumed(cq, key.device, key.cqn, count, first.wrapping_add(count));
    }
    // SAFETY: a live map value.
    unsafe {
        atomic::add(&raw mut (*cq).polls_hit, 1);
        atomic::add(&raw mut (*cq).polled, count);
    }
    0
}

/// `poll_empty(device, cqn)`.
#[uprobe]
pub fn poll_empty(ctx: ProbeContext) -> u32 {
    if let Some((_, _, cq)) = queue(&ctx) {
        // SAFETY: a live map value.
        unsafe { atomic::add(&raw mut (*cq).polls_empty, 1) };
    }
    0
}

/// `overflow(device, cqn)`.
#[uprobe]
pub fn overflow(ctx: ProbeContext) -> u32 {
    if let Some((_, _, cq)) = queue(&ctx) {
        // SAFETY: a live map value.
        unsafe { atomic::add(&raw mut (*cq).polls_overflow, 1) };
    }
    0
}

/// `fall_back(reason)`.
#[uprobe]
pub fn fall_back(ctx: ProbeContext) -> u32 {
    let pid = tgid();
    if !counts(pid) {
        return 0;
    }
    let Some(reason) = site(&ctx).and_then(|site| argument(&ctx, &site.args[0])) else {
        lost(Loss::ProbesUnreadable);
        return 0;
    };
    let key = FallBackKey { pid, reason: reason as u32 };
    if FALL_BACKS.get_ptr(key).is_none() {
        // Another CPU may be faster: then its entry serves.
        let _ = FALL_BACKS.insert(key, 0, BPF_NOEXIST as u64);
    }
    match FALL_BACKS.get_ptr_mut(key) {
        // SAFETY: a live map value.
        Some(count) => unsafe { atomic::add(count, 1) },
        None => lost(Loss::FallBacksFull),
    }
    0
}
