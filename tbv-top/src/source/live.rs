//! The kernel as a source: a thread of its own collects, so that drawing never waits for it.

use std::{
    path::Path,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use tbv_core::{
    Options, Report,
    measurement::{Finished, LOOK_EVERY, Measurement},
    report::Interval,
};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::{Instant as Moment, sleep, sleep_until},
};

use super::{
    calls::Stream,
    modules::{self, LetGo},
    recorder::Recorder,
};
use crate::app::Message;

/// How often it is looked whether a module is back.
const WAIT_EVERY: Duration = Duration::from_millis(200);
/// How long after an attempt to attach that failed there is another.
const RETRY_EVERY: Duration = Duration::from_secs(2);

/// What the collector is told.
#[derive(Debug)]
pub enum Command {
    /// Intervals of this length.
    Interval(Duration),
    /// To detach.
    LetGo,
    /// To attach again.
    Attach,
    /// To write a recording, or to end it.
    Record(bool),
    /// To stream the calls of this process only, or none.
    Stream(Option<u32>),
    /// To end, with all that is written complete.
    End,
}

/// The collector.
pub struct Live {
    commands: UnboundedSender<Command>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Live {
    /// Attaches, and begins to collect in a thread of its own.
    pub fn start(
        options: Options,
        filters: Vec<String>,
        interval: Duration,
        recorder: Option<Recorder>,
        news: UnboundedSender<Message>,
    ) -> Result<Self> {
        let measurement = Measurement::start(&options, filters.clone())?.with_system();
        let (commands, receive) = unbounded_channel();
        let collector = Collector {
            began: measurement.begin(),
            from_begin: recorder.is_some(),
            options,
            filters,
            interval,
            tracing: Tracing::On(Box::new(measurement)),
            recorder,
            stream: None,
            number: 0,
            attachments: 1,
            since_began: Duration::ZERO,
            news,
        };
        let over = Over(collector.news.clone());
        let thread = thread::Builder::new().name("collect".to_owned()).spawn(move || {
            let _over = over;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
            runtime.block_on(collector.collect(receive))
        });
        Ok(Live { commands, thread: Some(thread.context("cannot start a thread")?) })
    }

    /// Tells the collector something. One that has failed has said so.
    pub fn tell(&self, command: Command) {
        let _ = self.commands.send(command);
    }

    /// Ends collecting; an error if the recording could not be completed, or the collector failed.
    pub fn end(mut self) -> Result<()> {
        self.tell(Command::End);
        let ended = self.thread.take().map(JoinHandle::join);
        ended.map_or(Ok(()), |ended| ended.unwrap_or_else(|_| Err(Panicked.into())))
    }
}

/// Says that collecting is over, in whatever way it ends.
struct Over(UnboundedSender<Message>);

impl Drop for Over {
    fn drop(&mut self) {
        let _ = self.0.send(Message::Ended);
    }
}

/// A part of this program has panicked.
#[derive(Debug)]
pub struct Panicked;

impl std::fmt::Display for Panicked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("collecting has failed; this is a bug")
    }
}

impl std::error::Error for Panicked {}

enum Tracing {
    On(Box<Measurement>),
    /// Let go; when the last attempt to attach again failed.
    Off(LetGo, Option<Instant>),
}

struct Collector {
    began: Instant,
    options: Options,
    filters: Vec<String>,
    interval: Duration,
    tracing: Tracing,
    recorder: Option<Recorder>,
    /// Whether the recording is of the whole run.
    from_begin: bool,
    stream: Option<Stream>,
    /// Of the last interval.
    number: u64,
    /// How often it attached.
    attachments: u32,
    /// When it last did, since it began.
    since_began: Duration,
    news: UnboundedSender<Message>,
}

impl Collector {
    async fn collect(mut self, mut commands: UnboundedReceiver<Command>) -> Result<()> {
        self.attached();
        if let Some(recorder) = &self.recorder {
            self.send(Message::Recording(Some(recorder.name.clone())));
        }
        let mut next = Moment::now() + self.interval;
        loop {
            tokio::select! {
                biased;
                command = commands.recv() => match command {
                    None | Some(Command::End) => return self.finish(),
                    Some(Command::Interval(interval)) => {
                        self.interval = interval;
                        next = Moment::now() + interval;
                    }
                    Some(Command::LetGo) => self.let_go()?,
                    Some(Command::Attach) => {
                        self.attach();
                        next = Moment::now() + self.interval;
                    }
                    Some(Command::Record(begin)) => self.record(begin),
                    Some(Command::Stream(pid)) => self.stream(pid),
                },
                () = sleep_until(next) => {
                    // One that came late is not made up for.
                    next = (next + self.interval).max(Moment::now());
                    if let Tracing::On(measurement) = &mut self.tracing {
                        let report = measurement.interval()?;
                        self.interval_is_over(report);
                    }
                }
                () = sleep(LOOK_EVERY) => match &mut self.tracing {
                    Tracing::On(measurement) => measurement.look()?,
                    Tracing::Off(..) => {
                        self.wait();
                        sleep(WAIT_EVERY).await;
                    }
                },
            }
        }
    }

    fn send(&self, message: Message) {
        // The screen may have gone; then we are told to end.
        let _ = self.news.send(message);
    }

    fn attached(&self) {
        if let Tracing::On(measurement) = &self.tracing {
            self.send(Message::Attached(modules::held(measurement.tracer())));
        }
    }

    /// Passes on what came in an interval, at its place in the whole run.
    fn interval_is_over(&mut self, mut report: Report) {
        self.number += 1;
        let before = u64::try_from(self.since_began.as_nanos()).unwrap_or(u64::MAX);
        if let Some(part) = &mut report.interval {
            let Interval { start_ns, end_ns, .. } = *part;
            *part = Interval { number: self.number, start_ns: before + start_ns, end_ns: before + end_ns };
        }
        if let Some(recorder) = &mut self.recorder
            && let Err(error) = recorder.add(&report)
        {
            // What was written before can be read.
            self.recorder = None;
            self.send(Message::Recording(None));
            self.send(Message::Say(format!("recording ended: {error:#}")));
        }
        self.send(Message::Interval(Box::new(report)));
    }

    fn record(&mut self, begin: bool) {
        let done = match self.recorder.take() {
            Some(recorder) => recorder.finish(None),
            None if begin => Recorder::create_here().map(|recorder| {
                self.from_begin = false;
                self.recorder = Some(recorder);
            }),
            None => Ok(()),
        };
        self.send(Message::Recording(self.recorder.as_ref().map(|recorder| recorder.name.clone())));
        if let Err(error) = done {
            self.send(Message::Say(format!("{error:#}")));
        }
    }

    fn stream(&mut self, pid: Option<u32>) {
        // The old one ends first.
        self.stream = None;
        let (Some(pid), Tracing::On(measurement)) = (pid, &self.tracing) else { return };
        if !measurement.tracer().knows_pids() {
            let why =
                "process ids mean something else here: run tbv-top in the initial pid namespace".to_owned();
            return self.send(Message::NoEvents(pid, why));
        }
        self.stream = Some(Stream::begin(pid, self.options.filter.devices.clone(), self.news.clone()));
    }

    fn let_go(&mut self) -> Result<()> {
        self.stream = None;
        let Tracing::On(measurement) = &self.tracing else { return Ok(()) };
        let off = LetGo::of(Path::new("/"), modules::held(measurement.tracer()));
        let words = off.words();
        if let Tracing::On(measurement) = std::mem::replace(&mut self.tracing, Tracing::Off(off, None)) {
            let Finished { last, .. } = measurement.finish()?;
            self.interval_is_over(last);
        }
        self.send(Message::LetGo(words));
        Ok(())
    }

    /// Attaches again if a module is back.
    fn wait(&mut self) {
        if let Tracing::Off(let_go, failed) = &self.tracing
            && failed.is_none_or(|at| at.elapsed() >= RETRY_EVERY)
            && let_go.are_back(Path::new("/"))
        {
            self.attach();
        }
    }

    fn attach(&mut self) {
        let Tracing::Off(_, failed) = &mut self.tracing else { return };
        match Measurement::start(&self.options, self.filters.clone()) {
            Ok(measurement) => {
                self.since_began = measurement.begin().duration_since(self.began);
                self.tracing = Tracing::On(Box::new(measurement.with_system()));
                self.attachments += 1;
                self.attached();
            }
            Err(error) => {
                *failed = Some(Instant::now());
                self.send(Message::Say(format!("cannot attach again: {error}")));
            }
        }
    }

    fn finish(mut self) -> Result<()> {
        let tracing =
            std::mem::replace(&mut self.tracing, Tracing::Off(LetGo::of(Path::new("/"), Vec::new()), None));
        let mut whole = None;
        if let Tracing::On(measurement) = tracing {
            let finished = measurement.finish()?;
            self.interval_is_over(finished.last);
            // Exact in all; of several runs the intervals are added up.
            whole = (self.from_begin && self.attachments == 1).then_some(finished.whole);
        }
        self.recorder.take().map_or(Ok(()), |recorder| recorder.finish(whole))
    }
}
