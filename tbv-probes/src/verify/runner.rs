//! Sends bursts and judges them.

use std::time::Duration;

use super::burst::Burst;
use super::{Message, random_message, sweep_sizes};
use crate::pair::{self, Endpoint, Ports, Shape};
use crate::random::Random;
use crate::verbs::{Connection, Error, Limits, Mr, Region};
use tbv_verbs_sys::IBV_ACCESS_LOCAL_WRITE;

/// What is to be checked.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Longest message of the sweep.
    pub max_bytes: usize,
    /// Longest message of the random part.
    pub random_bytes: usize,
    /// Most pieces of a message on either side, if the device has as many.
    pub max_sges: usize,
    /// Most messages under way in one direction.
    pub depth: usize,
    /// How long nothing may happen.
    pub patience: Duration,
}

/// What has been checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub messages: u64,
    pub bytes: u64,
    pub send_completions: u64,
    pub receive_completions: u64,
}

/// Two connected sides with memory for messages in both directions.
pub struct Runner {
    settings: Settings,
    random: Random,
    sides: [Side; 2],
    totals: Totals,
}

struct Side {
    // Memory is deregistered before the protection domain goes.
    source: Mr,
    target: Mr,
    endpoint: Endpoint,
    limits: Limits,
}

/// Alignment and guards of a full burst's messages.
const SLACK: usize = 64 * 1024;

impl Runner {
    pub fn new(ports: &Ports, mut settings: Settings, seed: u64) -> Result<Self, Error> {
        for context in &ports.contexts {
            let device = usize::try_from(context.attributes()?.max_sge).unwrap_or(1);
            settings.max_sges = settings.max_sges.min(device).max(1);
        }
        let requests = settings.depth as u32;
        let sges = settings.max_sges as u32;
        let limits = Limits {
            send_requests: requests,
            receive_requests: requests,
            send_sges: sges,
            receive_sges: sges,
        };
        let entries = settings.depth as i32;
        let shape = Shape { limits, send_cq_entries: entries, receive_cq_entries: entries };
        let [first, second] = pair::connected(ports, shape, Connection::default())?;
        let side = |endpoint: Endpoint| {
            let size = settings.max_bytes.max(settings.depth * settings.random_bytes) + SLACK;
            let register = |access| Mr::new(&endpoint.pd, &Region::new(size)?, access);
            // A source needs no permission to be written.
            let (source, target) = (register(0)?, register(IBV_ACCESS_LOCAL_WRITE)?);
            Ok::<_, Error>(Side { source, target, endpoint, limits })
        };
        let sides = [side(first)?, side(second)?];
        Ok(Self { settings, random: Random::new(seed), sides, totals: Totals::default() })
    }

    /// Settings as the devices allow them.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn totals(&self) -> Totals {
        self.totals
    }

    pub fn queue_pairs(&self) -> [u32; 2] {
        [0, 1].map(|i| self.sides[i].endpoint.qp.number())
    }

    /// Every size of the sweep, with and without immediate data, in each direction.
    pub fn sweep(&mut self) -> Result<(), Error> {
        for bytes in sweep_sizes(self.settings.max_bytes) {
            for from in [0, 1] {
                for immediate in [None, Some(self.random.word() as u32)] {
                    let context = format!("sweep, {bytes} bytes, immediate {immediate:x?}, from side {from}");
                    let messages = vec![Message::plain(bytes, immediate)];
                    self.exchange([(from, messages)]).map_err(|e| in_context(e, &context))?;
                }
            }
        }
        Ok(())
    }

    /// At least `count` messages by chance, in bursts, in one direction or both at once.
    pub fn chance(&mut self, count: u64) -> Result<(), Error> {
        let end = self.totals.messages + count;
        while self.totals.messages < end {
            let context = format!("random, after {} messages", self.totals.messages);
            let (first, second) = (self.random_burst(), self.random_burst());
            let result = match self.random.within(0..=2) {
                0 => self.exchange([(0, first)]),
                1 => self.exchange([(1, second)]),
                _ => self.exchange([(0, first), (1, second)]),
            };
            result.map_err(|e| in_context(e, &context))?;
        }
        Ok(())
    }

    fn random_burst(&mut self) -> Vec<Message> {
        let Settings { random_bytes, max_sges, depth, .. } = self.settings;
        let count = self.random.within(1..=depth);
        let mut messages: Vec<Message> =
            (0..count).map(|_| random_message(&mut self.random, random_bytes, max_sges, max_sges)).collect();
        if let Some(last) = messages.last_mut() {
            // Unsignalled requests leave the queue with the next signalled one.
            last.signaled = true;
        }
        messages
    }

    fn exchange<const N: usize>(&mut self, flows: [(usize, Vec<Message>); N]) -> Result<(), Error> {
        let mut bursts = Vec::with_capacity(N);
        for (from, messages) in flows {
            let (source, target) = (&self.sides[from], &self.sides[1 - from]);
            debug_assert!(messages.len() <= source.limits.send_requests as usize);
            let source = (&source.endpoint.qp, &source.source);
            let target = (&target.endpoint.qp, &target.target);
            bursts.push(Burst::place(&mut self.random, source, target, messages)?);
        }
        for burst in &bursts {
            burst.post_receives(self.random.chance(2))?;
        }
        for burst in &bursts {
            burst.post_sends(self.random.chance(2))?;
        }
        for burst in &bursts {
            let [sends, receives] = burst.due();
            let [from, to] = burst.qps();
            let wait = |what, n, due, queue: &crate::verbs::Cq| match queue.wait(self.settings.patience)? {
                Some(completion) => Ok(completion),
                None => Err(Error::Timeout(format!(
                    "no {what} completion for {:?}: {n} of {due} came",
                    self.settings.patience
                ))),
            };
            for n in 0..receives {
                burst.check_receive(n, &wait("receive", n, receives, to.receive_cq())?)?;
            }
            for n in 0..sends {
                burst.check_send(n, &wait("send", n, sends, from.send_cq())?)?;
            }
            self.totals.bytes += burst.check_memory()?;
            self.totals.messages += receives as u64;
            self.totals.receive_completions += receives as u64;
            self.totals.send_completions += sends as u64;
        }
        self.nothing_left()
    }

    /// No queue may hold a completion that nobody waits for.
    fn nothing_left(&self) -> Result<(), Error> {
        for side in &self.sides {
            for queue in [side.endpoint.qp.send_cq(), side.endpoint.qp.receive_cq()] {
                if let Some(extra) = queue.poll(1)?.pop() {
                    return Err(Error::Wrong(format!("a completion too many: {extra:?}")));
                }
            }
        }
        Ok(())
    }
}

fn in_context(error: Error, context: &str) -> Error {
    match error {
        Error::Wrong(text) => Error::Wrong(format!("{context}: {text}")),
        Error::Timeout(text) => Error::Timeout(format!("{context}: {text}")),
        other => other,
    }
}
