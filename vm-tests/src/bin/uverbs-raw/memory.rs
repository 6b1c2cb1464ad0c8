//! Memory for requests: kept for good, cut off by an unmapped page, or not in core yet.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};

use anyhow::{Context, Result};

const PAGE: usize = 4096;

/// An address that nothing is mapped at, inside the range of user addresses.
pub(crate) const UNMAPPED: usize = 0x10;
/// An address of the kernel's half.
pub(crate) const KERNEL: usize = 0xffff_8880_0000_0000;

/// `bytes`, aligned to 8, for as long as the process lives.
pub(crate) fn keep(bytes: &[u8]) -> usize {
    let mut words = vec![0u64; bytes.len().div_ceil(8).max(1)];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks(8)) {
        let mut padded = [0; 8];
        padded.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
        *word = u64::from_ne_bytes(padded);
    }
    Box::leak(words.into_boxed_slice()).as_ptr() as usize
}

/// Room for `size` bytes of response, for as long as the process lives.
pub(crate) fn room(size: usize) -> u64 {
    keep(&vec![0; size]) as u64
}

/// The first `mapped` of `bytes` at the end of a page, with nothing mapped behind it.
pub(crate) fn cut_off(bytes: &[u8], mapped: usize) -> Result<usize> {
    let kept = bytes.get(..mapped).context("more mapped bytes than bytes")?;
    let start = map(2 * PAGE, libc::MAP_ANONYMOUS, -1)?;
    // SAFETY: both pages were just mapped; the first keeps `mapped` ≤ 4096 bytes at its end.
    unsafe {
        if libc::munmap((start + PAGE) as *mut _, PAGE) != 0 {
            return Err(std::io::Error::last_os_error()).context("munmap");
        }
        let address = start + PAGE - mapped;
        std::ptr::copy_nonoverlapping(kept.as_ptr(), address as *mut u8, mapped);
        Ok(address)
    }
}

/// A page that is mapped but has not been touched, so that only a page fault brings it in.
pub(crate) struct Untouched(usize);

/// `bytes` in such a page.
pub(crate) fn untouched(bytes: &[u8]) -> Result<Untouched> {
    // SAFETY: the name is a C string; the descriptor has no other owner.
    let mut file = unsafe {
        let fd = libc::memfd_create(c"request".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return Err(std::io::Error::last_os_error()).context("memfd_create");
        }
        File::from_raw_fd(fd)
    };
    file.write_all(bytes)?;
    Ok(Untouched(map(PAGE, 0, file.as_raw_fd())?))
}

impl Untouched {
    pub(crate) fn address(&self) -> usize {
        self.0
    }
}

impl Drop for Untouched {
    fn drop(&mut self) {
        // SAFETY: the page is this value's own.
        unsafe { libc::munmap(self.0 as *mut _, PAGE) };
    }
}

fn map(size: usize, flags: libc::c_int, fd: libc::c_int) -> Result<usize> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping touches no existing memory.
    let address =
        unsafe { libc::mmap(std::ptr::null_mut(), size, protection, libc::MAP_PRIVATE | flags, fd, 0) };
    if address == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error()).context("mmap");
    }
    Ok(address as usize)
}
