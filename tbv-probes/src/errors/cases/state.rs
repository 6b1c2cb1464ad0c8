//! Requests that a queue pair's state or capacity doesn't allow, and what a queue pair does with its requests in error.

use libc::{EINVAL, ENOMEM};
use tbv_verbs_sys as sys;

use super::{Case, Stage, Step};
use crate::errors::outcome::Outcome;
use crate::pair::Shape;
use crate::verbs::{Connection, Error, Receive, Send};

pub(super) const CASES: &[Case] = &[
    Case { name: "post-in-reset", about: "requests in state RESET", play: post_in_reset },
    Case { name: "post-before-rts", about: "requests in states INIT and RTR", play: post_before_rts },
    Case { name: "wrong-transition", about: "state changes that are not allowed", play: wrong_transition },
    Case {
        name: "too-many-sges",
        about: "requests with more pieces than the queue pair has",
        play: too_many_sges,
    },
    Case { name: "bad-in-list", about: "a list of sends whose second is bad", play: bad_in_list },
    Case { name: "send-queue-full", about: "one send more than the queue holds", play: send_queue_full },
    Case { name: "recv-queue-full", about: "one receive more than the queue holds", play: recv_queue_full },
    Case { name: "flush", about: "requests that are posted when the queue pair goes to ERR", play: flush },
    Case { name: "post-in-error", about: "requests in state ERR", play: post_in_error },
    Case {
        name: "reset-purges",
        about: "requests that are posted when the queue pair goes to RESET",
        play: reset_purges,
    },
];

fn post_in_reset(stage: &Stage) -> Result<Vec<Step>, Error> {
    let [player, _] = stage.unconnected()?;
    let send = player.post_send(player.send(1, 1));
    let receive = player.post_receive(player.receive(1, 1));
    Ok(vec![
        Step::new("send", Outcome::errno(&send), Outcome::Errno(EINVAL)),
        Step::new("receive", Outcome::errno(&receive), Outcome::Errno(EINVAL)),
    ])
}

fn post_before_rts(stage: &Stage) -> Result<Vec<Step>, Error> {
    let [player, peer] = stage.unconnected()?;
    let (own, other) = (&player.endpoint, &peer.endpoint);
    own.qp.to_init(own.address.port)?;
    let send_in_init = player.post_send(player.send(1, 1));
    let receive_in_init = player.post_receive(player.receive(1, 1));
    own.qp.to_rtr(&own.address, &other.address, other.qp.number(), &Connection::default())?;
    let send_in_rtr = player.post_send(player.send(1, 1));
    let receive_in_rtr = player.post_receive(player.receive(1, 1));
    Ok(vec![
        Step::new("send in INIT", Outcome::errno(&send_in_init), Outcome::Errno(EINVAL)),
        Step::new("receive in INIT", Outcome::errno(&receive_in_init), Outcome::Errno(0)),
        Step::new("send in RTR", Outcome::errno(&send_in_rtr), Outcome::Errno(EINVAL)),
        Step::new("receive in RTR", Outcome::errno(&receive_in_rtr), Outcome::Errno(0)),
    ])
}

fn wrong_transition(stage: &Stage) -> Result<Vec<Step>, Error> {
    let [player, peer] = stage.unconnected()?;
    let (own, other) = (&player.endpoint, &peer.endpoint);
    let how = Connection::default();
    let to_rtr = || own.qp.to_rtr(&own.address, &other.address, other.qp.number(), &how);
    let skipped_init = Outcome::verb(to_rtr())?;
    let without_attributes = Outcome::verb(own.qp.to_state(sys::IBV_QPS_INIT))?;
    let wrong_port = Outcome::verb(own.qp.to_init(200))?;
    own.qp.to_init(own.address.port)?;
    let skipped_rtr = Outcome::verb(own.qp.to_rts(&how))?;
    let state = own.qp.state()?;
    Ok(vec![
        Step::new("RESET to RTR", skipped_init, Outcome::Errno(EINVAL)),
        Step::new("RESET to INIT without a port", without_attributes, Outcome::Errno(EINVAL)),
        Step::new("RESET to INIT with a port that isn't there", wrong_port, Outcome::Errno(EINVAL)),
        Step::new("INIT to RTS", skipped_rtr, Outcome::Errno(EINVAL)),
        Step::new(
            "state afterwards",
            Outcome::Number(state.into()),
            Outcome::Number(sys::IBV_QPS_INIT.into()),
        ),
    ])
}

fn too_many_sges(stage: &Stage) -> Result<Vec<Step>, Error> {
    let [from, to] = stage.usual()?;
    let limits = from.qp().limits();
    let pieces = |count: u32, sge| vec![sge; count as usize + 1];
    let send = from.post_send(Send::new(1, pieces(limits.send_sges, from.mr.sge(0..1))));
    let receive = from.post_receive(Receive::new(1, pieces(limits.receive_sges, from.mr.sge(0..1))));
    // The queue pair is still good.
    to.must_receive(to.receive(1, 1))?;
    from.must_send(from.send(2, 1))?;
    let next = from.sent()?;
    Ok(vec![
        Step::new("send", Outcome::errno(&send), Outcome::Errno(EINVAL)),
        Step::new("receive", Outcome::errno(&receive), Outcome::Errno(EINVAL)),
        Step::status("next send", next.as_ref(), sys::IBV_WC_SUCCESS),
    ])
}

fn bad_in_list(stage: &Stage) -> Result<Vec<Step>, Error> {
    let [from, to] = stage.usual()?;
    for id in 0..3 {
        to.must_receive(to.receive(id, 1))?;
    }
    let pieces = vec![from.mr.sge(0..1); from.qp().limits().send_sges as usize + 1];
    let list = &mut [from.send(1, 1), Send::new(2, pieces), from.send(3, 1)];
    let result = from.qp().post_send(list);
    let index = result.err().and_then(|refused| refused.index).map_or(u64::MAX, |index| index as u64);
    let first = from.sent()?;
    let another = from.qp().send_cq().wait(stage.quiet)?;
    Ok(vec![
        Step::new("list", Outcome::errno(&result), Outcome::Errno(EINVAL)),
        Step::new("index of the bad one", Outcome::Number(index), Outcome::Number(1)),
        Step::status("first", first.as_ref(), sys::IBV_WC_SUCCESS),
        Step::new("third", Outcome::of(another.as_ref()), Outcome::Pending),
    ])
}

fn send_queue_full(stage: &Stage) -> Result<Vec<Step>, Error> {
    // Nobody receives, and the sender waits for ever: nothing leaves the queue.
    let [from, to] = stage.usual()?;
    let limit = from.qp().limits().send_requests;
    let mut accepted = 0;
    let result = loop {
        match from.post_send(from.send(accepted, 1)) {
            Ok(()) if accepted <= u64::from(limit) => accepted += 1,
            result => break result,
        }
    };
    // Let them go, and see that there is room again.
    let mut completed = 0;
    for id in 0..accepted {
        to.must_receive(to.receive(id, 1))?;
        completed += u64::from(from.sent()?.is_some_and(|c| c.status == sys::IBV_WC_SUCCESS));
    }
    let again = from.post_send(from.send(0, 1));
    Ok(vec![
        Step::new("one too many", Outcome::errno(&result), Outcome::Errno(ENOMEM)),
        Step::new("accepted before", Outcome::Number(accepted), Outcome::Number(limit.into())),
        Step::new("completed later", Outcome::Number(completed), Outcome::Number(accepted)),
        Step::new("send afterwards", Outcome::errno(&again), Outcome::Errno(0)),
    ])
}

fn recv_queue_full(stage: &Stage) -> Result<Vec<Step>, Error> {
    let [player, _] = stage.usual()?;
    let limit = player.qp().limits().receive_requests;
    let mut accepted = 0;
    let result = loop {
        match player.post_receive(player.receive(accepted, 1)) {
            Ok(()) if accepted <= u64::from(limit) => accepted += 1,
            result => break result,
        }
    };
    Ok(vec![
        Step::new("one too many", Outcome::errno(&result), Outcome::Errno(ENOMEM)),
        Step::new("accepted before", Outcome::Number(accepted), Outcome::Number(limit.into())),
    ])
}

fn flush(stage: &Stage) -> Result<Vec<Step>, Error> {
    let [from, _to] = stage.connected(Shape::default(), Connection::default())?;
    for id in 0..3 {
        from.must_receive(from.receive(id, 1))?;
        from.must_send(from.send(10 + id, 1))?;
    }
    from.qp().to_state(sys::IBV_QPS_ERR)?;
    let mut steps = Vec::new();
    for id in 0..3 {
        let (received, sent) = (from.received()?, from.sent()?);
        steps.push(Step::status("receive", received.as_ref(), sys::IBV_WC_WR_FLUSH_ERR));
        steps.push(Step::status("send", sent.as_ref(), sys::IBV_WC_WR_FLUSH_ERR));
        let ids =
            [received, sent].map(|completion| completion.map_or(u64::MAX, |completion| completion.wr_id));
        steps.push(Step::new("id of the receive", Outcome::Number(ids[0]), Outcome::Number(id)));
        steps.push(Step::new("id of the send", Outcome::Number(ids[1]), Outcome::Number(10 + id)));
    }
    Ok(steps)
}

fn post_in_error(stage: &Stage) -> Result<Vec<Step>, Error> {
    let [player, _peer] = stage.usual()?;
    player.qp().to_state(sys::IBV_QPS_ERR)?;
    let (send, receive) = (player.post_send(player.send(1, 1)), player.post_receive(player.receive(2, 1)));
    let (sent, received) = (player.sent()?, player.received()?);
    Ok(vec![
        Step::new("posting a send", Outcome::errno(&send), Outcome::Errno(0)),
        Step::new("posting a receive", Outcome::errno(&receive), Outcome::Errno(0)),
        Step::status("send", sent.as_ref(), sys::IBV_WC_WR_FLUSH_ERR),
        // rdma_rxe of Linux 6.12 forgets it if its responder has nothing else to do.
        Step::status("receive", received.as_ref(), sys::IBV_WC_WR_FLUSH_ERR).or_pending(),
    ])
}

fn reset_purges(stage: &Stage) -> Result<Vec<Step>, Error> {
    let [player, _peer] = stage.usual()?;
    player.must_receive(player.receive(1, 1))?;
    player.must_send(player.send(2, 1))?;
    player.qp().to_state(sys::IBV_QPS_RESET)?;
    let received = player.qp().receive_cq().wait(stage.quiet)?;
    let sent = player.qp().send_cq().wait(stage.quiet)?;
    // Reset, the queue pair can be used again from the start.
    let again = Outcome::verb(player.qp().to_init(player.endpoint.address.port))?;
    Ok(vec![
        Step::new("receive", Outcome::of(received.as_ref()), Outcome::Pending),
        Step::new("send", Outcome::of(sent.as_ref()), Outcome::Pending),
        Step::new("to INIT again", again, Outcome::Errno(0)),
    ])
}
