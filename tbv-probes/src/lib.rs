//! What the verbs programs of this package share.
//!
//! [`verbs`] wraps the objects of libibverbs, [`pair`] connects two queue pairs, [`verify`] moves messages whose every
//! byte is checked, [`errors`] makes mistakes on purpose, [`queue`] has several threads at one completion queue, [`times`] knows what it
//! posted and when. They work on any device with reliable connections.

pub mod cli;
pub mod errors;
pub mod pair;
pub mod queue;
pub mod random;
pub mod times;
pub mod verbs;
pub mod verify;
