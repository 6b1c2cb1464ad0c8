//! What tbv-top takes of a processor when it looks ten times a second, while four processes call as fast as they can.
//!
//! The collector and the drawing are tbv-top's own; the terminal is one that nobody looks at. What the programs in the
//! kernel cost is the callers' time, and not counted here.

use std::{
    fs::File,
    io::{BufWriter, Write as _},
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use ratatui::{Terminal, TerminalOptions, Viewport, backend::CrosstermBackend, layout::Rect};
use tbv_core::{Filter, Hook, Options, Spans};
use tbv_top::{
    app::{App, Message, Source},
    draw::{draw, look::Look},
    source::live::Live,
};
use tokio::{sync::mpsc::unbounded_channel, time::timeout};

use crate::{arms::MEM_MAJOR, extremes, median};

const PROCESSES: usize = 4;
const INTERVAL: Duration = Duration::from_millis(100);
/// Nothing is measured until then.
const WARM_UP: Duration = Duration::from_secs(2);
const MEASURED: Duration = Duration::from_secs(10);
const SCREEN: Rect = Rect::new(0, 0, 132, 40);
const LOOK: Look = Look { color: true, unicode: true };

/// What one turn gave.
struct Turn {
    /// Part of one processor.
    used: f64,
    looks: u32,
    /// Calls a second that it told of.
    calls: f64,
}

pub(crate) fn run(rounds: u32) -> Result<()> {
    let arms = [("looking and drawing, 132x40", true), ("looking only", false)];
    let mut turns = arms.map(|_| Vec::new());
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        for ((_, drawn), turns) in arms.iter().zip(&mut turns) {
            turns.push(turn(*drawn)?);
        }
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{:<44} {:>8} {:>8} {:>8}", "percent of a processor", "min", "median", "max")?;
    for ((name, _), turns) in arms.iter().zip(&turns) {
        let used: Vec<f64> = turns.iter().map(|turn| 100.0 * turn.used).collect();
        let (min, max) = extremes(&used);
        writeln!(out, "{name:<44} {min:>8.2} {:>8.2} {max:>8.2}", median(&used))?;
    }
    let all = || turns.iter().flatten();
    let looks = all().map(|turn| turn.looks).min().unwrap_or(0);
    let calls = all().map(|turn| turn.calls).fold(f64::MAX, f64::min);
    writeln!(
        out,
        "\n{PROCESSES} processes, at least {:.1} million calls a second of them counted, {looks} looks in {} s",
        calls / 1e6,
        MEASURED.as_secs()
    )?;
    Ok(())
}

fn turn(drawn: bool) -> Result<Turn> {
    let callers = (0..PROCESSES).map(|_| Caller::start()).collect::<Result<Vec<_>>>()?;
    let options = Options {
        hook: Some(Hook::RawSyscall),
        // Others make ioctls on such devices, too.
        filter: Filter { pids: callers.iter().map(|caller| caller.0.id()).collect(), ..Filter::default() },
        spans: Spans::Counted,
        cost: true,
        instead_of_uverbs: Some(MEM_MAJOR),
        ..Options::default()
    };
    let mut app = App::new(Source::Live { holds: Vec::new(), let_go: None, interval: INTERVAL });
    app.size = (SCREEN.width, SCREEN.height);
    let nobody = File::options().write(true).open("/dev/null").context("/dev/null")?;
    let viewport = TerminalOptions { viewport: Viewport::Fixed(SCREEN) };
    let mut terminal =
        Terminal::with_options(CrosstermBackend::new(BufWriter::with_capacity(64 << 10, nobody)), viewport)?;
    let (send, mut news) = unbounded_channel();
    let live = Live::start(options, Vec::new(), INTERVAL, None, send)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let turn = runtime.block_on(async {
        let (mut looks, mut calls, mut ns) = (0, 0, 0);
        let begin = Instant::now();
        let mut from = None;
        loop {
            let past = begin.elapsed();
            if from.is_none() && past >= WARM_UP {
                from = Some((used()?, Instant::now()));
            }
            if let Some((before, at)) = from
                && at.elapsed() >= MEASURED
            {
                let used = (used()? - before).as_secs_f64() / at.elapsed().as_secs_f64();
                return anyhow::Ok(Turn { used, looks, calls: calls as f64 / (ns as f64 / 1e9) });
            }
            let Ok(message) = timeout(INTERVAL, news.recv()).await else { continue };
            let message = message.context("collecting has ended")?;
            if let (Message::Interval(report), Some(_)) = (&message, from) {
                looks += 1;
                calls += report.calls.iter().map(|call| call.count).sum::<u64>();
                ns += report.duration_ns;
                let pids =
                    report.calls.iter().map(|call| call.pid).collect::<std::collections::BTreeSet<_>>();
                ensure!(pids.len() == PROCESSES, "{} processes called", pids.len());
            }
            app.update(message);
            if drawn {
                terminal.draw(|frame| draw(&app, LOOK, frame.area(), frame.buffer_mut()))?;
            }
        }
    })?;
    live.end()?;
    Ok(turn)
}

/// Processor time of this process so far: all of its threads, in user space and in the kernel.
fn used() -> Result<Duration> {
    // SAFETY: all-zero is valid for it, and it is filled before it is read.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a valid rusage.
    ensure!(unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) } == 0, "getrusage failed");
    let duration = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    Ok(duration(usage.ru_utime) + duration(usage.ru_stime))
}

/// One that calls until it is dropped.
struct Caller(Child);

impl Caller {
    fn start() -> Result<Self> {
        let own = std::env::current_exe().context("where is this program?")?;
        let mut command = Command::new(own);
        command.args(["--worker", &u64::MAX.to_string()]).stdout(Stdio::null());
        // However we end, it ends, too.
        // SAFETY: a system call between fork and exec; it allocates nothing.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        Ok(Caller(command.spawn().with_context(|| format!("cannot start {command:?}"))?))
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        // One that has ended already needs none of it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
