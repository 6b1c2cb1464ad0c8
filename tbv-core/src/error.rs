//! What can go wrong, said with what to do about it.

use crate::{hook::Hook, module_fentry::ModuleFentryError};

/// An error of this library.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing to trace on this machine.
    #[error(
        "no RDMA verbs on this machine: the module ib_uverbs is not loaded.\n\
         Load it (`modprobe ib_uverbs`) and have an RDMA device, for instance a software one:\n  \
         modprobe rdma_rxe && rdma link add rxe0 type rxe netdev NETDEV"
    )]
    NoUverbs,
    /// The process may not load eBPF programs.
    #[error(
        "no permission to load eBPF programs ({missing} missing).\n\
         Run as root (`sudo`), or give the capabilities: setcap cap_bpf,cap_perfmon,cap_sys_admin+ep tbv-trace"
    )]
    Permission {
        /// The capabilities that are missing, by name.
        missing: String,
    },
    /// None of the hooks that were tried could be attached.
    #[error("cannot attach to the uverbs path:{}", list(.0))]
    NoHook(Vec<(Hook, String)>),
    /// What was to be traced is not there, or cannot be told apart here.
    #[error("{0}")]
    Filter(String),
    /// The programs or maps could not be loaded.
    #[error("loading the eBPF programs: {0}")]
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
    /// A report that cannot be used.
    #[error("{path}: {reason}")]
    Report {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A system call failed.
    #[error("{0}: {1}")]
    System(&'static str, std::io::Error),
}

fn list(tried: &[(Hook, String)]) -> String {
    tried.iter().map(|(hook, why)| format!("\n  {}: {why}", hook.description())).collect()
}

/// Result with this library's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;
