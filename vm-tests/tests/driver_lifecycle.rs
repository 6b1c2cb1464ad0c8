//! The driver while it comes, goes and loses its users: nothing may be left behind. The runner
//! fails the whole guest on any WARN, BUG or Oops.
#![cfg(feature = "vm")]

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use vm_tests::{command, kernel, usb4};

const LIMIT: Duration = Duration::from_secs(60);
const ROUNDS: u64 = 10;

fn module() -> Result<String> {
    std::env::var("TBV_KMOD").context("TBV_KMOD is not set: run this by `cargo xtask vm` without --no-kmod")
}

fn load() -> Result<()> {
    command::must(&["insmod", &module()?, "loop=1"])?;
    command::wait_until("the devices", LIMIT, || Ok(PathBuf::from("/dev/infiniband/uverbs1").exists()))
}

/// The number of objects that a device holds: contexts, PDs, MRs, CQs and QPs.
fn live(device: &str) -> Result<u64> {
    let text = fs::read_to_string(format!("/sys/kernel/debug/tbv/{device}/summary"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("live: ")).context("no live in the summary")?;
    Ok(line.parse()?)
}

fn all_live() -> Result<u64> {
    usb4::DEVICES.iter().map(|device| live(device)).sum()
}

/// Both sides of ib_send_bw, for longer than any test lasts, once objects exist on both devices.
fn traffic() -> Result<command::Running> {
    let [server, client] = usb4::DEVICES;
    let script = format!(
        "ib_send_bw -F -d {server} -s 4096 -n 100000000 >/dev/null 2>&1 &
        until grep -q ':4853 0*:0000 0A ' /proc/net/tcp /proc/net/tcp6; do sleep 0.1; done
        ib_send_bw -F -d {client} -s 4096 -n 100000000 127.0.0.1 >/dev/null 2>&1 &
        wait"
    );
    let running = usb4::start(&["sh", "-c", &script])?;
    command::wait_until("traffic", LIMIT, || Ok(live(server)? > 3 && live(client)? > 3))?;
    Ok(running)
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
    for round in 0..ROUNDS {
        let running = traffic()?;
        let wait = random_ms(round);
        std::thread::sleep(Duration::from_millis(wait));
        ensure!(all_live()? > 0, "nothing to kill");
        running.signal_group(libc::SIGKILL)?;
        let mut left = 0;
        command::wait_until("the objects' end", LIMIT, || {
            left = all_live()?;
            Ok(left == 0)
        })
        .with_context(|| format!("round {round}, killed after {wait} ms: {left} objects left"))?;
        command::wait_until("the clients' end", LIMIT, || Ok(!kernel::running("ib_send_bw")?))?;
    }
    Ok(())
}

#[test]
fn rmmod_with_open_contexts_and_traffic_works_and_the_module_comes_back() -> Result<()> {
    usb4::set_up()?;
    let running = traffic()?;
    ensure!(all_live()? > 0, "nothing is open");
    command::run(&["rmmod", "thunderbolt_ibverbs"], LIMIT)?.success()?;
    ensure!(!PathBuf::from("/sys/module/thunderbolt_ibverbs").exists(), "still loaded");
    drop(running);
    load()?;
    ensure!(all_live()? == 0, "objects in a new module");
    moves_data()
}

#[test]
fn ten_loads_and_unloads() -> Result<()> {
    usb4::set_up()?;
    for _ in 0..ROUNDS {
        command::must(&["rmmod", "thunderbolt_ibverbs"])?;
        load()?;
    }
    moves_data()?;
    ensure!(all_live()? == 0, "objects are left");
    Ok(())
}
