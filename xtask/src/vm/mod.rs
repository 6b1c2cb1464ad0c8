//! `cargo xtask vm`: runs a command as root in a guest that sees the host's files.

mod accel;
mod args;
mod cpio;
mod guest;
mod initramfs;
mod job;
mod judge;
mod log;
mod modules;
mod qemu;
mod stream;
mod tty;

use std::{
    env, fs,
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, bail};

use self::{accel::Accel, guest::Task, qemu::Machine};
pub(crate) use self::{args::Args, judge::EXIT_RUNNER};
use crate::{build, kernels, kmod, paths};

/// Kernel logs of this many runs are kept.
const KEPT_LOGS: usize = 20;

/// Builds, boots and runs; returns the exit code for the shell.
pub(crate) fn run(args: &Args) -> Result<u8> {
    // First, because it may not exist, and building takes longer than finding out.
    let kernel = kernels::choose(args.kernel.as_deref())?;
    let terminal = io::stderr().is_terminal();
    if !args.no_build {
        // Without a terminal, stderr is read by somebody who wants the command's own.
        build::workspace(args.release, !terminal)?;
    }
    if !args.no_build && !args.no_kmod {
        kmod::build(&kernel)?;
    }
    let module = (!args.no_kmod).then(|| built(kmod::module(&kernel))).transpose()?;
    let log = new_log()?;
    let shares = args.rw.iter().map(|dir| share(dir)).collect::<Result<Vec<_>>>()?;
    let home = env::var_os("HOME").unwrap_or_else(|| "/root".into());
    let folder = env::current_dir().context("the current folder is gone")?;
    let programs = build::programs(args.release);
    let machine = Machine {
        accel: Accel::choose(&kernel)?,
        cpus: args.cpus,
        memory: &args.memory,
        kernel: kernel.image(),
        initramfs: Vec::new(),
        append: &args.append,
        log: &log,
        shares: &shares,
    };
    let task = Task {
        kernel: &kernel,
        home: writable_home(Path::new(&home)),
        script: &job::script(&args.command, &folder, &programs, &home, module.as_deref()),
        interactive: args.interactive || args.tty,
        timeout: args.timeout.map(Duration::from_secs),
    };
    if terminal {
        eprintln!("xtask: booting Linux {}…", kernel.version);
    }
    let outcome = guest::run(machine, &task, io::stdout(), io::stderr())?;
    judge::judge(outcome, &log, args.timeout.unwrap_or_default())
}

/// The module, if it is there to be loaded.
fn built(module: PathBuf) -> Result<PathBuf> {
    if !module.is_file() {
        bail!(
            "our driver is not built: no {}; leave out --no-build to build it, or leave out the driver by --no-kmod",
            module.display()
        );
    }
    Ok(module)
}

/// A home under /tmp is writable already, and one that is missing stays so.
fn writable_home(home: &Path) -> Option<&Path> {
    (home.is_absolute() && home != Path::new("/") && !home.starts_with("/tmp") && home.is_dir())
        .then_some(home)
}

fn share(dir: &Path) -> Result<PathBuf> {
    let path = fs::canonicalize(dir).with_context(|| format!("--rw {}: no such folder", dir.display()))?;
    if !path.is_dir() {
        bail!("--rw {}: not a folder", dir.display());
    }
    Ok(path)
}

/// A new file for the kernel's log; the oldest are removed.
fn new_log() -> Result<PathBuf> {
    let dir = paths::target().join("vm");
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let mut logs: Vec<(SystemTime, PathBuf)> = fs::read_dir(&dir)
        .with_context(|| format!("cannot list {}", dir.display()))?
        .filter_map(|entry| entry.ok())
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .filter(|(_, path)| path.extension().is_some_and(|extension| extension == "log"))
        .collect();
    logs.sort();
    for (_, old) in &logs[..logs.len().saturating_sub(KEPT_LOGS - 1)] {
        // Another runner may have removed it.
        let _ = fs::remove_file(old);
    }
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    Ok(dir.join(format!("kernel-{seconds}-{}.log", std::process::id())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_is_not_built_is_named_with_what_to_do() {
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(built(here.join("Cargo.toml")).unwrap(), here.join("Cargo.toml"));
        let message = built(here.join("absent.ko")).unwrap_err().to_string();
        for part in ["absent.ko", "--no-build", "--no-kmod"] {
            assert!(message.contains(part), "{part} in {message}");
        }
    }
}
