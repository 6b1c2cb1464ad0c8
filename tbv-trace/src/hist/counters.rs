//! A report's counts as families of counters.

use std::collections::BTreeMap;

use tbv_core::{
    Report,
    fields::{self, Field, QueueRow, Value},
    report::Completions,
};

use crate::text::printable;

/// Name and value of a label.
pub(super) type Label = (&'static str, String);

/// One family; a name without `_total`, which is added when it is written.
#[derive(Debug)]
pub(super) struct Counters {
    pub(super) name: String,
    pub(super) help: &'static str,
    /// Added up where labels are equal, as those of devices that could not be told are.
    pub(super) values: BTreeMap<Vec<Label>, u64>,
}

impl Counters {
    fn new(
        name: impl Into<String>,
        help: &'static str,
        samples: impl IntoIterator<Item = (Vec<Label>, u64)>,
    ) -> Self {
        Counters { name: name.into(), help, values: added(samples) }
    }
}

/// All counters of a report.
pub(super) fn of(report: &Report) -> Vec<Counters> {
    let mut all = queue_pairs(report);
    all.extend(completion_queues(report));
    all.extend(probes(report));
    let posted = report.work_requests.iter().map(|work| {
        let labels = vec![
            ("pid", work.pid.to_string()),
            ("device", work.device.clone()),
            ("queue", work.queue.clone()),
            ("opcode", work.opcode.clone()),
        ];
        (labels, work.posted)
    });
    all.push(Counters::new("tbv_work_requests_posted", "Work requests posted and accepted.", posted));
    let losses = report.loss.parts().map(|(kind, n)| (vec![("kind", kind.to_owned())], n));
    all.push(Counters::new("tbv_loss", "What was lost: all zero means that the counts are exact.", losses));
    all
}

/// Capacity of completion queues.
pub(super) fn entries(report: &Report) -> BTreeMap<Vec<Label>, u64> {
    added(of_queues(report, |cq| Some(cq.entries.into())))
}

/// Fields of queue pairs that only grow.
const OF_QUEUE_PAIRS: [&str; 9] = [
    "posted",
    "completed",
    "unsignalled",
    "unknown",
    "unsignalled_failed",
    "overflowed",
    "forgotten",
    "rnr",
    "credit_stalls",
];
/// Those of completion queues.
const OF_QUEUES: [&str; 7] =
    ["produced", "consumed", "consumed_by_ioctl", "consumed_in_user_space", "purged", "failed", "overflows"];

/// A number of the field model; nothing if it is not known.
fn count(value: &Value<'_>) -> Option<u64> {
    match value {
        Value::Number(n) => Some(*n),
        _ => None,
    }
}

fn queue_pairs(report: &Report) -> Vec<Counters> {
    type Read = fn(&tbv_core::messages::QueuePair) -> u64;
    let labels = |qp: &tbv_core::messages::QueuePair| {
        vec![
            ("pid", qp.pid.to_string()),
            ("comm", printable(&qp.comm)),
            ("device", qp.device.clone()),
            ("qpn", qp.qpn.to_string()),
        ]
    };
    let fields = OF_QUEUE_PAIRS.iter().filter_map(|name| fields::named(fields::queue_pair::FIELDS, name));
    let mut all: Vec<Counters> = fields
        .map(|field| {
            let samples = report.queue_pairs.iter();
            let samples = samples.filter_map(|qp| Some((labels(qp), count(&(field.read)(qp, 0.0))?)));
            Counters::new(format!("tbv_{}", field.column.name), field.column.description, samples)
        })
        .collect();
    let reasons: [(&str, Read); 3] = [
        ("timeout", |qp| qp.retransmits_timeout),
        ("sequence_error", |qp| qp.retransmits_sequence_error),
        ("rnr", |qp| qp.retransmits_rnr),
    ];
    let resent = report.queue_pairs.iter().flat_map(|qp| {
        reasons.map(|(reason, read)| {
            let mut labels = labels(qp);
            labels.push(("reason", reason.to_owned()));
            (labels, read(qp))
        })
    });
    all.push(Counters::new("tbv_retransmits", "Messages sent again.", resent));
    all
}

fn completion_queues(report: &Report) -> Vec<Counters> {
    let rows = QueueRow::all(report);
    let fields = OF_QUEUES.iter().filter_map(|name| fields::named(fields::completion_queue::FIELDS, name));
    let family = |field: &'static Field<QueueRow>| {
        let samples =
            rows.iter().filter_map(|row| Some((queue_labels(&row.queue), count(&(field.read)(row, 0.0))?)));
        Counters::new(format!("tbv_cq_{}", field.column.name), field.column.description, samples)
    };
    fields.map(family).collect()
}

/// What the provider's probes tell.
fn probes(report: &Report) -> [Counters; 3] {
    type Read = fn(&Completions) -> Option<u64>;
    let kinds: [(&str, Read); 3] =
        [("hit", |cq| cq.polls_hit), ("empty", |cq| cq.polls_empty), ("overflow", |cq| cq.polls_overflow)];
    let polls = kinds.into_iter().flat_map(|(kind, read)| {
        of_queues(report, read).map(move |(mut labels, n)| {
            labels.push(("kind", kind.to_owned()));
            (labels, n)
        })
    });
    let fell = report.fall_backs.iter().map(|fell| {
        let labels = vec![
            ("pid", fell.pid.to_string()),
            ("comm", printable(&fell.comm)),
            ("reason", fell.reason.clone()),
        ];
        (labels, fell.queues)
    });
    [
        Counters::new("tbv_cq_polls", "Polls in user space, as the provider's probes tell.", polls),
        Counters::new("tbv_cq_polled", "Completions taken in user space, as the provider's probes tell.", {
            of_queues(report, |cq| cq.polled)
        }),
        Counters::new("tbv_fall_backs", "Queues polled by system call against the process's wish.", fell),
    ]
}

/// A number of every completion queue that has it.
fn of_queues(
    report: &Report,
    read: impl Fn(&Completions) -> Option<u64>,
) -> impl Iterator<Item = (Vec<Label>, u64)> {
    report.completions.iter().filter_map(move |cq| Some((queue_labels(cq), read(cq)?)))
}

fn queue_labels(cq: &Completions) -> Vec<Label> {
    vec![
        ("pid", cq.pid.to_string()),
        ("device", cq.device.clone()),
        ("cqn", cq.cqn.to_string()),
        ("mapped", cq.mapped.to_string()),
    ]
}

fn added(samples: impl IntoIterator<Item = (Vec<Label>, u64)>) -> BTreeMap<Vec<Label>, u64> {
    let mut values: BTreeMap<Vec<Label>, u64> = BTreeMap::new();
    for (labels, value) in samples {
        let sum = values.entry(labels).or_default();
        *sum = sum.saturating_add(value);
    }
    values
}
