//! The tracers, each over one turn of the worker.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use tbv_core::{Filter, Hook, Options, StreamOptions, Tracer, events::RING_DEFAULT};

/// Who traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arm {
    Nothing,
    Tbv,
    TbvStreaming,
    Bpftrace,
    PerfTrace,
    Strace,
}

/// What comes closest to what tbv does: calls and a histogram per process. It decodes nothing.
const BPFTRACE: &str = "
tracepoint:syscalls:sys_enter_ioctl /args->cmd == 0xc0181b01/ { @start[tid] = nsecs; }
tracepoint:syscalls:sys_exit_ioctl /@start[tid]/ {
    @calls[pid] = count(); @ns[pid] = hist(nsecs - @start[tid]); delete(@start[tid]);
}";

/// Major number of /dev/null.
pub(crate) const MEM_MAJOR: u32 = 1;

impl Arm {
    pub(crate) const ALL: [Arm; 6] =
        [Arm::Nothing, Arm::Tbv, Arm::TbvStreaming, Arm::Bpftrace, Arm::PerfTrace, Arm::Strace];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Arm::Nothing => "nothing attached",
            Arm::Tbv => "tbv: decode, count, errno, histogram",
            Arm::TbvStreaming => "tbv streaming: the same and an event a call",
            Arm::Bpftrace => "bpftrace: count, histogram",
            Arm::PerfTrace => "perf trace -s",
            Arm::Strace => "strace -c",
        }
    }

    pub(crate) fn is_slow(self) -> bool {
        matches!(self, Arm::PerfTrace | Arm::Strace)
    }

    /// Nanoseconds that each of `calls` calls took.
    pub(crate) fn measure(self, calls: u64) -> Result<f64> {
        match self {
            Arm::Nothing => worker(&[], calls),
            Arm::Tbv => tbv(calls, None),
            Arm::TbvStreaming => {
                tbv(calls, Some(StreamOptions { failed_only: false, ring_bytes: RING_DEFAULT }))
            }
            Arm::Bpftrace => bpftrace(calls),
            Arm::PerfTrace => worker(&["perf", "trace", "-s", "-o", "/dev/null", "--"], calls),
            Arm::Strace => worker(&["strace", "-c", "-o", "/dev/null"], calls),
        }
    }
}

/// Runs the worker behind the words `before`.
fn worker(before: &[&str], calls: u64) -> Result<f64> {
    let own = std::env::current_exe().context("where is this program?")?;
    let mut words = before.iter();
    let mut command = match words.next() {
        Some(program) => {
            let mut command = Command::new(program);
            command.args(words).arg(own);
            command
        }
        None => Command::new(own),
    };
    let output = command.args(["--worker", &calls.to_string()]).stderr(Stdio::piped()).output();
    let output = output.with_context(|| format!("cannot start {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse()?)
}

fn tbv(calls: u64, stream: Option<StreamOptions>) -> Result<f64> {
    let mut tracer = Tracer::start(&Options {
        hook: Some(Hook::RawSyscall),
        filter: Filter { descendants: true, ..Filter::default() },
        stream,
        instead_of_uverbs: Some(MEM_MAJOR),
        ..Options::default()
    })?;
    let mut ring = stream.map(|_| tracer.events()).transpose()?;
    let (done, delivered) = (AtomicBool::new(false), std::sync::atomic::AtomicU64::new(0));
    let ns = thread::scope(|scope| {
        if let Some(ring) = &mut ring {
            scope.spawn(|| {
                let mut read = Vec::new();
                // Once more after the end, for what came since the last look.
                loop {
                    let last = done.load(Ordering::Acquire);
                    ring.drain(&mut read, usize::MAX);
                    delivered.fetch_add(read.len() as u64, Ordering::Relaxed);
                    read.clear();
                    if last {
                        break;
                    }
                    thread::sleep(Duration::from_millis(1));
                }
            });
        }
        let ns = worker(&[], calls);
        done.store(true, Ordering::Release);
        ns
    })?;
    let counted = tracer.stop()?;
    let of_worker: u64 = counted.rows.iter().map(|row| row.count).sum();
    ensure!(of_worker == calls, "counted {of_worker} of {calls} calls");
    if stream.is_some() {
        let (delivered, lost) = (delivered.load(Ordering::Relaxed), counted.losses.ring_full);
        ensure!(delivered + lost == calls, "{delivered} delivered and {lost} lost of {calls} calls");
    }
    Ok(ns)
}

fn bpftrace(calls: u64) -> Result<f64> {
    let mut child =
        Command::new("bpftrace").args(["-e", BPFTRACE]).stdout(Stdio::piped()).spawn().context("bpftrace")?;
    let mut lines = BufReader::new(child.stdout.take().context("bpftrace's output")?).lines();
    let first = lines.next().context("bpftrace printed nothing")??;
    ensure!(first.contains("Attaching"), "bpftrace: {first}");
    // It says so before it has attached the last probe.
    thread::sleep(Duration::from_millis(500));
    let ns = worker(&[], calls);
    // SAFETY: signals our own child, which is not reaped yet.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
    let counted = lines.map_while(Result::ok).find(|line| line.starts_with("@calls"));
    child.wait().context("bpftrace")?;
    let counted = counted.context("bpftrace counted nothing")?;
    ensure!(counted.ends_with(&format!(": {calls}")), "bpftrace: {counted} of {calls}");
    ns
}
