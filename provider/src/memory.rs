//! Memory of the objects that applications and libibverbs hold pointers to.

use crate::errno;

/// A zeroed object, or null with `errno` set.
///
/// # Safety
/// All-zero bytes are a valid `T`.
pub(crate) unsafe fn zeroed<T>() -> *mut T {
    // SAFETY: calloc has no preconditions.
    let object = unsafe { libc::calloc(1, size_of::<T>()) }.cast::<T>();
    if object.is_null() { errno::fail(libc::ENOMEM) } else { object }
}

/// Frees what [`zeroed`] or libibverbs' allocator gave.
///
/// # Safety
/// Nothing refers to the object any more.
pub(crate) unsafe fn free<T>(object: *mut T) {
    // SAFETY: it came from the C allocator, and the caller gives it up.
    unsafe { libc::free(object.cast()) }
}
