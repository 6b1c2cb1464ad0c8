//! A process that forks while it has a queue.

use super::lane::good;
use super::{Lane, Patience, must};
use crate::pair::{Devices, Ports};
use crate::verbs::{Cq, Error};

const DEPTH: u32 = 16;

/// The child must get errors from its parent's queue and take nothing from it, and must be able to use one of its own;
/// the parent goes on. `again` opens the ports anew, in the child.
pub fn fork(ports: &Ports, again: &Devices) -> Result<String, Error> {
    let queue = Cq::new(&ports.contexts[0], DEPTH as i32)?;
    let receive_cq = Cq::new(&ports.contexts[1], DEPTH as i32)?;
    let mut lane = Lane::new(ports, DEPTH, &queue, &receive_cq)?;
    for _ in 0..DEPTH / 2 {
        lane.send()?;
    }
    lane.receive_all()?;
    // SAFETY: this program has one thread here; the child ends by _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let result = in_child(&queue, again);
        if let Err(error) = &result {
            eprintln!("child: {error}");
        }
        // SAFETY: without destructors: they would destroy the parent's objects.
        unsafe { libc::_exit(result.is_err().into()) };
    }
    let mut status = -1;
    // SAFETY: our own child.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    must(status == 0, || format!("the child ended with status {status:#x}"))?;
    // Nothing was taken.
    let mut taken = 0;
    let patience = Patience::new();
    while taken < lane.sent {
        let got = queue.poll(4)?;
        if got.is_empty() {
            patience.rest("the parent's completions")?;
        }
        for completion in got {
            good(&completion)?;
            must(completion.wr_id == taken, || format!("completion {}, not {taken}", completion.wr_id))?;
            taken += 1;
        }
    }
    Ok(format!("completions={taken}"))
}

fn in_child(parents: &Cq, again: &Devices) -> Result<(), Error> {
    let refused = |what: &str, errno: i32| must(errno == libc::EPERM, || format!("{what}: errno {errno}"));
    for _ in 0..3 {
        match parents.poll(4) {
            Err(Error::Verb { errno, .. }) => refused("poll", errno)?,
            other => return Err(Error::Wrong(format!("poll: {other:?}"))),
        }
    }
    refused("arm", parents.arm())?;
    refused("destroy", parents.try_destroy())?;
    let ports = again.open()?;
    let queue = Cq::new(&ports.contexts[0], 4)?;
    let receive_cq = Cq::new(&ports.contexts[1], 4)?;
    let mut lane = Lane::new(&ports, 4, &queue, &receive_cq)?;
    lane.send()?;
    lane.receive_all()?;
    let patience = Patience::new();
    while queue.poll(1)?.is_empty() {
        patience.rest("the child's completion")?;
    }
    Ok(())
}
