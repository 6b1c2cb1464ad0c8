//! Work requests and completions, from the tracepoints of our own driver (trace system `tbv`,
//! ABI 1; docs/tracepoints.md). Arguments are scalars, so nothing else is read.
//!
//! post_* run in the posting thread, the others wherever the driver is: they find their owner
//! through the completion queue.

use aya_ebpf::{
    bindings::BPF_NOEXIST, helpers::bpf_get_current_pid_tgid, macros::raw_tracepoint,
    programs::RawTracePointContext,
};
use tbv_common::*;

use crate::{
    atomic,
    atomic::lost,
    maps::{CQS, THREADS, WORK, config},
    message::{self, Named},
    target, transport,
};

/// `cq_push`'s opcodes from here on are of receives (`IB_WC_RECV`).
const FIRST_RECEIVE: u32 = 128;

/// Whether events of the current process, `tgid`, count now. Filters by device are applied by whoever reads: the
/// driver numbers its devices in its own way.
#[inline(always)]
pub fn counts(tgid: u32) -> bool {
    config().is_some_and(|config| {
        is_time(config) && target::cgroup_wanted(config) && target::process_wanted(config, tgid)
    })
}

/// Whether events count now: while tracing, and after that what a call does that is still followed. So there are as
/// many work requests as their calls made.
#[inline(always)]
pub fn is_time(config: &Config) -> bool {
    let in_call = || {
        let tid = bpf_get_current_pid_tgid() as u32;
        // SAFETY: a live map value.
        THREADS.get_ptr(tid).is_some_and(|thread| unsafe { (*thread).start } != 0)
    };
    config.state == State::Running as u32 || (config.state == State::Stopping as u32 && in_call())
}

#[inline(always)]
fn posted(ctx: &RawTracePointContext, queue: Queue) {
    let tgid = (bpf_get_current_pid_tgid() >> 32) as u32;
    if !counts(tgid) {
        return;
    }
    let (device, opcode, signalled): (u32, u32, u32) = (ctx.arg(0), ctx.arg(4), ctx.arg(5));
    if message::wanted() {
        let request = Named { device, qpn: ctx.arg(1), queue, seq: ctx.arg(2) };
        message::posted(request, tgid, opcode, signalled != 0);
    }
    let key = WorkKey { pid: tgid, device, queue: queue as u32, opcode };
    if WORK.get_ptr(key).is_none() {
        // Another CPU may be faster: then its entry serves.
        let _ = WORK.insert(key, Work::default(), BPF_NOEXIST as u64);
    }
    let Some(work) = WORK.get_ptr_mut(key) else {
        lost(Loss::WorkFull);
        return;
    };
    // SAFETY: a live map value.
    unsafe {
        atomic::add(&raw mut (*work).posted, 1);
        if signalled != 0 {
            atomic::add(&raw mut (*work).signalled, 1);
        }
    }
}

/// `post_send(dev, qpn, seq, wr_id, opcode, signalled, length, num_sge)`.
#[raw_tracepoint(tracepoint = "post_send")]
pub fn post_send(ctx: RawTracePointContext) -> i32 {
    posted(&ctx, Queue::Send);
    0
}

/// `post_recv`, with the arguments of `post_send`.
#[raw_tracepoint(tracepoint = "post_recv")]
pub fn post_recv(ctx: RawTracePointContext) -> i32 {
    posted(&ctx, Queue::Receive);
    0
}

/// `cq_create(dev, cqn, pid, cqe, mapped)`.
#[raw_tracepoint(tracepoint = "cq_create")]
pub fn cq_create(ctx: RawTracePointContext) -> i32 {
    let pid: u32 = ctx.arg(2);
    if !counts(pid) {
        return 0;
    }
    let key = CqKey { device: ctx.arg(0), cqn: ctx.arg(1) };
    let cq = Cq { pid, entries: ctx.arg(3), mapped: ctx.arg(4), ..Cq::default() };
    if CQS.insert(key, cq, BPF_NOEXIST as u64).is_err() {
        lost(Loss::CqsFull);
    }
    0
}

#[inline(always)]
fn cq(ctx: &RawTracePointContext, cqn: usize) -> Option<*mut Cq> {
    let cq = CQS.get_ptr_mut(CqKey { device: ctx.arg(0), cqn: ctx.arg(cqn) })?;
    config().is_some_and(|config| is_time(config)).then_some(cq)
}

/// Totals of a completion queue as an event carries them, and what the event itself has added.
struct Totals {
    produced: u64,
    consumed: u64,
    pushed: u64,
    taken: u64,
}

/// Keeps the totals that the event carries. Both only grow, whatever the order of events.
///
/// Of a queue from before, the first event tells how much had happened until then. Events of one queue come one at a
/// time, under its lock.
///
/// # Safety
/// `cq` is a live map value.
#[inline(always)]
unsafe fn totals(cq: *mut Cq, totals: Totals) {
    let Totals { produced, consumed, pushed, taken } = totals;
    // SAFETY: the caller's promise.
    unsafe {
        if (*cq).before == Before::Untouched as u32 {
            (*cq).produced_before = produced.wrapping_sub(pushed);
            (*cq).consumed_before = consumed.wrapping_sub(taken);
            (*cq).before = Before::Touched as u32;
        }
        atomic::extreme(&raw mut (*cq).produced, produced, |new, old| new > old);
        atomic::extreme(&raw mut (*cq).consumed, consumed, |new, old| new > old);
    }
}

/// Argument `n`, a queue's `ring_first`. Only read where it is needed: an older driver's events have none, and programs
/// that read it do not attach to them.
#[inline(always)]
fn ring_first(ctx: &RawTracePointContext, n: usize) -> u64 {
    if message::probed() { ctx.arg(n) } else { 0 }
}

/// `cq_push(dev, qpn, seq, wr_id, opcode, signalled, cqn, status, byte_len, produced, consumed, ring_first)`.
#[raw_tracepoint(tracepoint = "cq_push")]
pub fn cq_push(ctx: RawTracePointContext) -> i32 {
    let cq = cq(&ctx, 6);
    if message::wanted() && config().is_some_and(|config| is_time(config)) {
        completed(&ctx, cq);
    }
    let Some(cq) = cq else { return 0 };
    let (status, produced, consumed): (u32, u64, u64) = (ctx.arg(7), ctx.arg(9), ctx.arg(10));
    // SAFETY: a live map value.
    unsafe {
        atomic::add(&raw mut (*cq).pushed, 1);
        if status != 0 {
            atomic::add(&raw mut (*cq).failed, 1);
        }
        (*cq).ring_first = ring_first(&ctx, 11);
        let occupancy = produced.wrapping_sub(consumed);
        atomic::add(&raw mut (*cq).occupancy_sum, occupancy);
        atomic::extreme(&raw mut (*cq).occupancy_max, occupancy, |new, old| new > old);
        totals(cq, Totals { produced, consumed, pushed: 1, taken: 0 });
    }
    0
}

/// Which queue a completion's opcode is of.
#[inline(always)]
fn queue(opcode: u32) -> Queue {
    if opcode >= FIRST_RECEIVE { Queue::Receive } else { Queue::Send }
}

#[inline(always)]
fn completed(ctx: &RawTracePointContext, cq: Option<*mut Cq>) {
    let (device, opcode, signalled): (u32, u32, u32) = (ctx.arg(0), ctx.arg(4), ctx.arg(5));
    let (cqn, status, produced): (u32, u32, u64) = (ctx.arg(6), ctx.arg(7), ctx.arg(9));
    let request = Named { device, qpn: ctx.arg(1), queue: queue(opcode), seq: ctx.arg(2) };
    let number = produced.wrapping_sub(1).wrapping_add(ring_first(ctx, 11));
    let key = CompletionKey { number, device, cqn };
    message::completed(request, signalled != 0, status, cq.map(|cq| (cq, key)));
}

/// `cq_poll(dev, cqn, asked, returned, produced, consumed, ring_first)`, once per poll, empty ones too.
#[raw_tracepoint(tracepoint = "cq_poll")]
pub fn cq_poll(ctx: RawTracePointContext) -> i32 {
    let Some(cq) = cq(&ctx, 1) else { return 0 };
    let returned: u32 = ctx.arg(3);
    if message::wanted() && returned > 0 {
        let consumed: u64 = ctx.arg(5);
        let end = consumed.wrapping_add(ring_first(&ctx, 6));
        message::consumed(cq, ctx.arg(0), ctx.arg(1), returned as u64, end);
    }
    // SAFETY: a live map value.
    unsafe {
        atomic::add(&raw mut (*cq).consumed_by_ioctl, returned as u64);
        let taken = returned as u64;
        totals(cq, Totals { produced: ctx.arg(4), consumed: ctx.arg(5), pushed: 0, taken });
    }
    0
}

/// `cq_purge(dev, cqn, qpn, purged, produced, consumed, ring_first)`.
#[raw_tracepoint(tracepoint = "cq_purge")]
pub fn cq_purge(ctx: RawTracePointContext) -> i32 {
    let Some(cq) = cq(&ctx, 1) else { return 0 };
    let (purged, produced, consumed): (u32, u64, u64) = (ctx.arg(3), ctx.arg(4), ctx.arg(5));
    // SAFETY: a live map value.
    unsafe {
        // Those that stay have other numbers now.
        (*cq).moved_below = produced;
        (*cq).ring_first = ring_first(&ctx, 6);
        atomic::add(&raw mut (*cq).purged, purged as u64);
        totals(cq, Totals { produced, consumed, pushed: 0, taken: purged as u64 });
        transport::tidy();
    }
    0
}

/// `cq_overflow(dev, cqn, qpn, seq, wr_id, produced, consumed, overflows, opcode, signalled)`.
#[raw_tracepoint(tracepoint = "cq_overflow")]
pub fn cq_overflow(ctx: RawTracePointContext) -> i32 {
    if message::wanted() {
        let opcode: u32 = ctx.arg(8);
        message::overflowed(Named {
            device: ctx.arg(0),
            qpn: ctx.arg(2),
            queue: queue(opcode),
            seq: ctx.arg(3),
        });
    }
    let Some(cq) = cq(&ctx, 1) else { return 0 };
    // SAFETY: a live map value.
    unsafe {
        atomic::add(&raw mut (*cq).overflows, 1);
        totals(cq, Totals { produced: ctx.arg(5), consumed: ctx.arg(6), pushed: 0, taken: 0 });
    }
    0
}

/// `cq_destroy(dev, cqn, produced, consumed)`.
#[raw_tracepoint(tracepoint = "cq_destroy")]
pub fn cq_destroy(ctx: RawTracePointContext) -> i32 {
    let Some(cq) = cq(&ctx, 1) else { return 0 };
    // SAFETY: a live map value.
    unsafe {
        (*cq).destroyed = 1;
        transport::tidy();
        totals(cq, Totals { produced: ctx.arg(2), consumed: ctx.arg(3), pushed: 0, taken: 0 });
    }
    0
}
