//! The eBPF programs. They count in the kernel and decide nothing: names, percentiles and
//! judgement belong to user space.
//!
//! `uverbs` and `syscalls` are two ways to see the same calls; the loader attaches one hook
//! of them. `driver` sees work requests and completions of our own driver, `provider` what its user space half polls.
//! `process` follows forks and exits, `whoami` answers questions about the caller.
#![no_std]
#![no_main]
#![feature(core_intrinsics)]
#![allow(internal_features)] // the BPF target has no core::sync::atomic read-modify-write

mod atomic;
mod count;
mod decode;
mod device;
mod driver;
mod maps;
mod message;
mod process;
mod provider;
mod syscalls;
mod target;
mod transport;
mod uverbs;
mod whoami;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

// Helpers such as bpf_probe_read_kernel and bpf_ktime_get_ns need a GPL-compatible licence.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
