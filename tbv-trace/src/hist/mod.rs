//! Latency distributions of a report, in every form that `tbv-trace hist` writes.

pub(crate) mod command;
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

pub(crate) use rows::By;
