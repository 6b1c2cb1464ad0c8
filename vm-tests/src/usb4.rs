//! The two ends of a virtual cable, and our provider for them.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};

use crate::command::{self, Output, Running, must};

/// The devices at the ends of the cable.
pub const DEVICES: [&str; 2] = ["usb4_rdma0", "usb4_rdma1"];

/// Loads the module with one cable unless the devices are there already, once per test program.
pub fn set_up() -> Result<()> {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    DONE.get_or_init(|| load().map_err(|error| format!("{error:#}"))).clone().map_err(|error| anyhow!(error))
}

fn load() -> Result<()> {
    let there = || DEVICES.iter().all(|name| Path::new("/sys/class/infiniband").join(name).exists());
    if !there() {
        let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kmod/thunderbolt_ibverbs.ko");
        ensure!(module.exists(), "{} is not built: run make in kmod", module.display());
        must(&["modprobe", "ib_uverbs"])?;
        must(&["insmod", &module.to_string_lossy(), "loop=1"])?;
    }
    let ready = || Ok(there() && Path::new("/dev/infiniband/uverbs1").exists());
    command::wait_until("usb4_rdma devices", Duration::from_secs(10), ready)
}

/// Starts a verbs program so that libibverbs finds our provider.
pub fn start(words: &[&str]) -> Result<Running> {
    set_up()?;
    let drivers = format!("IBV_DRIVERS={}", provider()?);
    command::start(&[&["env", &drivers], words].concat())
}

/// Runs a verbs program so that libibverbs finds our provider.
pub fn run(words: &[&str], limit: Duration) -> Result<Output> {
    start(words)?.finish(limit)
}

/// The provider as `IBV_DRIVERS` names it, without what libibverbs appends: the runner's, or the one built with this
/// test.
fn provider() -> Result<String> {
    if let Ok(drivers) = env::var("IBV_DRIVERS") {
        return Ok(drivers);
    }
    let test = env::current_exe()?;
    let profile: PathBuf = test.ancestors().nth(2).context("a test lies in target/<profile>/deps")?.into();
    Ok(profile.join("libusb4_rdma").to_string_lossy().into_owned())
}
