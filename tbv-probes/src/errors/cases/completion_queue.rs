//! Completion queues that are not polled in time.

use tbv_verbs_sys as sys;

use super::{Case, Stage, Step};
use crate::errors::outcome::Outcome;
use crate::errors::stage::Player;
use crate::pair::{Endpoint, Shape};
use crate::verbs::{Connection, Context, Error, Limits};

pub(super) const CASES: &[Case] = &[
    Case { name: "cq-overflow", about: "one completion more than the queue holds", play: overflow },
    Case { name: "cq-exactly-full", about: "as many completions as the queue holds", play: exactly_full },
];

/// Sends so many messages that nobody polls for; waits until the last has arrived.
fn fill(stage: &Stage, beyond: usize) -> Result<([Player; 2], usize), Error> {
    // What capacity one gets for asking for one is only known afterwards.
    let (context, address) = (&stage.ports.contexts[0], stage.ports.addresses[0]);
    let probe = Endpoint::new(context, address, Shape { send_cq_entries: 1, ..Shape::default() })?;
    let capacity = probe.qp.send_cq().capacity();
    drop(probe);
    let requests = (capacity + beyond) as u32;
    let limits =
        Limits { send_requests: requests, receive_requests: requests, send_sges: 1, receive_sges: 1 };
    let shape = Shape { limits, send_cq_entries: 1, receive_cq_entries: requests as i32 };
    let [from, to] = stage.connected(shape, Connection::default())?;
    for id in 0..u64::from(requests) {
        to.must_receive(to.receive(id, 1))?;
    }
    for id in 0..u64::from(requests) {
        from.must_send(from.send(id, 1))?;
    }
    for _ in 0..requests {
        if to.received()?.is_none() {
            return Err(Error::Timeout("messages stopped before the queue was full".into()));
        }
    }
    // The last receive may complete before the sender has its acknowledgement.
    std::thread::sleep(stage.quiet);
    Ok(([from, to], capacity))
}

fn overflow(stage: &Stage) -> Result<Vec<Step>, Error> {
    drain_events(&stage.ports.contexts[0])?;
    let ([from, to], capacity) = fill(stage, 1)?;
    let queue = from.qp().send_cq();
    let event = from.endpoint.pd.context().event(stage.patience.as_millis() as i32)?;
    let raised = event == Some((sys::IBV_EVENT_CQ_ERR, queue.id()));
    // A loop that polls until it has everything, or the queue says otherwise, must come to an end.
    let mut taken = 0;
    while let Ok(completions) = queue.poll(1)
        && !completions.is_empty()
        && taken <= capacity as u64
    {
        taken += 1;
    }
    drop(to);
    Ok(vec![
        Step::new("event CQ_ERR for this queue", Outcome::Number(raised.into()), Outcome::Number(1)),
        Step::new(
            "no more than its capacity",
            Outcome::Number((taken <= capacity as u64).into()),
            Outcome::Number(1),
        ),
    ])
}

fn exactly_full(stage: &Stage) -> Result<Vec<Step>, Error> {
    drain_events(&stage.ports.contexts[0])?;
    let ([from, _to], capacity) = fill(stage, 0)?;
    let event = from.endpoint.pd.context().event(0)?;
    let mut good = 0;
    while let Some(completion) = from.qp().send_cq().poll(1)?.pop() {
        good += u64::from(completion.status == sys::IBV_WC_SUCCESS && completion.wr_id == good);
    }
    Ok(vec![
        Step::new("events", Outcome::Number(event.is_some().into()), Outcome::Number(0)),
        Step::new("completions in order", Outcome::Number(good), Outcome::Number(capacity as u64)),
    ])
}

/// Takes what earlier cases left.
fn drain_events(context: &Context) -> Result<(), Error> {
    while context.event(0)?.is_some() {}
    Ok(())
}
