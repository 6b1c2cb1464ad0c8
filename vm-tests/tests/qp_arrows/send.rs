//! Arrows of a send.

use anyhow::{Context, Result, ensure};
use tbv_probes::errors::Player;
use tbv_probes::verbs::{Connection, Mr, Region, Send, Sge};
use tbv_verbs_sys as sys;
use vm_tests::driver_trace::Trace;
use vm_tests::fault::{Fault, counter};

use super::bench::{
    ACK, ENDLESS, FROM, NAK_INVALID, NAK_OPERATION, PATIENT, RNR, WIRE_SEND, connected, nothing_ended, qpn,
    received, sent,
};

/// Reasons in `retransmit`.
const TIMEOUT: u64 = 0;
const SEQUENCE: u64 = 1;
const RECEIVER_READY: u64 = 2;

/// More than a path takes at once: 2 MiB are 521 frames, a ring has 256 places.
const LONG: usize = 2 << 20;

/// A send that fills the path, and whatever it needs.
fn long_send(from: &Player) -> Result<(Mr, Send)> {
    let mr = Mr::new(&from.endpoint.pd, &Region::new(LONG)?, 0)?;
    let send = Send::new(1, vec![mr.sge(0..LONG)]);
    Ok((mr, send))
}

/// The sequence numbers of this player's frames so far.
fn psns(trace: &Trace, from: &Player) -> Result<Vec<u64>> {
    let frames = trace.find("tx_frame", &[("qpn", qpn(from)), ("opcode", WIRE_SEND)])?;
    frames.iter().map(|frame| frame.get("psn")).collect()
}

fn flush_all(from: &Player, ids: &[u64]) -> Result<()> {
    from.qp().to_state(sys::IBV_QPS_ERR)?;
    ids.iter().try_for_each(|id| sent(from, *id, sys::IBV_WC_WR_FLUSH_ERR))
}

#[test]
fn send_posted() -> Result<()> {
    let ([from, to], trace) = connected(PATIENT)?;
    to.must_receive(to.receive(2, 1))?;
    from.must_send(from.send(1, 1))?;
    trace.wait("tx_frame", &[("qpn", qpn(&from)), ("opcode", WIRE_SEND)])?;
    let first = trace.events()?.into_iter().find(|event| event.fields.get("qpn") == Some(&qpn(&from)));
    ensure!(
        first.as_ref().is_some_and(|event| event.is("post_send", &[("wr_id", 1), ("length", 1)])),
        "{first:?}"
    );
    Ok(())
}

#[test]
fn queued_to_sent() -> Result<()> {
    let ([from, _to], trace) = connected(PATIENT)?;
    from.must_send(from.send(1, 10))?;
    trace.wait("tx_frame", &[("qpn", qpn(&from)), ("opcode", WIRE_SEND), ("payload", 10)])?;
    Ok(())
}

#[test]
fn queued_to_waiting_for_room() -> Result<()> {
    let ([from, _to], trace) = connected(PATIENT)?;
    let lost = Fault::lose_all(FROM)?;
    let (_mr, send) = long_send(&from)?;
    from.must_send(send)?;
    trace.wait("credit_stall", &[("qpn", qpn(&from))])?;
    ensure!(psns(&trace, &from)?.len() < 256, "more frames than the ring has");
    drop(lost);
    Ok(())
}

#[test]
fn waiting_for_room_to_sent() -> Result<()> {
    let ([from, to], trace) = connected(ENDLESS)?;
    let lost = Fault::lose_all(FROM)?;
    let (_mr, send) = long_send(&from)?;
    let room = Mr::new(&to.endpoint.pd, &Region::new(LONG)?, sys::IBV_ACCESS_LOCAL_WRITE)?;
    to.must_receive(tbv_probes::verbs::Receive::new(2, vec![room.sge(0..LONG)]))?;
    from.must_send(send)?;
    trace.wait("credit_stall", &[("qpn", qpn(&from))])?;
    let before = counter(FROM, "data_tx_bytes")?;
    drop(lost);
    sent(&from, 1, sys::IBV_WC_SUCCESS)?;
    ensure!(counter(FROM, "data_tx_bytes")? > before);
    received(&to, 2, sys::IBV_WC_SUCCESS)
}

#[test]
fn sent_to_done() -> Result<()> {
    let ([from, to], trace) = connected(PATIENT)?;
    to.must_receive(to.receive(2, 1))?;
    from.must_send(from.send(1, 1))?;
    sent(&from, 1, sys::IBV_WC_SUCCESS)?;
    trace.wait("ack", &[("qpn", qpn(&from)), ("received", 1), ("syndrome", ACK)])?;
    trace.none("retransmit", &[("qpn", qpn(&from))])
}

#[test]
fn sent_again_after_timeout() -> Result<()> {
    let ([from, to], trace) = connected(Connection { timeout: 1, ..PATIENT })?;
    let lost = Fault::lose_all(FROM)?;
    to.must_receive(to.receive(2, 1))?;
    from.must_send(from.send(1, 1))?;
    trace.wait("retransmit", &[("qpn", qpn(&from)), ("reason", TIMEOUT), ("retries", 1)])?;
    drop(lost);
    sent(&from, 1, sys::IBV_WC_SUCCESS)
}

#[test]
fn sent_again_after_sequence_error() -> Result<()> {
    let ([from, to], trace) = connected(PATIENT)?;
    for id in 1..=2 {
        to.must_receive(to.receive(id, 1))?;
    }
    let lost = Fault::lose_all(FROM)?;
    from.must_send(from.send(1, 1))?;
    trace.wait("tx_frame", &[("qpn", qpn(&from)), ("opcode", WIRE_SEND)])?;
    drop(lost);
    from.must_send(from.send(2, 1))?;
    let again = trace.wait("retransmit", &[("qpn", qpn(&from)), ("reason", SEQUENCE)])?;
    ensure!(again.get("psn")? == psns(&trace, &from)?[0], "not from the lost frame on");
    sent(&from, 1, sys::IBV_WC_SUCCESS)?;
    sent(&from, 2, sys::IBV_WC_SUCCESS)
}

#[test]
fn sent_to_waiting_for_receiver() -> Result<()> {
    let ([from, _to], trace) = connected(PATIENT)?;
    from.must_send(from.send(1, 1))?;
    trace.wait("ack", &[("qpn", qpn(&from)), ("received", 1), ("syndrome", RNR)])?;
    trace.wait("rnr", &[("qpn", qpn(&from)), ("received", 1), ("timer", 12)])?;
    nothing_ended(&from)
}

#[test]
fn waiting_for_receiver_to_sent() -> Result<()> {
    let ([from, to], trace) = connected(PATIENT)?;
    from.must_send(from.send(1, 1))?;
    trace.wait("retransmit", &[("qpn", qpn(&from)), ("reason", RECEIVER_READY)])?;
    to.must_receive(to.receive(2, 1))?;
    sent(&from, 1, sys::IBV_WC_SUCCESS)
}

#[test]
fn sent_to_failed_by_retry_limit() -> Result<()> {
    let ([from, _to], trace) = connected(Connection { timeout: 1, retry_count: 2, ..PATIENT })?;
    let _lost = Fault::lose_all(FROM)?;
    from.must_send(from.send(1, 1))?;
    sent(&from, 1, sys::IBV_WC_RETRY_EXC_ERR)?;
    let retries = trace.find("retransmit", &[("qpn", qpn(&from)), ("reason", TIMEOUT)])?.len();
    ensure!(retries == 2, "{retries} retries");
    Ok(())
}

#[test]
fn waiting_for_receiver_to_failed_by_limit() -> Result<()> {
    let ([from, _to], trace) = connected(Connection { rnr_retry: 2, ..PATIENT })?;
    from.must_send(from.send(1, 1))?;
    sent(&from, 1, sys::IBV_WC_RNR_RETRY_EXC_ERR)?;
    let retries = trace.find("retransmit", &[("qpn", qpn(&from)), ("reason", RECEIVER_READY)])?.len();
    ensure!(retries == 2, "{retries} retries");
    Ok(())
}

#[test]
fn sent_to_failed_by_invalid_request() -> Result<()> {
    let ([from, to], trace) = connected(PATIENT)?;
    to.must_receive(to.receive(2, 63))?;
    from.must_send(from.send(1, 64))?;
    sent(&from, 1, sys::IBV_WC_REM_INV_REQ_ERR)?;
    trace.wait("ack", &[("qpn", qpn(&from)), ("received", 1), ("syndrome", NAK_INVALID)])?;
    Ok(())
}

#[test]
fn sent_to_failed_by_operation_error() -> Result<()> {
    let ([from, to], trace) = connected(PATIENT)?;
    let wrong = Sge { lkey: to.mr.lkey() ^ 0x0055_5500, ..to.mr.sge(0..64) };
    to.must_receive(tbv_probes::verbs::Receive::new(2, vec![wrong]))?;
    from.must_send(from.send(1, 64))?;
    sent(&from, 1, sys::IBV_WC_REM_OP_ERR)?;
    trace.wait("ack", &[("qpn", qpn(&from)), ("received", 1), ("syndrome", NAK_OPERATION)])?;
    Ok(())
}

/// It waits until all before it are acknowledged, and no frame of it is ever sent. Those before it are sent again as
/// long as they must: after lost frames, and while the peer has no receive.
#[test]
fn queued_to_failed_by_bad_memory() -> Result<()> {
    for lossy in [true, false] {
        let ([from, to], trace) = connected(ENDLESS)?;
        let lost = lossy.then(|| Fault::lose_all(FROM)).transpose()?;
        from.must_send(from.send(1, 1))?;
        let wrong = Sge { lkey: from.mr.lkey() ^ 0x0055_5500, ..from.mr.sge(0..16) };
        from.must_send(Send::new(2, vec![wrong]))?;
        from.must_send(from.send(3, 1))?;
        nothing_ended(&from)?;
        to.must_receive(to.receive(9, 1))?;
        drop(lost);
        sent(&from, 1, sys::IBV_WC_SUCCESS).with_context(|| format!("lossy: {lossy}"))?;
        sent(&from, 2, sys::IBV_WC_LOC_PROT_ERR)?;
        sent(&from, 3, sys::IBV_WC_WR_FLUSH_ERR)?;
        let psns = psns(&trace, &from)?;
        ensure!(psns.iter().all(|psn| *psn == psns[0]), "a frame of a bad request: {psns:?}");
    }
    Ok(())
}

#[test]
fn queued_to_flushed() -> Result<()> {
    let ([from, _to], trace) = connected(PATIENT)?;
    let _lost = Fault::lose_all(FROM)?;
    let (_mr, send) = long_send(&from)?;
    from.must_send(send)?;
    trace.wait("credit_stall", &[("qpn", qpn(&from))])?;
    // Behind one that has no room, none of this one's frames can have been sent.
    from.must_send(from.send(2, 10))?;
    flush_all(&from, &[1, 2])?;
    trace.none("tx_frame", &[("qpn", qpn(&from)), ("payload", 10)])
}

#[test]
fn sent_to_flushed() -> Result<()> {
    let ([from, _to], trace) = connected(PATIENT)?;
    let _lost = Fault::lose_all(FROM)?;
    from.must_send(from.send(1, 1))?;
    trace.wait("tx_frame", &[("qpn", qpn(&from)), ("opcode", WIRE_SEND)])?;
    flush_all(&from, &[1])
}

#[test]
fn waiting_for_room_to_flushed() -> Result<()> {
    let ([from, _to], trace) = connected(PATIENT)?;
    let lost = Fault::lose_all(FROM)?;
    let (_mr, send) = long_send(&from)?;
    from.must_send(send)?;
    trace.wait("credit_stall", &[("qpn", qpn(&from))])?;
    flush_all(&from, &[1])?;
    // Room comes too late: nothing more is sent.
    let frames = psns(&trace, &from)?.len();
    drop(lost);
    nothing_ended(&from)?;
    ensure!(psns(&trace, &from)?.len() == frames, "frames of a request that was flushed");
    Ok(())
}

#[test]
fn waiting_for_receiver_to_flushed() -> Result<()> {
    // 0 asks for the longest wait, 0.66 s.
    let ([from, _to], trace) = connected(Connection { min_rnr_timer: 0, ..PATIENT })?;
    from.must_send(from.send(1, 1))?;
    trace.wait("rnr", &[("qpn", qpn(&from)), ("received", 1)])?;
    flush_all(&from, &[1])
}

#[test]
fn send_posted_in_err_to_flushed() -> Result<()> {
    let ([from, _to], trace) = connected(PATIENT)?;
    from.qp().to_state(sys::IBV_QPS_ERR)?;
    from.must_send(from.send(1, 1))?;
    sent(&from, 1, sys::IBV_WC_WR_FLUSH_ERR)?;
    trace.none("tx_frame", &[("qpn", qpn(&from)), ("opcode", WIRE_SEND)])
}

#[test]
fn sent_to_forgotten_by_reset() -> Result<()> {
    let ([from, _to], trace) = connected(PATIENT)?;
    let _lost = Fault::lose_all(FROM)?;
    from.must_send(from.send(1, 1))?;
    trace.wait("tx_frame", &[("qpn", qpn(&from)), ("opcode", WIRE_SEND)])?;
    from.qp().to_state(sys::IBV_QPS_RESET)?;
    nothing_ended(&from)?;
    trace.none("cq_push", &[("qpn", qpn(&from))])
}

/// A completion that was not polled goes with it.
#[test]
fn done_to_forgotten_by_reset() -> Result<()> {
    let ([from, to], trace) = connected(PATIENT)?;
    to.must_receive(to.receive(2, 1))?;
    from.must_send(from.send(1, 1))?;
    trace.wait("cq_push", &[("qpn", qpn(&from)), ("status", 0)])?;
    from.qp().to_state(sys::IBV_QPS_RESET)?;
    nothing_ended(&from)
}
