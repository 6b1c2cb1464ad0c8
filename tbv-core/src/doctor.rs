//! What works on this machine, what doesn't, and what to do about it.

use std::{fs, path::Path};

use tbv_common::{
    Cq, CqKey, ErrnoKey, Histogram, MAX_CQS, MAX_ERRNOS, MAX_HISTOGRAMS, MAX_PROCESSES, MAX_ROWS,
    MAX_TARGETS, MAX_THREADS, MAX_WORK, Process, Row, RowKey, Thread, Work, WorkKey,
};

use crate::{
    Filter, Hook, Options, Tracer,
    btf::BTF_DIR,
    devices,
    permission::{self, CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN},
};

/// Bytes that the kernel adds to an entry of a hash map, about.
const HASH_OVERHEAD: usize = 56;

/// How one thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// As it should be.
    Ok,
    /// It works, with less.
    Degraded,
    /// Nothing can be measured without it.
    Missing,
}

/// One thing that was looked at.
#[derive(Clone, Debug)]
pub struct Check {
    /// What.
    pub name: &'static str,
    /// How it is.
    pub status: Status,
    /// What was found.
    pub found: String,
    /// What to do about it, unless it is fine.
    pub fix: Option<String>,
}

impl Check {
    fn new(name: &'static str, status: Status, found: impl Into<String>, fix: &str) -> Self {
        let fix = (status != Status::Ok).then(|| fix.to_owned());
        Check { name, status, found: found.into(), fix }
    }
}

/// Looks at everything. Attaches and detaches each hook if that is allowed.
pub fn examine() -> Vec<Check> {
    let mut checks = vec![kernel(), btf("kernel BTF", "vmlinux"), lockdown(), capabilities()];
    let root = Path::new("/");
    let loaded = devices::uverbs_loaded(root);
    let (status, found) = if loaded { (Status::Ok, "loaded") } else { (Status::Missing, "not loaded") };
    checks.push(Check::new("ib_uverbs", status, found, "modprobe ib_uverbs"));
    if loaded {
        checks.push(btf("ib_uverbs BTF", "ib_uverbs"));
        checks.push(devices(root));
        checks.extend(Hook::ALL.into_iter().map(hook));
        checks.extend(no_hook(&checks));
    }
    checks.push(memory());
    checks
}

fn kernel() -> Check {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Check::new("kernel", Status::Ok, release.trim(), "")
}

fn btf(name: &'static str, file: &str) -> Check {
    let path = Path::new(BTF_DIR).join(file);
    if path.exists() {
        Check::new(name, Status::Ok, path.display().to_string(), "")
    } else {
        let fix = "counts stay exact through kprobes, but devices show as unknown; \
                   use a kernel built with CONFIG_DEBUG_INFO_BTF (and _MODULES)";
        Check::new(name, Status::Degraded, format!("no {}", path.display()), fix)
    }
}

fn lockdown() -> Check {
    let text = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    let mode = text.split('[').nth(1).and_then(|t| t.split(']').next()).unwrap_or("none");
    let status = if mode == "confidentiality" { Status::Missing } else { Status::Ok };
    let fix =
        "this mode forbids eBPF to read kernel memory: boot with lockdown=integrity or without lockdown";
    Check::new("lockdown", status, mode, fix)
}

fn capabilities() -> Check {
    let missing = permission::missing();
    if !missing.is_empty() {
        let fix = "run as root, or: setcap cap_bpf,cap_perfmon,cap_sys_admin+ep tbv-trace";
        return Check::new("capabilities", Status::Missing, format!("no {}", missing.join(", ")), fix);
    }
    let held: Vec<&str> = [(CAP_SYS_ADMIN, "SYS_ADMIN"), (CAP_BPF, "BPF"), (CAP_PERFMON, "PERFMON")]
        .into_iter()
        .filter(|(capability, _)| permission::has(*capability))
        .map(|(_, name)| name)
        .collect();
    Check::new("capabilities", Status::Ok, format!("CAP_{}", held.join(", CAP_")), "")
}

fn devices(root: &Path) -> Check {
    let devices = devices::list(root);
    if devices.is_empty() {
        let fix = "no program can call it yet; a software device: \
                   modprobe rdma_rxe && rdma link add rxe0 type rxe netdev NETDEV";
        return Check::new("devices", Status::Degraded, "none", fix);
    }
    let names: Vec<String> = devices.values().map(|d| format!("{} ({})", d.name, d.uverbs)).collect();
    Check::new("devices", Status::Ok, names.join(", "), "")
}

fn hook(hook: Hook) -> Check {
    let started = Tracer::start(&Options {
        hook: Some(hook),
        filter: Filter { descendants: true, ..Filter::default() },
        ..Options::default()
    });
    match started {
        Ok(_) => Check::new(hook.name(), Status::Ok, hook.description(), ""),
        Err(e) => Check::new(hook.name(), Status::Degraded, e.to_string(), "another hook is used instead"),
    }
}

/// A hook that fails is no harm while another works.
fn no_hook(checks: &[Check]) -> Option<Check> {
    let works = |hook: Hook| checks.iter().any(|c| c.name == hook.name() && c.status == Status::Ok);
    let chosen = Hook::ALL.into_iter().find(|hook| works(*hook));
    Some(match chosen {
        Some(hook) => Check::new("hook in use", Status::Ok, hook.name(), ""),
        None => Check::new("hook in use", Status::Missing, "none works", "see the reasons above"),
    })
}

/// Most that the maps can take. Histograms are taken at once, the rest as it is used.
fn memory() -> Check {
    let hash = |entries: u32, key: usize, value: usize| entries as usize * (key + value + HASH_OVERHEAD);
    let histograms = MAX_HISTOGRAMS as usize * size_of::<Histogram>();
    let rest = hash(MAX_ROWS, size_of::<RowKey>(), size_of::<Row>())
        + hash(MAX_ERRNOS, size_of::<ErrnoKey>(), 8)
        + hash(MAX_THREADS, 4, size_of::<Thread>())
        + hash(MAX_PROCESSES, 4, size_of::<Process>())
        + hash(MAX_PROCESSES, 4, 4)
        + hash(MAX_TARGETS, 4, 1)
        + hash(MAX_CQS, size_of::<CqKey>(), size_of::<Cq>())
        + hash(MAX_WORK, size_of::<WorkKey>(), size_of::<Work>());
    let mib = |bytes: usize| bytes.div_ceil(1 << 20);
    let found = format!("{} MiB at once, at most {} MiB", mib(histograms), mib(histograms + rest));
    Check::new("memory", Status::Ok, found, "")
}
