//! Layouts for where a message's time goes: spans between events of our own driver, and what is still open.

/// What a span is of. All of one work request or one queue pair of our own driver.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Span {
    /// From post_send or post_recv to the completion in its queue: signalled requests only.
    PostToCompletion = 0,
    /// From there until a consumer took it.
    CompletionToConsumed = 1,
    /// From sending again, after a timeout or because a frame was missed, until the peer has all up to there.
    Recovery = 2,
    /// From the peer's "no receive is posted" until the message is sent again.
    RnrWait = 3,
    /// From finding no room to send until the queue pair's next frame.
    CreditStall = 4,
}

impl Span {
    /// All of them, in the order of their numbers.
    pub const ALL: [Span; 5] = [
        Span::PostToCompletion,
        Span::CompletionToConsumed,
        Span::Recovery,
        Span::RnrWait,
        Span::CreditStall,
    ];
}

/// Opcode of a span that is of no work request, or of one whose posting was not seen.
pub const NO_OPCODE: u32 = u32::MAX;
/// `qp_state`'s second state for a queue pair that goes.
pub const QP_DESTROYED: u32 = 255;

/// What one row of spans is of; its value is a [`crate::Row`].
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanKey {
    /// A [`Span`].
    pub span: u32,
    /// Process that posted the request, or that owns the queue pair.
    pub pid: u32,
    /// The driver's index of the device.
    pub device: u32,
    /// Number of the queue pair.
    pub qpn: u32,
    /// A [`crate::Queue`].
    pub queue: u32,
    /// `enum ib_uverbs_wr_opcode` for sends, `enum ib_uverbs_wc_opcode` for receives, or [`NO_OPCODE`].
    pub opcode: u32,
}

/// A work request, by its number in its queue.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestKey {
    /// Number of the request in its queue.
    pub seq: u64,
    /// The driver's index of the device.
    pub device: u32,
    /// Number of the queue pair.
    pub qpn: u32,
    /// A [`crate::Queue`].
    pub queue: u32,
    /// Always zero.
    pub reserved: u32,
}

/// A work request that has no completion yet.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// `CLOCK_MONOTONIC` when it was posted, nanoseconds.
    pub time: u64,
    /// Process that posted it.
    pub pid: u32,
    /// As in [`SpanKey::opcode`].
    pub opcode: u32,
}

/// How many completions later it is given up that somebody tells that one was taken from a published queue of so many
/// entries: a thread that has taken it may be preempted before its probe tells so.
pub const fn late(entries: u32) -> u64 {
    2 * entries as u64 + 256
}

/// A completion, by its number in its queue: the queue's `produced` before it, or its number in the ring while
/// [`crate::PROBED`].
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CompletionKey {
    /// Number of the completion in its queue.
    pub number: u64,
    /// The driver's index of the device.
    pub device: u32,
    /// The driver's number of the completion queue.
    pub cqn: u32,
}

/// A completion that nobody took yet.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// `CLOCK_MONOTONIC` when it was put in, nanoseconds.
    pub time: u64,
    /// Process that posted the request; the queue's owner if that was not seen.
    pub pid: u32,
    /// Number of the queue pair.
    pub qpn: u32,
    /// A [`crate::Queue`].
    pub queue: u32,
    /// As in [`SpanKey::opcode`].
    pub opcode: u32,
}

/// A queue pair of our own driver.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QpKey {
    /// The driver's index of the device.
    pub device: u32,
    /// Its number.
    pub qpn: u32,
}

/// What happened on a queue pair while traced. Every signalled request that was posted is one of `completed`,
/// `overflowed`, forgotten, or still open; every completion is one of `completed`, `unknown` and `unsignalled_failed`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Qp {
    /// Process that created it, or was the first to post to it.
    pub pid: u32,
    /// 1 once it is gone.
    pub destroyed: u32,
    /// Requests posted whose success makes a completion.
    pub posted: u64,
    /// Requests posted whose success makes none.
    pub unsignalled: u64,
    /// Completions of requests whose posting was seen.
    pub completed: u64,
    /// Completions of requests whose posting was not seen: before tracing began, or no room to remember it.
    pub unknown: u64,
    /// Completions of requests whose success would have made none.
    pub unsignalled_failed: u64,
    /// Requests whose completion found its queue full.
    pub overflowed: u64,
    /// `CLOCK_MONOTONIC` of the last reset or of its end: requests from before will have no completion.
    pub forgotten_before: u64,
    /// Retransmissions by reason: timeout, sequence error, RNR timer over.
    pub retransmits: [u64; 3],
    /// How often the peer had no receive.
    pub rnr: u64,
    /// How often it had something to send and no room.
    pub stalls: u64,
    /// `CLOCK_MONOTONIC` when sending again began; 0 while nothing is.
    pub recovering_since: u64,
    /// `CLOCK_MONOTONIC` of the last RNR that was not waited out yet; 0 without one.
    pub rnr_since: u64,
    /// `CLOCK_MONOTONIC` when it found no room; 0 while it has some.
    pub stalled_since: u64,
    /// First frame that is sent again.
    pub recovering_psn: u32,
    /// Always zero.
    pub reserved: u32,
}

/// What a [`Moment`] is.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MomentKind {
    /// A span ended; which one is [`Moment::what`].
    Span = 0,
    /// A work request was posted; [`Moment::what`] is 1 if it is signalled.
    Posted = 1,
    /// A completion whose request's posting was not seen, or of an unsignalled request.
    Unpaired = 2,
    /// Frames are sent again.
    Retransmit = 3,
    /// The queue pair changed its state; the new one is [`Moment::what`].
    State = 4,
}

/// Something that happened to a message, as the ring buffer carries it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// `CLOCK_MONOTONIC`, nanoseconds; of a span, its end.
    pub time: u64,
    /// Nanoseconds of a span; [`u64::MAX`] if the clock went backwards.
    pub duration: u64,
    /// Number of the work request in its queue; 0 without one.
    pub seq: u64,
    /// A [`MomentKind`].
    pub kind: u32,
    /// A [`Span`], a state, a retransmission's reason, or whether a request is signalled.
    pub what: u32,
    /// Process that posted the request, or that owns the queue pair.
    pub pid: u32,
    /// The driver's index of the device.
    pub device: u32,
    /// Number of the queue pair.
    pub qpn: u32,
    /// A [`crate::Queue`].
    pub queue: u32,
    /// As in [`SpanKey::opcode`].
    pub opcode: u32,
    /// `enum ib_wc_status` of a completion.
    pub status: u32,
}

#[cfg(feature = "user")]
mod pod {
    // SAFETY: each is `repr(C)`, has no padding (asserted below) and is valid for any bytes.
    unsafe impl aya::Pod for super::SpanKey {}
    // SAFETY: as above.
    unsafe impl aya::Pod for super::RequestKey {}
    // SAFETY: as above.
    unsafe impl aya::Pod for super::Request {}
    // SAFETY: as above.
    unsafe impl aya::Pod for super::CompletionKey {}
    // SAFETY: as above.
    unsafe impl aya::Pod for super::Completion {}
    // SAFETY: as above.
    unsafe impl aya::Pod for super::QpKey {}
    // SAFETY: as above.
    unsafe impl aya::Pod for super::Qp {}
    // SAFETY: as above.
    unsafe impl aya::Pod for super::Moment {}
}

const _: () = {
    assert!(size_of::<SpanKey>() == 24);
    assert!(size_of::<RequestKey>() == 24);
    assert!(size_of::<Request>() == 16);
    assert!(size_of::<CompletionKey>() == 16);
    assert!(size_of::<Completion>() == 24);
    assert!(size_of::<QpKey>() == 8);
    assert!(size_of::<Qp>() == 136);
    assert!(size_of::<Moment>() == 56);
};
