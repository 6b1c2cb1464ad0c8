//! Arrows of the queue pair.

use anyhow::{Result, ensure};
use tbv_probes::errors::Player;
use tbv_probes::verbs::{Connection, Send, Sge};
use tbv_verbs_sys::{
    IBV_QPS_ERR, IBV_QPS_INIT, IBV_QPS_RESET, IBV_QPS_RTR, IBV_QPS_RTS, IBV_WC_LOC_PROT_ERR,
};
use vm_tests::driver_trace::Trace;

use super::bench::{self, connect, qpn, sent};

/// What `qp_state` says of a queue pair that is destroyed.
const DESTROYED: u64 = 255;

/// Two players, the first in `state`, the second connected to it.
fn players(state: u32) -> Result<[Player; 2]> {
    let pair = bench::stage()?.unconnected()?;
    let how = Connection::default();
    connect(&pair[1], &pair[0], &how, IBV_QPS_RTS)?;
    if state == IBV_QPS_ERR {
        connect(&pair[0], &pair[1], &how, IBV_QPS_RTS)?;
        pair[0].qp().to_state(IBV_QPS_ERR)?;
    } else {
        connect(&pair[0], &pair[1], &how, state)?;
    }
    Ok(pair)
}

/// Brings the first player's queue pair from one state to another by `go`.
fn arrow(from: u32, to: u32, go: impl FnOnce(&[Player; 2]) -> Result<()>) -> Result<()> {
    let pair = players(from)?;
    ensure!(pair[0].qp().state()? == from, "in state {} at first", pair[0].qp().state()?);
    let trace = Trace::start()?;
    go(&pair)?;
    trace.wait("qp_state", &[("qpn", qpn(&pair[0])), ("from", from.into()), ("to", to.into())])?;
    ensure!(pair[0].qp().state()? == to, "in state {} at last", pair[0].qp().state()?);
    Ok(())
}

fn by_modify(from: u32, to: u32) -> Result<()> {
    arrow(from, to, |pair| Ok(pair[0].qp().to_state(to)?))
}

fn connecting(from: u32, to: u32) -> Result<()> {
    arrow(from, to, |[own, peer]| {
        let how = Connection::default();
        match to {
            IBV_QPS_INIT => own.qp().to_init(own.endpoint.address.port)?,
            IBV_QPS_RTR => {
                own.qp().to_rtr(&own.endpoint.address, &peer.endpoint.address, peer.qp().number(), &how)?;
            }
            _ => own.qp().to_rts(&how)?,
        }
        Ok(())
    })
}

/// A message that is longer than the receive that waits for it.
fn long_message([own, peer]: &[Player; 2]) -> Result<()> {
    own.must_receive(own.receive(1, 63))?;
    Ok(peer.must_send(peer.send(2, 64))?)
}

#[test]
fn created() -> Result<()> {
    let stage = bench::stage()?;
    let trace = Trace::start()?;
    let [player, _] = stage.unconnected()?;
    trace.wait("qp_state", &[("qpn", qpn(&player)), ("from", 0), ("to", 0)])?;
    ensure!(player.qp().state()? == IBV_QPS_RESET);
    Ok(())
}

#[test]
fn destroyed() -> Result<()> {
    let pair = players(IBV_QPS_RTS)?;
    let (number, trace) = (qpn(&pair[0]), Trace::start()?);
    drop(pair);
    trace.wait("qp_state", &[("qpn", number), ("to", DESTROYED)])?;
    Ok(())
}

#[test]
fn reset_to_init() -> Result<()> {
    connecting(IBV_QPS_RESET, IBV_QPS_INIT)
}

#[test]
fn init_to_rtr() -> Result<()> {
    connecting(IBV_QPS_INIT, IBV_QPS_RTR)
}

#[test]
fn rtr_to_rts() -> Result<()> {
    connecting(IBV_QPS_RTR, IBV_QPS_RTS)
}

#[test]
fn init_to_err_by_modify() -> Result<()> {
    by_modify(IBV_QPS_INIT, IBV_QPS_ERR)
}

#[test]
fn rtr_to_err_by_modify() -> Result<()> {
    by_modify(IBV_QPS_RTR, IBV_QPS_ERR)
}

#[test]
fn rts_to_err_by_modify() -> Result<()> {
    by_modify(IBV_QPS_RTS, IBV_QPS_ERR)
}

#[test]
fn rtr_to_err_by_bad_message() -> Result<()> {
    arrow(IBV_QPS_RTR, IBV_QPS_ERR, long_message)
}

#[test]
fn rts_to_err_by_bad_message() -> Result<()> {
    arrow(IBV_QPS_RTS, IBV_QPS_ERR, long_message)
}

#[test]
fn rts_to_err_by_failed_send() -> Result<()> {
    arrow(IBV_QPS_RTS, IBV_QPS_ERR, |[own, _]| {
        let wrong = Sge { lkey: own.mr.lkey() ^ 0x0055_5500, ..own.mr.sge(0..16) };
        own.must_send(Send::new(1, vec![wrong]))?;
        sent(own, 1, IBV_WC_LOC_PROT_ERR)
    })
}

#[test]
fn init_to_reset() -> Result<()> {
    by_modify(IBV_QPS_INIT, IBV_QPS_RESET)
}

#[test]
fn rtr_to_reset() -> Result<()> {
    by_modify(IBV_QPS_RTR, IBV_QPS_RESET)
}

#[test]
fn rts_to_reset() -> Result<()> {
    by_modify(IBV_QPS_RTS, IBV_QPS_RESET)
}

#[test]
fn err_to_reset() -> Result<()> {
    by_modify(IBV_QPS_ERR, IBV_QPS_RESET)
}
