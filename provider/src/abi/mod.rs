//! rdma-core's private provider interface (private ABI 34), as far as the provider uses it.
//!
//! Facts from `libibverbs/driver.h` and `libibverbs/kern-abi.h`; the tests compile those headers and compare. Names
//! are rdma-core's.

#![allow(non_camel_case_types)]

mod commands;
mod context;
mod device;
mod functions;
#[cfg(test)]
mod tests;

pub(crate) use commands::*;
pub(crate) use context::*;
pub(crate) use device::*;
pub(crate) use functions::*;
