//! A message of which a part has arrived, and on which the cable is cut.

use anyhow::{Context, Result, ensure};
use tbv_probes::errors::Player;
use tbv_probes::verbs::{Mr, Receive, Region, Send};
use tbv_verbs_sys as sys;
use vm_tests::command::wait_until;
use vm_tests::driver_trace::Trace;
use vm_tests::fault::Fault;

use super::bench::{ENDLESS, FROM, TO, WIRE_SEND, connected, qpn};

/// 521 frames, more than a path takes before the receiver grants more.
const LENGTH: usize = 2 << 20;

/// The message's send and its receive.
pub(crate) const SEND: u64 = 1;
pub(crate) const RECEIVE: u64 = 2;

pub(crate) struct Halfway {
    pub(crate) from: Player,
    pub(crate) to: Player,
    pub(crate) trace: Trace,
    /// The receive's memory.
    pub(crate) room: Mr,
    _data: Mr,
    /// While it is cut, nothing arrives.
    pub(crate) cut: Fault,
    /// The sequence number that the receiver waits for.
    pub(crate) next_psn: u32,
}

pub(crate) fn halfway() -> Result<Halfway> {
    let ([from, to], trace) = connected(ENDLESS)?;
    let data = Mr::new(&from.endpoint.pd, &Region::new(LENGTH)?, 0)?;
    let room = Mr::new(&to.endpoint.pd, &Region::new(LENGTH)?, sys::IBV_ACCESS_LOCAL_WRITE)?;
    to.must_receive(Receive::new(RECEIVE, vec![room.sge(0..LENGTH)]))?;
    // No answer comes back: the sender stops when it may send no more.
    let unanswered = Fault::lose_all(TO)?;
    from.must_send(Send::new(SEND, vec![data.sge(0..LENGTH)]))?;
    trace.wait("credit_stall", &[("qpn", qpn(&from))])?;
    wait_until("the frames that were sent", vm_tests::command::LIMIT, || {
        let sent = trace.count("tx_frame", &[("qpn", qpn(&from)), ("opcode", WIRE_SEND)])?;
        Ok(trace.count("rx_copy", &[("qpn", qpn(&to))])? == sent)
    })?;
    let cut = Fault::lose_all(FROM)?;
    drop(unanswered);
    let copies = trace.find("rx_copy", &[("qpn", qpn(&to))])?;
    let last = copies.last().context("no frame")?;
    ensure!(last.get("offset")? + last.get("bytes")? < LENGTH as u64, "all of it arrived before the cut");
    ensure!(to.qp().receive_cq().poll(1)?.is_empty(), "the message has ended");
    let next_psn = (u32::try_from(last.get("psn")?)? + 1) & 0x00ff_ffff;
    Ok(Halfway { from, to, trace, room, _data: data, cut, next_psn })
}
