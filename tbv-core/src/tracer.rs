//! One tracing run: load, attach, count, stop.

use std::{
    cell::{Cell, RefCell},
    fs,
    io::Write as _,
    os::fd::{AsFd as _, OwnedFd},
    path::{Path, PathBuf},
};

use aya::{
    Ebpf,
    sys::{Stats, enable_stats},
};
use tbv_common::{Config, Loss, Process, Spans, State};

use crate::{
    attach::{self, Links, reason},
    btf::Btf,
    devices::Devices,
    driver,
    environment::Environment,
    error::{Error, Result},
    events::{Events, Moments},
    filter::Filter,
    hook::Hook,
    inventory::existing::Existing,
    loaded::{Loaded, OBJECT, SCHEDULER, write_config},
    lockdown,
    modules::Uverbs,
    obstacles,
    permission::Credentials,
    ring::Ring,
    snapshot::{self, Known, Outside, Snapshot, Sources},
    spans::Left,
    sys::{self, Runs},
    system::Cost,
    usdt,
    watch::{self, Watch},
};

/// Hooks that were tried and did not work, with the reasons.
type Tried = Vec<(Hook, String)>;

/// Why fentry is not the first choice there.
const PREEMPTIBLE: &str = "this kernel is fully preemptible, where it loses calls of other threads";

/// What to trace and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The hook to use; the best that works if not given.
    pub hook: Option<Hook>,
    /// Whose calls count.
    pub filter: Filter,
    /// Also stream single calls, see [`Tracer::events`].
    pub stream: Option<StreamOptions>,
    /// Take calls on character devices of this major number for uverbs calls: to measure what tracing costs where
    /// there is no RDMA.
    pub instead_of_uverbs: Option<u32>,
    /// Let the programs log, see [`Tracer::program_log`]. Costs time at every new process.
    pub log: bool,
    /// Also measure where the time of messages of our own driver goes.
    pub spans: Spans,
    /// Files of our provider, to attach to its probes: how completions are polled in user space. See [`usdt::find`].
    pub usdt: Vec<PathBuf>,
    /// Bytes of the ring buffer of [`Spans::Streamed`], a power of two of at least a page; `RING_DEFAULT` if not given.
    pub moments_bytes: Option<u32>,
    /// Let the kernel count how long the programs run. That itself costs a little at every run, of all programs.
    pub cost: bool,
    /// Most rows (process × device × operation) to keep; `MAX_ROWS` if not given.
    pub max_rows: Option<u32>,
}

/// How to stream calls.
#[derive(Clone, Copy, Debug)]
pub struct StreamOptions {
    /// Only calls that return an error.
    pub failed_only: bool,
    /// Bytes of the ring buffer, a power of two of at least a page.
    pub ring_bytes: u32,
}

/// Loaded and attached programs. Dropping it, or the end of the process, removes them all.
pub struct Tracer {
    ebpf: Ebpf,
    /// Whether spans are measured.
    spans: bool,
    /// Files of the provider whose probes are attached.
    probes: Vec<PathBuf>,
    /// What spans that will not end have left behind.
    left: Left,
    started_ns: u64,
    hook: Hook,
    watch: Watch,
    seen_off: Cell<bool>,
    known: RefCell<Known>,
    /// What the kernel had counted of the programs at the last snapshot.
    ran: Cell<Runs>,
    /// Better hooks that were tried before, and why they did not work.
    passed_over: Tried,
    links: Links,
    config: Config,
    /// The driver's tracepoint ABI, if its tracepoints are attached.
    driver: Option<u32>,
    /// What of existing queues is unknown, and why.
    existing_left_out: Option<String>,
    /// Our own id in the initial pid namespace, if what is traced are our descendants.
    own_pid: Option<u32>,
    /// Whether process ids mean here what they mean to the kernel.
    own_ids: bool,
    /// Lets the kernel count how long programs run, as long as it is open.
    run_times: Option<OwnedFd>,
}

impl Tracer {
    /// Attaches; counting starts when this returns.
    pub fn start(options: &Options) -> Result<Self> {
        let root = Path::new("/");
        if options.instead_of_uverbs.is_none() {
            match Uverbs::find(root) {
                Uverbs::Loaded => {}
                other => return Err(Error::NoUverbs(other)),
            }
        }
        allowed(root)?;
        let Loaded { mut ebpf, btf, mut config, own_pid, own_ids } = Loaded::load(options)?;
        let (hook, watch, mut links, passed_over) = first_that_works(&mut ebpf, options.hook, btf.as_ref())?;
        let driver = driver::trace_abi(root).filter(|abi| *abi == driver::TRACE_ABI);
        if driver.is_some() {
            let spans = driver::SPAN_PROGRAMS.into_iter().filter(|_| options.spans != Spans::Off);
            for program in driver::PROGRAMS.into_iter().chain(spans) {
                attach::raw_tracepoint(&mut ebpf, program, program).map_err(|reason| Error::Attach {
                    program,
                    target: "the driver's tracepoint",
                    reason: if options.usdt.is_empty() { reason } else { usdt::without_ring_first(&reason) },
                })?;
            }
            // A driver that lacks it publishes no queue, either, and a purge then only shows in the totals.
            let program = driver::LATER_PROGRAM;
            attach::raw_tracepoint_if_there(&mut ebpf, program, program).map_err(|reason| Error::Attach {
                program,
                target: "the driver's tracepoint",
                reason,
            })?;
        }
        if !options.usdt.is_empty() {
            // Without it there is no queue that a probe could tell of.
            if driver.is_none() && options.instead_of_uverbs.is_none() {
                return Err(usdt::without_driver(&options.usdt));
            }
            usdt::attach(&mut ebpf, &options.usdt)?;
            links.also(usdt::PROGRAMS);
        }
        let mut existing = Existing::none(&options.filter, options.spans != Spans::Off);
        if driver.is_some() {
            existing.enter(&mut ebpf, own_ids)?;
        }
        let started_ns = sys::monotonic_ns();
        config.state = State::Running as u32;
        write_config(&mut ebpf, config)?;
        let existing_left_out = existing.settle(&mut ebpf)?;
        Ok(Tracer {
            spans: options.spans != Spans::Off && driver.is_some(),
            probes: options.usdt.clone(),
            left: Left::default(),
            ebpf,
            started_ns,
            hook,
            watch,
            seen_off: Cell::new(false),
            known: RefCell::default(),
            ran: Cell::default(),
            passed_over,
            links,
            config,
            driver,
            existing_left_out,
            own_pid,
            own_ids,
            // Where it is not allowed, the cost is not known.
            run_times: options.cost.then(|| enable_stats(Stats::RunTime).ok()).flatten(),
        })
    }

    /// `CLOCK_MONOTONIC` when counting began, nanoseconds: the clock of events.
    pub fn started_ns(&self) -> u64 {
        self.started_ns
    }

    /// The hook in use.
    pub fn hook(&self) -> Hook {
        self.hook
    }

    /// Better hooks that did not work, with the reasons.
    pub fn passed_over(&self) -> &[(Hook, String)] {
        &self.passed_over
    }

    /// Whether the device of a call can be told.
    pub fn devices_known(&self) -> bool {
        self.config.files_known != 0
    }

    /// The tracepoint ABI of our own driver, if it is loaded and its events are counted.
    pub fn driver_trace_abi(&self) -> Option<u32> {
        self.driver
    }

    /// Where it was traced and how; `devices` are those to name.
    pub fn environment(&self, devices: &Devices) -> Environment {
        let mut environment = Environment::read(Path::new("/"), self.hook, &self.passed_over, devices);
        environment.devices_known = self.devices_known();
        environment.driver_trace_abi = self.driver;
        environment.existing_left_out.clone_from(&self.existing_left_out);
        environment.probes = self.probes.iter().map(|path| path.display().to_string()).collect();
        environment
    }

    /// The stream of single calls, once, if [`Options::stream`] asked for it.
    pub fn events(&mut self) -> Result<Events> {
        Ring::take(&mut self.ebpf, "EVENTS")
    }

    /// The stream of what happens to messages, once, if [`Options::spans`] asked for it.
    pub fn moments(&mut self) -> Result<Moments> {
        Ring::take(&mut self.ebpf, "MOMENTS")
    }

    /// Whether spans of messages are measured: asked for, and our own driver is there.
    pub fn has_spans(&self) -> bool {
        self.spans
    }

    /// Forgets the begins of spans whose end will not come; whoever traces for long asks for it often.
    pub fn tidy(&mut self) -> Result<()> {
        if self.spans { self.left.tidy(&mut self.ebpf) } else { Ok(()) }
    }

    /// The process that has this number in events.
    pub fn process(&self, number: u32) -> Option<Process> {
        snapshot::process(&self.ebpf, number)
    }

    /// Events that did not fit the ring buffer so far.
    pub fn ring_full(&self) -> Result<u64> {
        snapshot::loss(&self.ebpf, Loss::RingFull)
    }

    /// What the programs say, once, if [`Options::log`] asked for it.
    pub fn program_log(&mut self) -> Result<ProgramLog> {
        let log = aya_log::EbpfLogger::init_with_logger(&mut self.ebpf, ToStderr);
        log.map(ProgramLog).map_err(|e| Error::Load(reason(&e)))
    }

    /// Everything counted so far.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.take(self.outside(false)?)
    }

    fn take(&self, outside: Outside) -> Result<Snapshot> {
        let sources = Sources { driver: self.driver.is_some(), probes: !self.probes.is_empty() };
        let left = self.spans.then(|| self.left.clone());
        snapshot::take(&self.ebpf, sources, outside, left, &mut self.known.borrow_mut())
    }

    /// Whether the hook has been off at one of the times that this was asked: whoever traces for long asks often. A
    /// switch that is off and on again between two times is not seen.
    pub fn hook_was_off(&self) -> bool {
        self.seen_off.set(self.seen_off.get() || self.watch.is_off(Path::new("/")));
        self.seen_off.get()
    }

    /// What the maps don't tell; what is left running is only a loss once all has `ended`.
    fn outside(&self, ended: bool) -> Result<Outside> {
        self.ran.set(self.runs()?);
        Ok(Outside {
            recursion_misses: self.ran.get().recursion_misses,
            kretprobe_missed: self.links.kretprobe_missed(),
            hook_off: self.hook_was_off().into(),
            left_running: if ended { self.running()? } else { 0 },
            ended,
        })
    }

    /// Processes that descend from this one and have not ended, if those are what is traced.
    pub fn running(&self) -> Result<u64> {
        let Some(own) = self.own_pid else { return Ok(0) };
        // Without BTF the programs don't see which thread is a process's last.
        let ends_are_seen = self.config.task_signal != 0;
        let alive = |pid: &u32| {
            let stat = || fs::read_to_string(format!("/proc/{pid}/stat"));
            ends_are_seen || stat().is_ok_and(|stat| !stat.contains(") Z "))
        };
        let targets = snapshot::targets(&self.ebpf)?;
        Ok(targets.iter().filter(|pid| **pid != own && alive(pid)).count() as u64)
    }

    /// Whether the process ids of reports are those that this process knows others by.
    pub fn knows_pids(&self) -> bool {
        self.own_ids
    }

    /// What the programs had cost at the last snapshot; `None` if [`Options::cost`] was not asked for or is not allowed.
    pub fn cost(&self) -> Option<Cost> {
        let runs = self.ran.get();
        self.run_times.as_ref().map(|_| Cost { run_ns: runs.ns, runs: runs.count })
    }

    /// What the kernel counts of all attached programs.
    fn runs(&self) -> Result<Runs> {
        let always = SCHEDULER.iter().map(|(name, _)| *name);
        let spans = driver::SPAN_PROGRAMS.into_iter().filter(|_| self.spans);
        let ours = driver::PROGRAMS.into_iter().chain([driver::LATER_PROGRAM]).chain(spans);
        let ours = ours.filter(|_| self.driver.is_some());
        let mut all = Runs::default();
        let mut add = |fd| -> Result<()> {
            let runs = sys::runs(fd).map_err(|e| Error::System("asking a program", e))?;
            all.recursion_misses += runs.recursion_misses;
            all.count += runs.count;
            all.ns += runs.ns;
            Ok(())
        };
        for name in always.chain(ours).chain(self.links.by_aya()) {
            let program = self.ebpf.program(name).ok_or(Error::Missing(name))?;
            add(program.fd().map_err(|e| Error::Load(reason(&e)))?.as_fd())?;
        }
        for fd in self.links.own() {
            add(fd)?;
        }
        Ok(all)
    }

    /// Ends counting: from now on no call is begun to be followed, and nothing is attached any more. What is in the
    /// maps and the stream stays.
    pub fn stop(&mut self) -> Result<Snapshot> {
        self.config.state = State::Stopping as u32;
        write_config(&mut self.ebpf, self.config)?;
        // The kernel's own miss counters go with the programs.
        let outside = self.outside(true)?;
        attach::detach(&mut self.ebpf, std::mem::take(&mut self.links));
        // A call that was still running is not seen to end, and must not go on counting while the maps are read.
        self.config.state = State::Idle as u32;
        write_config(&mut self.ebpf, self.config)?;
        self.take(outside)
    }
}

/// The programs' own log. What does not fit its ring buffer is not counted: it is for looking for faults only.
pub struct ProgramLog(aya_log::EbpfLogger<ToStderr>);

impl ProgramLog {
    /// Prints to standard error what came since the last time.
    pub fn flush(&mut self) {
        self.0.flush();
    }
}

struct ToStderr;

impl log::Log for ToStderr {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        // Nobody may be listening.
        let _ = writeln!(std::io::stderr(), "tbv-trace: eBPF: {}", record.args());
    }

    fn flush(&self) {}
}

/// Whether this process may trace on this kernel at all.
pub(crate) fn allowed(root: &Path) -> Result<()> {
    if !root.join("proc/self/status").exists() {
        return Err(Error::NoProc);
    }
    if let Some(missing) = Credentials::read(root).missing() {
        return Err(Error::Permission(missing));
    }
    match lockdown::mode(root) {
        Some(mode) if mode == lockdown::CONFIDENTIALITY => Err(Error::Lockdown(Some(mode))),
        _ => Ok(()),
    }
}

fn first_that_works(
    ebpf: &mut Ebpf,
    wanted: Option<Hook>,
    btf: Option<&Btf>,
) -> Result<(Hook, Watch, Links, Tried)> {
    let mut tried = Vec::new();
    let root = Path::new("/");
    for hook in watch::ranked(root).into_iter().filter(|hook| wanted.is_none_or(|w| w == *hook)) {
        let watch = Watch::begin(root, hook);
        let possible = obstacles::check(hook, root).map_err(|obstacle| obstacle.reason);
        match possible.and_then(|()| attach::attach(ebpf, OBJECT, hook, btf)) {
            Ok(links) => {
                // A hook that ranks lower than usual is one that was passed over, too.
                if wanted.is_none() && watch::fully_preemptible(root) && hook != Hook::Fentry {
                    tried.push((Hook::Fentry, PREEMPTIBLE.to_owned()));
                }
                return Ok((hook, watch, links, tried));
            }
            Err(why) => tried.push((hook, why)),
        }
    }
    Err(Error::NoHook(tried))
}
