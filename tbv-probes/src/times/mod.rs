//! Messages of which this program knows how many there were, what became of each, and how long it took.

mod mixed;
mod pair;
mod single;

pub use mixed::mixed;
pub use single::{latency, one_way, rnr};
