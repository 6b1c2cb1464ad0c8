//! A software RDMA device over a dummy network interface.

use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow};

use crate::command::must;

/// The device's name.
pub const DEVICE: &str = "rxe0";
/// A second one, see [`set_up_second`].
pub const SECOND: &str = "rxe1";
/// The address of its network interface.
pub const ADDRESS: &str = "10.9.9.1";
/// Index of the GID that holds the address (RoCE v2).
pub const GID_INDEX: &str = "1";

/// Makes the device, once per test program.
pub fn set_up() -> Result<()> {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    DONE.get_or_init(|| make().map_err(|error| format!("{error:#}"))).clone().map_err(|error| anyhow!(error))
}

/// Makes the second device, once per test program.
pub fn set_up_second() -> Result<()> {
    set_up()?;
    if Path::new("/sys/class/infiniband").join(SECOND).exists() {
        return Ok(());
    }
    must(&["ip", "link", "add", "d1", "type", "dummy"])?;
    must(&["ip", "link", "set", "d1", "up"])?;
    must(&["rdma", "link", "add", SECOND, "type", "rxe", "netdev", "d1"]).map(drop)
}

/// The device file of an RDMA device.
pub fn device_file(name: &str) -> Result<String> {
    for entry in std::fs::read_dir("/sys/class/infiniband_verbs")?.flatten() {
        if std::fs::read_to_string(entry.path().join("ibdev")).is_ok_and(|device| device.trim() == name) {
            return Ok(format!("/dev/infiniband/{}", entry.file_name().to_string_lossy()));
        }
    }
    Err(anyhow!("{name} has no device file"))
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
