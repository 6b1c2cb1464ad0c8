//! Two queue pairs that send to each other, and their memory.

use std::rc::Rc;

use tbv_verbs_sys::IBV_ACCESS_LOCAL_WRITE;

use crate::pair::{self, Endpoint, Ports};
use crate::verbs::{Connection, Cq, Error, Limits, Mr, Receive, Refused, Region, Send};

/// Requests that each queue holds.
pub(super) const DEPTH: u32 = 64;
/// Bytes of the longest message.
const BYTES: usize = 65_536;

/// Sends from the first port to the second.
pub(super) struct Pair {
    // Deregistered before the protection domains go.
    memory: [Mr; 2],
    pub(super) ends: [Endpoint; 2],
}

impl Pair {
    pub(super) fn new(
        ports: &Ports,
        send_cq: &Rc<Cq>,
        receive_cq: &Rc<Cq>,
        how: Connection,
    ) -> Result<Self, Error> {
        let limits = Limits { send_requests: DEPTH, receive_requests: DEPTH, send_sges: 1, receive_sges: 1 };
        // The other directions are not used.
        let idle = |i: usize| Cq::new(&ports.contexts[i], 1);
        let ends = [
            Endpoint::with_queues(ports.addresses[0], limits, send_cq, &idle(0)?)?,
            Endpoint::with_queues(ports.addresses[1], limits, &idle(1)?, receive_cq)?,
        ];
        pair::connect(&ends, how)?;
        let memory = |end: &Endpoint| Mr::new(&end.pd, &Region::new(BYTES)?, IBV_ACCESS_LOCAL_WRITE);
        Ok(Pair { memory: [memory(&ends[0])?, memory(&ends[1])?], ends })
    }

    pub(super) fn post_receive(&self, id: u64) -> Result<(), Error> {
        posted(self.ends[1].qp.post_receive(&mut [Receive::new(id, vec![self.memory[1].sge(0..BYTES)])]))
    }

    /// Posts a list of sends of so many bytes.
    pub(super) fn post_sends(&self, bytes: usize, sends: &mut [Send]) -> Result<(), Error> {
        for send in sends.iter_mut() {
            send.sges = vec![self.memory[0].sge(0..bytes)];
        }
        posted(self.ends[0].qp.post_send(sends))
    }
}

fn posted(result: Result<(), Refused>) -> Result<(), Error> {
    result.map_err(|refused| Error::Wrong(format!("a request was refused: errno {}", refused.errno)))
}
