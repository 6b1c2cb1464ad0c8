//! Reading what the programs put into a ring buffer, one element after the other.

use std::marker::PhantomData;

use aya::{
    Ebpf, Pod,
    maps::{MapData, RingBuf},
};

use crate::error::{Error, Result};

/// The reading end of a ring buffer of `T`s.
pub struct Ring<T> {
    ring: RingBuf<MapData>,
    of: PhantomData<T>,
}

impl<T: Pod> Ring<T> {
    pub(crate) fn take(ebpf: &mut Ebpf, name: &'static str) -> Result<Self> {
        let map = ebpf.take_map(name).ok_or(Error::Missing(name))?;
        let ring = RingBuf::try_from(map).map_err(|e| Error::Map(name, e))?;
        Ok(Ring { ring, of: PhantomData })
    }

    /// Adds to `read` what has come since the last time, oldest first, but so that it holds at most `limit`.
    pub fn drain(&mut self, read: &mut Vec<T>, limit: usize) {
        while read.len() < limit
            && let Some(item) = self.ring.next()
        {
            debug_assert_eq!(item.len(), size_of::<T>());
            if item.len() >= size_of::<T>() {
                // SAFETY: the programs write whole elements, which are valid for any bytes.
                read.push(unsafe { item.as_ptr().cast::<T>().read_unaligned() });
            }
        }
    }
}
