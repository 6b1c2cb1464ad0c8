//! Processes and threads that begin and end, from the scheduler's tracepoints
//! (include/trace/events/sched.h), which are in every kernel.

use aya_ebpf::{
    bindings::BPF_ANY,
    helpers::{bpf_get_current_pid_tgid, bpf_get_current_task, bpf_probe_read_kernel},
    macros::raw_tracepoint,
    programs::RawTracePointContext,
};
use aya_log_ebpf::debug;
use tbv_common::{Config, Loss};

use crate::{
    atomic::lost,
    maps::{CURRENT, TARGETS, THREADS, config},
    target,
};

/// `sched_process_fork(struct task_struct *parent, struct task_struct *child)`.
#[raw_tracepoint(tracepoint = "sched_process_fork")]
pub fn fork(ctx: RawTracePointContext) -> i32 {
    if let Some(config) = config() {
        forked(config, ctx.arg(1));
    }
    0
}

#[inline(always)]
fn forked(config: &Config, child: u64) {
    if config.task_pid == 0 {
        return;
    }
    // SAFETY: the helper checks the address.
    let id = unsafe { bpf_probe_read_kernel((child + config.task_pid as u64) as *const [u32; 2]) };
    let Ok([pid, tgid]) = id else {
        if config.follow != 0 {
            lost(Loss::TargetsFull);
        }
        return;
    };
    if pid != tgid {
        return; // a thread: its process is known already
    }
    // Its id may be that of one whose end was not seen.
    let _ = CURRENT.remove(tgid);
    if config.follow == 0 {
        return;
    }
    let parent = (bpf_get_current_pid_tgid() >> 32) as u32;
    if target::is_target(config, parent) {
        debug!((), "process {} starts process {}, which is followed", parent, tgid);
        if TARGETS.insert(tgid, 1, BPF_ANY as u64).is_err() {
            lost(Loss::TargetsFull);
        }
    } else if TARGETS.get_ptr(tgid).is_some() {
        let _ = TARGETS.remove(tgid); // the pid of a target that ended, used again
    }
}

/// `sched_process_exec(struct task_struct *p, pid_t old_pid, struct linux_binprm *bprm)`: a
/// thread that executes takes its leader's id and leaves its own behind.
#[raw_tracepoint(tracepoint = "sched_process_exec")]
pub fn exec(ctx: RawTracePointContext) -> i32 {
    let old: u32 = ctx.arg(1);
    if old != bpf_get_current_pid_tgid() as u32 {
        let _ = THREADS.remove(old);
    }
    // A new program gets a row of its own, under its own name.
    let tgid = (bpf_get_current_pid_tgid() >> 32) as u32;
    let _ = THREADS.remove(tgid);
    let _ = CURRENT.remove(tgid);
    0
}

/// `sched_process_exit(struct task_struct *p)`, for every thread.
#[raw_tracepoint(tracepoint = "sched_process_exit")]
pub fn exit(_: RawTracePointContext) -> i32 {
    let id = bpf_get_current_pid_tgid();
    let (tgid, tid) = ((id >> 32) as u32, id as u32);
    if let Some(thread) = THREADS.get_ptr(tid) {
        // SAFETY: a live map value.
        if unsafe { (*thread).start } != 0 {
            lost(Loss::UnmatchedEntry);
        }
        let _ = THREADS.remove(tid);
    }
    if let Some(config) = config()
        && last_thread(config)
    {
        let _ = CURRENT.remove(tgid);
        if config.follow != 0 {
            target::ended(config, tgid);
        }
    }
    0
}

/// Whether no thread of the current process is left: `signal->live` was counted down before.
#[inline(always)]
fn last_thread(config: &Config) -> bool {
    if config.task_signal == 0 {
        return false;
    }
    // SAFETY: takes no arguments; then: the helper checks the addresses.
    let live = unsafe {
        let task = bpf_get_current_task();
        bpf_probe_read_kernel((task + config.task_signal as u64) as *const u64)
            .and_then(|signal| bpf_probe_read_kernel((signal + config.signal_live as u64) as *const i32))
    };
    matches!(live, Ok(0))
}
