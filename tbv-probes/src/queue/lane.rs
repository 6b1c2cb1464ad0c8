//! One-way traffic between two queue pairs.

use std::rc::Rc;

use tbv_verbs_sys::{IBV_ACCESS_LOCAL_WRITE, IBV_WC_SUCCESS};

use super::{Patience, must};
use crate::pair::{self, Endpoint, Ports};
use crate::verbs::{Completion, Connection, Cq, Error, Limits, Mr, Receive, Region, Send};

/// Bytes of a message.
const BYTES: usize = 32;

/// Sends from the first port to the second.
pub struct Lane {
    // Deregistered before the protection domains go.
    memory: [Mr; 2],
    ends: [Endpoint; 2],
    /// Messages sent; the next one's id.
    pub sent: u64,
    received: u64,
    /// Whether the next message has its receive: its send was refused after that was posted.
    has_receive: bool,
}

impl Lane {
    /// A lane whose sends complete to `send_cq` and whose receives to `receive_cq`.
    pub fn new(ports: &Ports, depth: u32, send_cq: &Rc<Cq>, receive_cq: &Rc<Cq>) -> Result<Self, Error> {
        let limits = Limits { send_requests: depth, receive_requests: depth, send_sges: 1, receive_sges: 1 };
        // The other directions are not used.
        let idle = |i: usize| Cq::new(&ports.contexts[i], 1);
        let ends = [
            Endpoint::with_queues(ports.addresses[0], limits, send_cq, &idle(0)?)?,
            Endpoint::with_queues(ports.addresses[1], limits, &idle(1)?, receive_cq)?,
        ];
        pair::connect(&ends, Connection::default())?;
        let memory = |end: &Endpoint| Mr::new(&end.pd, &Region::new(BYTES)?, IBV_ACCESS_LOCAL_WRITE);
        Ok(Lane {
            memory: [memory(&ends[0])?, memory(&ends[1])?],
            ends,
            sent: 0,
            received: 0,
            has_receive: false,
        })
    }

    /// Number of the sending queue pair.
    pub fn qp_num(&self) -> u32 {
        self.ends[0].qp.number()
    }

    /// Posts a receive that nobody sends to.
    pub fn post_receive(&self, id: u64) -> Result<(), Error> {
        let posted =
            self.ends[1].qp.post_receive(&mut [Receive::new(id, vec![self.memory[1].sge(0..BYTES)])]);
        posted.map_err(|refused| Error::Wrong(format!("a receive was refused: errno {}", refused.errno)))
    }

    /// Posts a receive and a send to it; the errno value of what was refused.
    pub fn try_send(&mut self) -> i32 {
        if !self.has_receive {
            let receive = Receive::new(self.sent, vec![self.memory[1].sge(0..BYTES)]);
            if let Err(refused) = self.ends[1].qp.post_receive(&mut [receive]) {
                return refused.errno;
            }
        }
        let send = Send::new(self.sent, vec![self.memory[0].sge(0..BYTES)]);
        let sent = self.ends[0].qp.post_send(&mut [send]);
        self.has_receive = sent.is_err();
        match sent {
            Ok(()) => {
                self.sent += 1;
                0
            }
            Err(refused) => refused.errno,
        }
    }

    /// As above, and an error if it was refused.
    pub fn send(&mut self) -> Result<(), Error> {
        let errno = self.try_send();
        must(errno == 0, || format!("posting was refused: errno {errno}"))
    }

    /// Waits until all that was sent has been received, in order. No other lane may use the receive queue.
    pub fn receive_all(&mut self) -> Result<(), Error> {
        let mut patience = Patience::new();
        while self.received < self.sent {
            let got = self.ends[1].qp.receive_cq().poll(64)?;
            patience.after(!got.is_empty(), "a message on its way")?;
            for completion in got {
                good(&completion)?;
                must(completion.wr_id == self.received, || {
                    format!("message {} came, not {}", completion.wr_id, self.received)
                })?;
                self.received += 1;
            }
        }
        Ok(())
    }
}

/// An error unless the request succeeded.
pub(crate) fn good(completion: &Completion) -> Result<(), Error> {
    must(completion.status == IBV_WC_SUCCESS, || {
        format!("request {} ended with status {}", completion.wr_id, completion.status)
    })
}
