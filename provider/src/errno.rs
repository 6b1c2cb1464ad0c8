//! The C library's error number.

use std::ffi::c_int;
use std::ptr::null_mut;

/// Sets `errno` and gives the null pointer that verbs return on failure.
pub(crate) fn fail<T>(errno: c_int) -> *mut T {
    // SAFETY: the location is this thread's own and always writable.
    unsafe { *libc::__errno_location() = errno };
    null_mut()
}

#[cfg(test)]
mod tests {
    #[test]
    fn failing_sets_errno() {
        assert!(super::fail::<u8>(libc::EPROTO).is_null());
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EPROTO));
    }
}
