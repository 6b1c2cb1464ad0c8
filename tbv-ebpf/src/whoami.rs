//! Run once by the loader, in its own context, through BPF_PROG_TEST_RUN: tells the caller's
//! ids in the initial pid namespace and where `task_struct` keeps them, without BTF.

use aya_ebpf::{
    helpers::{bpf_get_current_pid_tgid, bpf_get_current_task, bpf_probe_read_kernel},
    macros::raw_tracepoint,
    programs::RawTracePointContext,
};

use tbv_common::SEARCHED_AT_ONCE;

use crate::{
    maps::{WHOAMI, config},
    target,
};

#[raw_tracepoint(tracepoint = "sys_enter")]
pub fn whoami(_: RawTracePointContext) -> i32 {
    let Some(answer) = WHOAMI.get_ptr_mut(0) else { return 0 };
    let id = bpf_get_current_pid_tgid();
    // SAFETY: takes no arguments.
    let task = unsafe { bpf_get_current_task() };
    // pid and tgid lie side by side, so together they are the helper's own value. A window at a time: the
    // verifier walks through every round of a loop.
    // SAFETY: a live map value that nothing else uses.
    let begin = unsafe { (*answer).search };
    let mut found = 0;
    for step in 0..SEARCHED_AT_ONCE / 4 {
        let offset = begin as u64 + step as u64 * 4;
        // SAFETY: the helper checks the address.
        match unsafe { bpf_probe_read_kernel((task + offset) as *const u64) } {
            Ok(value) if value == id => {
                found = offset as u32;
                break;
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    let (pid_ns, ns_level) = config().map_or((0, 0), target::namespace);
    // SAFETY: a live map value that nothing else uses.
    unsafe {
        (*answer).pid_ns = pid_ns;
        (*answer).ns_level = ns_level;
        (*answer).pid_tgid = id;
        (*answer).task_pid = found;
        (*answer).ran = 1;
    }
    0
}
