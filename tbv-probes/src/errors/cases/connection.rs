//! Peers that are not ready, or gone.

use tbv_verbs_sys as sys;

use super::{Case, Stage, Step};
use crate::errors::outcome::Outcome;
use crate::pair::Shape;
use crate::verbs::{Connection, Error};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "rnr-retry-0",
        about: "a send that nobody receives, without retries",
        play: rnr_without_retry,
    },
    Case {
        name: "rnr-retry-7",
        about: "a send that is received late, with endless retries",
        play: rnr_endless,
    },
    Case { name: "peer-gone", about: "a send to a queue pair that is destroyed", play: peer_gone },
    Case { name: "peer-in-error", about: "a send to a queue pair in state ERR", play: peer_in_error },
    Case {
        name: "peer-not-ready",
        about: "a send to a queue pair that was never connected",
        play: peer_not_ready,
    },
];

/// Fast enough for a test: 4.096 µs × 2^10, about 4 ms, thrice.
fn hasty() -> Connection {
    Connection { timeout: 10, retry_count: 2, ..Connection::default() }
}

fn rnr_without_retry(stage: &Stage) -> Result<Vec<Step>, Error> {
    let [from, _to] =
        stage.connected(Shape::default(), Connection { rnr_retry: 0, ..Connection::default() })?;
    from.must_send(from.send(1, 1))?;
    from.must_send(from.send(2, 1))?;
    let (first, second) = (from.sent()?, from.sent()?);
    Ok(vec![
        Step::status("send", first.as_ref(), sys::IBV_WC_RNR_RETRY_EXC_ERR),
        Step::status("next send", second.as_ref(), sys::IBV_WC_WR_FLUSH_ERR),
        from.broken()?,
    ])
}

fn rnr_endless(stage: &Stage) -> Result<Vec<Step>, Error> {
    let [from, to] = stage.usual()?;
    from.region().write(0, b"late")?;
    from.must_send(from.send(1, 4))?;
    let early = from.qp().send_cq().wait(stage.quiet)?;
    to.must_receive(to.receive(1, 4))?;
    let (sent, received) = (from.sent()?, to.received()?);
    let right = to.region().read(0..4)? == b"late";
    Ok(vec![
        Step::new("before the receive", Outcome::of(early.as_ref()), Outcome::Pending),
        Step::status("send", sent.as_ref(), sys::IBV_WC_SUCCESS),
        Step::status("receive", received.as_ref(), sys::IBV_WC_SUCCESS),
        Step::new("right data", Outcome::Number(right.into()), Outcome::Number(1)),
    ])
}

fn peer_gone(stage: &Stage) -> Result<Vec<Step>, Error> {
    let [from, to] = stage.connected(Shape::default(), hasty())?;
    drop(to);
    unanswered(&from)
}

fn peer_in_error(stage: &Stage) -> Result<Vec<Step>, Error> {
    let [from, to] = stage.connected(Shape::default(), hasty())?;
    to.must_receive(to.receive(1, 1))?;
    to.qp().to_state(sys::IBV_QPS_ERR)?;
    let mut steps = unanswered(&from)?;
    steps.push(Step::status("peer's receive", to.received()?.as_ref(), sys::IBV_WC_WR_FLUSH_ERR));
    Ok(steps)
}

fn peer_not_ready(stage: &Stage) -> Result<Vec<Step>, Error> {
    let [from, to] = stage.unconnected()?;
    let (own, peer) = (&from.endpoint, &to.endpoint);
    own.qp.to_init(own.address.port)?;
    own.qp.to_rtr(&own.address, &peer.address, peer.qp.number(), &hasty())?;
    own.qp.to_rts(&hasty())?;
    unanswered(&from)
}

/// A send that nobody acknowledges.
fn unanswered(from: &crate::errors::stage::Player) -> Result<Vec<Step>, Error> {
    from.must_send(from.send(1, 1))?;
    from.must_send(from.send(2, 1))?;
    let (first, second) = (from.sent()?, from.sent()?);
    Ok(vec![
        Step::status("send", first.as_ref(), sys::IBV_WC_RETRY_EXC_ERR),
        Step::status("next send", second.as_ref(), sys::IBV_WC_WR_FLUSH_ERR),
    ])
}
