//! Sends bursts and judges them.

use std::time::Duration;

use super::burst::{Burst, MAX_START};
use super::plan::MAX_SPARE;
use super::{Layout, Message, random_message, sweep_sizes};
use crate::pair::{self, Endpoint, Ports, Shape};
use crate::random::Random;
use crate::verbs::{Connection, Error, Idle, Limits, Mr, Region};
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

/// Bytes for the larger of one message of the sweep and a full burst by chance, guards included.
fn memory(settings: &Settings) -> usize {
    let sweep = Layout::most(settings.max_bytes, 1);
    let message = Layout::most(settings.random_bytes + MAX_SPARE, settings.max_sges);
    MAX_START + sweep.max(settings.depth * message)
}

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
            let register = |access| Mr::new(&endpoint.pd, &Region::new(memory(&settings))?, access);
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
        self.collect(&bursts)?;
        for burst in &bursts {
            let [sends, receives] = burst.due();
            self.totals.bytes += burst.check_memory()?;
            self.totals.messages += receives as u64;
            self.totals.receive_completions += receives as u64;
            self.totals.send_completions += sends as u64;
        }
        self.nothing_left()
    }

    /// Takes and checks all completions that are due. Watching sends and receives together tells an error at once.
    fn collect(&self, bursts: &[Burst]) -> Result<(), Error> {
        let mut taken = vec![[0; 2]; bursts.len()];
        let mut idle = Idle::new(self.settings.patience);
        while bursts.iter().zip(&taken).any(|(burst, taken)| *taken != burst.due()) {
            let mut progress = false;
            for (burst, taken) in bursts.iter().zip(&mut taken) {
                let ([sends, receives], due) = (burst.queues(), burst.due());
                for completion in sends.poll(due[0] - taken[0])? {
                    burst.check_send(taken[0], &completion)?;
                    (taken[0], progress) = (taken[0] + 1, true);
                }
                for completion in receives.poll(due[1] - taken[1])? {
                    burst.check_receive(taken[1], &completion)?;
                    (taken[1], progress) = (taken[1] + 1, true);
                }
            }
            if idle.is_over(progress) {
                let patience = self.settings.patience;
                let due: Vec<_> = bursts.iter().map(Burst::due).collect();
                return Err(Error::Timeout(format!(
                    "no completion for {patience:?}; [sends, receives] completed {taken:?} of {due:?}"
                )));
            }
        }
        Ok(())
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
