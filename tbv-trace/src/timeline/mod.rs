//! `tbv-trace timeline`: calls, and what happens to messages, as a trace for Perfetto.
//!
//! Nobody is woken by the kernel side: as for `events`, both ring buffers are looked at by the clock.

mod convert;
#[cfg(test)]
mod fixture;
mod names;
mod packet;
mod requests;
mod source;
#[cfg(test)]
mod tests;
mod track;

use std::{
    io::{BufWriter, IsTerminal as _, Write, stderr},
    process::{ExitCode, ExitStatus},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use prost::Message as _;
use tbv_core::{Filter, Options, Spans, StreamOptions, Tracer, loss::Losses};

use crate::{
    cli::TimelineArgs,
    command,
    ending::{self, Ending, Second, Signals},
    exit,
    output::{self, Target},
    timeline::{packet::Trace, source::Source},
    verbose::Log,
};

#[cfg(test)]
pub(crate) use fixture::fixture;

/// Between two looks at the rings while something comes.
const BUSY: Duration = Duration::from_millis(1);
/// The longest time between two looks.
const IDLE: Duration = Duration::from_millis(20);
/// How often it is looked whether the hook is still on.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often begins of spans are forgotten whose end will not come.
const TIDY_EVERY: Duration = Duration::from_secs(1);

/// `tbv-trace timeline`.
pub(crate) fn timeline(args: &TimelineArgs, log: &Log) -> Result<ExitCode> {
    let attached = args.command.is_empty();
    if attached && args.who.words().is_empty() && !args.who.all {
        bail!(
            "nobody to trace: name someone (-p, --comm, --cgroup, --dev or -a), or give a command after --"
        );
    }
    ending::block_on(async {
        let mut signals = Signals::catch(if attached { Second::Ends } else { Second::Passed })?;
        let to = Target::open(Some(&args.output))?;
        let filter =
            if attached { args.who.filter() } else { Filter { descendants: true, ..Filter::default() } };
        let options = Options {
            hook: args.how.hook,
            filter,
            stream: Some(StreamOptions { failed_only: false, ring_bytes: args.ringbuf_size }),
            spans: Spans::Streamed,
            moments_bytes: Some(args.ringbuf_size),
            log: log.wanted(),
            ..Options::default()
        };
        let mut tracer = Tracer::start(&options)?;
        log.attached(&mut tracer)?;
        if log.wanted() && !tracer.has_spans() {
            say!("no queue pairs in this timeline: thunderbolt_ibverbs is not loaded");
        }
        let source = Source::new(tracer)?;
        let ending = if attached {
            if stderr().is_terminal() && args.duration.is_none() {
                say!("tracing by {}; Ctrl-C ends it", source.tracer.hook());
            }
            Ending::of_processes(&args.who.pid, args.duration, signals)?
        } else {
            if let Some(signal) = signals.asked_to_end() {
                say!("ended by signal {signal} while attaching; the command was not started");
                return Ok(ExitCode::from(u8::try_from(exit::SIGNALLED + signal).unwrap_or(u8::MAX)));
            }
            match command::start(&args.command, args.as_root)? {
                Ok(child) => Ending::of_command(child, signals),
                Err(code) => return Ok(ExitCode::from(code)),
            }
        };
        // A file that cannot be made empty is as bad as one that gets full: a command runs to its end.
        let to = to.begin().map(BufWriter::new);
        let (to, failed) = to.map_or_else(|error| (None, Some(error)), |to| (Some(to), None));
        Run { args, source, to, failed, log }.until(ending).await
    })
}

/// A timeline that is being written.
struct Run<'a> {
    args: &'a TimelineArgs,
    source: Source,
    /// Where to, as long as that works.
    to: Option<BufWriter<Box<dyn Write>>>,
    failed: Option<anyhow::Error>,
    log: &'a Log,
}

impl Run<'_> {
    async fn until(mut self, mut ending: Ending) -> Result<ExitCode> {
        let (mut pause, mut looked, mut tidied) = (BUSY, Instant::now(), Instant::now());
        let mut ended: Option<Option<ExitStatus>> = None;
        loop {
            tokio::select! {
                end = ending.end(), if ended.is_none() => ended = Some(end?),
                () = tokio::time::sleep(pause) => {}
            }
            if ended.is_some() && (!self.waits()? || ending.asked_to_end()) {
                break;
            }
            pause = match self.source.drain()? {
                _ if self.source.is_behind() => Duration::ZERO,
                0 => (pause * 2).min(IDLE),
                _ => BUSY,
            };
            self.write();
            if looked.elapsed() > LOOK_EVERY {
                self.source.tracer.hook_was_off();
                looked = Instant::now();
            }
            if tidied.elapsed() > TIDY_EVERY {
                self.source.tracer.tidy()?;
                tidied = Instant::now();
            }
            self.log.flush();
            // A command runs on to its own end.
            if self.failed.is_some() && self.args.command.is_empty() {
                break;
            }
        }
        let losses = self.source.stop()?;
        self.write();
        self.log.flush();
        if let (Some(to), None) = (&mut self.to, &self.failed) {
            self.failed = to.flush().err().map(Into::into);
        }
        self.finish(&losses, ended.flatten())
    }

    /// Whether processes that the command left running are waited for.
    fn waits(&self) -> Result<bool> {
        Ok(self.args.wait && self.source.tracer.running()? > 0)
    }

    /// Writes what came.
    fn write(&mut self) {
        let trace = Trace { packet: self.source.timeline.take() };
        if let (Some(to), None) = (&mut self.to, &self.failed) {
            self.failed = to.write_all(&trace.encode_to_vec()).err().map(Into::into);
        }
    }

    /// Says what is missing.
    fn finish(self, losses: &Losses, status: Option<ExitStatus>) -> Result<ExitCode> {
        let written = self.failed.map_or(Ok(()), Err);
        // A reader that went away does not change how the command ended.
        output::still_read(written.with_context(|| format!("cannot write {}", self.args.output.display())))?;
        if losses.ring_full > 0 {
            let lost = losses.ring_full;
            say!("{lost} events did not fit the ring buffers and are missing; --ringbuf-size makes room");
        }
        let others = losses.parts().into_iter().filter(|(name, count)| *count > 0 && *name != "ring_full");
        let others: Vec<String> = others.map(|(name, count)| format!("{name} {count}")).collect();
        if !others.is_empty() {
            say!("also lost: {}", others.join(", "));
        }
        if self.args.how.strict && losses.total > 0 {
            say!("{} events were lost, and --strict was given", losses.total);
            return Ok(ExitCode::from(exit::LOST));
        }
        Ok(exit::after(false, 0, status.map(ending::code)))
    }
}
