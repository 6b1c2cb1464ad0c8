//! A process that scribbles on the page which it may write.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use super::access::{Shared, ring_and_page};
use super::{Lane, Patience, must};
use crate::pair::Ports;
use crate::random::Random;
use crate::verbs::{Cq, Error};

const DEPTH: u32 = 64;

/// Sends `count` messages while another thread writes random values over every word of the consumer page. Polls and
/// arms may fail; messages must arrive all the same, and the process must live.
pub fn hostile(ports: &Ports, cqe: u32, count: u64) -> Result<String, Error> {
    let queue = Cq::new(&ports.contexts[0], cqe as i32)?;
    let [_, page] = ring_and_page()?;
    let receive_cq = Cq::new(&ports.contexts[1], DEPTH as i32)?;
    let mut lane = Lane::new(ports, DEPTH, &queue, &receive_cq)?;
    let (ended, scribbles) = (AtomicBool::new(false), AtomicU64::new(0));
    let (mut polls, mut errors) = (0_u64, 0_u64);
    thread::scope(|scope| {
        scope.spawn(|| scribble(page, &ended, &scribbles));
        let mut everything = || {
            let mut patience = Patience::new();
            while lane.sent < count || scribbles.load(Ordering::Relaxed) < 100_000 {
                let errno = lane.try_send();
                // The send queue empties as messages are acknowledged, whatever becomes of their completions.
                must(errno == 0 || errno == libc::ENOMEM, || format!("posting: errno {errno}"))?;
                patience.after(errno == 0, "room in the send queue")?;
                lane.receive_all()?;
                polls += 1;
                errors += u64::from(queue.poll(8).is_err());
                let armed = queue.poller().arm();
                must(armed == 0, || format!("arming: errno {armed}"))?;
            }
            Ok(())
        };
        let result = everything();
        ended.store(true, Ordering::Relaxed);
        result
    })?;
    Ok(format!("messages={} scribbles={} polls={polls} errors={errors}", lane.sent, scribbles.into_inner()))
}

/// Likely wrong values near what is right, and any others.
fn scribble(page: Shared, ended: &AtomicBool, scribbles: &AtomicU64) {
    let mut random = Random::new(7);
    while !ended.load(Ordering::Relaxed) {
        // The first word is the one that counts.
        for word in (1..page.length / size_of::<u64>()).flat_map(|word| [0, word]) {
            let value = match random.within(0..=3) {
                0 => random.word(),
                1 => random.within(0..=1000) as u64,
                2 => u64::MAX - random.within(0..=1000) as u64,
                _ => 1 << random.within(0..=63),
            };
            // SAFETY: a word of the mapping, which lives as long as the queue; others access it atomically, too.
            unsafe {
                AtomicU64::from_ptr((page.address as *mut u64).add(word)).store(value, Ordering::Relaxed);
            }
            scribbles.fetch_add(u64::from(word == 0), Ordering::Relaxed);
        }
    }
}
