//! A report's counts as families of counters.

use std::collections::BTreeMap;

use tbv_core::Report;

/// Name and value of a label.
pub(super) type Label = (&'static str, String);

/// One family; a name without `_total`, which is added when it is written.
#[derive(Debug)]
pub(super) struct Counters {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    /// Added up where labels are equal, as those of devices that could not be told are.
    pub(super) values: BTreeMap<Vec<Label>, u64>,
}

impl Counters {
    fn new(
        name: &'static str,
        help: &'static str,
        samples: impl IntoIterator<Item = (Vec<Label>, u64)>,
    ) -> Self {
        Counters { name, help, values: added(samples) }
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
    added(of_queues(report, |cq| Some(u64::from(cq.entries))))
}

fn queue_pairs(report: &Report) -> Vec<Counters> {
    type Read = fn(&tbv_core::messages::QueuePair) -> u64;
    let labels = |qp: &tbv_core::messages::QueuePair| {
        vec![
            ("pid", qp.pid.to_string()),
            ("comm", qp.comm.clone()),
            ("device", qp.device.clone()),
            ("qpn", qp.qpn.to_string()),
        ]
    };
    let families: [(&str, &str, Read); 9] = [
        ("tbv_posted", "Requests posted whose success makes a completion.", |qp| qp.posted),
        ("tbv_completed", "Completions of requests whose posting was seen.", |qp| qp.completed),
        ("tbv_unsignalled", "Requests posted whose success makes no completion.", |qp| qp.unsignalled),
        ("tbv_unknown", "Completions of requests whose posting was not seen.", |qp| qp.unknown),
        ("tbv_unsignalled_failed", "Failed requests whose success would have made no completion.", |qp| {
            qp.unsignalled_failed
        }),
        ("tbv_overflowed", "Requests whose completion found its queue full.", |qp| qp.overflowed),
        ("tbv_forgotten", "Requests whose queue pair went before their completion came.", |qp| qp.forgotten),
        ("tbv_rnr", "How often the peer had no receive posted.", |qp| qp.rnr),
        ("tbv_credit_stalls", "How often there was something to send and no room.", |qp| qp.credit_stalls),
    ];
    let mut all: Vec<Counters> = families
        .into_iter()
        .map(|(name, help, read)| {
            Counters::new(name, help, report.queue_pairs.iter().map(|qp| (labels(qp), read(qp))))
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

fn completion_queues(report: &Report) -> [Counters; 7] {
    type Read = fn(&tbv_core::report::Completions) -> Option<u64>;
    let families: [(&str, &str, Read); 7] = [
        ("tbv_cq_produced", "Completions put in over the queue's life.", |cq| Some(cq.produced)),
        ("tbv_cq_consumed", "Completions taken out over the queue's life.", |cq| Some(cq.consumed)),
        ("tbv_cq_consumed_by_ioctl", "Completions taken out by a system call while traced.", |cq| {
            Some(cq.consumed_by_ioctl)
        }),
        ("tbv_cq_consumed_in_user_space", "Completions taken out without a system call.", |cq| {
            cq.consumed_in_user_space
        }),
        ("tbv_cq_purged", "Completions of queue pairs that went before these were taken out.", |cq| {
            Some(cq.purged)
        }),
        ("tbv_cq_failed", "Completions that report an error.", |cq| Some(cq.failed)),
        ("tbv_cq_overflows", "Completions that found the queue full.", |cq| Some(cq.overflows)),
    ];
    families.map(|(name, help, read)| Counters::new(name, help, of_queues(report, read)))
}

/// What the provider's probes tell.
fn probes(report: &Report) -> [Counters; 3] {
    type Read = fn(&tbv_core::report::Completions) -> Option<u64>;
    let kinds: [(&str, Read); 3] =
        [("hit", |cq| cq.polls_hit), ("empty", |cq| cq.polls_empty), ("overflow", |cq| cq.polls_overflow)];
    let polls = kinds.into_iter().flat_map(|(kind, read)| {
        of_queues(report, read).map(move |(mut labels, n)| {
            labels.push(("kind", kind.to_owned()));
            (labels, n)
        })
    });
    let fell = report.fall_backs.iter().map(|fell| {
        let labels =
            vec![("pid", fell.pid.to_string()), ("comm", fell.comm.clone()), ("reason", fell.reason.clone())];
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
    read: impl Fn(&tbv_core::report::Completions) -> Option<u64>,
) -> impl Iterator<Item = (Vec<Label>, u64)> {
    report.completions.iter().filter_map(move |cq| {
        let labels = vec![
            ("pid", cq.pid.to_string()),
            ("device", cq.device.clone()),
            ("cqn", cq.cqn.to_string()),
            ("mapped", cq.mapped.to_string()),
        ];
        Some((labels, read(cq)?))
    })
}

fn added(samples: impl IntoIterator<Item = (Vec<Label>, u64)>) -> BTreeMap<Vec<Label>, u64> {
    let mut values: BTreeMap<Vec<Label>, u64> = BTreeMap::new();
    for (labels, value) in samples {
        let sum = values.entry(labels).or_default();
        *sum = sum.saturating_add(value);
    }
    values
}
