//! Fields of a queue pair of our own driver.

use super::{Field, Unit, Value, per_second};
use crate::messages::QueuePair;

/// A number of a queue pair.
const fn count(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    read: for<'a> fn(&'a QueuePair, f64) -> Value<'a>,
) -> Field<QueuePair> {
    Field::<QueuePair>::new(name, title, Unit::Count, description, read)
}

/// The fields, in the order of columns.
pub const FIELDS: &[Field<QueuePair>] = &[
    Field::<QueuePair>::new(
        "pid",
        "PID",
        Unit::Id,
        "Process that created it, or was the first to post to it.",
        |qp, _| Value::Number(qp.pid.into()),
    )
    .on_demand(),
    Field::<QueuePair>::new(
        "comm",
        "COMM",
        Unit::Word,
        "Its name; empty if it made no call while traced.",
        |qp, _| Value::text(&qp.comm),
    )
    .on_demand(),
    Field::<QueuePair>::new("device", "DEVICE", Unit::Word, "RDMA device.", |qp, _| Value::text(&qp.device)),
    Field::<QueuePair>::new("qpn", "QP", Unit::Id, "Number of the queue pair.", |qp, _| {
        Value::Number(qp.qpn.into())
    }),
    Field::<QueuePair>::new("destroyed", "GONE", Unit::Word, "Whether it is gone.", |qp, _| {
        Value::Flag(qp.destroyed)
    }),
    Field::<QueuePair>::new(
        "posted_per_second",
        "POSTED/S",
        Unit::PerSecond,
        "Requests posted, a second.",
        |qp, seconds| per_second(qp.posted.saturating_add(qp.unsignalled), seconds),
    ),
    count("posted", "POSTED", "Requests posted whose success makes a completion.", |qp, _| {
        Value::Number(qp.posted)
    }),
    count("completed", "COMPLETED", "Completions of requests whose posting was seen.", |qp, _| {
        Value::Number(qp.completed)
    }),
    count("unsignalled", "UNSIGNALLED", "Requests posted whose success makes no completion.", |qp, _| {
        Value::Number(qp.unsignalled)
    })
    .on_demand(),
    count("unknown", "UNKNOWN", "Completions of requests whose posting was not seen.", |qp, _| {
        Value::Number(qp.unknown)
    })
    .on_demand(),
    count(
        "unsignalled_failed",
        "UNSIGNALLED FAILED",
        "Failed requests whose success would have made no completion.",
        |qp, _| Value::Number(qp.unsignalled_failed),
    )
    .on_demand(),
    count("overflowed", "OVERFLOWED", "Requests whose completion found its queue full.", |qp, _| {
        Value::Number(qp.overflowed)
    })
    .on_demand(),
    count(
        "forgotten",
        "FORGOTTEN",
        "Requests whose queue pair went before their completion came.",
        |qp, _| Value::Number(qp.forgotten),
    )
    .on_demand(),
    count("open", "OPEN", "Requests that had no completion yet.", |qp, _| Value::Number(qp.open)),
    count("retransmits", "RESENT", "Messages sent again, for whatever reason.", |qp, _| {
        let reasons = [qp.retransmits_timeout, qp.retransmits_sequence_error, qp.retransmits_rnr];
        Value::Number(reasons.iter().fold(0, |sum: u64, n| sum.saturating_add(*n)))
    }),
    count("rnr", "RNR", "How often the peer had no receive posted.", |qp, _| Value::Number(qp.rnr)),
    count("credit_stalls", "STALLS", "How often there was something to send and no room.", |qp, _| {
        Value::Number(qp.credit_stalls)
    }),
];
