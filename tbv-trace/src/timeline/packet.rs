//! The parts of Perfetto's trace format that are written, from its `protos/perfetto/trace`. What is left out is
//! optional there.

/// `BUILTIN_CLOCK_REALTIME`.
const CLOCK_REALTIME: u32 = 1;
/// `BUILTIN_CLOCK_MONOTONIC`: the clock of every timestamp here.
pub(crate) const CLOCK_MONOTONIC: u32 = 3;
/// Packets that are read in their order are of one sequence. There is one.
const SEQUENCE: u32 = 1;
/// `CHILD_TRACKS_ORDERING_EXPLICIT`: by [`TrackDescriptor::sibling_order_rank`].
pub(crate) const ORDER_BY_RANK: i32 = 3;

/// A whole file. Two of them, one behind the other, are one again.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub(crate) packet: Vec<TracePacket>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TracePacket {
    #[prost(message, optional, tag = "6")]
    pub(crate) clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    pub(crate) timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub(crate) trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub(crate) track_event: Option<TrackEvent>,
    #[prost(uint32, optional, tag = "58")]
    pub(crate) timestamp_clock_id: Option<u32>,
    #[prost(message, optional, tag = "60")]
    pub(crate) track_descriptor: Option<TrackDescriptor>,
}

impl TracePacket {
    fn empty() -> Self {
        TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), ..TracePacket::default() }
    }

    /// Says which clock is meant, and what time it was: without, the timestamps would be taken for `CLOCK_BOOTTIME`'s.
    pub(crate) fn clocks(monotonic_ns: u64, realtime_ns: u64) -> Self {
        let clock = |clock_id, timestamp| Clock { clock_id: Some(clock_id), timestamp: Some(timestamp) };
        TracePacket {
            clock_snapshot: Some(ClockSnapshot {
                clocks: vec![clock(CLOCK_MONOTONIC, monotonic_ns), clock(CLOCK_REALTIME, realtime_ns)],
                primary_trace_clock: Some(CLOCK_MONOTONIC as i32),
            }),
            ..TracePacket::empty()
        }
    }

    pub(crate) fn track(track: TrackDescriptor) -> Self {
        TracePacket { track_descriptor: Some(track), ..TracePacket::empty() }
    }

    pub(crate) fn event(time: u64, event: TrackEvent) -> Self {
        TracePacket {
            timestamp: Some(time),
            timestamp_clock_id: Some(CLOCK_MONOTONIC),
            track_event: Some(event),
            ..TracePacket::empty()
        }
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub(crate) clocks: Vec<Clock>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) primary_trace_clock: Option<i32>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Clock {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) clock_id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub(crate) timestamp: Option<u64>,
}

/// A track: of a process, of a thread, or of what its name says.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(crate) name: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub(crate) process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    pub(crate) thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub(crate) parent_uuid: Option<u64>,
    #[prost(int32, optional, tag = "11")]
    pub(crate) child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    pub(crate) sibling_order_rank: Option<i32>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(crate) pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    pub(crate) process_name: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(crate) pid: Option<i32>,
    #[prost(int64, optional, tag = "2")]
    pub(crate) tid: Option<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub(crate) debug_annotations: Vec<DebugAnnotation>,
    #[prost(enumeration = "EventType", optional, tag = "9")]
    pub(crate) r#type: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    pub(crate) track_uuid: Option<u64>,
    #[prost(string, optional, tag = "23")]
    pub(crate) name: Option<String>,
}

/// The kinds of [`TrackEvent`] that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum EventType {
    Unspecified = 0,
    SliceBegin = 1,
    SliceEnd = 2,
    Instant = 3,
}

/// An argument of an event.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DebugAnnotation {
    #[prost(oneof = "Value", tags = "3, 6")]
    pub(crate) value: Option<Value>,
    #[prost(string, optional, tag = "10")]
    pub(crate) name: Option<String>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Value {
    #[prost(uint64, tag = "3")]
    Number(u64),
    #[prost(string, tag = "6")]
    Text(String),
}

impl DebugAnnotation {
    pub(crate) fn number(name: &str, value: impl Into<u64>) -> Self {
        DebugAnnotation { name: Some(name.to_owned()), value: Some(Value::Number(value.into())) }
    }

    pub(crate) fn text(name: &str, value: impl Into<String>) -> Self {
        DebugAnnotation { name: Some(name.to_owned()), value: Some(Value::Text(value.into())) }
    }
}
