//! Where the time of messages went, as reports say it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tbv_common::{FallBackKey, NO_OPCODE, QpKey, Queue, Span, SpanKey};
use tbv_proto::FallBack;

use crate::{
    devices::Devices,
    latency::{Distribution, Latency},
    report::{self, FallBacks, driver_device},
    snapshot::Snapshot,
    spans::QueuePairTotals,
    uapi,
};

/// One kind of span of one process, queue pair and opcode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpanRow {
    /// `post_to_completion`: from post_send or post_recv to the completion in its queue, signalled requests only.
    /// `completion_to_consumed`: from there until a consumer took it, in queues that are polled by system call; also in
    /// others if the provider's probes were attached.
    /// `recovery`: from sending again, after a timeout or a sequence error, until the peer has all up to there.
    /// `rnr_wait`: from the peer's "no receive is posted" until the message is sent again.
    /// `credit_stall`: from finding no room to send until the queue pair's next frame.
    pub span: String,
    /// Process that posted the requests, or that owns the queue pair.
    pub pid: u32,
    /// Its name; empty if it made no call while traced.
    pub comm: String,
    /// RDMA device.
    pub device: String,
    /// Number of the queue pair.
    pub qpn: u32,
    /// `send` or `receive`.
    pub queue: String,
    /// Opcode, as in the uapi without prefix: `SEND`, `SEND_WITH_IMM`, `RECV`, …; absent if it is of no request or of one
    /// whose posting was not seen.
    pub opcode: Option<String>,
    /// Spans that ended.
    pub count: u64,
    /// Sum of their lengths, in nanoseconds.
    pub sum_ns: u64,
    /// Their lengths.
    pub latency_ns: Option<Latency>,
    /// Their histogram, as that of calls.
    pub latency_buckets: Option<Vec<(u64, u64, u64)>>,
}

/// What happened on one queue pair while traced. In a report of the whole time, `posted` is the sum of `completed`, `overflowed`, `forgotten` and `open`;
/// the completions of its requests are `completed`, `unknown` and `unsignalled_failed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueuePair {
    /// Process that created it, or was the first to post to it.
    pub pid: u32,
    /// Its name; empty if it made no call while traced.
    pub comm: String,
    /// RDMA device.
    pub device: String,
    /// Number of the queue pair.
    pub qpn: u32,
    /// Whether it is gone.
    pub destroyed: bool,
    /// Requests posted whose success makes a completion.
    pub posted: u64,
    /// Requests posted whose success makes none: they have no span.
    pub unsignalled: u64,
    /// Completions of requests whose posting was seen: they have a span.
    pub completed: u64,
    /// Completions of requests whose posting was not seen: from before tracing began, or there was no room to keep it.
    pub unknown: u64,
    /// Completions, with an error, of requests whose success would have made none.
    pub unsignalled_failed: u64,
    /// Requests whose completion was lost: the completion queue was full.
    pub overflowed: u64,
    /// Requests that will have no completion: the queue pair was reset or destroyed first.
    pub forgotten: u64,
    /// Requests that had no completion yet.
    pub open: u64,
    /// Retransmissions after a timeout.
    pub retransmits_timeout: u64,
    /// Retransmissions because the peer missed a frame.
    pub retransmits_sequence_error: u64,
    /// Messages sent again after the peer had no receive for them.
    pub retransmits_rnr: u64,
    /// How often the peer had no receive.
    pub rnr: u64,
    /// How often there was something to send and no room.
    pub credit_stalls: u64,
}

/// A span's name in reports.
pub fn span_name(span: Span) -> &'static str {
    match span {
        Span::PostToCompletion => "post_to_completion",
        Span::CompletionToConsumed => "completion_to_consumed",
        Span::Recovery => "recovery",
        Span::RnrWait => "rnr_wait",
        Span::CreditStall => "credit_stall",
    }
}

/// The opcode of a request in one of the two queues, as the driver's tracepoints give it.
pub fn opcode_name(queue: u32, opcode: u32) -> String {
    if queue == Queue::Receive as u32 {
        "RECV".to_owned()
    } else {
        uapi::work_opcode_name(opcode).into_owned()
    }
}

/// `send` or `receive`.
pub fn queue_name(queue: u32) -> &'static str {
    if queue == Queue::Receive as u32 { "receive" } else { "send" }
}

/// The name that process `pid` had at its last first call.
fn comm(snapshot: &Snapshot, pid: u32) -> String {
    let process = snapshot.processes.values().rev().find(|process| process.pid == pid);
    process.map_or_else(String::new, report::comm)
}

pub(crate) fn span(key: SpanKey, spans: &Distribution, snapshot: &Snapshot, devices: &Devices) -> SpanRow {
    let span = Span::ALL.into_iter().find(|span| *span as u32 == key.span);
    SpanRow {
        span: span.map_or("unknown", span_name).to_owned(),
        pid: key.pid,
        comm: comm(snapshot, key.pid),
        device: driver_device(key.device, devices),
        qpn: key.qpn,
        queue: queue_name(key.queue).to_owned(),
        opcode: (key.opcode != NO_OPCODE).then(|| opcode_name(key.queue, key.opcode)),
        count: spans.count,
        sum_ns: spans.sum,
        latency_ns: spans.summary(),
        latency_buckets: spans.filled(),
    }
}

pub(crate) fn fall_backs(key: FallBackKey, queues: u64, snapshot: &Snapshot) -> FallBacks {
    let known = FallBack::ALL.into_iter().find(|known| *known as u32 == key.reason);
    FallBacks {
        pid: key.pid,
        comm: comm(snapshot, key.pid),
        reason: known.map_or_else(|| key.reason.to_string(), |known| known.name().to_owned()),
        queues,
    }
}

pub(crate) fn queue_pair(
    key: QpKey,
    totals: &QueuePairTotals,
    snapshot: &Snapshot,
    devices: &Devices,
) -> QueuePair {
    let QueuePairTotals { qp, forgotten, open } = *totals;
    let [retransmits_timeout, retransmits_sequence_error, retransmits_rnr] = qp.retransmits;
    QueuePair {
        pid: qp.pid,
        comm: comm(snapshot, qp.pid),
        device: driver_device(key.device, devices),
        qpn: key.qpn,
        destroyed: qp.destroyed != 0,
        posted: qp.posted,
        unsignalled: qp.unsignalled,
        completed: qp.completed,
        unknown: qp.unknown,
        unsignalled_failed: qp.unsignalled_failed,
        overflowed: qp.overflowed,
        forgotten,
        open,
        retransmits_timeout,
        retransmits_sequence_error,
        retransmits_rnr,
        rnr: qp.rnr,
        credit_stalls: qp.stalls,
    }
}
