//! One tracing run: load, attach, count, stop.

use std::{
    cell::Cell,
    fs,
    io::Write as _,
    os::fd::AsFd,
    path::{Path, PathBuf},
    thread,
};

use aya::{
    Ebpf, EbpfLoader, Pod,
    maps::{Array, HashMap, MapData},
    programs::{Program, RawTracePoint},
};
use aya_log::Level;
use tbv_common::{
    Config, Loss, MAX_COMPLETIONS, MAX_QPS, MAX_REQUESTS, MAX_ROWS, MAX_SPANS, ONLY_CGROUP, PROBED, Process,
    SEARCHED_AT_ONCE, SPANS, STREAM, Spans, State, Stream, Whoami,
};

use crate::{
    attach::{self, Links, reason},
    btf::Btf,
    devices::{self, Devices},
    driver,
    environment::Environment,
    error::{Error, Result},
    events::{self, Events},
    filter::Filter,
    hook::Hook,
    lockdown,
    modules::Uverbs,
    obstacles, offsets,
    permission::Credentials,
    snapshot::{self, Outside, Snapshot},
    spans::{Left, Moments},
    sys, usdt,
    watch::{self, Watch},
};

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/tbv.bpf.o"));

/// Programs that follow processes, whatever the hook.
const SCHEDULER: [(&str, &str); 3] =
    [("fork", "sched_process_fork"), ("exec", "sched_process_exec"), ("exit", "sched_process_exit")];

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
    /// Whether the provider's probes are attached.
    probed: bool,
    /// What spans that will not end have left behind.
    left: Left,
    started_ns: u64,
    hook: Hook,
    watch: Watch,
    seen_off: Cell<bool>,
    /// Better hooks that were tried before, and why they did not work.
    passed_over: Tried,
    links: Links,
    config: Config,
    /// The driver's tracepoint ABI, if its tracepoints are attached.
    driver: Option<u32>,
    /// Our own id in the initial pid namespace, if what is traced are our descendants.
    own_pid: Option<u32>,
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
        let Loaded { mut ebpf, btf, mut config, own_pid } = Loaded::load(options)?;
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
        // Without the driver there is no queue of ours, but the probes cost the same.
        let probed = !options.usdt.is_empty() && (driver.is_some() || options.instead_of_uverbs.is_some());
        if probed {
            usdt::attach(&mut ebpf, &options.usdt)?;
            links.also(usdt::PROGRAMS);
        }
        let started_ns = sys::monotonic_ns();
        config.state = State::Running as u32;
        write_config(&mut ebpf, config)?;
        Ok(Tracer {
            spans: options.spans != Spans::Off && driver.is_some(),
            probed,
            left: Left::default(),
            ebpf,
            started_ns,
            hook,
            watch,
            seen_off: Cell::new(false),
            passed_over,
            links,
            config,
            driver,
            own_pid,
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
        environment
    }

    /// The stream of single calls, once, if [`Options::stream`] asked for it.
    pub fn events(&mut self) -> Result<Events> {
        Events::take(&mut self.ebpf)
    }

    /// The stream of what happens to messages, once, if [`Options::spans`] asked for it.
    pub fn moments(&mut self) -> Result<Moments> {
        Moments::take(&mut self.ebpf)
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
        snapshot::take(&self.ebpf, self.outside(false)?, self.left(), self.probed)
    }

    fn left(&self) -> Option<Left> {
        self.spans.then(|| self.left.clone())
    }

    /// Whether the hook has been off at one of the times that this was asked: whoever traces for long asks often. A
    /// switch that is off and on again between two times is not seen.
    pub fn hook_was_off(&self) -> bool {
        self.seen_off.set(self.seen_off.get() || self.watch.is_off(Path::new("/")));
        self.seen_off.get()
    }

    /// What the maps don't tell; what is left running is only a loss once all has `ended`.
    fn outside(&self, ended: bool) -> Result<Outside> {
        Ok(Outside {
            recursion_misses: self.recursion_misses()?,
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

    /// Runs that the kernel skipped, over all attached programs.
    fn recursion_misses(&self) -> Result<u64> {
        let always = SCHEDULER.iter().map(|(name, _)| *name);
        let spans = driver::SPAN_PROGRAMS.into_iter().filter(|_| self.spans);
        let ours = driver::PROGRAMS.into_iter().chain([driver::LATER_PROGRAM]).chain(spans);
        let ours = ours.filter(|_| self.driver.is_some());
        let asked = |fd| sys::recursion_misses(fd).map_err(|e| Error::System("asking a program", e));
        let mut misses = 0;
        for name in always.chain(ours).chain(self.links.by_aya()) {
            let program = self.ebpf.program(name).ok_or(Error::Missing(name))?;
            let fd = program.fd().map_err(|e| Error::Load(reason(&e)))?;
            misses += asked(fd.as_fd())?;
        }
        for fd in self.links.own() {
            misses += asked(fd)?;
        }
        Ok(misses)
    }

    /// Ends counting: from now on no call is begun to be followed, and nothing is attached any more. What is in the
    /// maps and the stream stays.
    pub fn stop(&mut self) -> Result<Snapshot> {
        self.config.state = State::Stopping as u32;
        write_config(&mut self.ebpf, self.config)?;
        // The kernel's own miss counters go with the programs.
        let outside = self.outside(true)?;
        attach::detach(&mut self.ebpf, std::mem::take(&mut self.links));
        snapshot::take(&self.ebpf, outside, self.left(), self.probed)
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

/// The programs as they are before a hook is attached: they follow processes, and count nothing yet.
pub(crate) struct Loaded {
    ebpf: Ebpf,
    btf: Option<Btf>,
    config: Config,
    /// Our own id in the initial pid namespace, if what is traced are our descendants.
    own_pid: Option<u32>,
}

impl Loaded {
    /// Whether or not there is anything to trace.
    pub(crate) fn load(options: &Options) -> Result<Self> {
        let root = Path::new("/");
        let log_level = if options.log { Level::Trace as u8 } else { 0 };
        let stream = match options.stream {
            None => Stream::Off,
            Some(StreamOptions { failed_only: false, .. }) => Stream::All,
            Some(StreamOptions { failed_only: true, .. }) => Stream::Failed,
        } as u32;
        let only_cgroup = u32::from(options.filter.cgroup.is_some());
        let ring_bytes = options.stream.map_or(events::RING_MIN, |stream| stream.ring_bytes);
        let spans = options.spans as u32;
        let probed = u32::from(!options.usdt.is_empty());
        let moments_bytes = match options.spans {
            Spans::Streamed => options.moments_bytes.unwrap_or(events::RING_DEFAULT),
            Spans::Off | Spans::Counted => events::RING_MIN,
        };
        let for_spans = |entries| if options.spans == Spans::Off { 1 } else { entries };
        let mut ebpf = EbpfLoader::new()
            .map_max_entries("REQUESTS", for_spans(MAX_REQUESTS))
            .map_max_entries("COMPLETIONS", for_spans(MAX_COMPLETIONS))
            .map_max_entries("QPS", for_spans(MAX_QPS))
            .map_max_entries("SPAN_ROWS", for_spans(MAX_SPANS))
            .map_max_entries("MOMENTS", moments_bytes)
            .override_global(SPANS, &spans, true)
            .override_global(PROBED, &probed, true)
            .map_max_entries("ROWS", options.max_rows.unwrap_or(MAX_ROWS))
            .map_max_entries("EVENTS", ring_bytes)
            .override_global(aya_log::LEVEL, &log_level, true)
            .override_global(STREAM, &stream, true)
            .override_global(ONLY_CGROUP, &only_cgroup, true)
            .load(OBJECT)
            .map_err(|e| Error::Load(reason(&e)))?;
        let btf = Btf::vmlinux().ok();
        let mut config = Config {
            majors: options.instead_of_uverbs.map_or_else(|| devices::majors(root), |major| [major, 0]),
            user_end: offsets::user_end(root),
            ..Config::default()
        };
        if let Some(btf) = &btf {
            offsets::from_btf(&mut config, btf);
        }
        write_config(&mut ebpf, config)?;
        let who = whoami(&mut ebpf, config.task_pid == 0)?;
        if config.task_pid == 0 {
            config.task_pid = who.task_pid;
        }
        let targets = options.filter.apply(&mut config, &who, &devices::list(root))?;
        if config.follow != 0 && config.task_pid == 0 {
            return Err(Error::Load("cannot find task_struct.pid in this kernel".to_owned()));
        }
        write_config(&mut ebpf, config)?;
        let named: Vec<_> =
            targets.ours.iter().filter_map(|pid| Some((pid, sys::pidfd(*pid).ok()?))).collect();
        for (map, pids) in [("TARGETS", &targets.initial), ("NS_TARGETS", &targets.ours)] {
            let mut map_of = hash::<u32, u8>(&mut ebpf, map)?;
            for pid in pids {
                map_of.insert(pid, 1, 0).map_err(|e| Error::Map(map, e))?;
            }
        }
        for (program, target) in SCHEDULER {
            attach::raw_tracepoint(&mut ebpf, program, target).map_err(|reason| Error::Attach {
                program,
                target,
                reason,
            })?;
        }
        // From here on a program sees who ends. The ids of those that ended before may be given to others.
        let mut ours = hash::<u32, u8>(&mut ebpf, "NS_TARGETS")?;
        for pid in &targets.ours {
            let lives = named.iter().any(|(named, fd)| *named == pid && !sys::has_ended(fd.as_fd()));
            if !lives {
                ours.remove(pid).map_err(|e| Error::Map("NS_TARGETS", e))?;
            }
        }
        let own_pid = options.filter.descendants.then_some((who.pid_tgid >> 32) as u32);
        Ok(Loaded { ebpf, btf, config, own_pid })
    }

    /// Attaches `hook` for a moment, or says why that does not work.
    pub(crate) fn try_hook(&mut self, hook: Hook) -> Result<(), String> {
        let links = attach::attach(&mut self.ebpf, OBJECT, hook, self.btf.as_ref())?;
        attach::detach(&mut self.ebpf, links);
        Ok(())
    }
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

/// Asks the kernel who we are. A thread of its own asks: its id differs from the process's,
/// so that the pair of both is found only where `task_struct` keeps it, which `search`es for.
fn whoami(ebpf: &mut Ebpf, search: bool) -> Result<Whoami> {
    /// Bytes of `task_struct` that are searched; it is 9.5 KiB on a distribution's 6.12.
    const SEARCHED: u32 = 16_384;
    let failed = |reason| Error::Attach { program: "whoami", target: "this thread", reason };
    let program: &mut RawTracePoint = ebpf
        .program_mut("whoami")
        .ok_or(Error::Missing("whoami"))?
        .try_into()
        .map_err(|e: aya::programs::ProgramError| failed(reason(&e)))?;
    program.load().map_err(|e| match reason(&e) {
        // Where the mode can't be read, for want of securityfs, the verifier's words tell it.
        refusal if lockdown::explains(&refusal) => Error::Lockdown(None),
        refusal => failed(refusal),
    })?;
    let fd = program.fd().map_err(|e| failed(reason(&e)))?.try_clone().map_err(|e| failed(e.to_string()))?;
    let mut map = array::<Whoami>(ebpf, "WHOAMI")?;
    let mut ask = || -> Result<Whoami> {
        let end = if search { SEARCHED } else { 1 };
        let mut answer = Whoami::default();
        for begin in (0..end).step_by(SEARCHED_AT_ONCE as usize) {
            map.set(0, Whoami { search: begin, ..Whoami::default() }, 0)
                .map_err(|e| Error::Map("WHOAMI", e))?;
            sys::run_here(fd.as_fd()).map_err(|e| failed(e.to_string()))?;
            answer = map.get(&0, 0).map_err(|e| Error::Map("WHOAMI", e))?;
            if answer.ran == 0 {
                return Err(failed("the program did not run".to_owned()));
            }
            if answer.task_pid != 0 {
                break;
            }
        }
        Ok(answer)
    };
    let asked = thread::scope(|scope| scope.spawn(&mut ask).join());
    let answer = asked.unwrap_or_else(|_| Err(failed("the asking thread panicked".to_owned())))?;
    if let Some(Program::RawTracePoint(program)) = ebpf.program_mut("whoami") {
        let _ = program.unload();
    }
    Ok(answer)
}

fn write_config(ebpf: &mut Ebpf, config: Config) -> Result<()> {
    array::<Config>(ebpf, "CONFIG")?.set(0, config, 0).map_err(|e| Error::Map("CONFIG", e))
}

fn array<'a, V: Pod>(ebpf: &'a mut Ebpf, name: &'static str) -> Result<Array<&'a mut MapData, V>> {
    let map = ebpf.map_mut(name).ok_or(Error::Missing(name))?;
    Array::try_from(map).map_err(|e| Error::Map(name, e))
}

fn hash<'a, K: Pod, V: Pod>(
    ebpf: &'a mut Ebpf,
    name: &'static str,
) -> Result<HashMap<&'a mut MapData, K, V>> {
    let map = ebpf.map_mut(name).ok_or(Error::Missing(name))?;
    HashMap::try_from(map).map_err(|e| Error::Map(name, e))
}
