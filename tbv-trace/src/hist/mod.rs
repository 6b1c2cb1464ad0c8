//! Latency distributions of a report, in every form that `tbv-trace hist` writes.

// Until the command is there, only tests call these; whoever adds it removes this line.
#![cfg_attr(not(test), expect(dead_code))]

mod counters;
pub(crate) mod csv;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod golden;
pub(crate) mod hdr;
pub(crate) mod heatmap;
pub(crate) mod openmetrics;
mod queues;
pub(crate) mod rows;
pub(crate) mod text;
