//! The driver while it comes, goes and loses its users: nothing may be left behind. The runner
//! fails the whole guest on any WARN, BUG or Oops.
#![cfg(feature = "vm")]

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use vm_tests::command::LIMIT;
use vm_tests::{command, tier, usb4};

/// How often it is done.
fn rounds() -> u64 {
    tier::pick(4, 10)
}

/// The module that is loaded now works.
fn moves_data() -> Result<()> {
    let [device, peer] = usb4::DEVICES;
    usb4::run(&["rc-verify", "-d", device, "-p", peer, "--count", "20"], LIMIT)?.success()?;
    Ok(())
}

/// Milliseconds that differ from round to round and from run to run.
fn random_ms(round: u64) -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (u64::from(now.subsec_nanos()) / 1000 + round * 7919) % 1500
}

#[test]
fn killed_clients_leave_no_object() -> Result<()> {
    usb4::set_up()?;
    for round in 0..rounds() {
        let running = usb4::traffic("mapped")?;
        let wait = random_ms(round);
        std::thread::sleep(Duration::from_millis(wait));
        usb4::kill(running).with_context(|| format!("round {round}, killed after {wait} ms"))?;
    }
    Ok(())
}

#[test]
fn rmmod_with_open_contexts_and_traffic_works_and_the_module_comes_back() -> Result<()> {
    usb4::set_up()?;
    let running = usb4::traffic("mapped")?;
    ensure!(usb4::live()? > 0, "nothing is open");
    command::run(&["rmmod", "thunderbolt_ibverbs"], LIMIT)?.success()?;
    ensure!(!PathBuf::from("/sys/module/thunderbolt_ibverbs").exists(), "still loaded");
    drop(running);
    usb4::reload()?;
    ensure!(usb4::live()? == 0, "objects in a new module");
    moves_data()
}

#[test]
fn ten_loads_and_unloads() -> Result<()> {
    usb4::set_up()?;
    for _ in 0..rounds() {
        command::must(&["rmmod", "thunderbolt_ibverbs"])?;
        usb4::reload()?;
    }
    moves_data()?;
    ensure!(usb4::live()? == 0, "objects are left");
    Ok(())
}
