//! A process that forks while it has a queue.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::lane::good;
use super::{Lane, Patience, must};
use crate::pair::{Devices, Ports};
use crate::verbs::{Cq, Error, Poller};

const DEPTH: u32 = 16;

/// A thread polls while the process forks. The child must get errors from its parent's queue and take nothing from it, and must be able to use one of its own;
/// the parent goes on. `again` opens the ports anew, in the child.
pub fn fork(ports: &Ports, again: &Devices) -> Result<String, Error> {
    let queue = Cq::new(&ports.contexts[0], DEPTH as i32)?;
    let receive_cq = Cq::new(&ports.contexts[1], DEPTH as i32)?;
    let mut lane = Lane::new(ports, DEPTH, &queue, &receive_cq)?;
    let taken = AtomicU64::new(0);
    let poller = queue.poller();
    thread::scope(|scope| {
        let polling = scope.spawn(|| take(poller, u64::from(DEPTH), &taken));
        (0..DEPTH / 2).try_for_each(|_| lane.send())?;
        // At any moment of the other thread.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        thread::sleep(Duration::from_micros(u64::from(now.subsec_nanos()) % 1000));
        // SAFETY: the child has this thread alone, and ends by _exit.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let result = in_child(&queue, again);
            if let Err(error) = &result {
                eprintln!("child: {error}");
            }
            // SAFETY: without destructors: they would destroy the parent's objects.
            unsafe { libc::_exit(result.is_err().into()) };
        }
        (0..DEPTH / 2).try_for_each(|_| lane.send())?;
        lane.receive_all()?;
        let mut status = -1;
        // SAFETY: our own child.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        must(status == 0, || format!("the child ended with status {status:#x}"))?;
        polling.join().unwrap_or_else(|_| Err(Error::Wrong("a thread panicked".to_owned())))
    })?;
    Ok(format!("completions={}", taken.into_inner()))
}

/// Takes so many completions, which must come in order: nobody else takes any.
fn take(poller: Poller<'_>, count: u64, taken: &AtomicU64) -> Result<(), Error> {
    let mut patience = Patience::new();
    while taken.load(Ordering::Relaxed) < count {
        let got = poller.poll(4)?;
        patience.after(!got.is_empty(), "the parent's completions")?;
        for completion in got {
            good(&completion)?;
            let next = taken.fetch_add(1, Ordering::Relaxed);
            must(completion.wr_id == next, || format!("completion {}, not {next}", completion.wr_id))?;
        }
    }
    Ok(())
}

fn in_child(parents: &Cq, again: &Devices) -> Result<(), Error> {
    let refused = |what: &str, errno: i32| must(errno == libc::EINVAL, || format!("{what}: errno {errno}"));
    for _ in 0..3 {
        match parents.poll(4) {
            Err(Error::Verb { errno, .. }) => refused("poll", errno)?,
            other => return Err(Error::Wrong(format!("poll: {other:?}"))),
        }
    }
    refused("arm", parents.poller().arm())?;
    refused("destroy", parents.try_destroy())?;
    let ports = again.open()?;
    let queue = Cq::new(&ports.contexts[0], 4)?;
    let receive_cq = Cq::new(&ports.contexts[1], 4)?;
    let mut lane = Lane::new(&ports, 4, &queue, &receive_cq)?;
    lane.send()?;
    lane.receive_all()?;
    let mut patience = Patience::new();
    while queue.poll(1)?.is_empty() {
        patience.after(false, "the child's completion")?;
    }
    Ok(())
}
