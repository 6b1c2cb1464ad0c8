//! Names of errno values.

use std::borrow::Cow;

use nix::errno::Errno;

/// `EINVAL` for 22: the name of an errno value as the caller of the system call sees it.
///
/// A kernel function may return values that never reach user space under their own name:
/// `ENOIOCTLCMD` (515), which the ioctl system call turns into `ENOTTY`, and the restart codes of
/// `include/linux/errno.h`. `ENOTSUPP` (524) does reach user space, and has a name only in the kernel.
/// Values without a name are `ERRNO_<n>`.
pub fn errno_name(errno: u32) -> Cow<'static, str> {
    match errno {
        512 => "ERESTARTSYS".into(),
        513 => "ERESTARTNOINTR".into(),
        514 => "ERESTARTNOHAND".into(),
        515 => "ENOTTY".into(),
        516 => "ERESTART_RESTARTBLOCK".into(),
        524 => "ENOTSUPP".into(),
        _ => match i32::try_from(errno).map(Errno::from_raw) {
            Ok(Errno::UnknownErrno) | Err(_) => format!("ERRNO_{errno}").into(),
            Ok(known) => format!("{known:?}").into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (errno, name) in [
            (libc::EINVAL as u32, "EINVAL"),
            (libc::EOPNOTSUPP as u32, "EOPNOTSUPP"),
            (libc::EPROTONOSUPPORT as u32, "EPROTONOSUPPORT"),
            (515, "ENOTTY"),
            (524, "ENOTSUPP"),
            (4095, "ERRNO_4095"),
            (u32::MAX, "ERRNO_4294967295"),
        ] {
            assert_eq!(errno_name(errno), name);
        }
    }
}
