//! Where a message's time goes: begins of spans are kept under the number that the driver gives each request and each
//! completion, and found again at the end. Nothing is paired by guess.

use aya_ebpf::{
    bindings::{BPF_ANY, BPF_NOEXIST, BPF_RB_NO_WAKEUP},
    helpers::bpf_ktime_get_ns,
};
use tbv_common::*;

use crate::{
    atomic::{self, lost},
    count,
    maps::{self, COMPLETIONS, MOMENTS, QPS, REQUESTS, SPAN_ROWS},
};

/// Completions that one poll is followed for: uverbs asks for one at a time, and in user space few ask for more.
const MOST_POLLED: u64 = 32;

/// Whether anybody asked for spans.
#[inline(always)]
pub fn wanted() -> bool {
    maps::SPANS.load() != Spans::Off as u32
}

/// Whether the provider's probes are attached.
#[inline(always)]
pub fn probed() -> bool {
    maps::PROBED.load() != 0
}

#[inline(always)]
pub fn now() -> u64 {
    // SAFETY: takes no arguments.
    unsafe { bpf_ktime_get_ns() }
}

/// The queue pair's entry, a new one of process `pid` if there is none.
#[inline(always)]
pub fn qp(key: &QpKey, pid: u32) -> Option<*mut Qp> {
    if let Some(qp) = QPS.get_ptr_mut(key) {
        return Some(qp);
    }
    let _ = QPS.insert(key, Qp { pid, ..Qp::default() }, BPF_NOEXIST as u64);
    let qp = QPS.get_ptr_mut(key);
    if qp.is_none() {
        lost(Loss::QpsFull);
    }
    qp
}

/// Counts a span that ends now, and streams it.
#[inline(always)]
pub fn span(key: SpanKey, begin: u64, end: u64, seq: u64, status: u32) {
    let duration = if end < begin { u64::MAX } else { end - begin };
    stream(Moment {
        time: end,
        duration,
        seq,
        kind: MomentKind::Span as u32,
        what: key.span,
        pid: key.pid,
        device: key.device,
        qpn: key.qpn,
        queue: key.queue,
        opcode: key.opcode,
        status,
    });
    if end < begin {
        lost(Loss::BackwardSpan);
        return;
    }
    let Some(row) = count::row(&SPAN_ROWS, &key) else {
        lost(Loss::SpansFull);
        return;
    };
    // SAFETY: a live map value.
    unsafe {
        atomic::add(&raw mut (*row).count, 1);
        count::time(row, duration);
    }
}

/// Nobody is woken for it: user space looks at the ring by the clock.
#[inline(always)]
pub fn stream(moment: Moment) {
    if maps::SPANS.load() != Spans::Streamed as u32 {
        return;
    }
    match MOMENTS.reserve::<Moment>(0) {
        Some(mut entry) => {
            entry.write(moment);
            entry.submit(BPF_RB_NO_WAKEUP as u64);
        }
        None => lost(Loss::RingFull),
    }
}

/// A work request as the tracepoints name it.
#[derive(Clone, Copy)]
pub struct Named {
    pub device: u32,
    pub qpn: u32,
    pub queue: Queue,
    pub seq: u64,
}

impl Named {
    #[inline(always)]
    pub fn qp(&self) -> QpKey {
        QpKey { device: self.device, qpn: self.qpn }
    }

    #[inline(always)]
    fn key(&self) -> RequestKey {
        RequestKey {
            seq: self.seq,
            device: self.device,
            qpn: self.qpn,
            queue: self.queue as u32,
            reserved: 0,
        }
    }

    /// Something that happened to it at `time`.
    #[inline(always)]
    fn moment(&self, kind: MomentKind, time: u64, pid: u32, opcode: u32) -> Moment {
        Moment {
            time,
            seq: self.seq,
            kind: kind as u32,
            pid,
            device: self.device,
            qpn: self.qpn,
            queue: self.queue as u32,
            opcode,
            ..Moment::default()
        }
    }
}

/// Process `pid` posted it.
#[inline(always)]
pub fn posted(request: Named, pid: u32, opcode: u32, signalled: bool) {
    let Some(qp) = qp(&request.qp(), pid) else { return };
    let time = now();
    // SAFETY: a live map value.
    unsafe {
        let counter = if signalled { &raw mut (*qp).posted } else { &raw mut (*qp).unsignalled };
        atomic::add(counter, 1);
    }
    stream(Moment { what: signalled as u32, ..request.moment(MomentKind::Posted, time, pid, opcode) });
    if signalled && REQUESTS.insert(request.key(), Request { time, pid, opcode }, BPF_ANY as u64).is_err() {
        lost(Loss::RequestsFull);
    }
}

/// Its completion was put into a queue: into `cq` with the number `number`, if that queue is known.
#[inline(always)]
pub fn completed(request: Named, signalled: bool, status: u32, cq: Option<(*mut Cq, CompletionKey)>) {
    let time = now();
    let key = request.key();
    let begun = REQUESTS.get_ptr(key).map(|begun| {
        // SAFETY: a live map value.
        unsafe { *begun }
    });
    // SAFETY: a live map value.
    let owner = cq.map(|(cq, _)| unsafe { (*cq).pid });
    let pid = match (begun, owner) {
        (Some(begun), _) => begun.pid,
        (None, Some(owner)) => owner,
        // Nobody's that is traced.
        (None, None) if QPS.get_ptr(request.qp()).is_none() => return,
        (None, None) => 0,
    };
    let opcode = begun.map_or(NO_OPCODE, |begun| begun.opcode);
    if let Some(qp) = qp(&request.qp(), pid) {
        // SAFETY: a live map value.
        let counter = unsafe {
            match begun {
                Some(_) => &raw mut (*qp).completed,
                None if signalled => &raw mut (*qp).unknown,
                None => &raw mut (*qp).unsignalled_failed,
            }
        };
        // SAFETY: a live map value.
        unsafe { atomic::add(counter, 1) };
    }
    match begun {
        Some(begun) => {
            let _ = REQUESTS.remove(key);
            let row = SpanKey {
                span: Span::PostToCompletion as u32,
                pid,
                device: request.device,
                qpn: request.qpn,
                queue: request.queue as u32,
                opcode,
            };
            span(row, begun.time, time, request.seq, status);
        }
        None => stream(Moment { status, ..request.moment(MomentKind::Unpaired, time, pid, opcode) }),
    }
    if let Some((cq, key)) = cq {
        waits(cq, key, Completion { time, pid, qpn: request.qpn, queue: request.queue as u32, opcode });
    }
}

/// A completion waits in `cq` to be taken.
#[inline(always)]
fn waits(cq: *mut Cq, key: CompletionKey, completion: Completion) {
    // SAFETY: a live map value.
    let (mapped, entries) = unsafe { ((*cq).mapped != 0, (*cq).entries) };
    // Of a published queue the kernel does not see who takes what, and without probes nobody does.
    if mapped && !probed() {
        return;
    }
    if COMPLETIONS.insert(key, completion, BPF_ANY as u64).is_err() {
        lost(Loss::CompletionsFull);
    }
    if mapped {
        // This one was taken long ago, and nobody told: there may be no probes in that process.
        let old = key.number.wrapping_sub(late(entries));
        let _ = COMPLETIONS.remove(CompletionKey { number: old, ..key });
    }
}

/// Its completion found the queue full.
#[inline(always)]
pub fn overflowed(request: Named) {
    if REQUESTS.remove(request.key()).is_err() {
        return;
    }
    if let Some(qp) = QPS.get_ptr_mut(request.qp()) {
        // SAFETY: a live map value.
        unsafe { atomic::add(&raw mut (*qp).overflowed, 1) };
    }
}

/// `returned` completions of `cq` were taken, the last of them having the number before `end`. Numbers in the ring are
/// never given twice: what a purge has moved is not found.
#[inline(always)]
pub fn consumed(cq: *mut Cq, device: u32, cqn: u32, returned: u64, end: u64) {
    let time = now();
    let mut untimed = returned;
    for i in 0..MOST_POLLED {
        if i >= returned {
            break;
        }
        let number = end.wrapping_sub(returned).wrapping_add(i);
        let key = CompletionKey { number, device, cqn };
        let Some(begun) = COMPLETIONS.get_ptr(key) else { continue };
        // SAFETY: a live map value.
        let begun = unsafe { *begun };
        let _ = COMPLETIONS.remove(key);
        // SAFETY: a live map value.
        if !probed() && number < unsafe { (*cq).moved_below } {
            continue;
        }
        untimed -= 1;
        let row = SpanKey {
            span: Span::CompletionToConsumed as u32,
            pid: begun.pid,
            device,
            qpn: begun.qpn,
            queue: begun.queue,
            opcode: begun.opcode,
        };
        span(row, begun.time, time, 0, 0);
    }
    if untimed > 0 {
        // SAFETY: a live map value.
        unsafe { atomic::add(&raw mut (*cq).untimed, untimed) };
    }
}
