//! Extended completion queues.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use tbv_verbs_sys::{IBV_WC_RECV, IBV_WC_SEND};

use super::lane::good;
use super::{Lane, Patience, must};
use crate::pair::Ports;
use crate::verbs::{Completion, Error, Extended};

const DEPTH: u32 = 64;

/// Both completions of each message go to an extended queue; two threads poll it, which its lock must keep apart.
pub fn extended(ports: &Ports, count: u64) -> Result<String, Error> {
    let queue = Extended::new(&ports.contexts[0], 4 * DEPTH)?;
    let same = std::rc::Rc::ptr_eq(&ports.contexts[0], &ports.contexts[1]);
    must(same, || "both ends must be one device, for one queue to serve them".to_owned())?;
    let mut lane = Lane::new(ports, DEPTH, &queue.cq, &queue.cq)?;
    let (taken, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    let poll = || -> Result<Vec<Completion>, Error> {
        let mut seen = Vec::new();
        while !ended.load(Ordering::Acquire) {
            let got = queue.poll(5)?;
            taken.fetch_add(got.len() as u64, Ordering::AcqRel);
            if got.is_empty() {
                thread::yield_now();
            }
            seen.extend(got);
        }
        Ok(seen)
    };
    let mut all = Vec::new();
    let (sent, seen) = thread::scope(|scope| {
        let threads = [scope.spawn(poll), scope.spawn(poll)];
        let sent = send_in_bursts(&mut lane, count, &taken);
        ended.store(true, Ordering::Release);
        (sent, threads.map(|t| t.join().unwrap_or_else(|_| Ok(Vec::new()))))
    });
    sent?;
    for seen in seen {
        all.extend(seen?);
    }
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    for completion in &all {
        good(completion)?;
        match completion.opcode {
            IBV_WC_SEND => sends.push(completion.wr_id),
            IBV_WC_RECV => {
                must(completion.byte_len == 32 && completion.src_qp == lane.qp_num(), || {
                    format!("{} bytes from QP {}", completion.byte_len, completion.src_qp)
                })?;
                receives.push(completion.wr_id);
            }
            other => return Err(Error::Wrong(format!("opcode {other}"))),
        }
    }
    for mut ids in [sends, receives] {
        ids.sort_unstable();
        must(ids.iter().copied().eq(0..lane.sent), || format!("{} of {}", ids.len(), lane.sent))?;
    }
    Ok(format!("completions={}", all.len()))
}

/// Sends as much as the queue pairs hold, and again when both completions of each message were taken.
fn send_in_bursts(lane: &mut Lane, count: u64, taken: &AtomicU64) -> Result<(), Error> {
    while lane.sent < count {
        for _ in 0..DEPTH {
            lane.send()?;
        }
        let (mut patience, mut seen) = (Patience::new(), 0);
        while seen < 2 * lane.sent {
            let before = std::mem::replace(&mut seen, taken.load(Ordering::Acquire));
            patience.after(seen > before, "the end of a burst")?;
        }
    }
    Ok(())
}
