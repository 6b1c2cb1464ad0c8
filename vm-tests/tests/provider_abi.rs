//! A provider that does not know the ABI which the module speaks: it leaves the device alone and says why.
#![cfg(feature = "vm")]

use anyhow::{Result, ensure};
use vm_tests::command::{self, LIMIT, Output};
use vm_tests::fault::counter;
use vm_tests::usb4::{self, DEVICES};

/// Runs a verbs program with a test double of the provider.
fn with_double(double: &str, words: &[&str]) -> Result<Output> {
    usb4::set_up()?;
    command::run(&[&["env", &usb4::double(double)?], words].concat(), LIMIT)
}

/// Nothing of ours was opened, or it was closed again, and the real provider still works.
fn unharmed() -> Result<()> {
    for device in DEVICES {
        ensure!(counter(device, "live")? == 0, "objects are left on {device}");
    }
    let small = ["--max-size", "4K", "--count", "10"];
    usb4::run(&[&["rc-verify", "-d", DEVICES[0], "-p", DEVICES[1]] as &[&str], &small].concat(), LIMIT)?
        .success()?;
    Ok(())
}

#[test]
fn a_device_that_is_listed_with_another_version_is_left_out() -> Result<()> {
    let list = with_double("double-listed", &["ibv_devices"])?;
    ensure!(DEVICES.iter().all(|device| !list.stdout.contains(device)), "{}", list.stdout);
    let warning = "Driver usb4_rdma does not support the kernel ABI of 1 (supports 2 to 2)";
    ensure!(list.stderr.contains(warning), "{}", list.stderr);
    let verify = with_double("double-listed", &["rc-verify", "-d", DEVICES[0]])?;
    ensure!(verify.code() == 3, "exit {}: {}{}", verify.code(), verify.stdout, verify.stderr);
    unharmed()
}

#[test]
fn a_device_that_answers_with_another_version_is_not_opened() -> Result<()> {
    let list = with_double("double-opened", &["ibv_devices"])?.success()?;
    ensure!(DEVICES.iter().all(|device| list.stdout.contains(device)), "{}", list.stdout);
    let verify = with_double("double-opened", &["rc-verify", "-d", DEVICES[0]])?;
    let why = "usb4_rdma: the kernel module speaks ABI 1 and this provider 2: install matching versions\n";
    ensure!(verify.stderr.matches(why).count() == 1, "{}", verify.stderr);
    ensure!(verify.stderr.contains("ibv_open_device"), "{}", verify.stderr);
    ensure!(verify.code() == 3, "exit {}: {}{}", verify.code(), verify.stdout, verify.stderr);
    unharmed()
}
