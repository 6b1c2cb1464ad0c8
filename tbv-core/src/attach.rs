//! Attaching the programs of one hook.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
};

use aya::{
    Ebpf,
    maps::{Map, MapData},
    programs::{FEntry, FExit, KProbe, Program, ProgramError, RawTracePoint, links::FdLink},
};
use aya_obj::generated::bpf_attach_type::{BPF_TRACE_FENTRY, BPF_TRACE_FEXIT};

use crate::{
    btf::Btf,
    error::{Error, Result},
    hook::Hook,
    module_fentry::{Attached, Loader},
};

const MODULE: &str = "ib_uverbs";
/// Entry and return programs, and the function each pair watches.
const FENTRY: [(&str, &str, &str); 2] =
    [("fentry_ioctl", "fexit_ioctl", "ib_uverbs_ioctl"), ("fentry_write", "fexit_write", "ib_uverbs_write")];
const KPROBE: [(&str, &str, &str); 2] = [
    ("kprobe_ioctl", "kretprobe_ioctl", "ib_uverbs_ioctl"),
    ("kprobe_write", "kretprobe_write", "ib_uverbs_write"),
];
const SYSCALL: [(&str, &str, &str); 2] = [
    ("fentry_sys_ioctl", "fexit_sys_ioctl", "__x64_sys_ioctl"),
    ("fentry_sys_write", "fexit_sys_write", "__x64_sys_write"),
];

/// What keeps a hook attached; dropping it detaches.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// Programs that our own loader attached.
    own: Vec<Attached>,
    /// Programs that aya attached, by name.
    by_aya: Vec<&'static str>,
    /// kretprobe links, for what they missed.
    kretprobes: Vec<FdLink>,
    kprobes: Vec<FdLink>,
}

impl Links {
    /// Programs that our own loader attached.
    pub(crate) fn own(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.own.iter().map(|attached| attached.program.as_fd())
    }

    /// Programs that aya attached besides those of the hook, to be detached with them.
    pub(crate) fn also(&mut self, names: impl IntoIterator<Item = &'static str>) {
        self.by_aya.extend(names);
    }

    /// Names of the programs that aya attached.
    pub(crate) fn by_aya(&self) -> impl Iterator<Item = &'static str> {
        self.by_aya.iter().copied()
    }

    /// What kretprobes missed, as far as the kernel tells.
    pub(crate) fn kretprobe_missed(&self) -> u64 {
        self.kretprobes.iter().filter_map(|link| crate::sys::kprobe_missed(link.info().ok()?.id())).sum()
    }
}

/// Attaches `hook`, or says why not and leaves nothing attached.
pub(crate) fn attach(ebpf: &mut Ebpf, elf: &[u8], hook: Hook, btf: Option<&Btf>) -> Result<Links, String> {
    let mut links = Links::default();
    let done = match hook {
        Hook::Fentry => module(ebpf, elf, btf, &mut links).map_err(|e| e.to_string()),
        Hook::Kprobe => kprobes(ebpf, &mut links),
        Hook::SyscallFentry => syscalls(ebpf, btf, &mut links),
        Hook::RawSyscall => raw(ebpf, btf, &mut links),
    };
    match done {
        Ok(()) => Ok(links),
        Err(why) => {
            detach(ebpf, links);
            Err(why)
        }
    }
}

/// Detaches and unloads.
pub(crate) fn detach(ebpf: &mut Ebpf, links: Links) {
    for name in &links.by_aya {
        // Nothing can be done about a program that won't go; the kernel drops it with us.
        let _ = match ebpf.program_mut(name) {
            Some(Program::KProbe(p)) => p.unload(),
            Some(Program::FEntry(p)) => p.unload(),
            Some(Program::FExit(p)) => p.unload(),
            Some(Program::RawTracePoint(p)) => p.unload(),
            Some(Program::UProbe(p)) => p.unload(),
            _ => Ok(()),
        };
    }
    drop(links);
}

fn module(ebpf: &Ebpf, elf: &[u8], btf: Option<&Btf>, links: &mut Links) -> Result<()> {
    let no_btf = || crate::module_fentry::ModuleFentryError::NoBtf(MODULE.to_owned());
    let base = btf.ok_or_else(no_btf)?;
    let module = Btf::module(MODULE, base).map_err(|_| no_btf())?;
    let loader = Loader::new(elf, &map_fds(ebpf), MODULE)?;
    for (enter, leave, function) in FENTRY {
        let id = module.function(function).ok_or(Error::Missing(function))?;
        links.own.push(loader.attach(leave, id, BPF_TRACE_FEXIT)?);
        links.own.push(loader.attach(enter, id, BPF_TRACE_FENTRY)?);
    }
    Ok(())
}

fn kprobes(ebpf: &mut Ebpf, links: &mut Links) -> Result<(), String> {
    for (enter, leave, function) in KPROBE {
        for name in [leave, enter] {
            links.by_aya.push(name);
            let probe: &mut KProbe = program(ebpf, name)?;
            let link = probe
                .load()
                .and_then(|()| probe.attach(function, 0))
                .and_then(|id| probe.take_link(id))
                .map_err(|e| reason(&e))?;
            // A kernel before 5.15 has no links for kprobes: then there is nothing to ask.
            if let Ok(link) = FdLink::try_from(link) {
                if name == leave { &mut links.kretprobes } else { &mut links.kprobes }.push(link);
            } else {
                return Err("this kernel has no BPF links for kprobes (needs 5.15)".to_owned());
            }
        }
    }
    Ok(())
}

fn syscalls(ebpf: &mut Ebpf, btf: Option<&Btf>, links: &mut Links) -> Result<(), String> {
    btf.ok_or("this kernel shows no BTF (/sys/kernel/btf/vmlinux)")?;
    let btf = aya::Btf::from_sys_fs().map_err(|e| e.to_string())?;
    for (enter, leave, function) in SYSCALL {
        links.by_aya.push(leave);
        let exit: &mut FExit = program(ebpf, leave)?;
        exit.load(function, &btf).and_then(|()| exit.attach()).map_err(|e| reason(&e))?;
        links.by_aya.push(enter);
        let entry: &mut FEntry = program(ebpf, enter)?;
        entry.load(function, &btf).and_then(|()| entry.attach()).map_err(|e| reason(&e))?;
    }
    Ok(())
}

fn raw(ebpf: &mut Ebpf, btf: Option<&Btf>, links: &mut Links) -> Result<(), String> {
    btf.ok_or("this kernel shows no BTF (/sys/kernel/btf/vmlinux)")?;
    for (name, tracepoint) in [("raw_sys_exit", "sys_exit"), ("raw_sys_enter", "sys_enter")] {
        links.by_aya.push(name);
        raw_tracepoint(ebpf, name, tracepoint)?;
    }
    Ok(())
}

/// Loads and attaches a raw tracepoint program.
pub(crate) fn raw_tracepoint(ebpf: &mut Ebpf, name: &'static str, tracepoint: &str) -> Result<(), String> {
    let point: &mut RawTracePoint = program(ebpf, name)?;
    point.load().and_then(|()| point.attach(tracepoint)).map_err(|e| reason(&e))?;
    Ok(())
}

/// As above, for a tracepoint that may not exist; whether it does.
pub(crate) fn raw_tracepoint_if_there(
    ebpf: &mut Ebpf,
    name: &'static str,
    tracepoint: &str,
) -> Result<bool, String> {
    let point: &mut RawTracePoint = program(ebpf, name)?;
    point.load().map_err(|e| reason(&e))?;
    match point.attach(tracepoint) {
        Ok(_) => Ok(true),
        Err(ProgramError::SyscallError(e)) if e.io_error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(reason(&e)),
    }
}

pub(crate) fn program<'a, P>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut P, String>
where
    &'a mut P: TryFrom<&'a mut Program, Error = ProgramError>,
{
    ebpf.program_mut(name)
        .ok_or("not in the embedded object")?
        .try_into()
        .map_err(|e: ProgramError| reason(&e))
}

/// An error with the causes under it, on one line.
pub(crate) fn reason(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        next = cause.source();
    }
    // aya says so even if there was none.
    text.trim_end().trim_end_matches("Verifier output:").trim_end().to_owned()
}

fn map_fds(ebpf: &Ebpf) -> Vec<(String, RawFd)> {
    ebpf.maps()
        .filter_map(|(name, map)| Some((name.to_owned(), data(map)?.fd().as_fd().as_raw_fd())))
        .collect()
}

fn data(map: &Map) -> Option<&MapData> {
    match map {
        Map::Array(data) | Map::HashMap(data) | Map::RingBuf(data) | Map::PerCpuArray(data) => Some(data),
        _ => None,
    }
}
