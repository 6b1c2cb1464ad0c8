//! Faults on the virtual cable and what the driver counts, through debugfs.

use std::fs;

use anyhow::{Context, Result};

const ROOT: &str = "/sys/kernel/debug/tbv";

/// A fault that lasts until this is dropped.
pub struct Fault(String);

impl Fault {
    /// Sets `file` of the device's fault folder: kmod/README.md lists them.
    pub fn set(device: &str, file: &str, value: u64) -> Result<Self> {
        let path = format!("{ROOT}/{device}/fault/{file}");
        fs::write(&path, value.to_string()).with_context(|| path.clone())?;
        Ok(Self(path))
    }

    /// Every frame that the device sends is lost.
    pub fn lose_all(device: &str) -> Result<Self> {
        Self::set(device, "drop_every", 1)
    }
}

impl Drop for Fault {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.0, "0") {
            eprintln!("{}: {error}", self.0);
        }
    }
}

/// A number of the device's summary.
pub fn counter(device: &str, name: &str) -> Result<u64> {
    let path = format!("{ROOT}/{device}/summary");
    let text = fs::read_to_string(&path).with_context(|| path.clone())?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    value.with_context(|| format!("no {name} in {path}"))?.parse().with_context(|| name.to_owned())
}
