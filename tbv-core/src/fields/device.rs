//! Fields of a device's port: its link, and what goes on there.

use std::collections::{BTreeSet, HashMap};

use super::{Field, QueueRow, Unit, Value, per_second};
use crate::{
    report::Report,
    system::{Link, System},
};

/// A port of a device, or a device of which no port is known.
#[derive(Clone, Debug, Default)]
pub struct DeviceRow {
    /// Name of the RDMA device.
    pub device: String,
    /// Its device file; empty if it is not known.
    pub uverbs: String,
    /// Whether it is there; `None` if nobody looked.
    pub there: Option<bool>,
    /// The port.
    pub link: Option<Link>,
    /// Payload bytes sent since the report before.
    pub sent: Option<u64>,
    /// Payload bytes received since then.
    pub received: Option<u64>,
    /// Calls on the device.
    pub calls: u64,
    /// Completions put into its queues; `None` if its driver does not tell.
    pub completions: Option<u64>,
    /// Processes that called.
    pub processes: u64,
    /// Completion queues that are not gone; `None` if its driver does not tell.
    pub queues: Option<u64>,
}

impl DeviceRow {
    /// All of a report, given the one before; `queues` are the report's.
    pub fn all(report: &Report, earlier: Option<&Report>, queues: &[QueueRow]) -> Vec<Self> {
        let mut devices: Vec<DeviceRow> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        let system = report.system.as_ref();
        let named = report.environment.devices.iter().map(|d| (d.name.as_str(), d.uverbs.as_str()));
        let called = report.calls.iter().map(|call| (call.device.as_str(), ""));
        for (name, uverbs) in named.chain(called) {
            places.entry(name).or_insert_with(|| {
                devices.push(DeviceRow {
                    device: name.to_owned(),
                    uverbs: uverbs.to_owned(),
                    there: system.and_then(|system| system.is_there(name)),
                    ..DeviceRow::default()
                });
                devices.len() - 1
            });
        }
        let mut callers: HashMap<usize, BTreeSet<u32>> = HashMap::new();
        for call in &report.calls {
            let place = places.get(call.device.as_str()).copied().unwrap_or_default();
            if let Some(row) = devices.get_mut(place) {
                row.calls = row.calls.saturating_add(call.count);
                callers.entry(place).or_default().insert(call.pid);
            }
        }
        for row in queues {
            let device = places.get(row.queue.device.as_str()).and_then(|place| devices.get_mut(*place));
            if let Some(device) = device {
                device.completions = Some(device.completions.unwrap_or(0).saturating_add(row.produced));
                let lives = u64::from(row.queue.destroyed != Some(true));
                device.queues = Some(device.queues.unwrap_or(0) + lives);
            }
        }
        for (place, pids) in callers {
            if let Some(row) = devices.get_mut(place) {
                row.processes = pids.len() as u64;
            }
        }
        let before = earlier.and_then(|report| report.system.as_ref());
        devices.into_iter().flat_map(|row| row.ports(system, before)).collect()
    }

    /// A row for each port that is known.
    fn ports(self, system: Option<&System>, before: Option<&System>) -> Vec<Self> {
        let links = system.iter().flat_map(|system| &system.links).filter(|link| link.device == self.device);
        let rows: Vec<Self> = links
            .map(|link| {
                let old = before.and_then(|system| {
                    system.links.iter().find(|old| (&old.device, old.port) == (&link.device, link.port))
                });
                // A counter that began anew has no difference.
                let since = |read: fn(&Link) -> Option<u64>| read(link)?.checked_sub(read(old?)?);
                DeviceRow {
                    sent: since(|link| link.sent_bytes),
                    received: since(|link| link.received_bytes),
                    link: Some(link.clone()),
                    ..self.clone()
                }
            })
            .collect();
        if rows.is_empty() { vec![self] } else { rows }
    }
}

fn link<'a>(row: &'a DeviceRow, read: impl Fn(&'a Link) -> Value<'a>) -> Value<'a> {
    row.link.as_ref().map_or(Value::Absent, read)
}

/// The fields, in the order of columns.
pub const FIELDS: &[Field<DeviceRow>] = &[
    Field::<DeviceRow>::new(
        "device",
        "DEVICE",
        Unit::Word,
        "RDMA device; `unknown` stands for all that could not be told.",
        |row, _| Value::text(&row.device),
    ),
    Field::<DeviceRow>::new("uverbs", "FILE", Unit::Word, "Its file under /dev/infiniband.", |row, _| {
        if row.uverbs.is_empty() { Value::Absent } else { Value::text(&row.uverbs) }
    }),
    Field::<DeviceRow>::new(
        "presence",
        "IS",
        Unit::Word,
        "`there`, or `gone` since it was seen; n/a if nobody looked.",
        |row, _| row.there.map_or(Value::Absent, |there| Value::text(if there { "there" } else { "gone" })),
    ),
    Field::<DeviceRow>::new("port", "PORT", Unit::Id, "Number of the port.", |row, _| {
        link(row, |link| Value::Number(link.port.into()))
    }),
    Field::<DeviceRow>::new("link", "LINK", Unit::Word, "State of the port's link.", |row, _| {
        link(row, |link| Value::text(&link.state))
    }),
    Field::<DeviceRow>::new(
        "physical",
        "PHYSICAL",
        Unit::Word,
        "State of what carries the link.",
        |row, _| link(row, |link| Value::text(&link.physical_state)),
    )
    .on_demand(),
    Field::<DeviceRow>::new(
        "rate",
        "RATE",
        Unit::Word,
        "What the link carries, as the driver says it.",
        |row, _| link(row, |link| Value::text(&link.rate)),
    ),
    Field::<DeviceRow>::new(
        "sent_per_second",
        "SENT/S",
        Unit::BytesPerSecond,
        "Payload bytes sent, a second, by the port's counters; our own driver copies each of them.",
        |row, seconds| row.sent.map_or(Value::Absent, |n| per_second(n, seconds)),
    ),
    Field::<DeviceRow>::new(
        "received_per_second",
        "RECEIVED/S",
        Unit::BytesPerSecond,
        "Payload bytes received, a second, by the port's counters; our own driver copies each of them.",
        |row, seconds| row.received.map_or(Value::Absent, |n| per_second(n, seconds)),
    ),
    Field::<DeviceRow>::new(
        "retransmits",
        "RESENT",
        Unit::Count,
        "Frames sent again since the device is there, by our own driver's counter.",
        |row, _| link(row, |link| Value::number(link.retransmits)),
    ),
    Field::<DeviceRow>::new(
        "calls_per_second",
        "CALLS/S",
        Unit::PerSecond,
        "Calls on the device that returned, a second.",
        |row, seconds| per_second(row.calls, seconds),
    ),
    Field::<DeviceRow>::new(
        "completions_per_second",
        "COMPL/S",
        Unit::PerSecond,
        "Completions put into its queues, a second.",
        |row, seconds| row.completions.map_or(Value::Absent, |n| per_second(n, seconds)),
    ),
    Field::<DeviceRow>::new("processes", "PROCESSES", Unit::Count, "Processes that called.", |row, _| {
        Value::Number(row.processes)
    }),
    Field::<DeviceRow>::new(
        "queues",
        "CQS",
        Unit::Count,
        "Completion queues that are not gone.",
        |row, _| Value::number(row.queues),
    ),
];
