//! The options of `cargo xtask vm`.

use std::{ffi::OsString, path::PathBuf};

const HELP: &str =
    "The guest sees this machine's files read-only; /tmp, /run and $HOME are writable in memory.
The command runs in the current folder with its stdin closed, our programs first in PATH.
Its output and exit status pass through. Other exit codes:
    2  the command line is wrong; nothing ran
   70  the kernel warned, crashed or hung (its log is named)
  124  the time was up
  125  the runner itself failed; how the command ended is unknown, if it ran

KVM is used if a trial shows that it works, else emulation; TBV_ACCEL=kvm|tcg decides otherwise.

Examples:
  cargo xtask vm -- ibv_devices
  cargo xtask vm -it -- bash
  cargo xtask vm --timeout 60 --rw out -- sh -c 'dmesg > out/dmesg.txt'
  cargo xtask vm --append lockdown=confidentiality -- tbv-trace doctor";

#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Kernel version, as `uname -r` prints it [default: the newest in the cache]
    #[arg(long)]
    pub(crate) kernel: Option<String>,
    /// Kill the guest after this many seconds and exit with 124
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,
    /// Connect the terminal to the command (as in -it)
    #[arg(short)]
    pub(crate) interactive: bool,
    /// The same as -i
    #[arg(short)]
    pub(crate) tty: bool,
    /// Number of virtual processors
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=255))]
    pub(crate) cpus: u32,
    /// Memory: a number of MiB, or a number with M or G
    #[arg(long, default_value = "2G", value_parser = memory)]
    pub(crate) memory: String,
    /// More words for the kernel's command line
    #[arg(long, value_name = "WORDS", default_value = "", allow_hyphen_values = true)]
    pub(crate) append: String,
    /// Let the guest write to this folder of the host
    #[arg(long, value_name = "DIR")]
    pub(crate) rw: Vec<PathBuf>,
    /// Leave our own driver out; else it is loaded with a virtual cable (usb4_rdma0, usb4_rdma1)
    /// and libibverbs finds our provider
    #[arg(long)]
    pub(crate) no_kmod: bool,
    /// Do not build first
    #[arg(long)]
    pub(crate) no_build: bool,
    /// Build with optimisations, and use those programs
    #[arg(long)]
    pub(crate) release: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// QEMU would find a mistake too, but late, and in words that do not name the option.
fn memory(text: &str) -> Result<String, String> {
    let number = text.strip_suffix(['M', 'G', 'm', 'g']).unwrap_or(text);
    match number.parse::<u32>() {
        Ok(1..) => Ok(text.to_owned()),
        _ => Err("it must be a number of MiB, or a number with M or G, such as 512M or 2G".into()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Args as _;

    use super::*;

    fn accepts(words: &[&str]) -> bool {
        let command = Args::augment_args(clap::Command::new("vm"));
        command.try_get_matches_from(["vm"].iter().chain(words).chain(&["--", "true"])).is_ok()
    }

    #[test]
    fn what_no_machine_can_have_is_refused() {
        for right in ["512M", "2G", "1024", "8g"] {
            assert!(accepts(&["--memory", right]), "{right}");
        }
        for wrong in ["lots", "0", "0G", "-1G", "G", "", "2 G", "2GB", "1.5G", "+"] {
            assert!(!accepts(&["--memory", wrong]), "{wrong}");
        }
        for (cpus, right) in [("0", false), ("1", true), ("255", true), ("256", false)] {
            assert_eq!(accepts(&["--cpus", cpus]), right, "{cpus}");
        }
    }
}
