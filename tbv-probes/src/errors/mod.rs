//! Mistakes made on purpose, and what must come of each.
//!
//! A case makes its own queue pairs, does one thing wrong and says what happened, as a list of [`Outcome`]s; what
//! should have happened stands beside it. What the InfiniBand specification demands is one outcome; what devices are
//! known to answer instead is tolerated unless the run is strict.

mod cases;
mod outcome;
mod stage;

pub use cases::{CASES, Case};
pub use outcome::{Outcome, Step, Verdict};
pub use stage::{Player, Stage};
