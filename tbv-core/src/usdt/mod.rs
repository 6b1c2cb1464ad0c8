//! The provider's probes (USDT, `tbv_proto::PROBES`): found in its file and attached to, for what polling does where it
//! never enters the kernel. aya attaches to an offset in a file; what a note says of arguments is parsed here and
//! handed to the programs as a table (`PROBE_SITES`).

mod arguments;
mod attach;
mod find;
mod notes;

pub use find::{find, find_anywhere};
pub use notes::{Marker, markers};

pub(crate) use attach::{PROGRAMS, attach, without_driver, without_ring_first};
