//! Everything behind tbv's commands: loading and attaching the eBPF programs, snapshots of
//! what they counted, what was lost, and reports. Knows neither a command line nor a terminal.

mod attach;
pub mod budget;
pub mod cgroups;
pub mod devices;
pub mod display;
pub mod doctor;
pub mod driver;
pub mod environment;
pub mod error;
pub mod events;
pub mod fields;
pub mod filter;
pub mod hook;
mod inventory;
mod kprobe_test;
pub mod latency;
mod loaded;
pub mod lockdown;
pub mod loss;
pub mod measurement;
mod merge;
pub mod messages;
mod module_fentry;
pub mod modules;
pub mod names;
mod obstacles;
mod offsets;
pub mod permission;
pub mod recording;
pub mod report;
pub mod result_file;
pub mod ring;
pub mod snapshot;
pub mod spans;
mod sys;
pub mod system;
pub mod tracer;
pub mod uapi;
pub mod usdt;
mod watch;

pub use budget::Budget;
pub use error::{Error, Result};
pub use filter::Filter;
pub use hook::Hook;
pub use names::{Names, OnlyDevices};
pub use report::Report;
pub use sys::{monotonic_ns, pidfd};
pub use tbv_btf as btf;
pub use tbv_common::{
    Event, Handle, HandleKind, Moment, MomentKind, NO_OPCODE, Op, Process, QP_DESTROYED, Queue, Span, Spans,
};
pub use tracer::{Options, StreamOptions, Tracer};
