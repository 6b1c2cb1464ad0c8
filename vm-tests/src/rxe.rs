//! A software RDMA device over a dummy network interface.

use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow};

use crate::command::must;

/// The device's name.
pub const DEVICE: &str = "rxe0";
/// The address of its network interface.
pub const ADDRESS: &str = "10.9.9.1";
/// Index of the GID that holds the address (RoCE v2).
pub const GID_INDEX: &str = "1";

/// Makes the device, once per test program.
pub fn set_up() -> Result<()> {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    DONE.get_or_init(|| make().map_err(|error| format!("{error:#}"))).clone().map_err(|error| anyhow!(error))
}

fn make() -> Result<()> {
    let unlimited = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the pointer is to a valid rlimit.
    if unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &unlimited) } != 0 {
        return Err(std::io::Error::last_os_error()).context("RLIMIT_MEMLOCK");
    }
    if Path::new("/sys/class/infiniband").join(DEVICE).exists() {
        return Ok(());
    }
    let address = format!("{ADDRESS}/24");
    for words in [
        &["modprobe", "rdma_rxe"] as &[&str],
        &["ip", "link", "add", "d0", "type", "dummy"],
        &["ip", "addr", "add", &address, "dev", "d0"],
        &["ip", "link", "set", "d0", "up"],
        &["ip", "link", "set", "lo", "up"],
        &["rdma", "link", "add", DEVICE, "type", "rxe", "netdev", "d0"],
    ] {
        must(words)?;
    }
    Ok(())
}
