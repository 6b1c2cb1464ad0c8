//! Memory that a request must not use.
//!
//! What is tolerated is what rdma_rxe of Linux 6.12 answers.

use tbv_verbs_sys as sys;

use super::{Case, Stage, Step};
use crate::errors::outcome::Outcome;
use crate::errors::stage::{MEMORY, Player};
use crate::pair::Endpoint;
use crate::verbs::{Error, Mr, Receive, Region, Send, Sge};

pub(super) const CASES: &[Case] = &[
    Case { name: "send-bad-lkey", about: "a send with a key that was never given out", play: send_bad_lkey },
    Case {
        name: "send-stale-lkey",
        about: "a send with the key of memory no longer registered",
        play: send_stale,
    },
    Case {
        name: "send-wrong-pd",
        about: "a send from memory of another protection domain",
        play: send_wrong_pd,
    },
    Case { name: "send-past-end", about: "a send that ends one byte behind its memory", play: send_past_end },
    Case {
        name: "send-before-start",
        about: "a send that starts one byte before its memory",
        play: send_before,
    },
    Case { name: "send-wraps", about: "a send whose end wraps around the address space", play: send_wraps },
    Case { name: "recv-bad-lkey", about: "a message for a receive with a wrong key", play: recv_bad_lkey },
    Case {
        name: "recv-wrong-pd",
        about: "a message for memory of another protection domain",
        play: recv_wrong_pd,
    },
    Case {
        name: "recv-read-only",
        about: "a message for memory without local write access",
        play: recv_read_only,
    },
    Case { name: "recv-too-small", about: "a message longer than its receive", play: recv_too_small },
];

fn sge(addr: u64, length: u32, lkey: u32) -> Vec<Sge> {
    vec![Sge { addr, length, lkey }]
}

/// A send that must fail locally: its status, that it reached nobody, and that the queue pair is broken.
fn refused_send(
    stage: &Stage,
    sges: impl FnOnce(&Player) -> Result<Vec<Sge>, Error>,
) -> Result<Vec<Step>, Error> {
    let [from, to] = stage.usual()?;
    to.must_receive(to.receive(7, 4096))?;
    let before = to.region().read(0..4096)?;
    from.must_send(Send::new(1, sges(&from)?))?;
    let sent = from.sent()?;
    from.must_send(from.send(2, 1))?;
    let next = from.sent()?;
    let received = to.qp().receive_cq().wait(stage.quiet)?;
    let unchanged = to.region().read(0..4096)? == before;
    Ok(vec![
        Step::status("send", sent.as_ref(), sys::IBV_WC_LOC_PROT_ERR).or_status(sys::IBV_WC_WR_FLUSH_ERR),
        Step::status("next send", next.as_ref(), sys::IBV_WC_WR_FLUSH_ERR),
        Step::new("peer's receive", Outcome::of(received.as_ref()), Outcome::Pending),
        Step::new("peer's memory unchanged", Outcome::Number(unchanged.into()), Outcome::Number(1)),
        from.broken()?,
    ])
}

fn send_bad_lkey(stage: &Stage) -> Result<Vec<Step>, Error> {
    refused_send(stage, |from| Ok(sge(from.region().address(0), 16, from.mr.lkey() ^ 0x0055_5500)))
}

fn send_stale(stage: &Stage) -> Result<Vec<Step>, Error> {
    refused_send(stage, |from| {
        let mr = Mr::new(&from.endpoint.pd, from.region(), 0)?;
        Ok(vec![mr.sge(0..16)])
    })
}

fn send_wrong_pd(stage: &Stage) -> Result<Vec<Step>, Error> {
    let other = Endpoint::new(&stage.ports.contexts[0], stage.ports.addresses[0], Default::default())?;
    let mr = Mr::new(&other.pd, &Region::new(4096)?, 0)?;
    refused_send(stage, |_| Ok(vec![mr.sge(0..16)]))
}

fn send_past_end(stage: &Stage) -> Result<Vec<Step>, Error> {
    refused_send(stage, |from| Ok(vec![from.mr.sge(MEMORY - 15..MEMORY + 1)]))
}

fn send_before(stage: &Stage) -> Result<Vec<Step>, Error> {
    refused_send(stage, |from| Ok(sge(from.region().address(0) - 1, 16, from.mr.lkey())))
}

fn send_wraps(stage: &Stage) -> Result<Vec<Step>, Error> {
    refused_send(stage, |from| Ok(sge(u64::MAX - 7, 16, from.mr.lkey())))
}

/// A receive that can't take a message: both sides' status.
fn refused_receive(
    stage: &Stage,
    receive: impl FnOnce(&Player) -> Result<Vec<Sge>, Error>,
) -> Result<Vec<Step>, Error> {
    let [from, to] = stage.usual()?;
    to.must_receive(Receive::new(7, receive(&to)?))?;
    from.must_send(from.send(1, 64))?;
    let (sent, received) = (from.sent()?, to.received()?);
    Ok(vec![
        Step::status("receive", received.as_ref(), sys::IBV_WC_LOC_PROT_ERR)
            .or_status(sys::IBV_WC_LOC_QP_OP_ERR),
        Step::status("send", sent.as_ref(), sys::IBV_WC_REM_OP_ERR),
        to.broken()?,
        from.broken()?,
    ])
}

fn recv_bad_lkey(stage: &Stage) -> Result<Vec<Step>, Error> {
    refused_receive(stage, |to| Ok(sge(to.region().address(0), 64, to.mr.lkey() ^ 0x0055_5500)))
}

fn recv_wrong_pd(stage: &Stage) -> Result<Vec<Step>, Error> {
    let other = Endpoint::new(&stage.ports.contexts[1], stage.ports.addresses[1], Default::default())?;
    let mr = Mr::new(&other.pd, &Region::new(4096)?, sys::IBV_ACCESS_LOCAL_WRITE)?;
    refused_receive(stage, |_| Ok(vec![mr.sge(0..64)]))
}

fn recv_read_only(stage: &Stage) -> Result<Vec<Step>, Error> {
    let region = Region::new(4096)?;
    let mut registered = None;
    let steps = refused_receive(stage, |to| {
        let mr = registered.insert(Mr::new(&to.endpoint.pd, &region, 0)?);
        Ok(vec![mr.sge(0..64)])
    })?;
    Ok(steps)
}

fn recv_too_small(stage: &Stage) -> Result<Vec<Step>, Error> {
    let [from, to] = stage.usual()?;
    let before = to.region().read(63..4096)?;
    to.must_receive(to.receive(7, 63))?;
    from.must_send(from.send(1, 64))?;
    let (sent, received) = (from.sent()?, to.received()?);
    let unchanged = to.region().read(63..4096)? == before;
    Ok(vec![
        Step::status("receive", received.as_ref(), sys::IBV_WC_LOC_LEN_ERR)
            .or_status(sys::IBV_WC_REM_INV_REQ_ERR)
            .or_status(sys::IBV_WC_LOC_QP_OP_ERR),
        Step::status("send", sent.as_ref(), sys::IBV_WC_REM_INV_REQ_ERR).or_status(sys::IBV_WC_REM_OP_ERR),
        Step::new(
            "memory behind the receive unchanged",
            Outcome::Number(unchanged.into()),
            Outcome::Number(1),
        ),
    ])
}
