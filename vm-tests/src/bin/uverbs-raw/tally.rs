//! What was sent, and what came back.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;

use anyhow::Result;
use nix::errno::Errno;
use serde_json::json;

use crate::cases::{Action, Case};
use crate::memory;

/// Entry point, operation and errno (0: success) → calls.
#[derive(Default)]
pub(crate) struct Tally(BTreeMap<(&'static str, &'static str, i32), u64>);

impl Tally {
    /// Sends one call and counts it.
    pub(crate) fn send(&mut self, case: &Case, file: &File) -> Result<()> {
        let fd = file.as_raw_fd();
        // SAFETY: the addresses are memory that lives until the process ends, or are meant to be bad.
        let returned = unsafe {
            match &case.action {
                Action::Ioctl { number, address } => i64::from(libc::ioctl(fd, *number, *address)),
                Action::IoctlInFreshPage { number, request } => {
                    let page = memory::untouched(request)?;
                    let returned = libc::ioctl(fd, *number, page.address());
                    i64::from(returned)
                }
                Action::Write { address, size } => libc::write(fd, *address as *const _, *size) as i64,
            }
        };
        let errno = if returned < 0 { Errno::last_raw() } else { 0 };
        let entry = if matches!(case.action, Action::Write { .. }) { "write" } else { "ioctl" };
        *self.0.entry((entry, case.op, errno)).or_default() += 1;
        Ok(())
    }

    /// Adds another thread's calls.
    pub(crate) fn add(&mut self, other: Self) {
        for (key, count) in other.0 {
            *self.0.entry(key).or_default() += count;
        }
    }

    /// One JSON object a line.
    pub(crate) fn to_json_lines(&self) -> String {
        let pid = std::process::id();
        self.0
            .iter()
            .map(|((entry, op, errno), count)| {
                let errno = (*errno != 0).then(|| name(*errno));
                format!("{}\n", json!({"pid": pid, "entry": entry, "op": op, "errno": errno, "count": count}))
            })
            .collect()
    }
}

fn name(errno: i32) -> String {
    match Errno::from_raw(errno) {
        Errno::UnknownErrno => format!("ERRNO_{errno}"),
        known => format!("{known:?}"),
    }
}
