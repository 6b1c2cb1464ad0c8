//! What a run waits for: its command, the processes it was attached to, its time, and signals.

use std::{
    os::{fd::OwnedFd, unix::process::ExitStatusExt as _},
    process::{Child, ExitStatus},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};
use signal_hook::{
    consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM},
    iterator::{
        SignalsInfo,
        exfiltrator::{WithOrigin, origin::Origin},
    },
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::Instant,
};

use crate::exit;

/// What a second signal that asks for an end does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Second {
    /// It is passed on like the first.
    Passed,
    /// It ends us at once.
    Ends,
}

/// Signals from the moment of [`Signals::catch`].
pub(crate) struct Signals(UnboundedReceiver<Origin>);

impl Signals {
    /// A thread waits for them: tokio's own interface does not tell who sent one.
    pub(crate) fn catch(second: Second) -> Result<Self> {
        // One that is ignored stays so, for the command too: it may have been started by nohup.
        let caught = [SIGINT, SIGQUIT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal));
        let mut signals =
            SignalsInfo::<WithOrigin>::new(caught.chain([SIGCHLD])).context("cannot catch signals")?;
        let (send, receive) = unbounded_channel();
        thread::spawn(move || {
            let mut ending = 0;
            for signal in signals.forever() {
                ending += u32::from(signal.signal != SIGCHLD);
                if second == Second::Ends && ending > 1 {
                    // Somebody insists: what we wait for may never come, such as a reader of our output.
                    let _ = signal_hook::low_level::emulate_default_handler(signal.signal);
                }
                if send.send(signal).is_err() {
                    break;
                }
            }
        });
        Ok(Signals(receive))
    }
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: only asks; all-zero is a valid sigaction to be filled in.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}

impl Signals {
    /// The first one that asked for an end until now.
    pub(crate) fn asked_to_end(&mut self) -> Option<i32> {
        std::iter::from_fn(|| self.0.try_recv().ok())
            .map(|origin| origin.signal)
            .find(|signal| *signal != SIGCHLD)
    }
}

/// One run.
pub(crate) struct Ending {
    child: Option<Child>,
    signals: Signals,
    duration: Option<Duration>,
    /// Since when that counts.
    begin: Instant,
    /// Processes that have not ended yet; empty from the start if the run does not end with them.
    processes: Vec<AsyncFd<OwnedFd>>,
    ends_with_processes: bool,
}

impl Ending {
    /// A run that ends with its command.
    pub(crate) fn of_command(child: Child, signals: Signals) -> Self {
        Ending {
            child: Some(child),
            signals,
            duration: None,
            begin: Instant::now(),
            processes: Vec::new(),
            ends_with_processes: false,
        }
    }

    /// A run that ends by a signal, after `duration`, or with the last of `pids` if there are any.
    pub(crate) fn of_processes(pids: &[u32], duration: Option<Duration>, signals: Signals) -> Result<Self> {
        let mut processes = Vec::new();
        for pid in pids {
            // One that has ended since is as good as one that ends now.
            let Ok(pid) = tbv_core::filter::process_of(*pid) else { continue };
            match tbv_core::pidfd(pid) {
                // SAFETY: an `OwnedFd` keeps its descriptor open as long as it lives.
                Ok(fd) => processes.push(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?),
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
                Err(e) => return Err(e).with_context(|| format!("process {pid}")),
            }
        }
        let (child, begin, ends_with_processes) = (None, Instant::now(), !pids.is_empty());
        Ok(Ending { child, signals, duration, begin, processes, ends_with_processes })
    }

    /// Counts the duration from `begin`.
    pub(crate) fn count_from(&mut self, begin: Instant) {
        self.begin = begin;
    }

    /// Whether a signal asked for an end since the last time.
    pub(crate) fn asked_to_end(&mut self) -> bool {
        self.signals.asked_to_end().is_some()
    }

    /// Waits for the end. May be given up and called again.
    pub(crate) async fn end(&mut self) -> Result<Option<ExitStatus>> {
        loop {
            if let Some(child) = &mut self.child
                && let Some(status) = child.try_wait().context("waiting for the command")?
            {
                return Ok(Some(status));
            }
            if self.ends_with_processes && self.processes.is_empty() {
                return Ok(None);
            }
            let deadline = self.duration.map(|duration| self.begin + duration);
            let process = self.processes.last();
            tokio::select! {
                signal = self.signals.0.recv() => match (signal, &self.child) {
                    // A key on the terminal reaches the command by itself. What was sent to us alone
                    // is passed on; tbv-trace stays to print the result when the command ends.
                    (Some(Origin { signal, process: Some(_), .. }), Some(child)) if signal != SIGCHLD => {
                        // SAFETY: sends a signal to our own child, which is not reaped yet.
                        unsafe { libc::kill(child.id() as libc::pid_t, signal) };
                    }
                    (Some(Origin { signal, .. }), None) if signal != SIGCHLD => return Ok(None),
                    (None, None) => return Ok(None),
                    _ => {}
                },
                () = async { match deadline {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => std::future::pending().await,
                }} => return Ok(None),
                ended = async { match process {
                    Some(process) => process.readable().await.map(drop),
                    None => std::future::pending().await,
                }} => {
                    ended.context("waiting for a process")?;
                    self.processes.pop();
                }
            }
        }
    }
}

/// The exit status as a shell says it.
pub(crate) fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| exit::SIGNALLED + status.signal().unwrap_or(0))
}

/// The runtime of a run: one thread, its own.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting tokio")?
        .block_on(work)
}
