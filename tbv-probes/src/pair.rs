//! Two connected queue pairs in one process.

use std::rc::Rc;

use crate::verbs::{Address, Connection, Context, Cq, Error, Limits, Pd, Qp};

/// Which devices, and how their ports are addressed.
#[derive(Clone, Debug)]
pub struct Devices {
    /// Name of the first device; without one, the first that the machine has.
    pub device: Option<String>,
    /// Name of the second device; without one, the first is connected to itself.
    pub peer: Option<String>,
    pub port: u8,
    pub gid_index: Option<u8>,
}

/// Two opened ports, which may be the same.
pub struct Ports {
    pub contexts: [Rc<Context>; 2],
    pub addresses: [Address; 2],
}

impl Devices {
    pub fn open(&self) -> Result<Ports, Error> {
        let first = Context::open(self.device.as_deref())?;
        let second = match &self.peer {
            Some(name) => Context::open(Some(name))?,
            None => Rc::clone(&first),
        };
        let addresses =
            [first.address(self.port, self.gid_index)?, second.address(self.port, self.gid_index)?];
        Ok(Ports { contexts: [first, second], addresses })
    }
}

/// What one side of a pair is made of.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub limits: Limits,
    pub send_cq_entries: i32,
    pub receive_cq_entries: i32,
}

impl Default for Shape {
    fn default() -> Self {
        let limits = Limits { send_requests: 16, receive_requests: 16, send_sges: 1, receive_sges: 1 };
        Self { limits, send_cq_entries: 64, receive_cq_entries: 64 }
    }
}

/// One side.
pub struct Endpoint {
    pub pd: Rc<Pd>,
    pub qp: Qp,
    pub address: Address,
}

impl Endpoint {
    /// A queue pair in state RESET.
    pub fn new(context: &Rc<Context>, address: Address, shape: Shape) -> Result<Self, Error> {
        let send_cq = Cq::new(context, shape.send_cq_entries)?;
        let receive_cq = Cq::new(context, shape.receive_cq_entries)?;
        Self::with_queues(address, shape.limits, &send_cq, &receive_cq)
    }

    /// A queue pair in state RESET that completes to these queues.
    pub fn with_queues(
        address: Address,
        limits: Limits,
        send_cq: &Rc<Cq>,
        receive_cq: &Rc<Cq>,
    ) -> Result<Self, Error> {
        let pd = Pd::new(send_cq.context())?;
        let qp = Qp::new(&pd, send_cq, receive_cq, limits)?;
        Ok(Self { pd, qp, address })
    }
}

/// Makes two sides in state RESET.
pub fn unconnected(ports: &Ports, shape: Shape) -> Result<[Endpoint; 2], Error> {
    let endpoint = |i: usize| Endpoint::new(&ports.contexts[i], ports.addresses[i], shape);
    Ok([endpoint(0)?, endpoint(1)?])
}

/// Makes two sides that can send to each other.
pub fn connected(ports: &Ports, shape: Shape, how: Connection) -> Result<[Endpoint; 2], Error> {
    let pair = unconnected(ports, shape)?;
    connect(&pair, how)?;
    Ok(pair)
}

/// Makes two sides in state RESET send to each other.
pub fn connect(pair: &[Endpoint; 2], how: Connection) -> Result<(), Error> {
    // Sequence numbers that are about to wrap, and that differ, so that mixing them up is noticed.
    let psns = [0x00ff_fff0, 0x0000_1234];
    for (this, that) in [(0, 1), (1, 0)] {
        let (own, peer) = (&pair[this], &pair[that]);
        let how = Connection { send_psn: psns[this], receive_psn: psns[that], ..how };
        own.qp.to_init(own.address.port)?;
        own.qp.to_rtr(&own.address, &peer.address, peer.qp.number(), &how)?;
        own.qp.to_rts(&how)?;
    }
    Ok(())
}
