//! Waiting for events.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use super::lane::good;
use super::{Lane, must};
use crate::pair::Ports;
use crate::random::Random;
use crate::verbs::{Channel, Cq, Error, Poller, Waiter};

const DEPTH: u32 = 64;

/// One thread arms and polls a queue `rounds` times and sleeps whenever there is nothing, while another one sends.
/// `burners` more threads keep processors busy. To sleep for `limit_ms` is to have slept on a completion that is there.
pub fn events(ports: &Ports, rounds: u64, burners: u32, limit_ms: i32) -> Result<String, Error> {
    let channel = Channel::new(&ports.contexts[0])?;
    let queue = Cq::with_channel(&channel, 4 * DEPTH as i32)?;
    let receive_cq = Cq::new(&ports.contexts[1], 2 * DEPTH as i32)?;
    let mut lane = Lane::new(ports, DEPTH, &queue, &receive_cq)?;
    let (taken, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    let (poller, waiter) = (queue.poller(), channel.waiter());
    thread::scope(|scope| {
        for _ in 0..burners {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let waiting = scope.spawn(|| {
            let slept = wait_and_take(poller, waiter, rounds, limit_ms, &taken);
            ended.store(true, Ordering::Release);
            slept
        });
        let sent = send(&mut lane, &taken, &ended);
        ended.store(true, Ordering::Release);
        let slept = waiting.join().unwrap_or_else(|_| Err(Error::Wrong("a thread panicked".to_owned())))?;
        sent.map(|()| format!("rounds={rounds} slept={slept} completions={}", taken.load(Ordering::Relaxed)))
    })
}

/// Returns how often it slept.
fn wait_and_take(
    poller: Poller<'_>,
    waiter: Waiter<'_>,
    rounds: u64,
    limit_ms: i32,
    taken: &AtomicU64,
) -> Result<u64, Error> {
    let mut slept = 0;
    for round in 0..rounds {
        // What was told of completions that were polled already would wake for nothing.
        while waiter.wait(0)? {}
        let errno = poller.arm();
        must(errno == 0, || format!("arming: errno {errno}"))?;
        let mut got = poller.poll(16)?;
        if got.is_empty() {
            slept += 1;
            let woken = waiter.wait(limit_ms)?;
            got = poller.poll(16)?;
            must(woken, || {
                let there = if got.is_empty() { "nothing came" } else { "there was a completion" };
                format!("round {round}: no event in {limit_ms} ms, and {there}")
            })?;
        }
        for completion in &got {
            good(completion)?;
            let next = taken.fetch_add(1, Ordering::AcqRel);
            must(completion.wr_id == next, || format!("completion {}, not {next}", completion.wr_id))?;
        }
    }
    Ok(slept)
}

/// Keeps one to four messages under way, so that the other thread may find any number, or none.
fn send(lane: &mut Lane, taken: &AtomicU64, ended: &AtomicBool) -> Result<(), Error> {
    let mut random = Random::new(1);
    let mut most = 1;
    while !ended.load(Ordering::Acquire) {
        if lane.sent - taken.load(Ordering::Acquire) < most {
            lane.send()?;
            most = random.within(1..=4) as u64;
            lane.receive_all()?;
        } else {
            thread::yield_now();
        }
    }
    Ok(())
}
