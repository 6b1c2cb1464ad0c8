//! Our driver in a kernel that looks for mistakes: KASAN, lockdep, DEBUG_OBJECTS and kmemleak. The runner fails the guest
//! on any report in the kernel log; leaks are looked for at the end, here.
//!
//! One test, since what it finds depends on all that ran before.
#![cfg(feature = "vm")]

use std::fs;
use std::io::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use vm_tests::usb4::{self, DEVICES};
use vm_tests::{command, perftest, usb4::live};

/// Emulated, with every memory access checked, on a busy machine.
const LIMIT: Duration = Duration::from_secs(400);
const KMEMLEAK: &str = "/sys/kernel/debug/kmemleak";
/// kmemleak is silent about objects younger than 5 s.
const LEAK_AGE: Duration = Duration::from_secs(6);
const KILLS: u64 = 3;
const LOADS: u64 = 3;

/// The kernel's checks are there, and none has switched itself off.
fn checks_are_on() -> Result<()> {
    let symbols = fs::read_to_string("/proc/kallsyms")?;
    ensure!(symbols.contains(" kasan_report"), "this kernel has no KASAN");
    let lockdep = fs::read_to_string("/proc/lockdep_stats").context("this kernel has no lockdep")?;
    let is_on = lockdep.lines().any(|line| {
        line.split_once(':').is_some_and(|(name, value)| name.trim() == "debug_locks" && value.trim() == "1")
    });
    ensure!(is_on, "lockdep is off: {lockdep}");
    fs::write(KMEMLEAK, "scan=off").context("kmemleak is off")
}

/// What kmemleak finds twice: a pointer that is being moved may hide once.
fn leaks() -> Result<String> {
    for _ in 0..2 {
        thread::sleep(LEAK_AGE);
        fs::write(KMEMLEAK, "scan").context("kmemleak cannot scan")?;
    }
    fs::read_to_string(KMEMLEAK).context(KMEMLEAK)
}

fn latency() -> Result<()> {
    let script = perftest::over_cable("ib_send_lat", "-F -n 200");
    usb4::run(&["sh", "-c", &script], LIMIT)?.success().map(drop)
}

fn every_byte() -> Result<()> {
    let [device, peer] = DEVICES;
    let small = ["--max-size", "64K", "--count", "200"];
    usb4::run(&[&["rc-verify", "-d", device, "-p", peer] as &[&str], &small].concat(), LIMIT)?
        .success()
        .map(drop)
}

fn mistakes() -> Result<()> {
    let [device, peer] = DEVICES;
    let words = ["verbs-errors", "--strict", "--timeout", "60", "-d", device, "-p", peer];
    usb4::run(&words, LIMIT)?.success().map(drop)
}

fn kills() -> Result<()> {
    for round in 0..KILLS {
        let traffic = usb4::traffic("mapped")?;
        thread::sleep(Duration::from_millis(300 * round));
        usb4::kill(traffic)?;
    }
    Ok(())
}

/// Published completion queues, whatever happens to them.
fn published_queues() -> Result<()> {
    let [device, peer] = DEVICES;
    let verify = |check: &str, arguments: &[&str]| {
        let words =
            [&["env", "USB4_RDMA_DEBUG=1", "cq-verify", check, "-d", device, "-p", peer], arguments].concat();
        let output = usb4::run(&words, LIMIT)?.success().with_context(|| check.to_owned())?;
        ensure!(output.stderr.is_empty(), "{check}: {}", output.stderr);
        Ok(())
    };
    verify("threads", &["--cqe", "7", "--count", "50"])?;
    verify("overflow", &["--cqe", "3"])?;
    verify("access", &["--cqe", "4096"])?;
    verify("hostile", &["--cqe", "64", "--count", "200"])?;
    verify("fork", &[])?;
    verify("events", &["--rounds", "2000", "--burners", "1"])?;
    verify("load", &["--destroy-for", "4000"])?;
    verify("load", &["--close-after", "500"])?;
    verify("left", &[])
}

/// The devices go while their queues are polled, and come back.
fn unplugged_queues() -> Result<()> {
    let [device, peer] = DEVICES;
    for check in ["load", "gone"] {
        let running = usb4::start(&["cq-verify", check, "-d", device, "-p", peer])?;
        command::wait_until("traffic", LIMIT, || Ok(running.stdout()?.contains("running")))?;
        fs::write("/sys/kernel/debug/tbv/cables", "0").context("unplugging")?;
        let output = running.finish(LIMIT)?.success().context(check)?;
        ensure!(output.stderr.is_empty(), "{}", output.stderr);
        fs::write("/sys/kernel/debug/tbv/cables", "1").context("plugging in")?;
        usb4::devices_are_there()?;
    }
    Ok(())
}

fn unload_under_traffic() -> Result<()> {
    let traffic = usb4::traffic("mapped")?;
    command::run(&["rmmod", "thunderbolt_ibverbs"], LIMIT)?.success()?;
    drop(traffic);
    usb4::reload()
}

fn loads() -> Result<()> {
    for _ in 0..LOADS {
        command::must(&["rmmod", "thunderbolt_ibverbs"])?;
        usb4::reload()?;
    }
    Ok(())
}

fn nothing_leaked() -> Result<()> {
    ensure!(live()? == 0, "objects are left");
    let leaked = leaks()?;
    ensure!(leaked.is_empty(), "while loaded:\n{leaked}");
    command::must(&["rmmod", "thunderbolt_ibverbs"])?;
    let leaked = leaks()?;
    ensure!(leaked.is_empty(), "after unload:\n{leaked}");
    Ok(())
}

/// A part of the test, for a watcher.
type Part = (&'static str, fn() -> Result<()>);

#[test]
fn the_driver_makes_no_mistake_that_the_kernel_can_see() -> Result<()> {
    checks_are_on()?;
    usb4::set_up()?;
    // What the kernel itself lost while it booted is not ours.
    fs::write(KMEMLEAK, "scan").and_then(|()| fs::write(KMEMLEAK, "clear")).context(KMEMLEAK)?;
    let parts: [Part; 9] = [
        ("ib_send_lat", latency),
        ("rc-verify", every_byte),
        ("verbs-errors", mistakes),
        ("published queues", published_queues),
        ("unplugged queues", unplugged_queues),
        ("killed clients", kills),
        ("unload under traffic", unload_under_traffic),
        ("loads and unloads", loads),
        ("kmemleak", nothing_leaked),
    ];
    for (name, part) in parts {
        let begin = Instant::now();
        let result = part();
        // Past libtest's capture: who waits for minutes wants to see something.
        writeln!(std::io::stderr(), "debug kernel: {name}, {} s", begin.elapsed().as_secs())?;
        result.context(name)?;
    }
    checks_are_on()
}
