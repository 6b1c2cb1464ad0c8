//! Messages one after the other, or in one direction as fast as they go.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::pair::{DEPTH, Pair};
use crate::pair::Ports;
use crate::queue::{Patience, must};
use crate::verbs::{Connection, Cq, Error, Send};

/// A second: a busy machine is late with an acknowledgement, and nothing is sent again for that.
const UNHURRIED: u8 = 18;
/// Longer than any cable's delay: nothing is sent again for want of patience.
const PATIENT: Connection =
    Connection { timeout: 20, retry_count: 7, rnr_retry: 7, min_rnr_timer: 12, send_psn: 0, receive_psn: 0 };

struct Single {
    queues: [std::rc::Rc<Cq>; 2],
    pair: Pair,
}

impl Single {
    fn new(ports: &Ports, how: Connection) -> Result<Self, Error> {
        let queue = |i: usize| Cq::new(&ports.contexts[i], 2 * DEPTH as i32);
        let queues = [queue(0)?, queue(1)?];
        let pair = Pair::new(ports, &queues[0], &queues[1], how)?;
        Ok(Single { queues, pair })
    }

    /// Takes the next completion of one of the two queues.
    fn next(&self, end: usize) -> Result<(), Error> {
        let mut patience = Patience::new();
        loop {
            if let Some(completion) = self.queues[end].poll(1)?.pop() {
                return must(completion.status == 0, || format!("status {}", completion.status));
            }
            patience.after(false, "a completion")?;
        }
    }
}

/// One message at a time. How long each took, from before it was posted until its completion was there, goes into the
/// file, in nanoseconds.
pub fn latency(ports: &Ports, count: u64, samples: Option<&Path>) -> Result<String, Error> {
    let single = Single::new(ports, PATIENT)?;
    let failed = |e: std::io::Error| Error::Unusable(format!("cannot write the samples: {e}"));
    let mut file = samples.map(File::create).transpose().map_err(failed)?.map(BufWriter::new);
    for id in 0..count {
        single.pair.post_receive(id)?;
        let mut sends = [Send::new(id, Vec::new())];
        let begin = Instant::now();
        single.pair.post_sends(64, &mut sends)?;
        single.next(0)?;
        let took = begin.elapsed().as_nanos();
        single.next(1)?;
        if let Some(file) = &mut file {
            writeln!(file, "{took}").map_err(failed)?;
        }
    }
    if let Some(mut file) = file {
        file.flush().map_err(failed)?;
    }
    Ok(format!("messages={count}"))
}

/// Messages in one direction, as many under way as the queues hold.
pub fn one_way(ports: &Ports, count: u64, bytes: usize) -> Result<String, Error> {
    let single = Single::new(ports, Connection { timeout: UNHURRIED, ..Connection::default() })?;
    let depth = u64::from(DEPTH);
    let (mut sent, mut done, mut received) = (0, 0, 0);
    let mut patience = Patience::new();
    for id in 0..depth.min(count) {
        single.pair.post_receive(id)?;
    }
    while done < count || received < count {
        while sent < count && sent - done < depth && sent - received < depth {
            single.pair.post_sends(bytes, &mut [Send::new(sent, Vec::new())])?;
            sent += 1;
        }
        let sends = single.queues[0].poll(16)?;
        let receives = single.queues[1].poll(16)?;
        patience.after(!sends.is_empty() || !receives.is_empty(), "a completion")?;
        for completion in sends.iter().chain(&receives) {
            must(completion.status == 0, || format!("status {}", completion.status))?;
        }
        done += sends.len() as u64;
        for _ in receives {
            received += 1;
            if received + depth <= count {
                single.pair.post_receive(received + depth - 1)?;
            }
        }
    }
    Ok(format!("messages={count}"))
}

/// Messages that have no receive until so long after they were sent.
pub fn rnr(ports: &Ports, count: u64, late: Duration) -> Result<String, Error> {
    let single = Single::new(ports, PATIENT)?;
    for id in 0..count {
        single.pair.post_sends(64, &mut [Send::new(id, Vec::new())])?;
        thread::sleep(late);
        single.pair.post_receive(id)?;
        single.next(0)?;
        single.next(1)?;
    }
    Ok(format!("messages={count}"))
}
