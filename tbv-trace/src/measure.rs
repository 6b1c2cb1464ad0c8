//! `tbv-trace run`, `attach` and `record`, and the measuring of `hist`.
//!
//! For `run` everything is attached before the command is started, as a child that the fork program
//! follows from birth: so there is no moment in which it runs unseen. It keeps its standard streams
//! and its exit status.

use std::{
    path::Path,
    process::{ExitCode, ExitStatus},
    time::Duration,
};

use anyhow::{Result, bail};
use tbv_core::{
    Names, OnlyDevices, Options, Report, Spans, Tracer, environment::Environment, report::Interval,
    snapshot::Snapshot,
};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::{
    cli::{AttachArgs, CommonArgs, Format, MeasureArgs, RecordArgs, RunArgs},
    ending::{self, Ending},
    exit,
    output::{self, Form, Output, Shown},
    samples::Samples,
    source::Source,
    verbose::Log,
};

/// How often `--wait` looks whether all have ended, and everyone whether the hook is still on.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often begins of spans are forgotten whose end will not come.
const TIDY_EVERY: Duration = Duration::from_secs(1);
/// Length of a recording's intervals unless told otherwise.
const RECORDED_EVERY: Duration = Duration::from_secs(1);
/// An interval that does not end.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// `tbv-trace run`.
pub(crate) fn run(args: &RunArgs, log: &Log) -> Result<ExitCode> {
    let show = &args.measure.show;
    let default = if show.format == Format::Text { Output::Stderr } else { Output::Stdout };
    let what = What { form: form_of(&args.measure)?, default, ..What::new(&args.measure.common) };
    measure(args.into(), what, log)
}

/// `tbv-trace attach`.
pub(crate) fn attach(args: &AttachArgs, log: &Log) -> Result<ExitCode> {
    let what = What { form: form_of(&args.measure)?, ..What::new(&args.measure.common) };
    measure(args.into(), what, log)
}

/// `tbv-trace record`.
pub(crate) fn record(args: &RecordArgs, log: &Log) -> Result<ExitCode> {
    let interval = args.common.interval.unwrap_or(RECORDED_EVERY);
    let what = What {
        form: Box::new(Lines),
        interval: Some(interval),
        spans: Spans::Counted,
        ..What::new(&args.common)
    };
    measure((&args.source).try_into()?, what, log)
}

/// Measures until the source says that it is over.
pub(crate) fn measure(source: Source<'_>, what: What<'_>, log: &Log) -> Result<ExitCode> {
    ending::block_on(async {
        let signals = source.signals()?;
        let measured = Measured::start(what, source, log)?;
        match source.begin(signals, measured.tracer.hook())? {
            Ok(ending) => measured.until(ending, source.command(), source.waits()).await,
            Err(code) => Ok(code),
        }
    })
}

fn form_of(args: &MeasureArgs) -> Result<Box<dyn Form>> {
    if args.common.interval.is_some() && args.show.format == Format::Json {
        bail!("-f json is one report: for one every interval, use -f jsonl");
    }
    Ok(Box::new(Shown::new(&args.show)))
}

/// A report a line.
pub(crate) struct Lines;

impl Form for Lines {
    fn render(&mut self, report: &Report) -> Result<Vec<u8>> {
        Ok((serde_json::to_string(report)? + "\n").into_bytes())
    }
}

/// What is measured, and where it goes.
pub(crate) struct What<'a> {
    pub(crate) common: &'a CommonArgs,
    pub(crate) interval: Option<Duration>,
    pub(crate) form: Box<dyn Form>,
    pub(crate) default: Output,
    pub(crate) spans: Spans,
    /// Where every single span goes.
    pub(crate) samples: Option<&'a Path>,
}

impl<'a> What<'a> {
    /// Calls and completions, a report a line to standard output.
    pub(crate) fn new(common: &'a CommonArgs) -> Self {
        What {
            common,
            interval: common.interval,
            form: Box::new(Lines),
            default: Output::Stdout,
            spans: Spans::Off,
            samples: None,
        }
    }
}

/// What is being traced.
struct Measured<'a> {
    interval: Option<Duration>,
    strict: bool,
    /// What the kernel side leaves out, as reports say it.
    filters: Vec<String>,
    devices: OnlyDevices,
    tracer: Tracer,
    names: Names,
    out: output::Reports,
    samples: Option<Samples>,
    begin: Instant,
    /// State at the begin of the interval.
    last: Snapshot,
    last_end_ns: u64,
    intervals: u64,
    looked: Instant,
    tidied: Instant,
    log: &'a Log,
}

impl<'a> Measured<'a> {
    fn start(what: What<'a>, source: Source<'_>, log: &'a Log) -> Result<Self> {
        let names = Names::now();
        let filter = source.filter();
        let devices = names.only(&filter.devices);
        let samples = what.samples.map(|file| output::Target::open(Some(file))).transpose()?;
        let options = Options {
            hook: what.common.how.hook,
            filter,
            max_rows: what.common.max_rows,
            spans: if samples.is_some() { Spans::Streamed } else { what.spans },
            usdt: source.providers(&what.common.probes)?,
            log: log.wanted(),
            ..Options::default()
        };
        let out = output::Reports::open(what.common.output.as_deref(), what.default, what.form)?;
        // All are there now, and can be told apart.
        let (libraries, result) = (output::paths(&options.usdt), what.common.output.as_deref());
        output::distinct(result, &libraries)?;
        output::distinct(what.samples, &[&libraries[..], result.as_slice()].concat())?;
        let mut tracer = Tracer::start(&options)?;
        log.attached(&mut tracer)?;
        let samples = samples.map(|file| Samples::begin(file, &mut tracer, &devices)).transpose()?;
        let begin = Instant::now();
        Ok(Measured {
            interval: what.interval,
            strict: what.common.how.strict,
            filters: source.filters(),
            devices,
            tracer,
            names,
            out,
            samples,
            begin,
            last: Snapshot::default(),
            last_end_ns: 0,
            intervals: 0,
            looked: begin,
            tidied: begin,
            log,
        })
    }

    /// Waits for the end, gives results on the way, and the last one.
    async fn until(mut self, mut ending: Ending, command: Vec<String>, wait: bool) -> Result<ExitCode> {
        let every = self.interval.unwrap_or(FOREVER);
        let mut ticks = interval_at(self.begin + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        // An end that falls on a tick ends the last interval, and no empty one follows.
        ending.count_from(self.begin);
        let (mut failed, mut read) = (None, true);
        let status = loop {
            tokio::select! {
                biased;
                ended = ending.end() => break ended?,
                _ = ticks.tick(), if read => match self.tick(&command) {
                    Ok(true) => {}
                    // Nobody reads any more, or nothing can be written. A command runs on to its own end.
                    end => {
                        (failed, read) = (end.err(), false);
                        if command.is_empty() {
                            break None;
                        }
                    }
                },
                () = tokio::time::sleep(self.pause()) => self.look()?,
            }
        };
        if let Some(error) = failed {
            return Err(error);
        }
        if wait {
            // For what the command left running, until a signal says that it is enough.
            while self.tracer.running()? > 0 && !ending.asked_to_end() {
                tokio::time::sleep(self.pause()).await;
                self.look()?;
            }
        }
        self.finish(status, command)
    }

    /// How long until something may have to be looked after.
    fn pause(&self) -> Duration {
        self.samples.as_ref().map_or(LOOK_EVERY, Samples::pause)
    }

    /// What has to be done often.
    fn look(&mut self) -> Result<()> {
        if let Some(samples) = &mut self.samples {
            samples.drain(&self.names)?;
        }
        if self.looked.elapsed() < LOOK_EVERY {
            return Ok(());
        }
        self.looked = Instant::now();
        self.tracer.hook_was_off();
        if self.tidied.elapsed() >= TIDY_EVERY {
            self.tracer.tidy()?;
            self.tidied = Instant::now();
        }
        Ok(())
    }

    /// The end of an interval; whether anybody reads.
    fn tick(&mut self, command: &[String]) -> Result<bool> {
        self.look()?;
        let now = self.tracer.snapshot()?.on(&self.devices);
        self.interval(now, nanoseconds(self.begin.elapsed()), command)
    }

    /// Shows what came since the last one; whether anybody reads.
    fn interval(&mut self, now: Snapshot, elapsed: u64, command: &[String]) -> Result<bool> {
        self.names.learn();
        self.intervals += 1;
        let start_ns = self.last_end_ns;
        let mut report = self.report(&now.since(&self.last), command);
        report.set_interval(Interval { number: self.intervals, start_ns, end_ns: elapsed });
        report.duration_ns = elapsed - start_ns;
        self.last = now;
        self.last_end_ns = elapsed;
        self.log.flush();
        output::still_read(self.out.write(&report))
    }

    fn report(&self, counted: &Snapshot, command: &[String]) -> Report {
        self.report_in(self.tracer.environment(&self.names.devices), counted, command)
    }

    fn report_in(&self, environment: Environment, counted: &Snapshot, command: &[String]) -> Report {
        let mut report = Report::new(counted, environment, &self.names);
        report.filters.clone_from(&self.filters);
        report.command = command.to_vec();
        report
    }

    fn finish(mut self, status: Option<ExitStatus>, command: Vec<String>) -> Result<ExitCode> {
        let duration = nanoseconds(self.begin.elapsed());
        let environment = self.tracer.environment(&self.names.devices);
        let total = self.tracer.stop()?.on(&self.devices);
        // Devices that came during the run are known now, those that went were known before.
        self.names.learn();
        self.log.flush();
        if let Some(samples) = self.samples.take() {
            samples.finish(&self.names)?;
        }
        let mut read = true;
        if self.interval.is_some() {
            let last = total.clone();
            read = self.interval(last, duration, &command)?;
        }
        let mut report = self.report_in(environment, &total, &command);
        report.environment.devices = self.names.devices.values().cloned().collect();
        report.duration_ns = duration;
        let code = status.map(ending::code);
        report.exit_status = code;
        let lost = report.loss.total;
        if read {
            // A reader that went away does not change how the command ended.
            output::still_read(self.out.write(&report))?;
        }
        Ok(exit::after(self.strict, lost, code))
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
