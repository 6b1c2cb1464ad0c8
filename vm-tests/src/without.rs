//! Taking parts of the kernel away, as other kernels lack them.

use std::fs;

use anyhow::{Context, Result};

/// Where the kernel shows its own types.
pub const BTF: &str = "/sys/kernel/btf";
/// Where it shows its kprobes to who wants to open one.
pub const KPROBE_EVENTS: &str = "/sys/bus/event_source/devices";
/// What uses tracefs and debugfs.
pub const TRACING: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug"];

/// The words that start a program which finds these folders empty.
pub fn folders(hidden: &[&str]) -> Vec<String> {
    let mounts: String = hidden.iter().map(|dir| format!("mount -t tmpfs none {dir} && ")).collect();
    ["unshare", "--mount", "sh", "-c", &format!("{mounts}exec \"$@\""), "sh"].map(str::to_owned).into()
}

/// A kernel setting that has another value until this is dropped.
pub struct Setting {
    file: &'static str,
    before: String,
}

impl Setting {
    /// Writes `value` to `file`.
    pub fn change(file: &'static str, value: &str) -> Result<Self> {
        let before = fs::read_to_string(file).context(file)?;
        fs::write(file, value).context(file)?;
        Ok(Setting { file, before })
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        if let Err(error) = fs::write(self.file, &self.before) {
            eprintln!("{}: {error}", self.file);
        }
    }
}
