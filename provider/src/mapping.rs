//! Memory shared with the kernel.

use std::ffi::c_int;
use std::io;
use std::ptr::{NonNull, null_mut};

/// A mapping, undone when dropped.
pub(crate) struct Mapping {
    address: NonNull<libc::c_void>,
    length: usize,
}

// SAFETY: an address and a length; what is there is the business of who uses it.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `length` bytes of a file that is shared.
    pub(crate) fn shared(fd: c_int, offset: u64, length: usize, protection: c_int) -> io::Result<Self> {
        let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
        Self::new(length, protection, libc::MAP_SHARED, fd, offset)
    }

    /// Maps zeroed memory.
    pub(crate) fn anonymous(length: usize) -> io::Result<Self> {
        Self::new(length, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    }

    fn new(
        length: usize,
        protection: c_int,
        flags: c_int,
        fd: c_int,
        offset: libc::off_t,
    ) -> io::Result<Self> {
        // SAFETY: the kernel chooses a place where nothing is.
        let address = unsafe { libc::mmap(null_mut(), length, protection, flags, fd, offset) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        match NonNull::new(address) {
            Some(address) => Ok(Mapping { address, length }),
            None => Err(io::Error::other("mapped at address zero")),
        }
    }

    pub(crate) fn start<T>(&self) -> NonNull<T> {
        self.address.cast()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by new(), and nobody uses it any more.
        unsafe { libc::munmap(self.address.as_ptr(), self.length) };
    }
}

/// Bytes of a page.
pub(crate) fn page_size() -> usize {
    // SAFETY: no preconditions.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}
