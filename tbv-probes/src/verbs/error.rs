//! What went wrong, in words.

use std::fmt;
use std::io;

use tbv_verbs_sys as sys;

/// Why a probe can't go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A verb failed with this errno value.
    Verb { verb: &'static str, errno: i32 },
    /// The machine has no such device.
    NoDevice { wanted: Option<String>, found: Vec<String> },
    /// The device or port can't be used for this.
    Unusable(String),
    /// Nothing happened for too long.
    Timeout(String),
    /// What happened is not what should have.
    Wrong(String),
}

impl Error {
    /// A verb that set `errno`.
    pub(crate) fn last(verb: &'static str) -> Self {
        Self::Verb { verb, errno: io::Error::last_os_error().raw_os_error().unwrap_or(0) }
    }

    /// Passes a verb's return value on as a result.
    pub(crate) fn check(verb: &'static str, errno: i32) -> Result<(), Self> {
        if errno == 0 { Ok(()) } else { Err(Self::Verb { verb, errno }) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Verb { verb, errno } => {
                write!(f, "{verb} failed: {}", errno_name(*errno))?;
                match (*verb, *errno) {
                    ("ibv_reg_mr", libc::ENOMEM) => {
                        write!(f, "; raise the limit of locked memory (ulimit -l)")
                    }
                    ("ibv_open_device", libc::EPROTONOSUPPORT) => {
                        write!(f, "; its provider does not fit the kernel module")
                    }
                    ("ibv_open_device", _) => write!(f, "; may this user open /dev/infiniband/uverbs*?"),
                    _ => Ok(()),
                }
            }
            Self::NoDevice { wanted: Some(name), found } if !found.is_empty() => {
                write!(f, "no RDMA device {name}; there are {}", found.join(", "))
            }
            Self::NoDevice { .. } => {
                write!(
                    f,
                    "no RDMA device; is its kernel module loaded and its provider found (IBV_SHOW_WARNINGS=1)?"
                )
            }
            Self::Unusable(text) | Self::Timeout(text) | Self::Wrong(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

/// An errno value by name, with what the C library says about it.
pub fn errno_name(errno: i32) -> String {
    let name = match errno {
        0 => return "success".into(),
        libc::EAGAIN => "EAGAIN",
        libc::EBUSY => "EBUSY",
        libc::EFAULT => "EFAULT",
        libc::EINVAL => "EINVAL",
        libc::EIO => "EIO",
        libc::ENOMEM => "ENOMEM",
        libc::ENOSPC => "ENOSPC",
        libc::EOPNOTSUPP => "EOPNOTSUPP",
        libc::EPERM => "EPERM",
        _ => return format!("errno {errno}, {}", io::Error::from_raw_os_error(errno)),
    };
    name.into()
}

/// A completion status by the name that the verbs header gives it.
pub fn status_name(status: u32) -> String {
    let name = match status {
        sys::IBV_WC_SUCCESS => "SUCCESS",
        sys::IBV_WC_LOC_LEN_ERR => "LOC_LEN_ERR",
        sys::IBV_WC_LOC_QP_OP_ERR => "LOC_QP_OP_ERR",
        sys::IBV_WC_LOC_PROT_ERR => "LOC_PROT_ERR",
        sys::IBV_WC_WR_FLUSH_ERR => "WR_FLUSH_ERR",
        sys::IBV_WC_REM_INV_REQ_ERR => "REM_INV_REQ_ERR",
        sys::IBV_WC_REM_ACCESS_ERR => "REM_ACCESS_ERR",
        sys::IBV_WC_REM_OP_ERR => "REM_OP_ERR",
        sys::IBV_WC_RETRY_EXC_ERR => "RETRY_EXC_ERR",
        sys::IBV_WC_RNR_RETRY_EXC_ERR => "RNR_RETRY_EXC_ERR",
        other => return format!("status {other}"),
    };
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_and_what_to_do() {
        let error = Error::Verb { verb: "ibv_reg_mr", errno: libc::ENOMEM };
        assert_eq!(
            error.to_string(),
            "ibv_reg_mr failed: ENOMEM; raise the limit of locked memory (ulimit -l)"
        );
        let error = Error::NoDevice { wanted: Some("x0".into()), found: vec!["a0".into(), "b0".into()] };
        assert_eq!(error.to_string(), "no RDMA device x0; there are a0, b0");
        assert!(Error::check("ibv_post_send", 0).is_ok());
        assert!(Error::check("ibv_post_send", libc::EPROTO).is_err_and(|e| e.to_string().contains("71")));
    }
}
