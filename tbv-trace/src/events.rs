//! `tbv-trace events`: a line for each call that returns.
//!
//! The kernel side never wakes us: the ring is looked at by the clock, often while calls come and less often while
//! none do.

use std::{
    collections::{HashMap, HashSet},
    io::{self, BufWriter, IsTerminal as _, Write, stderr},
    process::ExitCode,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::Result;
use tbv_core::{
    Event, HandleKind, Names, Op, Options, StreamOptions, Tracer,
    events::Events,
    report::{self, SCHEMA_VERSION, UNKNOWN_DEVICE},
    uapi,
};

use crate::{
    cli::{EventsArgs, StreamFormat},
    ending::{self, Ending, Second, Signals},
    exit, output,
    stream_line::{Begin, Call, End, Line, Lost},
    text,
    verbose::Log,
};

/// Between two looks at the ring while calls come.
const BUSY: Duration = Duration::from_millis(1);
/// How often it is looked whether the hook is still on.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Most calls that are read before anything else is looked after.
const AT_ONCE: usize = 4096;
/// The longest time between two looks.
const IDLE: Duration = Duration::from_millis(20);

/// `tbv-trace events`.
pub(crate) fn events(args: &EventsArgs, log: &Log) -> Result<ExitCode> {
    ending::block_on(async {
        let signals = Signals::catch(Second::Ends)?;
        let names = Names::now();
        let out = output::open(args.output.as_deref())?;
        let options = Options {
            hook: args.how.hook,
            filter: args.who.filter(),
            stream: Some(StreamOptions { failed_only: args.failed, ring_bytes: args.ringbuf_size }),
            log: log.wanted(),
            ..Options::default()
        };
        let mut tracer = Tracer::start(&options)?;
        log.attached(&mut tracer)?;
        let ending = Ending::of_processes(&args.who.pid, args.duration, signals)?;
        if stderr().is_terminal() && args.duration.is_none() && args.output.is_some() {
            say!("tracing by {}; Ctrl-C ends it", tracer.hook());
        }
        let (ring, begin_ns) = (tracer.events()?, tracer.started_ns());
        let mut stream = Stream {
            args,
            tracer,
            ring,
            processes: HashMap::new(),
            unknown: HashSet::new(),
            read: Vec::with_capacity(AT_ONCE),
            names,
            begin_ns,
            delivered: 0,
            lost: 0,
            to: BufWriter::with_capacity(1 << 16, out),
        };
        stream.begin()?;
        stream.until(ending, log).await
    })
}

/// The wall clock's time at a moment of the monotonic clock.
pub(crate) fn realtime_of(monotonic_ns: u64) -> u64 {
    let since = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (wall, age) = (since(SystemTime::now()), tbv_core::monotonic_ns().saturating_sub(monotonic_ns));
    u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX).saturating_sub(age)
}

/// A process, ready to be shown.
#[derive(Default)]
struct Seen {
    pid: u32,
    ns_pid: Option<u32>,
    comm: String,
}

struct Stream<'a> {
    args: &'a EventsArgs,
    tracer: Tracer,
    ring: Events,
    /// By number, as events name them.
    processes: HashMap<u32, Seen>,
    /// Devices that were looked for.
    unknown: HashSet<u32>,
    /// Read and not yet shown.
    read: Vec<Event>,
    names: Names,
    begin_ns: u64,
    delivered: u64,
    lost: u64,
    to: BufWriter<Box<dyn Write>>,
}

impl Stream<'_> {
    fn begin(&mut self) -> Result<()> {
        let mut filters = self.args.who.words();
        filters.extend(self.args.failed.then(|| "--failed".to_owned()));
        let environment = self.tracer.environment(&self.names.devices);
        let begin = Begin {
            schema_version: SCHEMA_VERSION,
            monotonic_ns: self.begin_ns,
            realtime_ns: realtime_of(self.begin_ns),
            filters,
            environment,
        };
        self.line(&Line::Begin(begin))?;
        Ok(self.to.flush()?)
    }

    async fn until(mut self, mut ending: Ending, log: &Log) -> Result<ExitCode> {
        let (mut pause, mut looked) = (BUSY, Instant::now());
        loop {
            let ended = tokio::select! {
                ended = ending.end() => ended.map(|_| true)?,
                () = tokio::time::sleep(pause) => false,
            };
            if ended {
                break;
            }
            pause = match self.drain()? {
                0 => (pause * 2).min(IDLE),
                AT_ONCE => Duration::ZERO,
                _ => BUSY,
            };
            self.gap(self.tracer.ring_full()?)?;
            if looked.elapsed() > LOOK_EVERY {
                self.tracer.hook_was_off();
                looked = Instant::now();
            }
            log.flush();
            if !output::still_read(self.to.flush().map_err(Into::into))? {
                return Ok(ExitCode::SUCCESS);
            }
        }
        let total = self.tracer.stop()?;
        while self.drain()? > 0 {}
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

    /// Writes some of what the ring holds; how many calls it were.
    fn drain(&mut self) -> Result<usize> {
        let mut read = std::mem::take(&mut self.read);
        self.ring.drain(&mut read, AT_ONCE);
        for event in &read {
            self.call(event)?;
        }
        let count = read.len();
        self.delivered += count as u64;
        read.clear();
        self.read = read;
        Ok(count)
    }

    /// Says how many calls the ring had no room for since the last time.
    fn gap(&mut self, lost: u64) -> Result<()> {
        let count = lost.saturating_sub(self.lost);
        self.lost = lost;
        if count > 0 { self.line(&Line::Lost(Lost { count })) } else { Ok(()) }
    }

    fn call(&mut self, event: &Event) -> Result<()> {
        if !self.processes.contains_key(&event.process) {
            let seen = self.tracer.process(event.process).map(|process| Seen {
                pid: process.pid,
                ns_pid: (process.ns_pid != 0).then_some(process.ns_pid),
                comm: report::comm(&process),
            });
            self.processes.insert(event.process, seen.unwrap_or_default());
        }
        // Once each: one that is gone from sysfs would cost a look at all of it for every call.
        if event.device != 0
            && !self.names.devices.contains_key(&event.device)
            && self.unknown.insert(event.device)
        {
            self.names.learn();
        }
        let Some(process) = self.processes.get(&event.process) else { return Ok(()) };
        let device = self.names.devices.get(&event.device).map_or(UNKNOWN_DEVICE, |device| &device.name);
        let op = Op(event.op);
        let handle =
            |wanted| event.handle.get().filter(|(kind, _)| *kind == wanted).map(|(_, handle)| handle);
        let call = Line::Call(Call {
            time_ns: event.time,
            pid: process.pid,
            ns_pid: process.ns_pid,
            tid: event.tid,
            comm: process.comm.as_str().into(),
            device: device.into(),
            entry: report::entry_name(op).into(),
            op: uapi::op_name(op),
            errno: (event.errno != 0).then(|| uapi::errno_name(event.errno)),
            latency_ns: (event.latency != u64::MAX).then_some(event.latency),
            cq_handle: handle(HandleKind::Cq),
            qp_handle: handle(HandleKind::Qp),
            srq_handle: handle(HandleKind::Srq),
        });
        write_line(&mut self.to, self.args.format, &call, self.begin_ns)
    }

    fn line(&mut self, line: &Line<'_>) -> Result<()> {
        write_line(&mut self.to, self.args.format, line, self.begin_ns)
    }
}

fn write_line(to: &mut impl Write, format: StreamFormat, line: &Line<'_>, begin_ns: u64) -> Result<()> {
    match format {
        StreamFormat::Jsonl => {
            serde_json::to_writer(&mut *to, line).map_err(io::Error::from)?;
            writeln!(to)?;
        }
        StreamFormat::Text => text::event(line, begin_ns, to)?,
    }
    Ok(())
}
