//! Printing instead of a screen.

use std::{
    io::{Write as _, stdout},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result};
use tbv_core::{
    Options, Report,
    measurement::{LOOK_EVERY, Measurement},
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until},
};

use crate::{
    app::{history::History, shown::Shown},
    exit,
    form::Form,
    source::{recorder::Recorder, replay::Recording},
};

/// Longer than anybody waits.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// What is printed, and what was lost so far.
pub(crate) struct Printer {
    form: Form,
    history: History,
    /// Whether intervals are printed, or only all of the time.
    intervals: bool,
    strict: bool,
}

impl Printer {
    /// Prints in this form.
    pub(crate) fn new(form: Form, intervals: bool, strict: bool) -> Self {
        Printer { form, history: History::default(), intervals, strict }
    }

    /// Prints an interval, if they are.
    fn interval(&mut self, report: Report) -> Result<()> {
        self.history.push(report, |_| {});
        match Shown::of(&self.history, self.history.len().saturating_sub(1), false) {
            Some(shown) if self.intervals => self.print(&shown),
            _ => Ok(()),
        }
    }

    /// Prints all of the time.
    fn whole(&mut self, report: Report) -> Result<ExitCode> {
        let lost = report.loss.total;
        let mut shown = Shown::new(Arc::new(report), None, &self.history);
        shown.processes.iter_mut().for_each(|row| row.calls_so_far = Some(row.calls));
        self.print(&shown)?;
        self.end(lost)
    }

    fn end(&mut self, lost: u64) -> Result<ExitCode> {
        write(self.form.end())?;
        if self.strict && lost > 0 {
            exit::say(&format!("{lost} events were lost, and --strict was given"));
            return Ok(ExitCode::from(exit::LOST));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn print(&mut self, shown: &Shown) -> Result<()> {
        write(&self.form.render(shown)?)
    }
}

fn write(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.context("cannot write to standard output")
}

/// Prints a recording: its intervals and all of its time, or what it was `at` a moment.
pub(crate) fn replay(recording: Recording, mut printer: Printer, at: Option<Duration>) -> Result<ExitCode> {
    let whole = recording.whole;
    for report in recording.intervals {
        printer.interval(report)?;
    }
    if let Some(at) = at.filter(|_| !printer.intervals) {
        let at = printer.history.at(u64::try_from(at.as_nanos()).unwrap_or(u64::MAX));
        let shown = Shown::of(&printer.history, at, false).context("the recording is empty")?;
        printer.print(&shown)?;
        return printer.end(shown.report.loss.total);
    }
    let sum = || printer.history.whole(printer.history.len().saturating_sub(1));
    let whole = whole.or_else(sum).context("the recording is empty")?;
    printer.whole(whole)
}

/// When measuring ends.
struct Ending {
    signals: [Signal; 3],
    deadline: Instant,
}

impl Ending {
    fn after(duration: Option<Duration>) -> Result<Self> {
        let catch = |kind| signal(kind).context("cannot catch signals");
        let signals =
            [catch(SignalKind::interrupt())?, catch(SignalKind::terminate())?, catch(SignalKind::hangup())?];
        Ok(Ending { signals, deadline: Instant::now() + duration.unwrap_or(FOREVER).min(FOREVER) })
    }

    async fn wait(&mut self) {
        let [interrupt, terminate, hang_up] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
            () = sleep_until(self.deadline) => {}
        }
    }
}

/// Measures and prints: intervals of this length, until a signal or so much time ends it.
pub(crate) fn live(
    options: &Options,
    filters: Vec<String>,
    every: Duration,
    duration: Option<Duration>,
    mut recorder: Option<Recorder>,
    mut printer: Printer,
) -> Result<ExitCode> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting tokio")?;
    runtime.block_on(async {
        // Before anything is attached: whoever starts us may end us at any time.
        let mut ending = Ending::after(None)?;
        let mut measurement = Measurement::start(options, filters)?.with_system();
        if let Some(duration) = duration {
            // An end that falls on a tick ends the last interval, and no empty one follows.
            ending.deadline = Instant::from_std(measurement.begin()) + duration;
        }
        let mut ticks = interval_at(Instant::from_std(measurement.begin()) + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut printed = Ok(());
        while printed.is_ok() {
            tokio::select! {
                biased;
                () = ending.wait() => break,
                _ = ticks.tick() => {
                    let report = measurement.interval()?;
                    if let Some(recorder) = &mut recorder {
                        recorder.add(&report)?;
                    }
                    printed = printer.interval(report);
                }
                () = sleep(LOOK_EVERY) => measurement.look()?,
            }
        }
        let finished = measurement.finish()?;
        // Whole, though nobody may read what is printed any more.
        if let Some(mut recorder) = recorder {
            recorder.add(&finished.last)?;
            recorder.finish(Some(finished.whole.clone()))?;
        }
        printed?;
        printer.interval(finished.last)?;
        printer.whole(finished.whole)
    })
}
