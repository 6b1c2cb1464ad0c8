//! `tbv-trace run` and `tbv-trace attach`.
//!
//! For `run` everything is attached before the command is started, as a child that the fork program
//! follows from birth: so there is no moment in which it runs unseen. It keeps its standard streams
//! and its exit status.

use std::{
    io::{IsTerminal as _, stderr},
    process::{ExitCode, ExitStatus},
    time::Duration,
};

use anyhow::{Result, bail};
use tbv_core::{
    Filter, Names, Options, Report, Tracer, environment::Environment, report::Interval, snapshot::Snapshot,
};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::{
    cli::{AttachArgs, Format, MeasureArgs, RunArgs},
    command,
    ending::{self, Ending, Second, Signals},
    exit,
    output::{self, Output},
    verbose::Log,
};

/// How often `--wait` looks whether all have ended, and everyone whether the hook is still on.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// An interval that does not end.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// `tbv-trace run`.
pub(crate) fn run(args: &RunArgs, log: &Log) -> Result<ExitCode> {
    let filter = Filter { descendants: true, ..Filter::default() };
    let default = if args.measure.show.format == Format::Text { Output::Stderr } else { Output::Stdout };
    ending::block_on(async {
        let mut signals = Signals::catch(Second::Passed)?;
        let measured = Measured::start(&args.measure, filter, Vec::new(), default, log)?;
        if let Some(signal) = signals.asked_to_end() {
            say!("ended by signal {signal} while attaching; the command was not started");
            return Ok(ExitCode::from(u8::try_from(exit::SIGNALLED + signal).unwrap_or(u8::MAX)));
        }
        let child = match command::start(&args.command, args.as_root)? {
            Ok(child) => child,
            Err(code) => return Ok(ExitCode::from(code)),
        };
        let words = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        measured.until(Ending::of_command(child, signals), words, args.wait).await
    })
}

/// `tbv-trace attach`.
pub(crate) fn attach(args: &AttachArgs, log: &Log) -> Result<ExitCode> {
    ending::block_on(async {
        let signals = Signals::catch(Second::Ends)?;
        let who = &args.who;
        let measured = Measured::start(&args.measure, who.filter(), who.words(), Output::Stdout, log)?;
        let ending = Ending::of_processes(&who.pid, args.duration, signals)?;
        if stderr().is_terminal() && args.duration.is_none() {
            say!("tracing by {}; Ctrl-C ends it and prints the result", measured.tracer.hook());
        }
        measured.until(ending, Vec::new(), false).await
    })
}

/// What is being traced.
struct Measured<'a> {
    args: &'a MeasureArgs,
    /// What the kernel side leaves out, as reports say it.
    filters: Vec<String>,
    devices: Vec<String>,
    tracer: Tracer,
    names: Names,
    out: output::Reports,
    begin: Instant,
    /// State at the begin of the interval.
    last: Snapshot,
    last_end_ns: u64,
    intervals: u64,
    log: &'a Log,
}

impl<'a> Measured<'a> {
    fn start(
        args: &'a MeasureArgs,
        filter: Filter,
        filters: Vec<String>,
        default: Output,
        log: &'a Log,
    ) -> Result<Self> {
        if args.interval.is_some() && args.show.format == Format::Json {
            bail!("-f json is one report: for one every interval, use -f jsonl");
        }
        let names = Names::now();
        let devices = filter.devices.clone();
        let options = Options {
            hook: args.how.hook,
            filter,
            max_rows: args.max_rows,
            log: log.wanted(),
            ..Options::default()
        };
        let mut tracer = Tracer::start(&options)?;
        log.attached(&mut tracer)?;
        let out = output::Reports::open(args.output.as_deref(), default, &args.show)?;
        let begin = Instant::now();
        let last = Snapshot::default();
        Ok(Measured {
            args,
            filters,
            devices,
            tracer,
            names,
            out,
            begin,
            last,
            last_end_ns: 0,
            intervals: 0,
            log,
        })
    }

    /// Waits for the end, gives results on the way, and the last one.
    async fn until(mut self, mut ending: Ending, command: Vec<String>, wait: bool) -> Result<ExitCode> {
        let every = self.args.interval.unwrap_or(FOREVER).min(FOREVER);
        let mut ticks = interval_at(self.begin + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut failed = None;
        let status = loop {
            tokio::select! {
                biased;
                _ = ticks.tick() => match self.tick(&command) {
                    Ok(true) => {}
                    // Nobody reads any more, or nothing can be written. A command runs on to its own end.
                    end => {
                        failed = end.err();
                        break if command.is_empty() { None } else { ending.end().await? };
                    }
                },
                ended = ending.end() => break ended?,
                () = tokio::time::sleep(LOOK_EVERY) => { self.tracer.hook_was_off(); }
            }
        };
        if let Some(error) = failed {
            return Err(error);
        }
        if wait {
            // For what the command left running, until a signal says that it is enough.
            while self.tracer.running()? > 0 && !ending.asked_to_end() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
        self.finish(status, command)
    }

    /// The end of an interval; whether anybody reads.
    fn tick(&mut self, command: &[String]) -> Result<bool> {
        let now = self.tracer.snapshot()?;
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
        report.keep_devices(&self.devices);
        report.command = command.to_vec();
        report
    }

    fn finish(mut self, status: Option<ExitStatus>, command: Vec<String>) -> Result<ExitCode> {
        let duration = nanoseconds(self.begin.elapsed());
        let environment = self.tracer.environment(&self.names.devices);
        let total = self.tracer.stop()?;
        // Devices that came during the run are known now, those that went were known before.
        self.names.learn();
        self.log.flush();
        let mut read = true;
        if self.args.interval.is_some() {
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
        Ok(exit::after(self.args.how.strict, lost, code))
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
