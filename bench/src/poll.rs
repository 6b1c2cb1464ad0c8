//! Polling a published completion queue, in ordinary memory, next to the shortest system call that polling otherwise
//! needs.
//!
//! The call is an ioctl on /dev/null, which has none: the kernel looks up the file, finds no handler and returns. A
//! poll by system call does that and then the work. (An ioctl that the kernel itself serves, such as FIOCLEX, takes a
//! lock; one on a descriptor that is not open returns before there is a file.)
//!
//! Then with the provider's probes behind the poll, which this program has under the same names: first while nobody is
//! attached, then while tbv's own programs are.

use std::{fs::File, hint::black_box, io::Write as _, os::fd::AsRawFd as _, ptr::NonNull, time::Instant};

use anyhow::{Context as _, Result, ensure};
use probe::probe;
use tbv_core::{Filter, Options, Spans, Tracer};
use tbv_cq_ring::{
    Consumer, Entry, Mapped, Memory as _, Nothing,
    atomic::Ordering::{Relaxed, Release},
};
use tbv_proto::{CqConsumer, CqShm, FallBack};

use crate::arms::MEM_MAJOR;

/// Completions in a full queue; as many polls are in one turn.
const CQE: u32 = 4096;

/// As the kernel maps it: the head, then the entries.
#[repr(C)]
struct Ring {
    head: CqShm,
    entries: [Entry; CQE as usize],
}

/// As the kernel maps it, on a page of its own.
#[repr(C, align(4096))]
struct Page(CqConsumer);

struct Bench {
    queue: Consumer<Mapped>,
    /// Device and number, which no queue has: the programs look for it and find none.
    name: (u32, u32),
    null: File,
}

/// What is timed.
#[derive(Clone, Copy)]
enum Kind {
    Ioctl,
    Empty,
    EmptyProbed,
    Hit,
    HitProbed,
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::Ioctl, Kind::Empty, Kind::EmptyProbed, Kind::Hit, Kind::HitProbed];
    /// Those that another time is measured while programs are attached to their probes.
    const PROBED: [Kind; 2] = [Kind::EmptyProbed, Kind::HitProbed];

    fn name(self) -> &'static str {
        match self {
            Kind::Ioctl => "ioctl on /dev/null, which has none",
            Kind::Empty => "poll of an empty queue",
            Kind::EmptyProbed => "the same with its probe",
            Kind::Hit => "poll that takes one completion",
            Kind::HitProbed => "the same with its probe",
        }
    }

    fn attached_name(self) -> &'static str {
        match self {
            Kind::EmptyProbed => "poll of an empty queue, traced",
            _ => "poll that takes one completion, traced",
        }
    }
}

impl Bench {
    fn new() -> Result<Bench> {
        // Both live to the end of the program.
        let ring: &mut Ring =
            Box::leak(Box::new(Ring { head: CqShm::default(), entries: [Entry::default(); CQE as usize] }));
        let page: &mut Page = Box::leak(Box::new(Page(CqConsumer::default())));
        // SAFETY: a ring of that capacity and a consumer page, from now on used by nobody else.
        let mapped = unsafe { Mapped::new(NonNull::from(ring).cast(), NonNull::from(page).cast(), CQE) };
        let null = File::open("/dev/null").context("/dev/null")?;
        Ok(Bench { queue: Consumer::new(mapped), name: black_box((0, 0)), null })
    }

    /// Puts in as many completions as there is room for, as the driver does.
    fn fill(&self) {
        let memory = self.queue.memory();
        let consumed = memory.consumed().load(Relaxed);
        for number in consumed..consumed + u64::from(CQE) {
            memory.slot(number).iter().for_each(|word| word.store(number >> 8, Relaxed));
            memory.produced().store(number + 1, Release);
        }
    }

    /// Nanoseconds that each of a turn's calls took.
    fn turn(&self, kind: Kind) -> Result<f64> {
        if matches!(kind, Kind::Hit | Kind::HitProbed) {
            self.fill();
        }
        // As large as a struct ibv_wc, which the caller of ibv_poll_cq() passes.
        let mut completion = Entry::default();
        let begin = Instant::now();
        for _ in 0..CQE {
            match kind {
                Kind::Ioctl => {
                    // SAFETY: the device refuses every ioctl.
                    let answer = unsafe { libc::ioctl(self.null.as_raw_fd(), 0) };
                    ensure!(answer == -1, "/dev/null took an ioctl");
                }
                Kind::Empty => {
                    ensure!(self.poll(&mut completion) == Err(Nothing::Empty), "something was in the queue");
                }
                Kind::EmptyProbed => {
                    ensure!(
                        self.probed(&mut completion) == Err(Nothing::Empty),
                        "something was in the queue"
                    );
                }
                Kind::Hit => ensure!(self.poll(&mut completion) == Ok(1), "nothing was in the queue"),
                Kind::HitProbed => ensure!(self.probed(&mut completion) == Ok(1), "nothing was in the queue"),
            }
        }
        Ok(begin.elapsed().as_nanos() as f64 / f64::from(CQE))
    }

    /// A function, as it is for who calls ibv_poll_cq().
    #[inline(never)]
    fn poll(&self, completion: &mut Entry) -> Result<usize, Nothing> {
        let polled = self.queue.poll(1, |_, entry| *completion = *entry);
        black_box(completion);
        polled
    }

    /// With the probes that the provider has.
    #[inline(never)]
    fn probed(&self, completion: &mut Entry) -> Result<usize, Nothing> {
        let polled = self.queue.take(1, |_, entry| *completion = *entry);
        let (device, cqn) = self.name;
        match &polled {
            Ok(taken) => probe!(usb4_rdma, poll_hit, device, cqn, taken.first, taken.count),
            Err(Nothing::Empty) => probe!(usb4_rdma, poll_empty, device, cqn),
            Err(Nothing::Overflow) => probe!(usb4_rdma, overflow, device, cqn),
            Err(_) => probe!(usb4_rdma, fall_back, FallBack::DeviceGone as u32),
        }
        black_box(completion);
        polled.map(|taken| taken.count)
    }
}

/// tbv's programs on this program's probes.
fn attach() -> Result<Tracer> {
    let own = std::env::current_exe().context("where is this program?")?;
    Ok(Tracer::start(&Options {
        filter: Filter { descendants: true, ..Filter::default() },
        instead_of_uverbs: Some(MEM_MAJOR),
        spans: Spans::Counted,
        usdt: vec![own],
        ..Options::default()
    })?)
}

/// Measures and prints.
pub(crate) fn run(rounds: u32) -> Result<()> {
    let bench = Bench::new()?;
    let mut times = Kind::ALL.map(|_| Vec::new());
    for _ in 0..rounds {
        for (kind, times) in Kind::ALL.into_iter().zip(&mut times) {
            times.push(bench.turn(kind)?);
        }
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{:<44} {:>10} {:>10} {:>10} {:>12}", "ns per call", "min", "median", "max", "ioctl is")?;
    let call = crate::median(&times[0]);
    for (kind, times) in Kind::ALL.into_iter().zip(&times) {
        let (min, max) = crate::extremes(times);
        let median = crate::median(times);
        let ratio = format!("{:.0} ×", call / median);
        writeln!(out, "{:<44} {min:>10.1} {median:>10.1} {max:>10.1} {ratio:>12}", kind.name())?;
    }
    match attach() {
        Ok(tracer) => {
            let mut times = Kind::PROBED.map(|_| Vec::new());
            for _ in 0..rounds {
                for (kind, times) in Kind::PROBED.into_iter().zip(&mut times) {
                    times.push(bench.turn(kind)?);
                }
            }
            drop(tracer);
            for (kind, times) in Kind::PROBED.into_iter().zip(&times) {
                let (min, max) = crate::extremes(times);
                let median = crate::median(times);
                writeln!(out, "{:<44} {min:>10.1} {median:>10.1} {max:>10.1}", kind.attached_name())?;
            }
        }
        Err(error) => writeln!(out, "traced: not measured: {error:#}")?,
    }
    writeln!(out, "\naim: 30 × for an empty queue, 15 × for a completion")?;
    writeln!(
        out,
        "The thread that polls has filled the queue: what another processor wrote costs a cache miss more."
    )?;
    Ok(())
}
