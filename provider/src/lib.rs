//! libibverbs provider of the `usb4_rdma` devices.
//!
//! libibverbs loads `libusb4_rdma-rdmav<PABI>.so` by name (from its driver folder, or from anywhere through
//! `IBV_DRIVERS`), and the constructor below registers [`device::OPS`]. Verbs go to the kernel through
//! libibverbs' own `ibv_cmd_*` functions; only the completions of a queue that the kernel publishes are taken from
//! memory ([`published`]).
//!
//! Conventions are rdma-core's: verbs return an errno value, verbs that return a pointer set `errno`, polling returns
//! a negative number. Entry points are `extern "C"`, out of which Rust never unwinds: a panic would abort the
//! process, and the workspace's lints deny the usual ways to panic.

mod abi;
mod batch;
mod context;
mod cq;
mod device;
mod errno;
mod extended;
mod fork;
mod mapping;
mod memory;
mod mr;
mod pd;
mod probes;
mod published;
mod qp;
mod version;

#[cfg(test)]
#[path = "../build/pabi.rs"]
mod pabi;

/// Runs when the library is loaded.
#[cfg(not(test))]
extern "C" fn register() {
    // SAFETY: the operations are a static, and libibverbs calls constructors of drivers in one thread.
    unsafe { abi::verbs_register_driver(&raw const device::OPS) }
}

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static REGISTER: extern "C" fn() = register;
