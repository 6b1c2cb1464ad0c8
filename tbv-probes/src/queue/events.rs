//! Waiting for events.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::lane::good;
use super::{Lane, must};
use crate::pair::Ports;
use crate::random::Random;
use crate::verbs::{Channel, Cq, Error};

const DEPTH: u32 = 64;
/// Milliseconds after which a sleep was one too many.
const OVERSLEPT: i32 = 20_000;

/// Arms and polls a queue `rounds` times, sleeping whenever there is nothing. `burners` more threads keep processors
/// busy meanwhile. To sleep on a completion that is there is wrong.
pub fn events(ports: &Ports, rounds: u64, burners: u32) -> Result<String, Error> {
    let channel = Channel::new(&ports.contexts[0])?;
    let queue = Cq::with_channel(&channel, 4 * DEPTH as i32)?;
    let receive_cq = Cq::new(&ports.contexts[1], DEPTH as i32)?;
    let mut lane = Lane::new(ports, DEPTH, &queue, &receive_cq)?;
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..burners {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = wait_and_take(&mut lane, &queue, &channel, rounds);
        ended.store(true, Ordering::Relaxed);
        result
    })
}

fn wait_and_take(lane: &mut Lane, queue: &Cq, channel: &Channel, rounds: u64) -> Result<String, Error> {
    let mut random = Random::new(rounds);
    let (mut taken, mut slept) = (0, 0);
    for round in 0..rounds {
        // Some, none or many are on their way when the queue is armed, some come after.
        send(lane, random.within(0..=3), taken)?;
        let errno = queue.arm();
        must(errno == 0, || format!("arming: errno {errno}"))?;
        send(lane, random.within(usize::from(lane.sent == taken)..=2), taken)?;
        let before = taken;
        take(queue, &mut taken)?;
        if taken == before {
            slept += 1;
            if !channel.wait(OVERSLEPT)? {
                let there = queue.poll(1)?.len();
                let what = if there > 0 { "on a completion that was there" } else { "and nothing came" };
                return Err(Error::Wrong(format!("round {round}: slept {OVERSLEPT} ms {what}")));
            }
        }
        take(queue, &mut taken)?;
        if lane.sent.is_multiple_of(16) {
            lane.receive_all()?;
        }
    }
    Ok(format!("rounds={rounds} slept={slept} completions={taken}"))
}

fn send(lane: &mut Lane, n: usize, taken: u64) -> Result<(), Error> {
    for _ in 0..n {
        if lane.sent - taken < u64::from(DEPTH) / 2 {
            lane.send()?;
        }
        if lane.sent.is_multiple_of(16) {
            lane.receive_all()?;
        }
    }
    Ok(())
}

fn take(queue: &Cq, taken: &mut u64) -> Result<(), Error> {
    for completion in queue.poll(16)? {
        good(&completion)?;
        must(completion.wr_id == *taken, || format!("completion {}, not {taken}", completion.wr_id))?;
        *taken += 1;
    }
    Ok(())
}
