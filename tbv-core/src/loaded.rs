//! The programs in the kernel, before anything of theirs counts.

use std::{os::fd::AsFd as _, path::Path, thread};

use aya::{
    Ebpf, EbpfLoader, Pod,
    maps::{Array, HashMap, MapData},
    programs::{Program, RawTracePoint},
};
use aya_log::Level;
use tbv_common::{
    Config, MAX_COMPLETIONS, MAX_QPS, MAX_REQUESTS, MAX_ROWS, MAX_SPANS, ONLY_CGROUP, PROBED,
    SEARCHED_AT_ONCE, SPANS, STREAM, Spans, Stream, Whoami,
};

use crate::{
    attach::{self, reason},
    btf::Btf,
    devices,
    error::{Error, Result},
    events, filter,
    hook::Hook,
    lockdown, offsets, sys,
    tracer::{Options, StreamOptions},
};

pub(crate) static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/tbv.bpf.o"));

/// Programs that follow processes, whatever the hook.
pub(crate) const SCHEDULER: [(&str, &str); 3] =
    [("fork", "sched_process_fork"), ("exec", "sched_process_exec"), ("exit", "sched_process_exit")];

/// The programs as they are before a hook is attached: they follow processes, and count nothing yet.
pub(crate) struct Loaded {
    pub(crate) ebpf: Ebpf,
    pub(crate) btf: Option<Btf>,
    pub(crate) config: Config,
    /// Our own id in the initial pid namespace, if what is traced are our descendants.
    pub(crate) own_pid: Option<u32>,
    /// Whether process ids mean here what they mean to the kernel.
    pub(crate) own_ids: bool,
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
        let own_ids = filter::in_initial_namespace(&config, &who).unwrap_or(false);
        Ok(Loaded { ebpf, btf, config, own_pid, own_ids })
    }

    /// Attaches `hook` for a moment, or says why that does not work.
    pub(crate) fn try_hook(&mut self, hook: Hook) -> Result<(), String> {
        let links = attach::attach(&mut self.ebpf, OBJECT, hook, self.btf.as_ref())?;
        attach::detach(&mut self.ebpf, links);
        Ok(())
    }
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

pub(crate) fn write_config(ebpf: &mut Ebpf, config: Config) -> Result<()> {
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
