//! Run once by the loader, in its own context, through BPF_PROG_TEST_RUN: tells the caller's
//! ids in the initial pid namespace and where `task_struct` keeps them, without BTF.

use aya_ebpf::{
    helpers::{bpf_get_current_pid_tgid, bpf_get_current_task, bpf_probe_read_kernel},
    macros::raw_tracepoint,
    programs::RawTracePointContext,
};

use crate::{
    maps::{WHOAMI, config},
    target,
};

/// Bytes of `task_struct` that are searched; it is 9.5 KiB on a distribution's 6.12.
const SEARCHED: u32 = 16_384;

#[raw_tracepoint(tracepoint = "sys_enter")]
pub fn whoami(_: RawTracePointContext) -> i32 {
    let Some(answer) = WHOAMI.get_ptr_mut(0) else { return 0 };
    let id = bpf_get_current_pid_tgid();
    // SAFETY: takes no arguments.
    let task = unsafe { bpf_get_current_task() };
    // pid and tgid lie side by side, so together they are the helper's own value.
    let mut found = 0;
    let mut offset = 4u32;
    while offset < SEARCHED {
        // SAFETY: the helper checks the address.
        match unsafe { bpf_probe_read_kernel((task + offset as u64) as *const u64) } {
            Ok(value) if value == id => {
                found = offset;
                break;
            }
            Ok(_) => offset += 4,
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
