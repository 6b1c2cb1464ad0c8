//! The cases by subject.

mod completion_queue;
mod connection;
mod memory;
mod objects;
mod state;

use super::{Stage, Step};
use crate::verbs::Error;

/// A mistake.
pub struct Case {
    pub name: &'static str,
    pub about: &'static str,
    pub play: fn(&Stage) -> Result<Vec<Step>, Error>,
}

/// All of them, in the order in which they are played.
pub const CASES: &[&[Case]] =
    &[memory::CASES, state::CASES, connection::CASES, completion_queue::CASES, objects::CASES];
