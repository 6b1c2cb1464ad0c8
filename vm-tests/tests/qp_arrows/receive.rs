//! Arrows of a message at its receiver, and of the receive that it goes to.

use anyhow::{Result, ensure};
use tbv_probes::errors::Player;
use tbv_probes::verbs::{Connection, Receive, Sge};
use tbv_verbs_sys as sys;
use vm_tests::command::LIMIT;
use vm_tests::command::wait_until;
use vm_tests::driver_trace::{Event, Trace};
use vm_tests::fault::{Fault, counter};

use super::bench::{
    ACK, ENDLESS, FRAME, FROM, NAK_INVALID, NAK_OPERATION, NAK_SEQUENCE, PATIENT, RNR, TO, WIRE_SEND,
    connect, connected, nothing_ended, qpn, received, sent,
};
use super::halfway::{RECEIVE, SEND, halfway};

/// What the receiver of a message of `frames` frames did: its copies and its completions, in order.
fn copies_and_completions(frames: usize) -> Result<Vec<Event>> {
    let ([from, to], trace) = connected(PATIENT)?;
    let bytes = FRAME * frames - 5;
    to.must_receive(to.receive(2, bytes))?;
    from.must_send(from.send(1, bytes))?;
    received(&to, 2, sys::IBV_WC_SUCCESS)?;
    let own = [("qpn", qpn(&to))];
    let mut events = trace.events()?;
    events.retain(|event| event.is("rx_copy", &own) || event.is("cq_push", &own));
    ensure!(events.len() == frames + 1, "{events:?}");
    Ok(events)
}

fn is_copy(event: &Event, offset: usize, bytes: usize) -> bool {
    event.is("rx_copy", &[("offset", offset as u64), ("bytes", bytes as u64)])
}

/// The reply that the receiver sent.
fn replied(trace: &Trace, to: &Player, syndrome: u64) -> Result<()> {
    trace.wait("ack", &[("qpn", qpn(to)), ("received", 0), ("syndrome", syndrome)]).map(drop)
}

#[test]
fn idle_to_in_message_by_first_frame() -> Result<()> {
    let events = copies_and_completions(2)?;
    ensure!(is_copy(&events[0], 0, FRAME), "{events:?}");
    Ok(())
}

#[test]
fn in_message_stays_by_middle_frame() -> Result<()> {
    let events = copies_and_completions(3)?;
    ensure!(is_copy(&events[1], FRAME, FRAME), "{events:?}");
    Ok(())
}

#[test]
fn in_message_to_idle_by_last_frame() -> Result<()> {
    let events = copies_and_completions(3)?;
    ensure!(is_copy(&events[2], 2 * FRAME, FRAME - 5), "{events:?}");
    let whole = [("status", 0), ("byte_len", 3 * FRAME as u64 - 5)];
    ensure!(events[3].is("cq_push", &whole), "{events:?}");
    Ok(())
}

#[test]
fn idle_stays_by_only_frame() -> Result<()> {
    let events = copies_and_completions(1)?;
    ensure!(is_copy(&events[0], 0, FRAME - 5) && events[1].is("cq_push", &[("status", 0)]), "{events:?}");
    Ok(())
}

#[test]
fn stays_by_duplicate() -> Result<()> {
    let ([from, to], trace) = connected(PATIENT)?;
    let before = counter(TO, "data_rx_duplicates")?;
    to.must_receive(to.receive(2, 1))?;
    to.must_receive(to.receive(3, 1))?;
    let _twice = Fault::set(FROM, "duplicate_every", 1)?;
    from.must_send(from.send(1, 1))?;
    wait_until("the duplicate", LIMIT, || Ok(counter(TO, "data_rx_duplicates")? > before))?;
    received(&to, 2, sys::IBV_WC_SUCCESS)?;
    nothing_ended(&to)?;
    ensure!(trace.count("rx_copy", &[("qpn", qpn(&to))])? == 1, "written twice");
    let acks = trace.count("ack", &[("qpn", qpn(&to)), ("received", 0), ("syndrome", ACK)])?;
    ensure!(acks == 2, "acknowledged {acks} times");
    Ok(())
}

/// However many frames come before their turn, the missing one is asked for once.
#[test]
fn stays_by_gap() -> Result<()> {
    let ([from, to], trace) = connected(PATIENT)?;
    let before = counter(TO, "data_rx_gaps")?;
    for id in 1..=3 {
        to.must_receive(to.receive(id, 1))?;
    }
    let lost = Fault::lose_all(FROM)?;
    from.must_send(from.send(1, 1))?;
    trace.wait("tx_frame", &[("qpn", qpn(&from)), ("opcode", WIRE_SEND)])?;
    drop(lost);
    // Both are on their way before the answer to the first can be there.
    let slow = Fault::set(FROM, "delay_ns", 300_000_000)?;
    from.must_send(from.send(2, 1))?;
    from.must_send(from.send(3, 1))?;
    wait_until("both frames", LIMIT, || Ok(counter(TO, "data_rx_gaps")? >= before + 2))?;
    drop(slow);
    for id in 1..=3 {
        received(&to, id, sys::IBV_WC_SUCCESS)?;
    }
    let asked = trace.count("ack", &[("qpn", qpn(&to)), ("received", 0), ("syndrome", NAK_SEQUENCE)])?;
    ensure!(asked == 1, "asked for the missing frame {asked} times");
    Ok(())
}

#[test]
fn idle_stays_by_missing_receive() -> Result<()> {
    let ([from, to], trace) = connected(PATIENT)?;
    from.must_send(from.send(1, 1))?;
    trace.wait("rnr", &[("qpn", qpn(&to)), ("received", 0), ("timer", 12)])?;
    replied(&trace, &to, RNR)?;
    trace.none("rx_copy", &[("qpn", qpn(&to))])
}

/// What follows a frame that was refused is not missing: nothing is asked for.
#[test]
fn stays_silent_by_gap_after_missing_receive() -> Result<()> {
    let ([from, to], trace) = connected(Connection { min_rnr_timer: 0, ..PATIENT })?;
    let before = counter(TO, "data_rx_gaps")?;
    let slow = Fault::set(FROM, "delay_ns", 300_000_000)?;
    for id in 1..=3 {
        from.must_send(from.send(id, 1))?;
    }
    wait_until("both frames", LIMIT, || Ok(counter(TO, "data_rx_gaps")? >= before + 2))?;
    drop(slow);
    replied(&trace, &to, RNR)?;
    trace.none("ack", &[("qpn", qpn(&to)), ("received", 0), ("syndrome", NAK_SEQUENCE)])
}

#[test]
fn dropped_unless_rtr_or_rts() -> Result<()> {
    let ([from, to], trace) = connected(PATIENT)?;
    to.qp().to_state(sys::IBV_QPS_ERR)?;
    let before = counter(TO, "data_rx_stale")?;
    from.must_send(from.send(1, 1))?;
    wait_until("the frame", LIMIT, || Ok(counter(TO, "data_rx_stale")? > before))?;
    trace.none("ack", &[("qpn", qpn(&to)), ("received", 0)])
}

#[test]
fn idle_to_err_by_long_message() -> Result<()> {
    let ([from, to], trace) = connected(PATIENT)?;
    to.must_receive(to.receive(2, 63))?;
    from.must_send(from.send(1, 64))?;
    received(&to, 2, sys::IBV_WC_LOC_LEN_ERR)?;
    replied(&trace, &to, NAK_INVALID)?;
    trace.none("rx_copy", &[("qpn", qpn(&to))])
}

#[test]
fn idle_to_err_by_bad_memory() -> Result<()> {
    let ([from, to], trace) = connected(PATIENT)?;
    let wrong = Sge { lkey: to.mr.lkey() ^ 0x0055_5500, ..to.mr.sge(0..64) };
    to.must_receive(Receive::new(2, vec![wrong]))?;
    from.must_send(from.send(1, 64))?;
    received(&to, 2, sys::IBV_WC_LOC_PROT_ERR)?;
    replied(&trace, &to, NAK_OPERATION)?;
    trace.none("rx_copy", &[("qpn", qpn(&to))])
}

/// A receiver that forgot how the message began is sent the rest of it.
#[test]
fn idle_to_err_by_middle_frame() -> Result<()> {
    let half = halfway()?;
    half.to.qp().to_state(sys::IBV_QPS_RESET)?;
    connect(&half.to, &half.from, &Connection { receive_psn: half.next_psn, ..ENDLESS }, sys::IBV_QPS_RTS)?;
    half.to.must_receive(half.to.receive(3, 64))?;
    drop(half.cut);
    sent(&half.from, SEND, sys::IBV_WC_REM_INV_REQ_ERR)?;
    received(&half.to, 3, sys::IBV_WC_WR_FLUSH_ERR)?;
    replied(&half.trace, &half.to, NAK_INVALID)
}

#[test]
fn in_message_to_err_by_lost_memory() -> Result<()> {
    let half = halfway()?;
    drop(half.room);
    drop(half.cut);
    sent(&half.from, SEND, sys::IBV_WC_REM_OP_ERR)?;
    received(&half.to, RECEIVE, sys::IBV_WC_LOC_PROT_ERR)?;
    replied(&half.trace, &half.to, NAK_OPERATION)
}

/// A sender that forgot what it was sending begins another message in its place.
#[test]
fn in_message_to_err_by_other_message() -> Result<()> {
    let half = halfway()?;
    half.from.qp().to_state(sys::IBV_QPS_RESET)?;
    connect(&half.from, &half.to, &Connection { send_psn: half.next_psn, ..ENDLESS }, sys::IBV_QPS_RTS)?;
    drop(half.cut);
    half.from.must_send(half.from.send(3, 64))?;
    sent(&half.from, 3, sys::IBV_WC_REM_INV_REQ_ERR)?;
    received(&half.to, RECEIVE, sys::IBV_WC_WR_FLUSH_ERR)?;
    replied(&half.trace, &half.to, NAK_INVALID)
}

#[test]
fn in_message_to_err_by_modify() -> Result<()> {
    let half = halfway()?;
    half.to.qp().to_state(sys::IBV_QPS_ERR)?;
    received(&half.to, RECEIVE, sys::IBV_WC_WR_FLUSH_ERR)
}

#[test]
fn in_message_to_reset_by_modify() -> Result<()> {
    let half = halfway()?;
    half.to.qp().to_state(sys::IBV_QPS_RESET)?;
    nothing_ended(&half.to)?;
    half.trace.none("cq_push", &[("qpn", qpn(&half.to))])
}

#[test]
fn receive_posted() -> Result<()> {
    let ([player, _], trace) = connected(PATIENT)?;
    player.must_receive(player.receive(5, 64))?;
    trace.wait("post_recv", &[("qpn", qpn(&player)), ("wr_id", 5), ("length", 64)])?;
    nothing_ended(&player)
}

#[test]
fn receive_to_flushed() -> Result<()> {
    let ([player, _], _) = connected(PATIENT)?;
    player.must_receive(player.receive(5, 64))?;
    player.qp().to_state(sys::IBV_QPS_ERR)?;
    received(&player, 5, sys::IBV_WC_WR_FLUSH_ERR)
}

#[test]
fn receive_posted_in_err_to_flushed() -> Result<()> {
    let ([player, _], _) = connected(PATIENT)?;
    player.qp().to_state(sys::IBV_QPS_ERR)?;
    player.must_receive(player.receive(5, 64))?;
    received(&player, 5, sys::IBV_WC_WR_FLUSH_ERR)
}

#[test]
fn receive_to_forgotten_by_reset() -> Result<()> {
    let ([player, _], trace) = connected(PATIENT)?;
    player.must_receive(player.receive(5, 64))?;
    player.qp().to_state(sys::IBV_QPS_RESET)?;
    nothing_ended(&player)?;
    trace.none("cq_push", &[("qpn", qpn(&player))])
}
