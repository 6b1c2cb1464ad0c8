//! Whose calls count.

use aya_ebpf::{
    bindings::BPF_ANY,
    helpers::{
        bpf_get_current_ancestor_cgroup_id, bpf_get_current_comm, bpf_get_current_task, bpf_probe_read_kernel,
    },
};
use aya_log_ebpf::debug;
use tbv_common::{COMM_LEN, Config, Loss};

use crate::{
    atomic::lost,
    maps::{self, CURRENT, NS_TARGETS, TARGETS},
};

/// Levels of the cgroup tree that are searched.
const DEEPEST_CGROUP: i32 = 32;

/// `struct upid`: the number of a process in one pid namespace.
#[repr(C)]
struct Upid {
    number: u32,
    padding: u32,
    namespace: u64,
}

#[inline(always)]
fn read<T>(base: u64, offset: u32) -> Option<T> {
    // SAFETY: the helper checks the address.
    unsafe { bpf_probe_read_kernel((base + offset as u64) as *const T) }.ok()
}

/// `task_struct` of the current process's first thread.
#[inline(always)]
fn leader(config: &Config) -> Option<u64> {
    if config.ids_known == 0 {
        return None;
    }
    // SAFETY: takes no arguments.
    read(unsafe { bpf_get_current_task() }, config.task_group_leader)
}

#[inline(always)]
fn upid(config: &Config, level: Option<u32>) -> Option<Upid> {
    let pid: u64 = read(leader(config)?, config.task_thread_pid)?;
    let deepest: u32 = read(pid, config.pid_level)?;
    let level = level.unwrap_or(deepest);
    if level > deepest {
        return None;
    }
    read(pid, config.pid_numbers + level * size_of::<Upid>() as u32)
}

/// The current process's id in its own pid namespace; 0 if unknown.
#[inline(always)]
pub fn ns_pid(config: &Config) -> u32 {
    upid(config, None).map_or(0, |own| own.number)
}

/// Namespace and its level of the current process; zeroes if unknown.
#[inline(always)]
pub fn namespace(config: &Config) -> (u64, u32) {
    let level = leader(config)
        .and_then(|leader| read::<u64>(leader, config.task_thread_pid))
        .and_then(|pid| read::<u32>(pid, config.pid_level));
    match (level, upid(config, None)) {
        (Some(level), Some(own)) => (own.namespace, level),
        _ => (0, 0),
    }
}

/// The current process's id in the namespace that the targets are given in.
#[inline(always)]
fn pid_for_us(config: &Config) -> Option<u32> {
    let ours = upid(config, Some(config.own_level))?;
    (ours.namespace == config.own_ns).then_some(ours.number)
}

/// The name of the current process; of the thread if the process's is unknown.
#[inline(always)]
pub fn comm(config: &Config) -> [u8; COMM_LEN] {
    let own = leader(config).and_then(|leader| read::<[u8; COMM_LEN]>(leader, config.task_comm));
    own.unwrap_or_else(|| bpf_get_current_comm().unwrap_or([0; COMM_LEN]))
}

/// Whether the current process, `tgid`, is a target or descends from one.
#[inline(always)]
pub fn is_target(config: &Config, tgid: u32) -> bool {
    if TARGETS.get_ptr(tgid).is_some() {
        return true;
    }
    if config.own_ns == 0 || !pid_for_us(config).is_some_and(|pid| NS_TARGETS.get_ptr(pid).is_some()) {
        return false;
    }
    debug!((), "process {} is one that was named by its id in our pid namespace", tgid);
    if TARGETS.insert(tgid, 1, BPF_ANY as u64).is_err() {
        lost(Loss::TargetsFull);
    }
    true
}

/// The current process, `tgid`, ends.
#[inline(always)]
pub fn ended(config: &Config, tgid: u32) {
    let _ = TARGETS.remove(tgid);
    if config.own_ns != 0
        && let Some(pid) = pid_for_us(config)
    {
        let _ = NS_TARGETS.remove(pid);
    }
}

/// Whether the current process's calls count, wherever it makes them from. Once they do they go on to, whatever the
/// process is called by then, until it executes another program.
#[inline(always)]
pub fn process_wanted(config: &Config, tgid: u32) -> bool {
    if CURRENT.get_ptr(tgid).is_some() {
        return true;
    }
    if config.only_targets != 0 && !is_target(config, tgid) {
        return false;
    }
    config.comm[0] == 0 || same_name(&comm(config), &config.comm)
}

/// Compares up to the first NUL: behind it may be the rest of an older name.
#[inline(always)]
fn same_name(a: &[u8; COMM_LEN], b: &[u8; COMM_LEN]) -> bool {
    for i in 0..COMM_LEN {
        if a[i] != b[i] {
            return false;
        }
        if a[i] == 0 {
            return true;
        }
    }
    true
}

/// Whether calls count that are made now, in the cgroup that the current process is in.
#[inline(always)]
pub fn cgroup_wanted(config: &Config) -> bool {
    if maps::ONLY_CGROUP.load() == 0 {
        return true;
    }
    for level in 0..DEEPEST_CGROUP {
        // SAFETY: takes a number.
        let ancestor = unsafe { bpf_get_current_ancestor_cgroup_id(level) };
        if ancestor == config.cgroup {
            return true;
        }
        if ancestor == 0 {
            break; // deeper than the process is
        }
    }
    false
}

/// Whether calls on this device count.
#[inline(always)]
pub fn device_wanted(config: &Config, device: u32) -> bool {
    config.only_devices == 0 || config.devices.iter().any(|wanted| *wanted == device && device != 0)
}
