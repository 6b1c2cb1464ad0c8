//! What cases are played with: ports, and pairs with a little memory.

use std::rc::Rc;
use std::time::Duration;

use tbv_verbs_sys::{IBV_ACCESS_LOCAL_WRITE, IBV_QPS_ERR};

use super::outcome::{Outcome, Step};
use crate::pair::{self, Endpoint, Ports, Shape};
use crate::verbs::{Completion, Connection, Error, Idle, Mr, Qp, Receive, Refused, Region, Send};

/// The ports, and how long to wait.
pub struct Stage {
    pub ports: Ports,
    /// For what must happen.
    pub patience: Duration,
    /// For what must not happen.
    pub quiet: Duration,
}

/// One side with registered memory.
pub struct Player {
    // Deregistered before the endpoint's protection domain goes.
    pub mr: Mr,
    pub endpoint: Endpoint,
    patience: Duration,
}

/// Bytes of a player's memory.
pub(super) const MEMORY: usize = 64 * 1024;

impl Stage {
    /// Two connected players.
    pub fn connected(&self, shape: Shape, how: Connection) -> Result<[Player; 2], Error> {
        let [first, second] = pair::connected(&self.ports, shape, how)?;
        Ok([self.player(first)?, self.player(second)?])
    }

    /// Two connected players of usual shape.
    pub fn usual(&self) -> Result<[Player; 2], Error> {
        self.connected(Shape::default(), Connection::default())
    }

    /// Two players whose queue pairs are in state RESET.
    pub fn unconnected(&self) -> Result<[Player; 2], Error> {
        let [first, second] = pair::unconnected(&self.ports, Shape::default())?;
        Ok([self.player(first)?, self.player(second)?])
    }

    fn player(&self, endpoint: Endpoint) -> Result<Player, Error> {
        let mr = Mr::new(&endpoint.pd, &Region::new(MEMORY)?, IBV_ACCESS_LOCAL_WRITE)?;
        Ok(Player { mr, endpoint, patience: self.patience })
    }
}

impl Player {
    pub fn qp(&self) -> &Qp {
        &self.endpoint.qp
    }

    pub fn region(&self) -> &Rc<Region> {
        self.mr.region()
    }

    /// A signalled send of this many bytes from the start of the memory.
    pub fn send(&self, id: u64, bytes: usize) -> Send {
        Send::new(id, vec![self.mr.sge(0..bytes)])
    }

    /// A receive with room for this many bytes at the start of the memory.
    pub fn receive(&self, id: u64, bytes: usize) -> Receive {
        Receive::new(id, vec![self.mr.sge(0..bytes)])
    }

    pub fn post_send(&self, send: Send) -> Result<(), Refused> {
        self.qp().post_send(&mut [send])
    }

    pub fn post_receive(&self, receive: Receive) -> Result<(), Refused> {
        self.qp().post_receive(&mut [receive])
    }

    /// Posts what must be accepted.
    pub fn must_send(&self, send: Send) -> Result<(), Error> {
        self.post_send(send).map_err(|refused| Error::Verb { verb: "ibv_post_send", errno: refused.errno })
    }

    /// Posts what must be accepted.
    pub fn must_receive(&self, receive: Receive) -> Result<(), Error> {
        self.post_receive(receive)
            .map_err(|refused| Error::Verb { verb: "ibv_post_recv", errno: refused.errno })
    }

    /// The next send completion, or `None` if it doesn't come.
    pub fn sent(&self) -> Result<Option<Completion>, Error> {
        self.qp().send_cq().wait(self.patience)
    }

    /// Whether the queue pair has been broken. Some devices hand out the completion with the error before the state
    /// changes; that is tolerated, if it does change.
    pub fn broken(&self) -> Result<Step, Error> {
        let expected = IBV_QPS_ERR;
        let first = self.qp().state()?;
        let mut last = first;
        let mut idle = Idle::new(self.patience);
        while last != expected && !idle.is_over(false) {
            last = self.qp().state()?;
        }
        let number = |state: u32| Outcome::Number(state.into());
        let step = Step::new("state of the queue pair", number(first), number(expected));
        Ok(if last == expected { step.or(number(first)) } else { step })
    }

    /// The next receive completion, or `None` if it doesn't come.
    pub fn received(&self) -> Result<Option<Completion>, Error> {
        self.qp().receive_cq().wait(self.patience)
    }
}
