//! Types that the eBPF programs and user space share: what an operation is, the map
//! layouts, the histogram buckets and the loss counters.
#![no_std]

pub mod histogram;
pub mod loss;
pub mod maps;
pub mod message;
pub mod op;
pub mod probes;

pub use histogram::Bucket;
pub use loss::Loss;
pub use maps::*;
pub use message::*;
pub use op::{Entry, Op};
pub use probes::*;
