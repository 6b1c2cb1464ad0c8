//! Tracks, each described once before its first event, and the lanes that keep slices apart.

use std::collections::HashMap;

use crate::timeline::packet::{
    ORDER_BY_RANK, ProcessDescriptor, ThreadDescriptor, TracePacket, TrackDescriptor,
};

/// A queue pair, as one process uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct QueuePair {
    /// 0 if nobody knows.
    pub(crate) pid: u32,
    /// The driver's index of the device.
    pub(crate) device: u32,
    pub(crate) qpn: u32,
}

/// What a lane is for; lanes are shown in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    Send,
    SendConsumed,
    Receive,
    ReceiveConsumed,
    CreditStall,
    Recovery,
    RnrWait,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Send => "send",
            Kind::SendConsumed => "send completions",
            Kind::Receive => "receive",
            Kind::ReceiveConsumed => "receive completions",
            Kind::CreditStall => "credit stall",
            Kind::Recovery => "recovery",
            Kind::RnrWait => "rnr wait",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Process(u32),
    Thread(u32, u32),
    QueuePair(QueuePair),
    Lane(QueuePair, Kind, usize),
    Lost,
}

/// All tracks so far. Their ids count from one: 0 stands for a track of its own in the format.
#[derive(Debug, Default)]
pub(crate) struct Tracks {
    known: HashMap<Key, u64>,
    /// Names of processes, as far as they are known.
    names: HashMap<u32, String>,
    /// When the last slice of each lane ended.
    lanes: HashMap<(QueuePair, Kind), Vec<u64>>,
}

impl Tracks {
    /// From now on process `pid` has this name.
    pub(crate) fn name_process(&mut self, pid: u32, name: &str, out: &mut Vec<TracePacket>) {
        if name.is_empty() || self.names.get(&pid).is_some_and(|known| known == name) {
            return;
        }
        self.names.insert(pid, name.to_owned());
        // Its track may have been described before its name was known: the later description holds.
        if let Some(uuid) = self.known.get(&Key::Process(pid)) {
            out.push(self.process_packet(*uuid, pid));
        }
    }

    /// The track of the calls of a thread.
    pub(crate) fn thread(&mut self, pid: u32, tid: u32, out: &mut Vec<TracePacket>) -> u64 {
        let parent = self.process(pid, out);
        self.get(Key::Thread(pid, tid), out, |track| TrackDescriptor {
            parent_uuid: parent,
            thread: Some(ThreadDescriptor { pid: Some(pid.cast_signed()), tid: Some(tid.into()) }),
            ..track
        })
    }

    /// The track of what happens to a queue pair as such, above its lanes.
    pub(crate) fn queue_pair(&mut self, qp: QueuePair, device: &str, out: &mut Vec<TracePacket>) -> u64 {
        let parent = self.process(qp.pid, out);
        self.get(Key::QueuePair(qp), out, |track| TrackDescriptor {
            name: Some(format!("{device} qp {}", qp.qpn)),
            parent_uuid: parent,
            child_ordering: Some(ORDER_BY_RANK),
            ..track
        })
    }

    /// A lane where a slice from `begin` to `end` touches no other.
    pub(crate) fn lane(
        &mut self,
        (qp, device): (QueuePair, &str),
        kind: Kind,
        (begin, end): (u64, u64),
        out: &mut Vec<TracePacket>,
    ) -> u64 {
        let parent = self.queue_pair(qp, device, out);
        let lanes = self.lanes.entry((qp, kind)).or_default();
        // Of the free ones that which was in use last: slices come by their ends, and so the fewest lanes do.
        let free = lanes.iter_mut().enumerate().filter(|(_, last)| **last < begin);
        let number = match free.max_by_key(|(number, last)| (**last, std::cmp::Reverse(*number))) {
            Some((number, last)) => {
                *last = end;
                number
            }
            None => {
                lanes.push(end);
                lanes.len() - 1
            }
        };
        self.get(Key::Lane(qp, kind, number), out, |track| TrackDescriptor {
            // Tracks of one name beside each other would be merged.
            name: Some(format!("{} {}", kind.name(), number + 1)),
            parent_uuid: Some(parent),
            sibling_order_rank: Some(rank(kind, number)),
            ..track
        })
    }

    /// The track that shows where something is missing.
    pub(crate) fn lost(&mut self, out: &mut Vec<TracePacket>) -> u64 {
        self.get(Key::Lost, out, |track| TrackDescriptor { name: Some("lost".to_owned()), ..track })
    }

    /// None for nobody's.
    fn process(&mut self, pid: u32, out: &mut Vec<TracePacket>) -> Option<u64> {
        if pid == 0 {
            return None;
        }
        if let Some(uuid) = self.known.get(&Key::Process(pid)) {
            return Some(*uuid);
        }
        let uuid = self.add(Key::Process(pid));
        out.push(self.process_packet(uuid, pid));
        Some(uuid)
    }

    fn process_packet(&self, uuid: u64, pid: u32) -> TracePacket {
        let process_name = self.names.get(&pid).cloned();
        TracePacket::track(TrackDescriptor {
            uuid: Some(uuid),
            process: Some(ProcessDescriptor { pid: Some(pid.cast_signed()), process_name }),
            ..TrackDescriptor::default()
        })
    }

    /// The track's id; `describe` completes the description of a new one.
    fn get(
        &mut self,
        key: Key,
        out: &mut Vec<TracePacket>,
        describe: impl FnOnce(TrackDescriptor) -> TrackDescriptor,
    ) -> u64 {
        if let Some(uuid) = self.known.get(&key) {
            return *uuid;
        }
        let uuid = self.add(key);
        let new = TrackDescriptor { uuid: Some(uuid), ..TrackDescriptor::default() };
        out.push(TracePacket::track(describe(new)));
        uuid
    }

    fn add(&mut self, key: Key) -> u64 {
        let uuid = self.known.len() as u64 + 1;
        self.known.insert(key, uuid);
        uuid
    }
}

/// Lanes of one kind stay together, in their order.
fn rank(kind: Kind, number: usize) -> i32 {
    let number = i32::try_from(number).unwrap_or(i32::MAX);
    (kind as i32 * 100_000).saturating_add(number.min(99_999))
}
