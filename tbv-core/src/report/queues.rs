//! What reports say of completion and work queues.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tbv_common::{Before, Cq, CqKey, Work, WorkKey};

use super::driver_device;
use crate::{devices::Devices, messages};

/// What happened on one completion queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Completions {
    /// Process that created the queue.
    pub pid: u32,
    /// RDMA device.
    pub device: String,
    /// The driver's number of the queue.
    pub cqn: u32,
    /// Its capacity.
    pub entries: u32,
    /// Whether it was published to user space.
    pub mapped: bool,
    /// Whether it is gone; absent in reports of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destroyed: Option<bool>,
    /// Completions put in over its life.
    pub produced: u64,
    /// Completions taken out over its life.
    pub consumed: u64,
    /// Completions taken out by a system call while traced.
    pub consumed_by_ioctl: u64,
    /// Completions taken out in user space, without a system call: `consumed` less what system calls took and what
    /// was purged. Known up to the queue's last event, and whole once it is destroyed. Of a queue that existed when
    /// tracing began: since its first event. Absent if the queue was not published, if it existed and had no event, or
    /// in an interval.
    #[serde(default)]
    pub consumed_in_user_space: Option<u64>,
    /// Completions of queue pairs that were reset or destroyed before these were taken out, while traced.
    #[serde(default)]
    pub purged: u64,
    /// Completions that were seen taken out, by a system call or as the provider's probes tell, and of which is not
    /// known when they were put in: before tracing began, or the queue was rearranged when one of its queue pairs went,
    /// or one poll took more than are followed. Absent if spans were not measured.
    #[serde(default)]
    pub untimed: Option<u64>,
    /// Completions that report an error, while traced.
    pub failed: u64,
    /// Completions that found the queue full, while traced.
    pub overflows: u64,
    /// Most completions in it right after one was put in.
    pub occupancy_max: u64,
    /// Completions in it right after one was put in, on average; absent if none was, while traced.
    #[serde(default)]
    pub occupancy_mean: Option<f64>,
    /// Polls in user space that took completions, while traced. This and the three that follow are from the provider's
    /// probes: absent if none told of the queue, because they were not attached or nobody polled it in user space.
    #[serde(default)]
    pub polls_hit: Option<u64>,
    /// Polls in user space that found nothing.
    #[serde(default)]
    pub polls_empty: Option<u64>,
    /// Polls in user space that told of lost completions.
    #[serde(default)]
    pub polls_overflow: Option<u64>,
    /// Completions that `polls_hit` took. Once the queue is destroyed it is `consumed_in_user_space`, unless the queue
    /// existed when tracing began (that one counts from the queue's first event on), or a thread was killed between
    /// taking and telling.
    #[serde(default)]
    pub polled: Option<u64>,
    /// Of a queue that existed when the time that is reported began: what had happened on it before; absent if it was
    /// created later.
    #[serde(default)]
    pub before: Option<TotalsBefore>,
}

/// What had happened on a completion queue before an interval; or before its first event while traced, or if it had
/// none, up to its last event before tracing began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TotalsBefore {
    /// Completions put in.
    pub produced: u64,
    /// Completions taken out.
    pub consumed: u64,
}

impl Completions {
    /// Completions put in during the time that is reported.
    pub fn produced_meanwhile(&self) -> u64 {
        self.produced.saturating_sub(self.before.map_or(0, |before| before.produced))
    }

    /// Completions taken out during that time, in whatever way.
    pub fn consumed_meanwhile(&self) -> u64 {
        self.consumed.saturating_sub(self.before.map_or(0, |before| before.consumed))
    }

    /// Completions taken out during that time without a system call: what neither one nor a purge took. `None` if the
    /// queue was not published, or had no event that would tell.
    pub fn consumed_in_user_space_meanwhile(&self) -> Option<u64> {
        let (produced, consumed) = (self.produced_meanwhile(), self.consumed_meanwhile());
        let told = self.mapped && (self.before.is_none() || produced > 0 || consumed > 0);
        let taken = self.consumed_by_ioctl.saturating_add(self.purged);
        self.consumed_in_user_space.or_else(|| told.then(|| consumed.saturating_sub(taken)))
    }
}

/// Queues of one process that are polled by system call, though it wanted to poll them in user space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FallBacks {
    /// The process.
    pub pid: u32,
    /// Its name; empty if it made no call while traced.
    pub comm: String,
    /// `not_offered`: the kernel module does not offer queues. `forks_unseen`: a forked child could not be told from the
    /// process. `bad_offer`, `not_mapped`, `bad_ring`: what it offers does not add up, cannot be mapped, or is something
    /// else. `device_gone`: what was polled in user space until its device went. Or a number that came later.
    pub reason: String,
    /// Queues.
    pub queues: u64,
}

/// Work requests of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkRequests {
    /// Process that posted them.
    pub pid: u32,
    /// RDMA device.
    pub device: String,
    /// `send` or `receive`.
    pub queue: String,
    /// Opcode, as in the uapi without prefix: `SEND`, `SEND_WITH_IMM`, `RECV`, …
    pub opcode: String,
    /// Posted and accepted.
    pub posted: u64,
    /// Those of them whose success makes a completion.
    pub signalled: u64,
}

pub(super) fn completions(key: CqKey, cq: &Cq, devices: &Devices, timed: bool) -> Completions {
    let told = |n: u64| (cq.told != 0).then_some(n);
    Completions {
        pid: cq.pid,
        device: driver_device(key.device, devices),
        cqn: key.cqn,
        entries: cq.entries,
        mapped: cq.mapped != 0,
        destroyed: Some(cq.destroyed != 0),
        produced: cq.produced,
        consumed: cq.consumed,
        consumed_by_ioctl: cq.consumed_by_ioctl,
        consumed_in_user_space: (cq.mapped != 0 && cq.before != Before::Untouched as u32).then(|| {
            [cq.consumed_before, cq.consumed_by_ioctl, cq.purged]
                .iter()
                .fold(cq.consumed, |left, n| left.saturating_sub(*n))
        }),
        purged: cq.purged,
        untimed: timed.then_some(cq.untimed),
        failed: cq.failed,
        overflows: cq.overflows,
        occupancy_max: cq.occupancy_max,
        occupancy_mean: (cq.pushed > 0).then(|| cq.occupancy_sum as f64 / cq.pushed as f64),
        polls_hit: told(cq.polls_hit),
        polls_empty: told(cq.polls_empty),
        polls_overflow: told(cq.polls_overflow),
        polled: told(cq.polled),
        before: (cq.before != Before::No as u32)
            .then_some(TotalsBefore { produced: cq.produced_before, consumed: cq.consumed_before }),
    }
}

pub(super) fn work_requests(key: WorkKey, work: &Work, devices: &Devices) -> WorkRequests {
    WorkRequests {
        pid: key.pid,
        device: driver_device(key.device, devices),
        queue: messages::queue_name(key.queue).to_owned(),
        opcode: messages::opcode_name(key.queue, key.opcode),
        posted: work.posted,
        signalled: work.signalled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_before_is_not_taken_while_traced() {
        let cq =
            Cq { mapped: 1, produced: 100, consumed: 90, consumed_by_ioctl: 5, purged: 3, ..Cq::default() };
        let key = CqKey { device: 0, cqn: 1 };
        let report = |before, consumed_before| {
            let cq = Cq { before: before as u32, produced_before: 70, consumed_before, ..cq };
            completions(key, &cq, &Devices::new(), false)
        };
        let new = report(Before::No, 0);
        assert_eq!((new.consumed_in_user_space, new.produced_meanwhile(), new.before), (Some(82), 100, None));
        let old = report(Before::Touched, 60);
        assert_eq!((old.consumed_in_user_space, old.produced_meanwhile()), (Some(22), 30));
        assert_eq!(old.before, Some(TotalsBefore { produced: 70, consumed: 60 }));
        // Nothing tells how far its consumers are.
        assert_eq!(report(Before::Untouched, 60).consumed_in_user_space, None);
    }
}
