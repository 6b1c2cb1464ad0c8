//! Fields of a completion queue of our own driver.

use super::{Field, Unit, Value, per_second};
use crate::report::{Completions, Report};

/// A completion queue, and what came in the time that is reported.
#[derive(Clone, Debug)]
pub struct QueueRow {
    /// The queue.
    pub queue: Completions,
    /// Completions put in.
    pub produced: u64,
    /// Completions taken out, in whatever way.
    pub consumed: u64,
}

impl QueueRow {
    /// Of a queue in a report.
    pub fn new(queue: &Completions) -> Self {
        QueueRow {
            produced: queue.produced_meanwhile(),
            consumed: queue.consumed_meanwhile(),
            queue: queue.clone(),
        }
    }

    /// Completions in it, as far as its last event tells.
    pub fn occupancy(&self) -> u64 {
        self.queue.produced.saturating_sub(self.queue.consumed)
    }

    /// All of a report.
    pub fn all(report: &Report) -> Vec<Self> {
        report.completions.iter().map(QueueRow::new).collect()
    }
}

fn share(part: u64, whole: u32) -> Value<'static> {
    Value::real((whole > 0).then(|| part as f64 * 100.0 / f64::from(whole)))
}

/// The fields, in the order of columns.
pub const FIELDS: &[Field<QueueRow>] = &[
    Field::<QueueRow>::new("pid", "PID", Unit::Id, "Process that created the queue.", |row, _| {
        Value::Number(row.queue.pid.into())
    }),
    Field::<QueueRow>::new("cqn", "CQ", Unit::Id, "The driver's number of the queue.", |row, _| {
        Value::Number(row.queue.cqn.into())
    }),
    Field::<QueueRow>::new(
        "path",
        "PATH",
        Unit::Word,
        "How completions are taken out: `mapped` from memory, `ioctl` by system call.",
        |row, _| Value::text(if row.queue.mapped { "mapped" } else { "ioctl" }),
    ),
    Field::<QueueRow>::new(
        "state",
        "STATE",
        Unit::Word,
        "`full`, `gone`, `existed` when that time began, or `new`.",
        |row, _| {
            Value::text(match &row.queue {
                queue if queue.destroyed == Some(true) => "gone",
                queue if queue.entries > 0 && row.occupancy() >= queue.entries.into() => "full",
                queue if queue.before.is_some() => "existed",
                _ => "new",
            })
        },
    ),
    Field::<QueueRow>::new(
        "produced_per_second",
        "PRODUCED/S",
        Unit::PerSecond,
        "Completions put in, a second.",
        |row, seconds| per_second(row.produced, seconds),
    ),
    Field::<QueueRow>::new(
        "consumed_per_second",
        "CONSUMED/S",
        Unit::PerSecond,
        "Completions taken out, a second.",
        |row, seconds| per_second(row.consumed, seconds),
    )
    .on_demand(),
    Field::<QueueRow>::new(
        "occupancy",
        "OCCUPANCY",
        Unit::Count,
        "Completions in it, as far as its last event tells.",
        |row, _| Value::Number(row.occupancy()),
    ),
    Field::<QueueRow>::new(
        "occupancy_percent",
        "FULL %",
        Unit::Percent,
        "The same in parts of its capacity.",
        |row, _| share(row.occupancy(), row.queue.entries),
    ),
    Field::<QueueRow>::new(
        "overflows",
        "OVERFLOWS",
        Unit::Count,
        "Completions that found the queue full.",
        |row, _| Value::Number(row.queue.overflows),
    ),
    Field::<QueueRow>::new(
        "produced",
        "PRODUCED",
        Unit::Count,
        "Completions put in over the queue's life.",
        |row, _| Value::Number(row.queue.produced),
    ),
    Field::<QueueRow>::new(
        "consumed",
        "CONSUMED",
        Unit::Count,
        "Completions taken out over the queue's life.",
        |row, _| Value::Number(row.queue.consumed),
    ),
    Field::<QueueRow>::new(
        "consumed_by_ioctl",
        "BY IOCTL",
        Unit::Count,
        "Completions taken out by a system call while traced.",
        |row, _| Value::Number(row.queue.consumed_by_ioctl),
    ),
    Field::<QueueRow>::new(
        "consumed_in_user_space",
        "IN USER SPACE",
        Unit::Count,
        "Completions taken out without a system call.",
        |row, _| Value::number(row.queue.consumed_in_user_space_meanwhile()),
    ),
    Field::<QueueRow>::new(
        "polls_hit",
        "HITS",
        Unit::Count,
        "Polls in user space that took completions; n/a without the provider's probes.",
        |row, _| Value::number(row.queue.polls_hit),
    )
    .on_demand(),
    Field::<QueueRow>::new(
        "polls_empty",
        "EMPTY",
        Unit::Count,
        "Polls in user space that found nothing; n/a without the provider's probes.",
        |row, _| Value::number(row.queue.polls_empty),
    )
    .on_demand(),
    Field::<QueueRow>::new("failed", "FAILED", Unit::Count, "Completions that report an error.", |row, _| {
        Value::Number(row.queue.failed)
    }),
    Field::<QueueRow>::new(
        "occupancy_max",
        "MOST",
        Unit::Count,
        "Most completions in it right after one was put in.",
        |row, _| Value::Number(row.queue.occupancy_max),
    ),
    Field::<QueueRow>::new(
        "occupancy_mean",
        "MEAN",
        Unit::Count,
        "Completions in it right after one was put in, on average.",
        |row, _| Value::real(row.queue.occupancy_mean),
    )
    .on_demand(),
    Field::<QueueRow>::new("entries", "ENTRIES", Unit::Count, "Its capacity.", |row, _| {
        Value::Number(row.queue.entries.into())
    }),
    Field::<QueueRow>::new(
        "purged",
        "PURGED",
        Unit::Count,
        "Completions of queue pairs that went before these were taken out.",
        |row, _| Value::Number(row.queue.purged),
    )
    .on_demand(),
    Field::<QueueRow>::new("device", "DEVICE", Unit::Word, "RDMA device.", |row, _| {
        Value::text(&row.queue.device)
    }),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::TotalsBefore;

    fn queue(produced: u64, consumed: u64) -> Completions {
        serde_json::from_value(serde_json::json!({
            "pid": 1, "device": "d", "cqn": 3, "entries": 4, "mapped": true, "produced": produced,
            "consumed": consumed, "consumed_by_ioctl": 0, "failed": 0, "overflows": 0, "occupancy_max": 0
        }))
        .unwrap()
    }

    #[test]
    fn what_came_is_what_came_since_that_time_began() {
        let before = Some(TotalsBefore { produced: 70, consumed: 70 });
        let row = QueueRow::new(&Completions { before, ..queue(100, 96) });
        assert_eq!((row.produced, row.consumed, row.occupancy()), (30, 26, 4));
        let row = QueueRow::new(&queue(5, 2));
        assert_eq!((row.produced, row.consumed), (5, 2));
    }

    #[test]
    fn a_full_queue_says_so() {
        let state = |row: &QueueRow| (super::super::named(FIELDS, "state").unwrap().read)(row, 1.0).plain();
        assert_eq!(state(&QueueRow::new(&queue(8, 4))), "full");
        assert_eq!(state(&QueueRow::new(&queue(8, 5))), "new");
        let gone = Completions { destroyed: Some(true), ..queue(8, 4) };
        assert_eq!(state(&QueueRow::new(&gone)), "gone");
    }
}
