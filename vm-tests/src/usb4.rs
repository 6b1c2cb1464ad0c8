//! The two ends of a virtual cable, and our provider for them.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};

use crate::command::{self, LIMIT, Output, Running, must};
use crate::fault::counter;
use crate::{kernel, perftest};

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
    command::wait_until("usb4_rdma devices", LIMIT, ready)
}

/// Loads the module anew, after it was unloaded.
pub fn reload() -> Result<()> {
    let module = env::var("TBV_KMOD")
        .context("TBV_KMOD is not set: run this by `cargo xtask vm` without --no-kmod")?;
    insert(&module, &[])
}

/// Loads the test double of the module, after the real one was unloaded.
pub fn load_double(parameter: &str) -> Result<()> {
    let module = doubles()?.join("kmod/thunderbolt_ibverbs.ko");
    ensure!(module.is_file(), "{} is not built: `cargo xtask test` does that", module.display());
    insert(&module.to_string_lossy(), &[parameter])
}

fn insert(module: &str, parameters: &[&str]) -> Result<()> {
    must(&[&["insmod", module, "loop=1"], parameters].concat())?;
    devices_are_there()
}

/// Waits for the devices' files.
pub fn devices_are_there() -> Result<()> {
    command::wait_until("the devices", LIMIT, || Ok(Path::new("/dev/infiniband/uverbs1").exists()))
}

/// Where `cargo xtask test` puts test doubles.
fn doubles() -> Result<PathBuf> {
    let own = env::current_exe()?;
    Ok(own.ancestors().nth(3).context("a test lies in target/<profile>/deps")?.join("doubles"))
}

/// The variable that makes libibverbs load a test double of the provider.
pub fn double(name: &str) -> Result<String> {
    let folder = doubles()?.join(name);
    ensure!(folder.is_dir(), "{} is not built: `cargo xtask test` does that", folder.display());
    Ok(format!("IBV_DRIVERS={}", folder.join("libusb4_rdma").display()))
}

/// The number of objects that the devices hold: contexts, PDs, MRs, CQs and QPs.
pub fn live() -> Result<u64> {
    DEVICES.iter().map(|device| counter(device, "live")).sum()
}

/// Both sides of ib_send_bw, for longer than any test lasts, once objects exist on both devices; completions are polled
/// in this `way`, `mapped` or `ioctl`.
pub fn traffic(way: &str) -> Result<Running> {
    let [server, client] = DEVICES;
    let script = format!(
        "export USB4_RDMA_CQ={way}
        {}ib_send_bw -F -d {client} -s 4096 -n 100000000 127.0.0.1 >/dev/null 2>&1 &
        wait",
        perftest::server(&format!("ib_send_bw -F -d {server} -s 4096 -n 100000000 2>/dev/null"))
    );
    let running = start(&["sh", "-c", &script])?;
    command::wait_until("traffic", LIMIT, || {
        Ok(counter(server, "live")? > 3 && counter(client, "live")? > 3)
    })?;
    Ok(running)
}

/// Kills traffic and waits until nothing of it is left: no object, no process.
pub fn kill(traffic: Running) -> Result<()> {
    ensure!(live()? > 0, "nothing to kill");
    traffic.signal_group(libc::SIGKILL)?;
    let mut left = 0;
    command::wait_until("the objects' end", LIMIT, || {
        left = live()?;
        Ok(left == 0)
    })
    .with_context(|| format!("{left} objects left"))?;
    command::wait_until("the clients' end", LIMIT, || Ok(!kernel::running("ib_send_bw")?))
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
