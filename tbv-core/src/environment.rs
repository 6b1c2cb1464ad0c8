//! Where a report was made: what has to be equal before two reports may be compared.

use std::{fs, path::Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    devices::{Device, Devices},
    hook::Hook,
};

/// Modules whose version matters to what is measured.
pub(crate) const MODULES: [&str; 5] = ["ib_core", "ib_uverbs", "rdma_rxe", "siw", "thunderbolt_ibverbs"];

/// The environment block of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Version of the tool that wrote the report.
    pub tool_version: String,
    /// Kernel release, as `uname -r`.
    pub kernel: String,
    /// Machine, as `uname -m`.
    pub machine: String,
    /// Model name of the CPU; an emulator's CPU says so here.
    pub cpu: String,
    /// CPUs that are online.
    pub cpus: u64,
    /// How the calls were seen: `fentry`, `kprobe`, `syscall-fentry` or `raw-syscall`.
    pub hook: String,
    /// What that hook cannot see or costs besides.
    pub hook_limits: Option<String>,
    /// Better hooks that did not work here.
    pub hooks_passed_over: Vec<PassedOver>,
    /// Whether the device of a call could be told (needs the kernel's BTF).
    pub devices_known: bool,
    /// Tracepoint ABI of our own driver; absent if it was not loaded or not of a form known.
    pub driver_trace_abi: Option<u32>,
    /// What is missing in the report of completion queues and queue pairs of our own driver that existed when tracing
    /// began, and why; absent if nothing is.
    #[serde(default)]
    pub existing_left_out: Option<String>,
    /// Files of our provider whose probes (USDT) were attached. Polling in user space is slower then.
    #[serde(default)]
    pub probes: Vec<String>,
    /// Loaded RDMA modules.
    pub modules: Vec<Module>,
    /// RDMA devices at the end of the run.
    pub devices: Vec<Device>,
    /// How the calls came in: `ioctl`, `write`, `mixed`, or `none` without calls.
    pub mode: String,
}

/// A hook that was tried and did not work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PassedOver {
    /// The hook.
    pub hook: String,
    /// Why it did not work.
    pub reason: String,
}

/// A loaded kernel module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Module {
    /// Its name.
    pub name: String,
    /// Its source version (`srcversion` in sysfs); absent if it has none.
    pub srcversion: Option<String>,
}

impl Environment {
    /// Of the machine below `root` (normally `/`).
    pub fn read(root: &Path, hook: Hook, passed_over: &[(Hook, String)], devices: &Devices) -> Self {
        let line = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default().trim().to_owned();
        let cpuinfo = line("proc/cpuinfo");
        let cpu = cpuinfo.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or_default();
        Environment {
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: line("proc/sys/kernel/osrelease"),
            machine: std::env::consts::ARCH.to_owned(),
            cpu: cpu.trim_start_matches([' ', '\t', ':']).to_owned(),
            cpus: std::thread::available_parallelism().map_or(0, |n| n.get() as u64),
            hook: hook.name().to_owned(),
            hook_limits: hook.limits().map(str::to_owned),
            hooks_passed_over: passed_over
                .iter()
                .map(|(hook, reason)| PassedOver { hook: hook.name().to_owned(), reason: reason.clone() })
                .collect(),
            devices_known: false,
            driver_trace_abi: None,
            existing_left_out: None,
            probes: Vec::new(),
            modules: modules(root),
            devices: devices.values().cloned().collect(),
            mode: "none".to_owned(),
        }
    }
}

fn modules(root: &Path) -> Vec<Module> {
    MODULES
        .iter()
        .map(|name| (name, root.join("sys/module").join(name)))
        .filter(|(_, dir)| dir.exists())
        .map(|(name, dir)| Module {
            name: (*name).to_owned(),
            srcversion: fs::read_to_string(dir.join("srcversion")).ok().map(|v| v.trim().to_owned()),
        })
        .collect()
}
