//! One completion queue and everything that may happen to it: several threads, overflow, hostile writes, forks, waits
//! for events, sudden ends.

mod access;
mod events;
mod extended;
mod fork;
mod gone;
mod hostile;
mod lane;
mod left;
mod load;
mod overflow;
mod threads;

pub use access::{access, write_ring};
pub use events::events;
pub use extended::extended;
pub use fork::fork;
pub use gone::gone;
pub use hostile::hostile;
pub use lane::Lane;
pub use left::left;
pub use load::{Ending, load};
pub use overflow::overflow;
pub use threads::threads;

use std::time::{Duration, Instant};

use crate::verbs::Error;

/// After this much time without progress something is wrong.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// For how long nothing has come.
pub(crate) struct Patience(Instant);

impl Patience {
    pub(crate) fn new() -> Self {
        Patience(Instant::now())
    }

    /// Told whether the last round brought anything. If not, lets others run; an error if that has gone on for too
    /// long.
    pub(crate) fn after(&mut self, progress: bool, what: &str) -> Result<(), Error> {
        if progress {
            *self = Self::new();
            return Ok(());
        }
        std::thread::yield_now();
        if self.0.elapsed() < PATIENCE {
            return Ok(());
        }
        Err(Error::Timeout(format!("{what}: nothing for {} seconds", PATIENCE.as_secs())))
    }
}

/// An error unless what should be is so.
pub(crate) fn must(so: bool, what: impl FnOnce() -> String) -> Result<(), Error> {
    if so { Ok(()) } else { Err(Error::Wrong(what())) }
}
