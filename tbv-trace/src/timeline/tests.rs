use std::collections::HashMap;

use prost::Message as _;
use tbv_core::{Moment, MomentKind, Op, QP_DESTROYED, Span};

use crate::timeline::{
    convert::Timeline,
    fixture::{BEGIN, DEVICE, END, PID, call, completed, fixture, moment, posted, span},
    packet::{CLOCK_MONOTONIC, EventType, Trace, TracePacket, TrackDescriptor, TrackEvent, Value},
};

/// Packets of a timeline of these.
fn made(moments: &[Moment]) -> Vec<TracePacket> {
    let mut timeline = Timeline::new(BEGIN, 0);
    moments.iter().for_each(|moment| timeline.moment(moment, DEVICE));
    timeline.finish(END, |_| DEVICE.to_owned());
    timeline.take()
}

fn tracks(packets: &[TracePacket]) -> HashMap<u64, TrackDescriptor> {
    let tracks = packets.iter().filter_map(|packet| packet.track_descriptor.clone());
    tracks.map(|track| (track.uuid.unwrap(), track)).collect()
}

/// Name, track's name and time of all events of a kind; an end has no name.
fn events(packets: &[TracePacket], kind: EventType) -> Vec<(String, String, u64)> {
    let tracks = tracks(packets);
    let events = packets.iter().filter_map(|packet| Some((packet.timestamp?, packet.track_event.as_ref()?)));
    let of_kind = events.filter(|(_, event)| event.r#type == Some(kind as i32));
    of_kind
        .map(|(time, event)| {
            let track = tracks[&event.track_uuid.unwrap()].name.clone().unwrap_or_default();
            (event.name.clone().unwrap_or_default(), track, time - BEGIN)
        })
        .collect()
}

fn note(event: &TrackEvent, name: &str) -> Option<Value> {
    let mut notes = event.debug_annotations.iter();
    notes.find(|note| note.name.as_deref() == Some(name))?.value.clone()
}

/// The first event of this name.
fn event<'a>(packets: &'a [TracePacket], name: &str) -> &'a TrackEvent {
    let mut events = packets.iter().filter_map(|packet| packet.track_event.as_ref());
    events.find(|event| event.name.as_deref() == Some(name)).unwrap()
}

/// Lanes of the slices, in the order of their ends.
fn lanes(packets: &[TracePacket]) -> Vec<String> {
    events(packets, EventType::SliceBegin).into_iter().map(|(_, track, _)| track).collect()
}

/// What any reader relies on: tracks are described before they are used, begins and ends of each come in turn and in
/// their time, and every event has a time of the clock that the file begins with.
fn assert_sound(packets: &[TracePacket]) {
    assert_eq!(packets[0].clock_snapshot.as_ref().unwrap().primary_trace_clock, Some(CLOCK_MONOTONIC as i32));
    let mut described: HashMap<u64, TrackDescriptor> = HashMap::new();
    let mut open: HashMap<u64, (u64, bool)> = HashMap::new();
    for packet in packets {
        assert_eq!(packet.trusted_packet_sequence_id, Some(1));
        if let Some(track) = &packet.track_descriptor {
            assert!(track.parent_uuid.is_none_or(|parent| described.contains_key(&parent)));
            described.insert(track.uuid.unwrap(), track.clone());
        }
        let Some(event) = &packet.track_event else { continue };
        let (uuid, time) = (event.track_uuid.unwrap(), packet.timestamp.unwrap());
        assert_eq!(packet.timestamp_clock_id, Some(CLOCK_MONOTONIC));
        assert!(described.contains_key(&uuid), "{event:?}");
        let (last, is_open) = open.entry(uuid).or_default();
        let begins = event.r#type == Some(EventType::SliceBegin as i32);
        if begins || event.r#type == Some(EventType::SliceEnd as i32) {
            assert!(*is_open != begins && *last <= time, "{event:?} at {time}");
            (*last, *is_open) = (time, begins);
        }
    }
    assert!(open.values().all(|(_, open)| !open));
}

#[test]
fn the_fixture_is_sound_and_has_everything() {
    let trace = Trace::decode(&fixture()[..]).unwrap();
    assert_sound(&trace.packet);
    let names = |kind| events(&trace.packet, kind).into_iter().map(|(name, ..)| name).collect::<Vec<_>>();
    let (slices, instants) = (names(EventType::SliceBegin), names(EventType::Instant));
    for name in ["POLL_CQ", "SEND", "RECV", "completion_to_consumed", "recovery", "rnr_wait", "credit_stall"]
    {
        assert!(slices.iter().any(|slice| slice == name), "{name}");
    }
    for name in [
        "retransmission",
        "state RTS",
        "unpaired completion",
        "SEND posted",
        "forgotten",
        "open at the end",
        "lost",
    ] {
        assert!(instants.iter().any(|instant| instant == name), "{name}");
    }
    assert_eq!(note(event(&trace.packet, "retransmission"), "reason"), Some(Value::Text("timeout".into())));
}

#[test]
fn requests_that_overlap_have_lanes_of_their_own_and_lanes_are_used_again() {
    let overlapping = [completed(0, 10, 40), completed(1, 20, 50), completed(2, 30, 60)];
    let packets = made(&overlapping);
    assert_sound(&packets);
    assert_eq!(lanes(&packets), ["send 1", "send 2", "send 3"]);

    // Of free lanes that which was in use last: the fourth began before the third, and finds the first lane free.
    let packets =
        made(&[completed(0, 10, 20), completed(1, 12, 30), completed(2, 31, 40), completed(3, 25, 45)]);
    assert_sound(&packets);
    assert_eq!(lanes(&packets), ["send 1", "send 2", "send 2", "send 1"]);

    // Slices that touch would depend on the reader's sorting.
    assert_eq!(lanes(&made(&[completed(0, 10, 20), completed(1, 20, 30)])), ["send 1", "send 2"]);
    let many: Vec<Moment> = (0..1000).map(|n| completed(n, 10 * n, 10 * n + 35)).collect();
    let packets = made(&many);
    assert_sound(&packets);
    assert_eq!(tracks(&packets).values().filter(|track| track.sibling_order_rank.is_some()).count(), 4);
}

#[test]
fn queue_pairs_and_kinds_share_no_lane() {
    let other = Moment { qpn: 18, ..completed(0, 50, 60) };
    let packets = made(&[completed(0, 10, 20), span(Span::Recovery, 30, 40), other]);
    assert_sound(&packets);
    assert_eq!(lanes(&packets), ["send 1", "recovery 1", "send 1"]);
    let parents: Vec<_> = tracks(&packets).into_values().filter_map(|track| track.name).collect();
    assert!(["usb4_rdma0 qp 17", "usb4_rdma0 qp 18"].iter().all(|name| parents.iter().any(|p| p == name)));
}

#[test]
fn what_is_open_at_the_end_is_said_and_what_is_not_is_not() {
    let packets = made(&[posted(0, 10), posted(1, 20), posted(2, 30), completed(1, 20, 40)]);
    assert_sound(&packets);
    let at = |name: &str, time| (name.to_owned(), "usb4_rdma0 qp 17".to_owned(), time);
    assert_eq!(
        events(&packets, EventType::Instant),
        [at("SEND posted", 10), at("open at the end", 30)],
        "the first has no completion of its own"
    );
    let open = event(&packets, "open at the end");
    assert_eq!(note(open, "seq"), Some(Value::Number(2)));
    assert_eq!(note(open, "open_ns"), Some(Value::Number(END - BEGIN - 30)));
}

#[test]
fn a_queue_pair_that_goes_leaves_nothing_open() {
    let elsewhere = Moment { qpn: 18, ..posted(0, 15) };
    let packets = made(&[posted(0, 10), elsewhere, moment(MomentKind::State, QP_DESTROYED, 20)]);
    let names: Vec<_> = events(&packets, EventType::Instant).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["forgotten", "state DESTROYED", "open at the end"]);
    assert_eq!(note(event(&packets, "forgotten"), "state"), Some(Value::Text("DESTROYED".into())));
    // Other states change nothing about what is open.
    let packets = made(&[posted(0, 10), moment(MomentKind::State, 6, 20), completed(0, 10, 30)]);
    assert_eq!(lanes(&packets), ["send 1"]);
}

#[test]
fn a_completion_without_a_span_is_an_instant_with_what_is_known() {
    let unpaired = Moment { seq: 4, status: 12, ..moment(MomentKind::Unpaired, 0, 50) };
    let packets = made(&[posted(4, 10), unpaired]);
    let instants = events(&packets, EventType::Instant);
    assert_eq!((instants.len(), instants[0].0.as_str(), instants[0].2), (1, "unpaired completion", 50));
    let event = event(&packets, "unpaired completion");
    assert_eq!(note(event, "status"), Some(Value::Text("RETRY_EXC_ERR".into())));
    assert_eq!(note(event, "posted_ns"), Some(Value::Number(BEGIN + 10)));
}

#[test]
fn what_was_lost_has_its_own_track_and_leaves_the_rest_sound() {
    let mut timeline = Timeline::new(BEGIN, 0);
    timeline.moment(&posted(0, 10), DEVICE);
    timeline.lost(BEGIN + 20, BEGIN + 30, 5);
    // Its posting was lost.
    timeline.moment(&completed(3, 25, 40), DEVICE);
    timeline.lost(BEGIN + 50, BEGIN + 60, 1);
    timeline.finish(END, |_| DEVICE.to_owned());
    let packets = timeline.take();
    assert_sound(&packets);
    let lost: Vec<_> =
        events(&packets, EventType::Instant).into_iter().filter(|(_, track, _)| track == "lost").collect();
    assert_eq!(lost.iter().map(|(_, _, time)| *time).collect::<Vec<_>>(), [30, 60]);
    let event = event(&packets, "lost");
    assert_eq!(note(event, "count"), Some(Value::Number(5)));
    assert_eq!(note(event, "since_ns"), Some(Value::Number(BEGIN + 20)));
}

#[test]
fn calls_are_on_tracks_of_their_threads_and_processes_get_their_names() {
    let mut timeline = Timeline::new(BEGIN, 0);
    timeline.call(&call(Op::invoke_write(21), 5, 10, 20), PID, DEVICE);
    timeline.call(&call(Op::invoke_write(21), 6, 15, u64::MAX), PID, DEVICE);
    timeline.process(PID, "server");
    timeline.process(PID, "server");
    let packets = timeline.take();
    assert_sound(&packets);
    let described: Vec<_> = packets.iter().filter_map(|packet| packet.track_descriptor.as_ref()).collect();
    let names: Vec<_> = described.iter().filter_map(|track| track.process.as_ref()).collect();
    assert_eq!(names.iter().map(|p| p.process_name.as_deref()).collect::<Vec<_>>(), [None, Some("server")]);
    let threads: Vec<_> = described.iter().filter_map(|track| track.thread.as_ref()?.tid).collect();
    assert_eq!(threads, [5, 6]);
    assert_eq!(events(&packets, EventType::SliceEnd)[0].2, 30);
    assert_eq!(events(&packets, EventType::Instant)[0].0, "POLL_CQ");
}
