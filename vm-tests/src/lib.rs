//! What the tests inside the virtual machine share: a software RDMA device, running commands with
//! a time limit, what strace saw, and what tbv-trace reports.

pub mod calls;
pub mod command;
pub mod doctor;
pub mod driver_trace;
pub mod exact;
pub mod fault;
pub mod hist;
pub mod kernel;
pub mod nobody;
pub mod perftest;
pub mod report;
pub mod rxe;
pub mod scale;
pub mod schema;
pub mod strace;
pub mod strace_line;
pub mod tier;
pub mod usb4;
pub mod without;
mod write_command;
