//! What can go wrong, said with what to do about it.

use crate::{hook::Hook, lockdown, module_fentry::ModuleFentryError, modules::Uverbs, permission::Missing};

/// An error of this library.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing to trace on this machine.
    #[error("no RDMA verbs on this machine: ib_uverbs is {0}.\n{advice}", advice = load(.0))]
    NoUverbs(Uverbs),
    /// The process may not load eBPF programs.
    #[error("no permission: this process lacks {0}.\n{remedy}", remedy = .0.remedy())]
    Permission(Missing),
    /// Nothing can be found out about this process or others.
    #[error("/proc is not mounted here: mount -t proc proc /proc")]
    NoProc,
    /// The kernel's lockdown forbids what tracing needs.
    #[error("{found}, which forbids eBPF to read kernel memory.\n{LOCKDOWN_FIX}", found = locked_down(.0.as_deref()))]
    Lockdown(Option<String>),
    /// None of the hooks that were tried could be attached.
    #[error("cannot attach to the uverbs path:{}", list(.0))]
    NoHook(Vec<(Hook, String)>),
    /// What was to be traced is not there, or cannot be told apart here.
    #[error("{0}")]
    Filter(String),
    /// The programs or maps could not be loaded.
    #[error("loading the eBPF programs: {0}{hint}", hint = forbidden(.0))]
    Load(String),
    /// A program that every hook needs could not be attached.
    #[error("attaching {program} to {target}: {reason}")]
    Attach {
        /// The eBPF program.
        program: &'static str,
        /// What it was to be attached to.
        target: &'static str,
        /// Why not.
        reason: String,
    },
    /// fentry on the module did not work.
    #[error(transparent)]
    ModuleFentry(#[from] ModuleFentryError),
    /// Reading a map failed.
    #[error("reading the map {0}: {1}")]
    Map(&'static str, aya::maps::MapError),
    /// The embedded object lacks something that this version expects.
    #[error("the embedded eBPF object has no {0}; this is a bug")]
    Missing(&'static str),
    /// The provider's probes cannot be used.
    #[error("probes of {path}: {reason}")]
    Usdt {
        /// The library.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A report that cannot be used.
    #[error("{path}: {reason}")]
    Report {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A budget that cannot be used.
    #[error("{path}: {reason}")]
    Budget {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A system call failed.
    #[error("{0}: {1}")]
    System(&'static str, std::io::Error),
}

/// More on a refusal that [`Error::Permission`] does not explain.
fn forbidden(why: &str) -> &'static str {
    if why.contains("Cannot allocate memory") {
        return "\nThere is too little memory: `tbv-trace doctor` says how much the maps take; of `events`, \
                --ringbuf-size is a part";
    }
    if why.contains("Too many open files") {
        return "\nRaise the limit of open files: ulimit -n 1024";
    }
    if why.contains("Operation not permitted") {
        "\nThis process has the capabilities: something else forbids bpf(2), such as a container's seccomp filter or \
         a security module. Start tbv-trace outside of it"
    } else {
        ""
    }
}

/// What to do about lockdown.
pub(crate) const LOCKDOWN_FIX: &str =
    "It lasts until the next boot: boot with lockdown=integrity, or without the word lockdown";

/// How lockdown is said to be: by the kernel's word, or because of what it forbids.
fn locked_down(mode: Option<&str>) -> String {
    match mode {
        Some(mode) => format!("the kernel is locked down (lockdown={mode})"),
        None => format!("the kernel seems to be locked down (lockdown={})", lockdown::CONFIDENTIALITY),
    }
}

fn load(uverbs: &Uverbs) -> String {
    if *uverbs == Uverbs::Loadable {
        return "Load it (`modprobe ib_uverbs`) and have an RDMA device, for instance a software one:\n  \
                modprobe rdma_rxe && rdma link add rxe0 type rxe netdev NETDEV"
            .to_owned();
    }
    let fix = uverbs.fix();
    let (first, rest) = fix.split_at(fix.len().min(1));
    first.to_uppercase() + rest
}

fn list(tried: &[(Hook, String)]) -> String {
    tried.iter().map(|(hook, why)| format!("\n  {hook}: {why}")).collect()
}

/// Result with this library's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_in_spite_of_capabilities_is_explained() {
        let text = |why: &str| Error::Load(why.to_owned()).to_string();
        assert!(text("creating a map: Operation not permitted (os error 1)").contains("seccomp"));
        assert_eq!(text("Invalid argument"), "loading the eBPF programs: Invalid argument");
    }

    #[test]
    fn modprobe_is_said_only_where_there_is_something_to_load() {
        assert!(Error::NoUverbs(Uverbs::Loadable).to_string().contains("Load it (`modprobe ib_uverbs`)"));
        let none = Error::NoUverbs(Uverbs::Static).to_string();
        assert!(!none.contains("modprobe") && none.contains("cargo xtask vm"), "{none}");
        assert!(none.contains(".\nUse a kernel"), "{none}");
    }
}
