//! The stream of one process's calls. It has programs of its own in the kernel, so that nobody else's calls go through
//! a ring buffer, and only while somebody looks.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tbv_core::{
    Event, Filter, HandleKind, Names, Op, Options, StreamOptions, Tracer, report::UNKNOWN_DEVICE, uapi,
};
use tokio::sync::mpsc::UnboundedSender;

use crate::app::{
    Message,
    events::{Batch, Line},
};

/// Bytes of the ring buffer: about 20,000 calls.
const RING: u32 = 1 << 20;
/// Between two looks at it.
const EVERY: Duration = Duration::from_millis(5);
/// Between two batches for the screen.
const SHOW_EVERY: Duration = Duration::from_millis(50);
/// Most calls that are read before anything else is looked after.
const AT_ONCE: usize = 4096;
/// Lines of a batch; nobody can read more of them.
const LINES: usize = 500;

/// A stream that ends when this is dropped.
pub struct Stream(Arc<AtomicBool>);

impl Stream {
    /// Begins in a thread of its own: loading takes a while.
    pub fn begin(pid: u32, devices: Vec<String>, to: UnboundedSender<Message>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        thread::spawn(move || {
            if let Err(error) = stream(pid, devices, &to, &seen) {
                let _ = to.send(Message::NoEvents(pid, error.to_string()));
            }
        });
        Stream(over)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn stream(
    pid: u32,
    devices: Vec<String>,
    to: &UnboundedSender<Message>,
    over: &AtomicBool,
) -> tbv_core::Result<()> {
    let options = Options {
        filter: Filter { pids: vec![pid], devices, ..Filter::default() },
        stream: Some(StreamOptions { failed_only: false, ring_bytes: RING }),
        ..Options::default()
    };
    let mut tracer = Tracer::start(&options)?;
    let (mut ring, begin_ns) = (tracer.events()?, tracer.started_ns());
    let mut names = Names::now();
    let mut unknown = HashSet::new();
    let (mut read, mut lost) = (Vec::with_capacity(AT_ONCE), 0);
    let (mut batch, mut shown) = (Batch { pid, ..Batch::default() }, Instant::now());
    while !over.load(Ordering::Relaxed) {
        ring.drain(&mut read, AT_ONCE);
        batch.delivered += read.len() as u64;
        for event in &read {
            // Once each: one that is gone from sysfs would cost a look at all of it for every call.
            if !names.devices.contains_key(&event.device) && unknown.insert(event.device) {
                names.learn();
            }
            batch.lines.push(line(event, begin_ns, &names));
        }
        let all = read.len() == AT_ONCE;
        read.clear();
        let too_many = batch.lines.len().saturating_sub(LINES);
        batch.lines.drain(..too_many);
        if shown.elapsed() >= SHOW_EVERY {
            let now = tracer.ring_full()?;
            batch.lost = now.saturating_sub(lost);
            lost = now;
            let full = std::mem::replace(&mut batch, Batch { pid, ..Batch::default() });
            if (full.delivered > 0 || full.lost > 0) && to.send(Message::Events(full)).is_err() {
                break;
            }
            shown = Instant::now();
        }
        if !all {
            thread::sleep(EVERY);
        }
    }
    Ok(())
}

fn line(event: &Event, begin_ns: u64, names: &Names) -> Line {
    let kind = |kind| match kind {
        HandleKind::Cq => "cq",
        HandleKind::Qp => "qp",
        HandleKind::Srq => "srq",
    };
    let queue = event.handle.get().map(|(of, handle)| format!("{} {handle}", kind(of)));
    Line {
        time_ns: event.time.saturating_sub(begin_ns),
        tid: event.tid,
        device: names.devices.get(&event.device).map_or(UNKNOWN_DEVICE, |device| &device.name).to_owned(),
        op: uapi::op_name(Op(event.op)).into_owned(),
        queue,
        latency_ns: (event.latency != u64::MAX).then_some(event.latency),
        errno: (event.errno != 0).then(|| uapi::errno_name(event.errno).into_owned()),
    }
}
