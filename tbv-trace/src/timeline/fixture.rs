//! A made-up run that has one of everything, for tests and the golden file.

use prost::Message as _;
use tbv_core::{Event, Handle, HandleKind, Moment, MomentKind, NO_OPCODE, Op, QP_DESTROYED, Queue, Span};

use crate::timeline::{convert::Timeline, packet::Trace};

pub(crate) const PID: u32 = 4242;
pub(crate) const DEVICE: &str = "usb4_rdma0";
/// `IB_UVERBS_WR_SEND` and `IB_UVERBS_WC_RECV`.
pub(crate) const SEND: u32 = 2;
const RECV: u32 = 128;
/// `CLOCK_MONOTONIC` when it begins.
pub(crate) const BEGIN: u64 = 1_000_000_000;
pub(crate) const END: u64 = BEGIN + 100_000;

/// Something on queue pair 17 at a time after [`BEGIN`].
pub(crate) fn moment(kind: MomentKind, what: u32, at: u64) -> Moment {
    Moment {
        time: BEGIN + at,
        kind: kind as u32,
        what,
        pid: PID,
        qpn: 17,
        opcode: NO_OPCODE,
        ..Moment::default()
    }
}

/// A signalled send was posted.
pub(crate) fn posted(seq: u64, at: u64) -> Moment {
    Moment { seq, opcode: SEND, ..moment(MomentKind::Posted, 1, at) }
}

/// Its completion.
pub(crate) fn completed(seq: u64, begin: u64, end: u64) -> Moment {
    Moment { seq, opcode: SEND, ..span(Span::PostToCompletion, begin, end) }
}

/// A span between two times after [`BEGIN`].
pub(crate) fn span(span: Span, begin: u64, end: u64) -> Moment {
    Moment { duration: end - begin, ..moment(MomentKind::Span, span as u32, end) }
}

/// The same of a receive.
fn receive(moment: Moment) -> Moment {
    Moment { queue: Queue::Receive as u32, opcode: RECV, ..moment }
}

/// A call of thread `tid` at a time after [`BEGIN`].
pub(crate) fn call(op: Op, tid: u32, at: u64, latency: u64) -> Event {
    Event { time: BEGIN + at, latency, op: op.0, tid, ..Event::default() }
}

fn calls(timeline: &mut Timeline) {
    let [poll, post] = [Op::invoke_write(21), Op::write(28)];
    timeline.process(PID, "ib_send_lat");
    timeline.call(&call(Op::method(1, 3, 1), PID, 1_000, 9_000), PID, DEVICE);
    let on_qp = Event { handle: Handle::new(HandleKind::Qp, 1), ..call(post, PID, 20_000, 1_500) };
    timeline.call(&on_qp, PID, DEVICE);
    let on_cq = Event { handle: Handle::new(HandleKind::Cq, 3), ..call(poll, PID + 1, 40_500, 500) };
    timeline.call(&on_cq, PID, DEVICE);
    // Its name is learnt late.
    timeline.call(&Event { errno: 22, ..call(poll, 77, 50_000, 700) }, 77, "unknown");
    timeline.call(&call(poll, 77, 51_000, u64::MAX), 77, "unknown");
    timeline.process(77, "server");
}

fn messages(timeline: &mut Timeline) {
    let ended = |seq, status, moment: Moment| Moment { seq, status, ..moment };
    let moments = [
        moment(MomentKind::State, 0, 5_000),
        moment(MomentKind::State, 3, 9_000),
        receive(ended(0, 0, posted(0, 15_000))),
        posted(0, 20_000),
        posted(1, 21_000),
        // Unsignalled.
        Moment { what: 0, ..posted(2, 22_000) },
        posted(3, 23_000),
        span(Span::CreditStall, 23_500, 24_500),
        moment(MomentKind::Retransmit, 0, 30_000),
        receive(ended(0, 0, span(Span::PostToCompletion, 15_000, 33_000))),
        receive(span(Span::CompletionToConsumed, 33_000, 34_000)),
        span(Span::Recovery, 30_000, 35_000),
        completed(0, 20_000, 40_000),
        completed(1, 21_000, 40_200),
        Moment { opcode: SEND, ..span(Span::CompletionToConsumed, 40_000, 40_900) },
        Moment { opcode: SEND, ..span(Span::CompletionToConsumed, 40_200, 40_900) },
        moment(MomentKind::Retransmit, 2, 44_000),
        span(Span::RnrWait, 42_000, 44_000),
        ended(3, 13, completed(3, 23_000, 45_000)),
        ended(9, 5, moment(MomentKind::Unpaired, 0, 46_000)),
        Moment { duration: u64::MAX, ..completed(10, 47_000, 47_000) },
        posted(11, 60_000),
        Moment { qpn: 18, ..posted(0, 61_000) },
        Moment { qpn: 18, ..moment(MomentKind::State, QP_DESTROYED, 62_000) },
        // Nobody knows whose.
        Moment { pid: 0, qpn: 19, ..moment(MomentKind::Unpaired, 0, 63_000) },
    ];
    moments.iter().for_each(|moment| timeline.moment(moment, DEVICE));
}

/// The whole file.
pub(crate) fn fixture() -> Vec<u8> {
    let mut timeline = Timeline::new(BEGIN, 1_700_000_000_000_000_000);
    calls(&mut timeline);
    messages(&mut timeline);
    timeline.lost(BEGIN + 70_000, BEGIN + 71_000, 77);
    timeline.finish(END, |_| DEVICE.to_owned());
    Trace { packet: timeline.take() }.encode_to_vec()
}
