//! The Debian packages that building and testing needs.

use std::process::Command;

use anyhow::{Context, Result, bail};

use super::say;
use crate::process;

/// Packages, why they are needed, and a program that proves each group is there.
const PACKAGES: [(&str, &[&str], &[&str]); 8] = [
    (
        "virtual machines",
        &["qemu-system-x86", "busybox-static", "kmod", "xz-utils", "zstd"],
        &["qemu-system-x86_64", "busybox", "depmod", "xz", "zstd"],
    ),
    (
        "RDMA programs that the tests run",
        &["perftest", "ibverbs-utils", "rdma-core", "ibverbs-providers", "python3-pyverbs", "iproute2"],
        &["ib_send_lat", "ibv_devices", "rdma", "ip"],
    ),
    (
        "building the kernel module and the provider",
        &["gcc", "make", "libc6-dev", "libibverbs-dev", "libelf-dev", "pahole"],
        &["gcc", "make", "pahole"],
    ),
    ("static checks of the kernel module", &["sparse", "perl"], &["sparse", "perl"]),
    ("building the debug kernel of `test --full`", &["bison", "flex", "bc"], &["bison", "flex", "bc"]),
    (
        "tracers to compare with",
        &["strace", "bpftool", "bpftrace", "linux-perf"],
        &["strace", "bpftool", "bpftrace", "perf"],
    ),
    ("tests of terminal programs", &["tmux"], &["tmux"]),
    ("reading tbv-trace's output by other programs", &["python3-venv"], &["python3"]),
];

/// Says how to install what is missing, if we may not.
pub(crate) fn can_install() -> Result<()> {
    let missing = missing()?;
    if !missing.is_empty() && !process::is_root() {
        bail!(
            "these packages are missing and only root can install them; run\n  sudo {}\nand then setup again",
            process::shown(&installing(&missing))
        );
    }
    Ok(())
}

/// Installs what is missing, once it is known that we can.
pub(crate) fn install() -> Result<()> {
    let missing = missing()?;
    if missing.is_empty() {
        say("packages: all there");
        return check_programs();
    }
    for (why, packages, _) in PACKAGES {
        let wanted: Vec<&str> = packages.iter().copied().filter(|name| missing.contains(name)).collect();
        if !wanted.is_empty() {
            say(&format!("packages: {} ({why})", wanted.join(" ")));
        }
    }
    let mut install = installing(&missing);
    // The lists that came with an image may be old or empty: fetch them only if that shows.
    if process::quiet(&mut install).is_err() {
        say("packages: fetching the package lists, then installing");
        process::quiet(&mut apt_get(["update", "-q"])).context("cannot fetch apt's package lists")?;
        process::quiet(&mut install)?;
    }
    check_programs()
}

fn installing(packages: &[&str]) -> Command {
    let mut install = apt_get(["install", "-y", "-q", "--no-install-recommends"]);
    install.args(packages);
    install
}

fn apt_get<const N: usize>(args: [&str; N]) -> Command {
    let mut command = process::command("apt-get", args);
    // A dialog would wait forever for an answer that nobody gives.
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn missing() -> Result<Vec<&'static str>> {
    let all: Vec<&str> = PACKAGES.iter().flat_map(|(_, packages, _)| packages.iter().copied()).collect();
    let output = process::command("dpkg-query", ["-W", "-f", "${Package} ${db:Status-Abbrev}\n"])
        .args(&all)
        .output()
        .context("cannot start dpkg-query; setup knows Debian and its relatives only")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(all.into_iter().filter(|name| !is_installed(&text, name)).collect())
}

fn is_installed(listing: &str, package: &str) -> bool {
    listing
        .lines()
        .any(|line| line.split_once(' ').is_some_and(|(name, state)| name == package && state.trim() == "ii"))
}

fn check_programs() -> Result<()> {
    for (why, packages, programs) in PACKAGES {
        for program in programs {
            if process::find_program(program).is_none() {
                bail!(
                    "the program {program} ({why}) is not in PATH although its package is installed; reinstall {}",
                    packages.join(" ")
                );
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fully_installed_counts() {
        let listing = "kmod ii \nsparse un \nstrace rc \ntmux iU \n";
        assert!(is_installed(listing, "kmod"));
        for package in ["sparse", "strace", "tmux", "mod", "absent"] {
            assert!(!is_installed(listing, package), "{package}");
        }
    }
}
