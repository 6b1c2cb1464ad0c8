//! Traffic and pollers until something ends it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tbv_verbs_sys::IBV_WC_SUCCESS;

use super::gone::announce;
use super::{Lane, must};
use crate::pair::Ports;
use crate::random::Random;
use crate::verbs::{Cq, Error, Poller};

const DEPTH: u32 = 64;

/// What ends it.
#[derive(Clone, Copy, Debug)]
pub enum Ending {
    /// The device goes, or the process is killed.
    Outside,
    /// The device's file is closed under the process's feet, after so long.
    CloseFile(Duration),
    /// Queues are destroyed and made anew, with whatever is in them, for so long.
    Destroy(Duration),
}

/// What two polling threads saw.
#[derive(Debug, Default)]
struct Seen {
    good: AtomicU64,
    failed: AtomicU64,
    errors: AtomicU64,
}

/// Sends and polls until that ends; no end may do harm.
pub fn load(ports: &Ports, cqe: u32, ending: Ending) -> Result<String, Error> {
    let read = |n: &AtomicU64| n.load(Ordering::Relaxed);
    let seen = Seen::default();
    let begin = Instant::now();
    let mut queues = 0_u64;
    match ending {
        Ending::Destroy(time) => {
            let mut random = Random::new(queues);
            while begin.elapsed() < time {
                let mut traffic = Traffic::new(ports, cqe)?;
                traffic.run(&seen, Some(random.within(1..=300) as u64), || ())?;
                // With completions in it, which nobody takes.
                for _ in 0..random.within(0..=8) {
                    traffic.lane.try_send();
                }
                queues += 1;
            }
        }
        Ending::CloseFile(mut time) => {
            let fd = ports.contexts[0].fd();
            let mut begin = None;
            let close = || {
                if read(&seen.good) > 0 && begin.get_or_insert_with(Instant::now).elapsed() >= time {
                    // SAFETY: a descriptor of the context, which tolerates that: its calls fail from now on. What the
                    // kernel holds for it stays until the queue is unmapped.
                    unsafe { libc::close(fd) };
                    time = Duration::MAX;
                }
            };
            Traffic::new(ports, cqe)?.run(&seen, None, close)?;
            queues = 1;
        }
        Ending::Outside => {
            let mut told = false;
            let tell = || {
                if !told && read(&seen.good) > 0 {
                    announce();
                    told = true;
                }
            };
            Traffic::new(ports, cqe)?.run(&seen, None, tell)?;
            queues = 1;
        }
    }
    must(read(&seen.good) > 0, || "no message was ever sent".to_owned())?;
    Ok(format!(
        "queues={queues} good={} failed={} errors={}",
        read(&seen.good),
        read(&seen.failed),
        read(&seen.errors)
    ))
}

struct Traffic {
    lane: Lane,
    queue: std::rc::Rc<Cq>,
}

impl Traffic {
    fn new(ports: &Ports, cqe: u32) -> Result<Self, Error> {
        let queue = Cq::new(&ports.contexts[0], cqe as i32)?;
        let receive_cq = Cq::new(&ports.contexts[1], 2 * DEPTH as i32)?;
        Ok(Traffic { lane: Lane::new(ports, DEPTH, &queue, &receive_cq)?, queue })
    }

    /// Until `limit` messages are sent, the device's file is closed, or a poll says that all is over.
    fn run(&mut self, seen: &Seen, limit: Option<u64>, mut each_time: impl FnMut()) -> Result<(), Error> {
        let over = AtomicBool::new(false);
        let poller = self.queue.poller();
        let lane = &mut self.lane;
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| poll(poller, seen, &over));
            }
            while !over.load(Ordering::Acquire) && limit.is_none_or(|limit| lane.sent < limit) {
                each_time();
                match lane.try_send() {
                    0 => {}
                    libc::EBADF => break,
                    // Full, or gone: the pollers find out by themselves.
                    _ => thread::sleep(Duration::from_micros(100)),
                }
                if lane.receive_all().is_err() {
                    break;
                }
            }
            over.store(true, Ordering::Release);
        });
        Ok(())
    }
}

fn poll(poller: Poller<'_>, seen: &Seen, over: &AtomicBool) {
    loop {
        let last = over.load(Ordering::Acquire);
        match poller.poll(7) {
            Ok(got) if got.is_empty() => {
                if last {
                    return;
                }
                thread::yield_now();
            }
            Ok(got) => {
                for completion in got {
                    let count = if completion.status == IBV_WC_SUCCESS { &seen.good } else { &seen.failed };
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
            // An overflow is told once; any other error means that the device is gone.
            Err(Error::Verb { errno: libc::EOVERFLOW, .. }) => {}
            Err(_) => {
                seen.errors.fetch_add(1, Ordering::Relaxed);
                over.store(true, Ordering::Release);
                return;
            }
        }
    }
}
