//! Consumer of completion queues that `thunderbolt_ibverbs.ko` publishes to user space.
//!
//! The layout and who writes what is in `proto/tbv_cq_shm.h`. Any number of threads may poll one queue: each copies
//! what it finds, and then says so by compare-and-swap. Who is too late drops its copies and looks again.

#[cfg(not(loom))]
mod mapped;
mod poll;

#[cfg(not(loom))]
pub use mapped::Mapped;
pub use poll::{Consumer, Entry, Memory, Nothing, Taken, WORDS};

#[cfg(loom)]
pub use loom::sync::atomic;
#[cfg(not(loom))]
pub use std::sync::atomic;
