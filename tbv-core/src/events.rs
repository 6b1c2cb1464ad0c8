//! The stream of single calls.

use aya::{
    Ebpf,
    maps::{MapData, RingBuf},
};
use tbv_common::Event;

use crate::error::{Error, Result};

/// Smallest size of the ring buffer: a page.
pub const RING_MIN: u32 = 4096;
/// Size of the ring buffer unless told otherwise: about 150,000 calls.
pub const RING_DEFAULT: u32 = 8 << 20;
/// Largest size of the ring buffer.
pub const RING_MAX: u32 = 1 << 30;

/// The reading end of the ring buffer.
pub struct Events(RingBuf<MapData>);

impl Events {
    pub(crate) fn take(ebpf: &mut Ebpf) -> Result<Self> {
        let map = ebpf.take_map("EVENTS").ok_or(Error::Missing("EVENTS"))?;
        RingBuf::try_from(map).map(Events).map_err(|e| Error::Map("EVENTS", e))
    }

    /// Adds to `events` what has come since the last time, oldest return first, but at most `limit`.
    pub fn drain(&mut self, events: &mut Vec<Event>, limit: usize) {
        while events.len() < limit
            && let Some(item) = self.0.next()
        {
            debug_assert_eq!(item.len(), size_of::<Event>());
            if item.len() >= size_of::<Event>() {
                // SAFETY: the programs write whole events, which are valid for any bytes.
                events.push(unsafe { item.as_ptr().cast::<Event>().read_unaligned() });
            }
        }
    }
}
