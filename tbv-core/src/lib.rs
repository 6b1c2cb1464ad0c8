//! Everything behind tbv's commands: loading and attaching the eBPF programs, snapshots of
//! what they counted, what was lost, and reports. Knows neither a command line nor a terminal.

mod attach;
pub mod btf;
pub mod devices;
pub mod doctor;
pub mod environment;
pub mod error;
pub mod hook;
pub mod latency;
pub mod loss;
mod module_fentry;
mod offsets;
pub mod permission;
pub mod report;
pub mod snapshot;
mod sys;
pub mod tracer;
pub mod uapi;

pub use error::{Error, Result};
pub use hook::Hook;
pub use report::Report;
pub use tracer::{Options, Tracer};
