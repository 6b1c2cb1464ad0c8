//! Calls and what happens to messages, turned into packets. Knows neither the kernel nor a file.
//!
//! A slice is written when it ends, whole: its begin is known from its length. So every begin has its end, also where
//! the ring buffers had no room for some of what happened.

use tbv_core::{
    Event, HandleKind, Moment, MomentKind, NO_OPCODE, Op, QP_DESTROYED, Queue, Span,
    messages::{opcode_name, queue_name, span_name},
    report, uapi,
};

use crate::timeline::{
    names,
    packet::{DebugAnnotation as Note, EventType, TracePacket, TrackEvent},
    requests::{Posted, QueueKey, Requests},
    track::{Kind, QueuePair, Tracks},
};

/// Name of the instant of a request that had no completion when tracing ended.
const OPEN: &str = "open at the end";
/// Name of the instant of a request that a reset or the queue pair's end has made the driver forget.
const FORGOTTEN: &str = "forgotten";

/// What is known so far, and the packets that were not taken yet.
#[derive(Debug)]
pub(crate) struct Timeline {
    tracks: Tracks,
    requests: Requests,
    out: Vec<TracePacket>,
}

impl Timeline {
    /// Begins at a moment of both clocks, in nanoseconds.
    pub(crate) fn new(monotonic_ns: u64, realtime_ns: u64) -> Self {
        let out = vec![TracePacket::clocks(monotonic_ns, realtime_ns)];
        Timeline { tracks: Tracks::default(), requests: Requests::default(), out }
    }

    /// The packets that came since the last time.
    pub(crate) fn take(&mut self) -> Vec<TracePacket> {
        std::mem::take(&mut self.out)
    }

    /// From now on process `pid` has this name.
    pub(crate) fn process(&mut self, pid: u32, name: &str) {
        self.tracks.name_process(pid, name, &mut self.out);
    }

    /// A call of process `pid` on `device` that returned.
    pub(crate) fn call(&mut self, call: &Event, pid: u32, device: &str) {
        let op = Op(call.op);
        let mut notes = vec![Note::text("device", device), Note::text("entry", report::entry_name(op))];
        if call.errno != 0 {
            notes.push(Note::text("errno", uapi::errno_name(call.errno)));
        }
        if let Some((kind, handle)) = call.handle.get() {
            let name = match kind {
                HandleKind::Cq => "cq_handle",
                HandleKind::Qp => "qp_handle",
                HandleKind::Srq => "srq_handle",
            };
            notes.push(Note::number(name, handle));
        }
        let track = self.tracks.thread(pid, call.tid, &mut self.out);
        let name = uapi::op_name(op);
        match call.latency {
            u64::MAX => self.instant(track, call.time, &name, backward(notes)),
            latency => self.slice(track, (call.time, call.time.saturating_add(latency)), &name, notes),
        }
    }

    /// Something that happened to a message or a queue pair of `device`.
    pub(crate) fn moment(&mut self, moment: &Moment, device: &str) {
        let qp = QueuePair { pid: moment.pid, device: moment.device, qpn: moment.qpn };
        let queue = (moment.device, moment.qpn, moment.queue);
        let is = |kind: MomentKind| moment.kind == kind as u32;
        if is(MomentKind::Span) {
            match Span::ALL.into_iter().find(|span| *span as u32 == moment.what) {
                Some(Span::PostToCompletion) => self.completed((qp, device), queue, moment),
                Some(span) => self.span((qp, device), span, moment),
                None => {}
            }
        } else if is(MomentKind::Posted) {
            let Moment { seq, time, pid, opcode, .. } = *moment;
            let posted = Posted { seq, time, pid, opcode };
            if moment.what == 0 {
                self.uncompleted(queue, &posted, device, "unsignalled");
            } else {
                self.requests.post(queue, posted);
            }
        } else if is(MomentKind::Unpaired) {
            self.unpaired((qp, device), queue, moment);
        } else if is(MomentKind::Retransmit) {
            let mut notes = of_queue_pair(moment.qpn, device);
            notes.push(Note::text("reason", names::reason(moment.what)));
            self.on_queue_pair((qp, device), moment.time, "retransmission", notes);
        } else if is(MomentKind::State) {
            self.state((qp, device), moment);
        }
    }

    /// So many calls and moments are missing between the two times.
    pub(crate) fn lost(&mut self, since: u64, now: u64, count: u64) {
        let track = self.tracks.lost(&mut self.out);
        let notes = vec![Note::number("count", count), Note::number("since_ns", since)];
        self.instant(track, now, "lost", notes);
    }

    /// Tracing ended at `now`; `device` names devices by the driver's index.
    pub(crate) fn finish(&mut self, now: u64, mut device: impl FnMut(u32) -> String) {
        for (queue, posted) in self.requests.take() {
            let device = device(queue.0);
            let notes = vec![Note::number("open_ns", now.saturating_sub(posted.time))];
            self.without_completion(queue, &posted, &device, OPEN, notes);
        }
    }

    /// A request from its posting to its completion.
    fn completed(&mut self, qp: (QueuePair, &str), queue: QueueKey, moment: &Moment) {
        let (_, passed) = self.requests.complete(queue, moment.seq);
        self.passed(queue, &passed, qp.1);
        let mut notes = of_request(queue, moment.seq, qp.1);
        notes.push(Note::text("status", names::status(moment.status)));
        let name = opcode_name(moment.queue, moment.opcode);
        let kind = if is_receive(moment.queue) { Kind::Receive } else { Kind::Send };
        self.in_lane(qp, kind, moment, &name, notes);
    }

    /// Any other span; of a completion that was taken the request's number is not known.
    fn span(&mut self, qp: (QueuePair, &str), span: Span, moment: &Moment) {
        let mut notes = of_queue_pair(moment.qpn, qp.1);
        let kind = match span {
            Span::CompletionToConsumed if is_receive(moment.queue) => Kind::ReceiveConsumed,
            Span::PostToCompletion | Span::CompletionToConsumed => Kind::SendConsumed,
            Span::Recovery => Kind::Recovery,
            Span::RnrWait => Kind::RnrWait,
            Span::CreditStall => Kind::CreditStall,
        };
        if moment.opcode != NO_OPCODE {
            notes.push(Note::text("opcode", opcode_name(moment.queue, moment.opcode)));
        }
        self.in_lane(qp, kind, moment, span_name(span), notes);
    }

    /// A completion without a posting, or of a request whose success would have made none.
    fn unpaired(&mut self, qp: (QueuePair, &str), queue: QueueKey, moment: &Moment) {
        let (posted, passed) = self.requests.complete(queue, moment.seq);
        self.passed(queue, &passed, qp.1);
        let mut notes = of_request(queue, moment.seq, qp.1);
        notes.push(Note::text("status", names::status(moment.status)));
        if let Some(posted) = posted {
            notes.push(Note::text("opcode", opcode_name(moment.queue, posted.opcode)));
            notes.push(Note::number("posted_ns", posted.time));
        }
        self.on_queue_pair(qp, moment.time, "unpaired completion", notes);
    }

    /// Requests that a later one's completion has passed.
    fn passed(&mut self, queue: QueueKey, passed: &[Posted], device: &str) {
        for posted in passed {
            self.uncompleted(queue, posted, device, "none seen: lost");
        }
    }

    /// A request that has no span, and why.
    fn uncompleted(&mut self, queue: QueueKey, posted: &Posted, device: &str, why: &str) {
        let name = format!("{} posted", opcode_name(queue.2, posted.opcode));
        self.without_completion(queue, posted, device, &name, vec![Note::text("completion", why)]);
    }

    /// A queue pair has a new state; one that is new says that it is reset.
    fn state(&mut self, qp: (QueuePair, &str), moment: &Moment) {
        let state = names::state(moment.what);
        if moment.what == 0 || moment.what == QP_DESTROYED {
            for (queue, posted) in self.requests.forget(moment.device, moment.qpn) {
                let notes = vec![Note::text("state", state.clone()), Note::number("state_ns", moment.time)];
                self.without_completion(queue, &posted, qp.1, FORGOTTEN, notes);
            }
        }
        let mut notes = of_queue_pair(moment.qpn, qp.1);
        notes.push(Note::text("state", state.clone()));
        self.on_queue_pair(qp, moment.time, &format!("state {state}"), notes);
    }

    /// An instant where a request was posted whose completion was not seen.
    fn without_completion(
        &mut self,
        queue: QueueKey,
        posted: &Posted,
        device: &str,
        name: &str,
        more: Vec<Note>,
    ) {
        let qp = QueuePair { pid: posted.pid, device: queue.0, qpn: queue.1 };
        let mut notes = of_request(queue, posted.seq, device);
        notes.push(Note::text("opcode", opcode_name(queue.2, posted.opcode)));
        notes.extend(more);
        self.on_queue_pair((qp, device), posted.time, name, notes);
    }

    fn in_lane(&mut self, qp: (QueuePair, &str), kind: Kind, moment: &Moment, name: &str, notes: Vec<Note>) {
        if moment.duration == u64::MAX {
            return self.on_queue_pair(qp, moment.time, name, backward(notes));
        }
        let time = (moment.time.saturating_sub(moment.duration), moment.time);
        let track = self.tracks.lane(qp, kind, time, &mut self.out);
        self.slice(track, time, name, notes);
    }

    fn on_queue_pair(&mut self, (qp, device): (QueuePair, &str), time: u64, name: &str, notes: Vec<Note>) {
        let track = self.tracks.queue_pair(qp, device, &mut self.out);
        self.instant(track, time, name, notes);
    }

    fn slice(&mut self, track: u64, (begin, end): (u64, u64), name: &str, notes: Vec<Note>) {
        self.event(begin, track, EventType::SliceBegin, Some(name), notes);
        self.event(end, track, EventType::SliceEnd, None, Vec::new());
    }

    fn instant(&mut self, track: u64, time: u64, name: &str, notes: Vec<Note>) {
        self.event(time, track, EventType::Instant, Some(name), notes);
    }

    fn event(&mut self, time: u64, track: u64, kind: EventType, name: Option<&str>, notes: Vec<Note>) {
        let event = TrackEvent {
            debug_annotations: notes,
            r#type: Some(kind as i32),
            track_uuid: Some(track),
            name: name.map(str::to_owned),
        };
        self.out.push(TracePacket::event(time, event));
    }
}

fn is_receive(queue: u32) -> bool {
    queue == Queue::Receive as u32
}

fn of_queue_pair(qpn: u32, device: &str) -> Vec<Note> {
    vec![Note::number("qpn", qpn), Note::text("device", device)]
}

fn of_request((_, qpn, queue): QueueKey, seq: u64, device: &str) -> Vec<Note> {
    let mut notes = of_queue_pair(qpn, device);
    notes.push(Note::text("queue", queue_name(queue)));
    notes.push(Note::number("seq", seq));
    notes
}

/// Something with a begin after its end.
fn backward(mut notes: Vec<Note>) -> Vec<Note> {
    notes.push(Note::text("length", "unknown: the clock went backwards"));
    notes
}
