//! What is measured: a command that is started, or programs that run already.

use std::{
    ffi::OsString,
    io::{IsTerminal as _, stderr},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use anyhow::{Result, bail};
use tbv_core::{Filter, Hook, usdt};

use crate::{
    cli::{AttachArgs, ProbeArgs, RunArgs, SourceArgs, WhoArgs},
    command,
    ending::{Ending, Second, Signals},
    exit,
};

/// Whose calls and messages count, and when that ends.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// A command and its descendants, until it ends.
    Command { words: &'a [OsString], wait: bool, as_root: bool },
    /// Programs that run already.
    Attached { who: &'a WhoArgs, duration: Option<Duration> },
}

impl<'a> From<&'a RunArgs> for Source<'a> {
    fn from(args: &'a RunArgs) -> Self {
        Source::Command { words: &args.command, wait: args.wait, as_root: args.as_root }
    }
}

impl<'a> From<&'a AttachArgs> for Source<'a> {
    fn from(args: &'a AttachArgs) -> Self {
        Source::Attached { who: &args.who, duration: args.duration }
    }
}

impl<'a> TryFrom<&'a SourceArgs> for Source<'a> {
    type Error = anyhow::Error;

    fn try_from(args: &'a SourceArgs) -> Result<Self> {
        let SourceArgs { who, duration, wait, as_root, command } = args;
        Ok(match who {
            Some(who) => Source::Attached { who, duration: *duration },
            None if command.is_empty() => {
                bail!("what is to be measured? A command after --, or -p, --comm, --cgroup, --dev or -a")
            }
            None => Source::Command { words: command, wait: *wait, as_root: *as_root },
        })
    }
}

impl Source<'_> {
    pub(crate) fn signals(&self) -> Result<Signals> {
        Signals::catch(match self {
            Source::Command { .. } => Second::Passed,
            Source::Attached { .. } => Second::Ends,
        })
    }

    pub(crate) fn filter(&self) -> Filter {
        match self {
            Source::Command { .. } => Filter { descendants: true, ..Filter::default() },
            Source::Attached { who, .. } => who.filter(),
        }
    }

    /// Files of our provider whose probes are to be attached.
    pub(crate) fn providers(&self, probes: &ProbeArgs) -> Result<Vec<PathBuf>> {
        probes.files(|| match self {
            Source::Command { .. } => usdt::find(&[]),
            Source::Attached { who, .. } => who.providers(),
        })
    }

    /// What the filter leaves out, as reports say it.
    pub(crate) fn filters(&self) -> Vec<String> {
        match self {
            Source::Command { .. } => Vec::new(),
            Source::Attached { who, .. } => who.words(),
        }
    }

    /// The command as reports say it; empty without one.
    pub(crate) fn command(&self) -> Vec<String> {
        match self {
            Source::Command { words, .. } => {
                words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
            }
            Source::Attached { .. } => Vec::new(),
        }
    }

    /// Whether processes that the command leaves running are waited for.
    pub(crate) fn waits(&self) -> bool {
        matches!(self, Source::Command { wait: true, .. })
    }

    /// Once all is attached by `hook`: starts the command, if there is one. What ends the run, or the status with which it
    /// ends at once.
    pub(crate) fn begin(&self, mut signals: Signals, hook: Hook) -> Result<Result<Ending, ExitCode>> {
        match self {
            Source::Attached { who, duration } => {
                let ending = Ending::of_processes(&who.pid, *duration, signals)?;
                if stderr().is_terminal() && duration.is_none() {
                    say!("tracing by {hook}; Ctrl-C ends it");
                }
                Ok(Ok(ending))
            }
            Source::Command { words, as_root, .. } => {
                if let Some(signal) = signals.asked_to_end() {
                    say!("ended by signal {signal} while attaching; the command was not started");
                    let code = u8::try_from(exit::SIGNALLED + signal).unwrap_or(u8::MAX);
                    return Ok(Err(ExitCode::from(code)));
                }
                Ok(command::start(words, *as_root)?
                    .map(|child| Ending::of_command(child, signals))
                    .map_err(ExitCode::from))
            }
        }
    }
}
