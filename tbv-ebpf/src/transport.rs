//! What the transport of our own driver does to a queue pair: states, retransmissions, waits. Its events of one queue
//! pair come one at a time, under the queue pair's lock.

use aya_ebpf::{macros::raw_tracepoint, programs::RawTracePointContext};
use tbv_common::*;

use crate::{
    atomic,
    driver::{counts, is_time},
    maps::{NEXT, QPS, config},
    message::{self, now, span, stream},
};

/// `ack`'s syndrome for "all up to and with this frame".
const SYNDROME_ACK: u32 = 1;
/// `retransmit`'s reason for a message that had no receive.
const REASON_RNR: u32 = 2;
/// Half of the sequence numbers of frames.
const PSN_HALF: u32 = 1 << 23;

/// Events of a traced queue pair, while tracing.
#[inline(always)]
fn known(ctx: &RawTracePointContext) -> Option<(QpKey, *mut Qp)> {
    let key = QpKey { device: ctx.arg(0), qpn: ctx.arg(1) };
    let qp = QPS.get_ptr_mut(key)?;
    config().is_some_and(|config| is_time(config)).then_some((key, qp))
}

/// Ends a span that began at `*since`, if one did.
///
/// # Safety
/// `qp` is a live map value, and `since` points into it.
#[inline(always)]
unsafe fn end(what: Span, key: QpKey, qp: *mut Qp, since: *mut u64) {
    // SAFETY: the caller's promise.
    let (begin, pid) = unsafe { (*since, (*qp).pid) };
    if begin == 0 {
        return;
    }
    // SAFETY: as above.
    unsafe { *since = 0 };
    let (device, qpn) = (key.device, key.qpn);
    let row = SpanKey { span: what as u32, pid, device, qpn, queue: Queue::Send as u32, opcode: NO_OPCODE };
    span(row, begin, now(), 0, 0);
}

#[inline(always)]
fn moment(kind: MomentKind, what: u32, key: QpKey, pid: u32) {
    stream(Moment {
        time: now(),
        kind: kind as u32,
        what,
        pid,
        device: key.device,
        qpn: key.qpn,
        opcode: NO_OPCODE,
        ..Moment::default()
    });
}

/// `qp_state(dev, qpn, from, to, pid)`: a new one goes from RESET to RESET.
#[raw_tracepoint(tracepoint = "qp_state")]
pub fn qp_state(ctx: RawTracePointContext) -> i32 {
    let (from, to, pid): (u32, u32, u32) = (ctx.arg(2), ctx.arg(3), ctx.arg(4));
    let key = QpKey { device: ctx.arg(0), qpn: ctx.arg(1) };
    if from == 0 && to == 0 {
        if counts(pid) {
            let _ = message::qp(&key, pid);
            moment(MomentKind::State, to, key, pid);
        }
        return 0;
    }
    let Some((key, qp)) = known(&ctx) else { return 0 };
    // SAFETY: a live map value.
    unsafe {
        moment(MomentKind::State, to, key, (*qp).pid);
        if to == 0 || to == QP_DESTROYED {
            (*qp).destroyed = (to == QP_DESTROYED) as u32;
            (*qp).forgotten_before = now();
            tidy();
        }
        (*qp).recovering_since = 0;
        (*qp).rnr_since = 0;
        (*qp).stalled_since = 0;
    }
    0
}

/// Tells user space that there are begins whose end will not come.
#[inline(always)]
pub fn tidy() {
    if let Some(counter) = NEXT.get_ptr_mut(NEXT_TIDY) {
        // SAFETY: a live map value.
        unsafe { atomic::add(counter, 1) };
    }
}

/// `retransmit(dev, qpn, psn, reason, retries)`.
#[raw_tracepoint(tracepoint = "retransmit")]
pub fn retransmit(ctx: RawTracePointContext) -> i32 {
    let Some((key, qp)) = known(&ctx) else { return 0 };
    let (psn, reason): (u32, u32) = (ctx.arg(2), ctx.arg(3));
    // SAFETY: a live map value.
    unsafe {
        moment(MomentKind::Retransmit, reason, key, (*qp).pid);
        match reason {
            0 => atomic::add(&raw mut (*qp).retransmits[0], 1),
            1 => atomic::add(&raw mut (*qp).retransmits[1], 1),
            _ => atomic::add(&raw mut (*qp).retransmits[2], 1),
        }
        if reason == REASON_RNR {
            end(Span::RnrWait, key, qp, &raw mut (*qp).rnr_since);
        } else if (*qp).recovering_since == 0 {
            (*qp).recovering_psn = psn;
            (*qp).recovering_since = now();
        }
    }
    0
}

/// `rnr(dev, qpn, received, psn, timer, retries)`.
#[raw_tracepoint(tracepoint = "rnr")]
pub fn rnr(ctx: RawTracePointContext) -> i32 {
    let Some((_, qp)) = known(&ctx) else { return 0 };
    let received: u32 = ctx.arg(2);
    if received != 0 {
        // SAFETY: a live map value.
        unsafe {
            atomic::add(&raw mut (*qp).rnr, 1);
            (*qp).rnr_since = now();
        }
    }
    0
}

/// `ack(dev, qpn, received, psn, syndrome)`.
#[raw_tracepoint(tracepoint = "ack")]
pub fn ack(ctx: RawTracePointContext) -> i32 {
    let (received, psn, syndrome): (u32, u32, u32) = (ctx.arg(2), ctx.arg(3), ctx.arg(4));
    if received == 0 || syndrome != SYNDROME_ACK {
        return 0;
    }
    let Some((key, qp)) = known(&ctx) else { return 0 };
    // SAFETY: a live map value.
    unsafe {
        // Numbers have 24 bits and go round.
        if psn.wrapping_sub((*qp).recovering_psn) & (2 * PSN_HALF - 1) < PSN_HALF {
            end(Span::Recovery, key, qp, &raw mut (*qp).recovering_since);
        }
    }
    0
}

/// `credit_stall(dev, qpn, path, credits, free_slots)`.
#[raw_tracepoint(tracepoint = "credit_stall")]
pub fn credit_stall(ctx: RawTracePointContext) -> i32 {
    let Some((_, qp)) = known(&ctx) else { return 0 };
    // SAFETY: a live map value.
    unsafe {
        atomic::add(&raw mut (*qp).stalls, 1);
        if (*qp).stalled_since == 0 {
            (*qp).stalled_since = now();
        }
    }
    0
}

/// `tx_frame(dev, qpn, opcode, flags, psn, path_seq, payload, path)`.
#[raw_tracepoint(tracepoint = "tx_frame")]
pub fn tx_frame(ctx: RawTracePointContext) -> i32 {
    let Some((key, qp)) = known(&ctx) else { return 0 };
    // SAFETY: a live map value.
    unsafe { end(Span::CreditStall, key, qp, &raw mut (*qp).stalled_since) };
    0
}
