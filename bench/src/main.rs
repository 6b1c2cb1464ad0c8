//! What tracing costs per call, natively, in interleaved rounds: nothing attached, tbv, and other tracers. And what it
//! costs to poll a completion queue that is published to user space.
//!
//! A machine without RDMA has no uverbs call to trace. The worker makes the same ioctl, with the same request in
//! memory, on /dev/null, and tbv's own programs are told to take that for an uverbs device: everything they do is what
//! they do in earnest, and the call itself is as short as an ioctl can be.

mod arms;
mod load;
mod poll;
mod top;
mod worker;

use std::{collections::BTreeMap, io::Write as _, path::Path, process::ExitCode};

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};

use arms::Arm;

/// What tracing costs per call: nothing, tbv, bpftrace, perf trace and strace in turn
#[derive(Parser)]
#[command(
    after_help = "Needs root, the kernel's BTF, and bpftrace, perf and strace in PATH. Prints; judges nothing.
`cargo xtask bench` builds and runs it."
)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// Rounds; every tracer has its turn in each
    #[arg(long, default_value_t = 9)]
    rounds: u32,
    /// Calls in a turn; slow tracers make a fiftieth of it
    #[arg(long, default_value_t = 500_000)]
    calls: u64,
    /// Makes this many calls and prints the nanoseconds that each took (for its own use)
    #[arg(long, hide = true)]
    worker: Option<u64>,
}

#[derive(Subcommand)]
enum What {
    /// What a poll of a published completion queue costs, next to a system call; needs no privileges, but for the polls
    /// that are traced
    Poll {
        /// Rounds; each kind has its turn in each
        #[arg(long, default_value_t = 25)]
        rounds: u32,
    },
    /// What tbv-top takes of a processor at ten looks a second; needs root and the kernel's BTF
    Load {
        /// Rounds; each kind has its turn in each
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
        rounds: u32,
    },
    /// How long tbv-top takes for a picture of much; needs no privileges
    Top {
        /// Pictures
        #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
        rounds: u32,
    },
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match (&args.what, args.worker) {
        (Some(What::Poll { rounds }), _) => poll::run(*rounds),
        (Some(What::Load { rounds }), _) => load::run(*rounds),
        (Some(What::Top { rounds }), _) => top::run(*rounds),
        (None, Some(calls)) => worker::work(calls),
        (None, None) => run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tbv-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Shows bpftrace and perf the tracepoints, in a mount namespace of our own: not every machine has them mounted.
fn mount_tracefs() -> Result<()> {
    const TRACEFS: &str = "/sys/kernel/tracing";
    if Path::new(TRACEFS).join("events").exists() {
        return Ok(());
    }
    // SAFETY: only C strings go in.
    unsafe {
        let (root, none) = (c"/".as_ptr(), std::ptr::null());
        let private = libc::MS_REC | libc::MS_PRIVATE;
        if libc::unshare(libc::CLONE_NEWNS) != 0
            || libc::mount(none, root, none, private, none.cast()) != 0
            || libc::mount(
                c"tracefs".as_ptr(),
                c"/sys/kernel/tracing".as_ptr(),
                c"tracefs".as_ptr(),
                0,
                none.cast(),
            ) != 0
        {
            return Err(std::io::Error::last_os_error()).context("cannot mount tracefs; run as root");
        }
    }
    Ok(())
}

fn run(args: &Args) -> Result<()> {
    mount_tracefs()?;
    let mut times: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for round in 1..=args.rounds {
        eprintln!("round {round} of {}", args.rounds);
        for (number, arm) in Arm::ALL.into_iter().enumerate() {
            let calls = if arm.is_slow() { args.calls / 50 } else { args.calls };
            let ns = arm.measure(calls).with_context(|| arm.name())?;
            times.entry(number).or_default().push(ns);
        }
    }
    let mut out = std::io::stdout().lock();
    let untraced = times.get(&0).map_or(0.0, |of| median(of));
    writeln!(out, "{:<44} {:>10} {:>10} {:>10} {:>12}", "ns per call", "min", "median", "max", "added")?;
    let mut added = BTreeMap::new();
    for (number, arm) in Arm::ALL.into_iter().enumerate() {
        let Some(of) = times.get(&number) else { continue };
        let (min, max) = extremes(of);
        let more = median(of) - untraced;
        added.insert(arm.name(), more);
        writeln!(out, "{:<44} {min:>10.0} {:>10.0} {max:>10.0} {more:>12.0}", arm.name(), median(of))?;
    }
    if let (Some(ours), Some(theirs)) = (added.get(Arm::Tbv.name()), added.get(Arm::Bpftrace.name())) {
        writeln!(
            out,
            "\ntbv adds {:.2} × what bpftrace adds, which decodes nothing (aim: 0.60)",
            ours / theirs
        )?;
    }
    Ok(())
}

fn extremes(of: &[f64]) -> (f64, f64) {
    of.iter().fold((f64::MAX, 0.0), |(min, max), ns| (min.min(*ns), max.max(*ns)))
}

fn median(of: &[f64]) -> f64 {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}
