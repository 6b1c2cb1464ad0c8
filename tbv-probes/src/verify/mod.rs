//! Moves messages whose every byte is checked, on both sides, with the bytes around them.

mod burst;
mod layout;
mod plan;
mod runner;

pub use layout::Layout;
pub use plan::{Message, random_message, sweep_sizes};
pub use runner::{Runner, Settings, Totals};
