//! `tbv-trace timeline`: calls, and what happens to messages, as a trace for Perfetto.
//!
//! Nobody is woken by the kernel side: as for `events`, both ring buffers are looked at by the clock.

mod convert;
#[cfg(test)]
mod fixture;
mod names;
mod packet;
mod requests;
mod rings;
#[cfg(test)]
mod tests;
mod track;

use std::{
    io::{BufWriter, Write},
    process::{ExitCode, ExitStatus},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use prost::Message as _;
use tbv_core::{Names, Options, Spans, StreamOptions, Tracer, loss::Losses};

use crate::{
    cli::TimelineArgs,
    ending::{self, Ending},
    exit, output,
    source::Source,
    timeline::{packet::Trace, rings::Rings},
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
    let what = Source::try_from(&args.source)?;
    ending::block_on(async {
        let signals = what.signals()?;
        let mut to = output::open(Some(&args.output))?;
        let filter = what.filter();
        let names = Names::now();
        let devices = names.only(&filter.devices);
        let options = Options {
            hook: args.how.hook,
            filter,
            stream: Some(StreamOptions { failed_only: false, ring_bytes: args.ringbuf_size }),
            spans: Spans::Streamed,
            usdt: what.providers(&args.probes)?,
            moments_bytes: Some(args.ringbuf_size),
            log: log.wanted(),
            ..Options::default()
        };
        output::distinct(Some(&args.output), &output::paths(&options.usdt))?;
        let mut tracer = Tracer::start(&options)?;
        log.attached(&mut tracer)?;
        let rings = Rings::new(tracer, names, devices)?;
        let ending = match what.begin(signals, rings.tracer.hook())? {
            Ok(ending) => ending,
            Err(code) => return Ok(code),
        };
        // A file that cannot be made empty is as bad as one that gets full: a command runs to its end.
        let failed = to.write_all(b"").err().map(Into::into);
        Run { args, what, rings, to: BufWriter::new(to), failed, log }.until(ending).await
    })
}

/// A timeline that is being written.
struct Run<'a> {
    args: &'a TimelineArgs,
    what: Source<'a>,
    rings: Rings,
    to: BufWriter<Box<dyn Write>>,
    /// Why nothing more is written.
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
            pause = match self.rings.drain()? {
                _ if self.rings.is_behind() => Duration::ZERO,
                0 => (pause * 2).min(IDLE),
                _ => BUSY,
            };
            self.write();
            if looked.elapsed() > LOOK_EVERY {
                self.rings.tracer.hook_was_off();
                looked = Instant::now();
            }
            if tidied.elapsed() > TIDY_EVERY {
                self.rings.tracer.tidy()?;
                tidied = Instant::now();
            }
            self.log.flush();
            // A command runs on to its own end.
            if self.failed.is_some() && matches!(self.what, Source::Attached { .. }) {
                break;
            }
        }
        let losses = self.rings.stop()?;
        self.write();
        self.log.flush();
        if self.failed.is_none() {
            self.failed = self.to.flush().err().map(Into::into);
        }
        self.finish(&losses, ended.flatten())
    }

    /// Whether processes that the command left running are waited for.
    fn waits(&self) -> Result<bool> {
        Ok(self.what.waits() && self.rings.tracer.running()? > 0)
    }

    /// Writes what came.
    fn write(&mut self) {
        let trace = Trace { packet: self.rings.timeline.take() };
        if self.failed.is_none() {
            self.failed = self.to.write_all(&trace.encode_to_vec()).err().map(Into::into);
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
