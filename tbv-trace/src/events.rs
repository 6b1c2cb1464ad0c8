//! `tbv-trace events`: a line for each call that returns.
//!
//! The kernel side never wakes us: the ring is looked at by the clock, often while calls come and less often while
//! none do.

use std::{
    collections::HashMap,
    io::{BufWriter, IsTerminal as _, Write, stderr},
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::Result;
use tbv_core::{
    Event, HandleKind, Names, Op, Options, Process, StreamOptions, Tracer,
    events::Events,
    report::{self, SCHEMA_VERSION, UNKNOWN_DEVICE},
    uapi,
};

use crate::{
    cli::{EventsArgs, StreamFormat},
    exit, output,
    session::{self, Session, Signals},
    stream_line::{Begin, Call, End, Line, Lost},
    text,
    verbose::Log,
};

/// Between two looks at the ring while calls come.
const BUSY: Duration = Duration::from_millis(1);
/// The longest time between two looks.
const IDLE: Duration = Duration::from_millis(20);

/// `tbv-trace events`.
pub(crate) fn events(args: &EventsArgs, log: &Log) -> Result<ExitCode> {
    session::block_on(async {
        let signals = Signals::catch()?;
        let names = Names::now();
        let to = output::open(args.output.as_deref())?;
        let options = Options {
            hook: args.how.hook,
            filter: args.who.filter(),
            stream: Some(StreamOptions { failed_only: args.failed, ring_bytes: args.ringbuf_size }),
            log: log.wanted(),
            ..Options::default()
        };
        let (monotonic_ns, realtime_ns) = (text::monotonic_ns(), realtime_ns());
        let mut tracer = Tracer::start(&options)?;
        log.attached(&mut tracer)?;
        let session = Session::of_processes(&args.who.pid, args.duration, signals)?;
        if stderr().is_terminal() && args.duration.is_none() && args.output.is_some() {
            eprintln!("tbv-trace: tracing by {}; Ctrl-C ends it", tracer.hook());
        }
        let ring = tracer.events()?;
        let mut stream = Stream {
            args,
            tracer,
            ring,
            processes: HashMap::new(),
            names,
            begin_ns: monotonic_ns,
            delivered: 0,
            lost: 0,
            to: BufWriter::with_capacity(1 << 16, to),
        };
        stream.begin(realtime_ns)?;
        stream.until(session, log).await
    })
}

fn realtime_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

struct Stream<'a> {
    args: &'a EventsArgs,
    tracer: Tracer,
    ring: Events,
    /// By number, as events name them.
    processes: HashMap<u32, Process>,
    names: Names,
    begin_ns: u64,
    delivered: u64,
    lost: u64,
    to: BufWriter<Box<dyn Write>>,
}

impl Stream<'_> {
    fn begin(&mut self, realtime_ns: u64) -> Result<()> {
        let mut filters = self.args.who.words();
        filters.extend(self.args.failed.then(|| "--failed".to_owned()));
        let environment = self.tracer.environment(&self.names.devices);
        let begin = Begin {
            schema_version: SCHEMA_VERSION,
            monotonic_ns: self.begin_ns,
            realtime_ns,
            filters,
            environment,
        };
        self.line(&Line::Begin(begin))?;
        Ok(self.to.flush()?)
    }

    async fn until(mut self, mut session: Session, log: &Log) -> Result<ExitCode> {
        let mut pause = BUSY;
        loop {
            let ended = tokio::select! {
                ended = session.end() => ended.map(|_| true)?,
                () = tokio::time::sleep(pause) => false,
            };
            if ended {
                break;
            }
            pause = if self.drain()? > 0 { BUSY } else { (pause * 2).min(IDLE) };
            self.gap(self.tracer.ring_full()?)?;
            log.flush();
            if !output::still_read(self.to.flush().map_err(Into::into))? {
                return Ok(ExitCode::SUCCESS);
            }
        }
        let total = self.tracer.stop()?;
        self.drain()?;
        self.gap(total.losses.ring_full)?;
        log.flush();
        let calls = total.rows.iter().map(|row| if self.args.failed { row.errors } else { row.count }).sum();
        let (delivered, lost) = (self.delivered, self.lost);
        let loss = total.losses;
        let sum = loss.total;
        self.line(&Line::End(End { calls, delivered, lost, loss }))?;
        self.to.flush()?;
        Ok(exit::after(self.args.how.strict, sum, None))
    }

    /// Writes what the ring holds; how many calls it were.
    fn drain(&mut self) -> Result<u64> {
        let mut events = Vec::new();
        let count = self.ring.drain(|event| events.push(*event));
        self.delivered += count;
        for event in &events {
            self.call(event)?;
        }
        Ok(count)
    }

    /// Says how many calls the ring had no room for since the last time.
    fn gap(&mut self, lost: u64) -> Result<()> {
        let count = lost.saturating_sub(self.lost);
        self.lost = lost;
        if count > 0 { self.line(&Line::Lost(Lost { count })) } else { Ok(()) }
    }

    fn call(&mut self, event: &Event) -> Result<()> {
        let process = match self.processes.get(&event.process) {
            Some(process) => Some(*process),
            None => {
                let found = self.tracer.process(event.process);
                self.processes.extend(found.map(|process| (event.process, process)));
                found
            }
        };
        if !self.names.devices.contains_key(&event.device) && event.device != 0 {
            self.names.learn();
        }
        let device =
            self.names.devices.get(&event.device).map_or(UNKNOWN_DEVICE, |device| &device.name).to_owned();
        let op = Op(event.op);
        let handle =
            |wanted| event.handle.get().filter(|(kind, _)| *kind == wanted).map(|(_, handle)| handle);
        let call = Call {
            time_ns: event.time,
            pid: process.map_or(0, |process| process.pid),
            ns_pid: process.map(|process| process.ns_pid).filter(|pid| *pid != 0),
            tid: event.tid,
            comm: process.as_ref().map_or_else(String::new, report::comm),
            device,
            entry: report::entry_name(op).to_owned(),
            op: uapi::op_name(op).into_owned(),
            errno: (event.errno != 0).then(|| uapi::errno_name(event.errno).into_owned()),
            latency_ns: (event.latency != u64::MAX).then_some(event.latency),
            cq_handle: handle(HandleKind::Cq),
            qp_handle: handle(HandleKind::Qp),
            srq_handle: handle(HandleKind::Srq),
        };
        self.line(&Line::Call(call))
    }

    fn line(&mut self, line: &Line) -> Result<()> {
        match self.args.format {
            StreamFormat::Jsonl => {
                serde_json::to_writer(&mut self.to, line)?;
                writeln!(self.to)?;
            }
            StreamFormat::Text => write!(self.to, "{}", text::event(line, self.begin_ns))?,
        }
        Ok(())
    }
}
