//! Many queue pairs, and everything that can become of a request.

use std::rc::Rc;

use tbv_verbs_sys::{IBV_QPS_ERR, IBV_QPS_RESET, IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR};

use super::pair::Pair;
use crate::pair::Ports;
use crate::queue::{Patience, must};
use crate::random::Random;
use crate::verbs::{Connection, Cq, Error, Send};

const UNSIGNALLED: u64 = 1;
const SIGNALLED: u64 = 2;
const RECEIVE: u64 = 3;

/// What was posted, and what came back.
#[derive(Debug, Default)]
struct Ledger {
    send: u64,
    send_with_imm: u64,
    receives: u64,
    unsignalled: u64,
    /// Completions of signalled requests.
    completed: u64,
    flushed: u64,
    unsignalled_failed: u64,
    forgotten: u64,
    queue_pairs: u64,
}

struct Mixed<'a> {
    ports: &'a Ports,
    queues: [Rc<Cq>; 2],
    random: Random,
    ledger: Ledger,
}

/// Rounds on queue pairs chosen by chance: lists of SEND and SEND with immediate data, signalled or not; now and then a
/// queue pair is flushed, reset or destroyed with requests in it, and another takes its place.
pub fn mixed(ports: &Ports, pairs: u32, rounds: u64, seed: u64) -> Result<String, Error> {
    let queues = [Cq::new(&ports.contexts[0], 4096)?, Cq::new(&ports.contexts[1], 4096)?];
    let mut mixed = Mixed { ports, queues, random: Random::new(seed), ledger: Ledger::default() };
    let mut all = (0..pairs).map(|_| mixed.pair()).collect::<Result<Vec<_>, _>>()?;
    for round in 0..rounds {
        let i = mixed.random.within(0..=all.len() - 1);
        mixed.messages(&all[i])?;
        if round % 8 == 7 {
            mixed.end(&all[i], round / 8 % 4)?;
            all[i] = mixed.pair()?;
        }
    }
    drop(all);
    let Ledger {
        send,
        send_with_imm,
        receives,
        unsignalled,
        completed,
        flushed,
        unsignalled_failed,
        forgotten,
        queue_pairs,
    } = mixed.ledger;
    Ok(format!(
        "queue_pairs={queue_pairs} send={send} send_with_imm={send_with_imm} recv={receives} \
         unsignalled={unsignalled} completed={completed} flushed={flushed} \
         unsignalled_failed={unsignalled_failed} forgotten={forgotten}"
    ))
}

impl Mixed<'_> {
    fn pair(&mut self) -> Result<Pair, Error> {
        self.ledger.queue_pairs += 2;
        Pair::new(self.ports, &self.queues[0], &self.queues[1], Connection::default())
    }

    fn sends(&mut self, n: usize, last_signalled: bool) -> Vec<Send> {
        let mut sends: Vec<Send> = Vec::new();
        for i in 0..n {
            let mut send = Send::new(SIGNALLED, Vec::new());
            send.immediate = self.random.chance(2).then_some(7);
            send.signaled = if i + 1 == n { last_signalled } else { self.random.chance(2) };
            if !send.signaled {
                send.id = UNSIGNALLED;
                self.ledger.unsignalled += 1;
            } else if send.immediate.is_some() {
                self.ledger.send_with_imm += 1;
            } else {
                self.ledger.send += 1;
            }
            sends.push(send);
        }
        sends
    }

    /// Some messages, until all of them are done.
    fn messages(&mut self, pair: &Pair) -> Result<(), Error> {
        let n = self.random.within(1..=8);
        self.receives(pair, n)?;
        let mut sends = self.sends(n, true);
        let signalled = sends.iter().filter(|send| send.signaled).count();
        pair.post_sends(self.random.logarithmic(8192), &mut sends)?;
        self.wait(signalled + n, IBV_WC_SUCCESS)
    }

    fn receives(&mut self, pair: &Pair, n: usize) -> Result<(), Error> {
        self.ledger.receives += n as u64;
        (0..n).try_for_each(|_| pair.post_receive(RECEIVE))
    }

    /// The end of a pair, with requests in it.
    fn end(&mut self, pair: &Pair, how: u64) -> Result<(), Error> {
        let open = self.random.within(1..=8);
        match how {
            0 => {}
            1 => {
                self.receives(pair, open)?;
                pair.ends.iter().try_for_each(|end| end.qp.to_state(IBV_QPS_ERR))?;
                // In ERR they are flushed at once, signalled or not.
                let mut sends = self.sends(open, false);
                pair.post_sends(1, &mut sends)?;
                self.wait(2 * open, IBV_WC_WR_FLUSH_ERR)?;
            }
            2 => {
                self.receives(pair, open)?;
                self.ledger.forgotten += open as u64;
                pair.ends[1].qp.to_state(IBV_QPS_RESET)?;
            }
            _ => {
                // Destroyed as it is.
                self.receives(pair, open)?;
                self.ledger.forgotten += open as u64;
            }
        }
        Ok(())
    }

    /// Takes so many completions, which all must have this status.
    fn wait(&mut self, mut count: usize, status: u32) -> Result<(), Error> {
        let mut patience = Patience::new();
        while count > 0 {
            let mut got = self.queues[0].poll(16)?;
            got.extend(self.queues[1].poll(16)?);
            patience.after(!got.is_empty(), "a completion")?;
            for completion in got {
                must(completion.status == status, || {
                    format!("status {}, not {status}, of request {}", completion.status, completion.wr_id)
                })?;
                self.ledger.flushed += u64::from(status != IBV_WC_SUCCESS);
                match completion.wr_id {
                    UNSIGNALLED => self.ledger.unsignalled_failed += 1,
                    _ => self.ledger.completed += 1,
                }
                count -= 1;
            }
        }
        Ok(())
    }
}
