//! Several threads poll one queue.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use super::lane::good;
use super::{Lane, Patience, must};
use crate::pair::Ports;
use crate::random::Random;
use crate::verbs::{Completion, Cq, Error, Poller};

/// Messages that one lane has under way.
const DEPTH: u32 = 256;

/// Sends `count` messages on each of `lanes` lanes, never more at once than the queue holds, while `pollers` threads
/// poll it. Each completion must come once, and to each thread in the order of its queue pair.
pub fn threads(ports: &Ports, cqe: u32, pollers: u32, lanes: u32, count: u64) -> Result<String, Error> {
    let queue = Cq::new(&ports.contexts[0], cqe as i32)?;
    let mut traffic = Vec::new();
    for _ in 0..lanes {
        let receive_cq = Cq::new(&ports.contexts[1], DEPTH as i32)?;
        traffic.push(Lane::new(ports, DEPTH, &queue, &receive_cq)?);
    }
    let (taken, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    let capacity = queue.capacity() as u64;
    let poller = queue.poller();
    let (sent, seen) = thread::scope(|scope| {
        let threads: Vec<_> = (0..pollers)
            .map(|i| {
                scope.spawn({
                    let (taken, ended) = (&taken, &ended);
                    move || poll(poller, i, taken, ended)
                })
            })
            .collect();
        let sent = send_all(&mut traffic, count, capacity, &taken);
        ended.store(true, Ordering::Release);
        let seen: Vec<_> = threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Ok(Vec::new()))).collect();
        (sent, seen)
    });
    sent?;
    let mut all: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for seen in seen {
        let mut last: BTreeMap<u32, u64> = BTreeMap::new();
        for completion in seen? {
            good(&completion)?;
            let (qp, id) = (completion.qp_num, completion.wr_id);
            if let Some(before) = last.insert(qp, id) {
                must(before < id, || format!("QP {qp}: {id} after {before} in one thread"))?;
            }
            all.entry(qp).or_default().push(id);
        }
    }
    for lane in &traffic {
        let mut ids = all.remove(&lane.qp_num()).unwrap_or_default();
        ids.sort_unstable();
        must(ids.iter().copied().eq(0..count), || {
            format!("QP {}: {} completions, not each of {count} once", lane.qp_num(), ids.len())
        })?;
    }
    must(all.is_empty(), || format!("completions of queue pairs that do not exist: {:?}", all.keys()))?;
    Ok(format!("completions={} capacity={capacity}", u64::from(lanes) * count))
}

fn send_all(traffic: &mut [Lane], count: u64, capacity: u64, taken: &AtomicU64) -> Result<(), Error> {
    let (mut sent, mut seen, total) = (0, 0, count * traffic.len() as u64);
    let mut patience = Patience::new();
    while seen < total {
        let before = std::mem::replace(&mut seen, taken.load(Ordering::Acquire));
        let room = sent < total && sent - seen < capacity;
        patience.after(room || seen > before, "completions")?;
        if room {
            let lane = (sent % traffic.len() as u64) as usize;
            traffic[lane].send()?;
            sent += 1;
            // Before the receive queue is full.
            if traffic[lane].sent.is_multiple_of(u64::from(DEPTH / 2)) {
                traffic[lane].receive_all()?;
            }
        }
    }
    Ok(())
}

fn poll(
    poller: Poller<'_>,
    number: u32,
    taken: &AtomicU64,
    ended: &AtomicBool,
) -> Result<Vec<Completion>, Error> {
    let mut random = Random::new(number.into());
    let mut seen = Vec::new();
    loop {
        let last = ended.load(Ordering::Acquire);
        let got = poller.poll(random.within(1..=16))?;
        taken.fetch_add(got.len() as u64, Ordering::AcqRel);
        if got.is_empty() {
            if last {
                return Ok(seen);
            }
            thread::yield_now();
        }
        seen.extend(got);
    }
}
