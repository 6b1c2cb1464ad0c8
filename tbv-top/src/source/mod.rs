//! Where intervals come from: the kernel, or a recording.

pub mod calls;
pub mod live;
pub mod modules;
pub mod recorder;
pub mod replay;
