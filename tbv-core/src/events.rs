//! The streams of single calls and of what happens to messages.

use tbv_common::{Event, Moment};

use crate::ring::Ring;

/// Smallest size of a ring buffer: a page.
pub const RING_MIN: u32 = 4096;
/// Size of a ring buffer unless told otherwise: about 150,000 calls.
pub const RING_DEFAULT: u32 = 8 << 20;
/// Largest size of a ring buffer.
pub const RING_MAX: u32 = 1 << 30;

/// Calls in the order of their returns.
pub type Events = Ring<Event>;
/// What happens to messages, in its order.
pub type Moments = Ring<Moment>;
