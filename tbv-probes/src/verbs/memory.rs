//! Memory that a device reads and writes.

use std::ffi::c_int;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::rc::Rc;

use tbv_verbs_sys as sys;

use super::{Error, Pd, Sge};

/// Pages between two pages that nobody may touch. A device writes here behind the compiler's back, so bytes are only
/// copied in and out.
pub struct Region {
    map: NonNull<u8>,
    mapped: usize,
    guard: usize,
    len: usize,
}

impl Region {
    /// Memory for at least this many bytes.
    pub fn new(bytes: usize) -> Result<Rc<Self>, Error> {
        // SAFETY: no preconditions.
        let guard = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let len = bytes.max(1).next_multiple_of(guard);
        let mapped = len + 2 * guard;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping.
        let map = unsafe { libc::mmap(ptr::null_mut(), mapped, libc::PROT_NONE, flags, -1, 0) };
        let map = NonNull::new(map.cast::<u8>()).filter(|_| map != libc::MAP_FAILED);
        let region = Self { map: map.ok_or_else(|| Error::last("mmap"))?, mapped, guard, len };
        region.protect(libc::PROT_READ | libc::PROT_WRITE)?;
        Ok(Rc::new(region))
    }

    /// Changes how the pages between the guards may be used.
    pub fn protect(&self, protection: c_int) -> Result<(), Error> {
        // SAFETY: pages of this mapping; all access is by copies below and by devices.
        if unsafe { libc::mprotect(self.start().cast(), self.len, protection) } != 0 {
            return Err(Error::last("mprotect"));
        }
        Ok(())
    }

    pub fn size(&self) -> usize {
        self.len
    }

    /// Address of a byte, which may lie outside: some tests want that.
    pub fn address(&self, offset: usize) -> u64 {
        (self.start() as u64).wrapping_add(offset as u64)
    }

    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), Error> {
        self.check(offset..offset.saturating_add(bytes.len()))?;
        // SAFETY: inside, as checked; the source is ours.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start().add(offset), bytes.len()) };
        Ok(())
    }

    pub fn read(&self, range: Range<usize>) -> Result<Vec<u8>, Error> {
        self.check(range.clone())?;
        let mut bytes = vec![0; range.len()];
        // SAFETY: inside, as checked; the destination is ours.
        unsafe { ptr::copy_nonoverlapping(self.start().add(range.start), bytes.as_mut_ptr(), bytes.len()) };
        Ok(bytes)
    }

    fn check(&self, range: Range<usize>) -> Result<(), Error> {
        if range.start <= range.end && range.end <= self.len {
            return Ok(());
        }
        Err(Error::Wrong(format!(
            "this program meant to use bytes {range:?} of {}: please report it",
            self.len
        )))
    }

    fn start(&self) -> *mut u8 {
        // SAFETY: the guard page is part of the mapping.
        unsafe { self.map.as_ptr().add(self.guard) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: this mapping; registrations of it held a reference.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.mapped) };
    }
}

/// A registered region.
pub struct Mr {
    raw: *mut sys::ibv_mr,
    region: Rc<Region>,
    _pd: Rc<Pd>,
}

impl Mr {
    /// Registers the whole region.
    pub fn new(pd: &Rc<Pd>, region: &Rc<Region>, access: u32) -> Result<Self, Error> {
        Self::part(pd, region, 0..region.size(), access)
    }

    /// Registers a part of a region; one that reaches outside is for the kernel to refuse.
    pub fn part(pd: &Rc<Pd>, region: &Rc<Region>, range: Range<usize>, access: u32) -> Result<Self, Error> {
        let address = region.start().wrapping_add(range.start);
        // SAFETY: a live PD; the kernel checks the range, and the pages stay mapped as long as this registration.
        let raw = unsafe { sys::ibv_reg_mr(pd.raw, address.cast(), range.len(), access as c_int) };
        if raw.is_null() {
            return Err(Error::last("ibv_reg_mr"));
        }
        Ok(Self { raw, region: Rc::clone(region), _pd: Rc::clone(pd) })
    }

    pub fn lkey(&self) -> u32 {
        // SAFETY: a live MR.
        unsafe { (*self.raw).lkey }
    }

    pub fn region(&self) -> &Rc<Region> {
        &self.region
    }

    /// A piece of the region, for a scatter/gather list.
    pub fn sge(&self, range: Range<usize>) -> Sge {
        Sge { addr: self.region.address(range.start), length: range.len() as u32, lkey: self.lkey() }
    }
}

impl Drop for Mr {
    fn drop(&mut self) {
        // SAFETY: a live MR.
        unsafe { sys::ibv_dereg_mr(self.raw) };
    }
}

#[cfg(test)]
mod tests {
    use super::Region;

    #[test]
    fn bytes_are_copied_in_and_out() {
        let region = Region::new(100).unwrap();
        assert!(region.size() >= 100 && region.size().is_multiple_of(4096));
        region.write(region.size() - 3, b"tbv").unwrap();
        assert_eq!(region.read(region.size() - 4..region.size()).unwrap(), b"\0tbv");
        assert_eq!(region.address(5) - region.address(0), 5);
    }

    #[test]
    fn nothing_outside_is_touched() {
        let region = Region::new(1).unwrap();
        let size = region.size();
        assert!(region.write(size - 1, b"ab").is_err());
        assert!(region.write(usize::MAX, b"a").is_err());
        assert!(region.read(0..size + 1).is_err());
    }
}
