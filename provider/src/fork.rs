//! Whether this process is a child of the one that opened a queue.
//!
//! The kernel doesn't map published queues into a child, so it must not touch them. A page that the kernel wipes at a
//! fork tells, however the child was made, and costs one load.

use std::io;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::mapping::{Mapping, page_size};

/// The page of this process; a child finds its parent's, wiped.
static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(null_mut());

/// Not zero in the process that got it, zero in its children. Pages are never unmapped, for queues refer to them.
pub(crate) fn mark() -> io::Result<&'static AtomicU64> {
    loop {
        let page = PAGE.load(Ordering::Acquire);
        // SAFETY: null, or a page that stays mapped.
        if let Some(mark) = unsafe { page.as_ref() }
            && mark.load(Ordering::Relaxed) != 0
        {
            return Ok(mark);
        }
        let mapping = Mapping::anonymous(page_size())?;
        let mark: NonNull<AtomicU64> = mapping.start();
        // SAFETY: the page that was just mapped.
        unsafe {
            if libc::madvise(mark.as_ptr().cast(), page_size(), libc::MADV_WIPEONFORK) != 0 {
                return Err(io::Error::last_os_error());
            }
            mark.as_ref().store(1, Ordering::Relaxed);
        }
        // If another thread was faster, its page serves, and this one is unmapped.
        if PAGE.compare_exchange(page, mark.as_ptr(), Ordering::AcqRel, Ordering::Acquire).is_ok() {
            std::mem::forget(mapping);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_sees_that_it_is_one() {
        let ours = mark().unwrap();
        assert_eq!(mark().unwrap() as *const _, ours as *const _);
        // SAFETY: the child only loads, maps a page, and exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let wiped = ours.load(Ordering::Relaxed) == 0;
            let own = mark().is_ok_and(|mark| mark.load(Ordering::Relaxed) != 0);
            // SAFETY: ends the child without running anything of its parent's.
            unsafe { libc::_exit(if wiped && own { 0 } else { 1 }) };
        }
        let mut status = -1;
        // SAFETY: our own child.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
        assert_ne!(ours.load(Ordering::Relaxed), 0);
    }
}
