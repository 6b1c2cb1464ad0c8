//! `cargo xtask vm`: runs a command as root in a guest that sees the host's files.

mod accel;
mod cpio;
mod guest;
mod initramfs;
mod job;
mod log;
mod modules;
mod qemu;
mod stream;
mod tty;

use std::{
    env,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, bail};

use self::{
    accel::Accel,
    guest::{Outcome, Task},
    qemu::Machine,
};
use crate::{build, kernels, kmod, paths};

/// The kernel log tells of a broken kernel.
pub(crate) const EXIT_KERNEL: u8 = 70;
/// The time was up.
pub(crate) const EXIT_TIMEOUT: u8 = 124;
/// The runner itself failed; the command did not run, or how it ended is unknown.
pub(crate) const EXIT_RUNNER: u8 = 125;

/// Kernel logs of this many runs are kept.
const KEPT_LOGS: usize = 20;

const HELP: &str =
    "The guest sees this machine's files read-only; /tmp, /run and $HOME are writable in memory.
The command runs in the current folder with its stdin closed, our programs first in PATH.
Its output and exit status pass through. Other exit codes:
   70  the kernel warned, crashed or hung (its log is named)
  124  the time was up
  125  the runner itself failed

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
    #[arg(long, default_value_t = 2)]
    pub(crate) cpus: u32,
    /// Memory, as QEMU takes it
    #[arg(long, default_value = "2G")]
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

/// Builds, boots and runs; returns the exit code for the shell.
pub(crate) fn run(args: &Args) -> Result<u8> {
    if !args.no_build {
        build::workspace(args.release)?;
    }
    let kernel = kernels::choose(args.kernel.as_deref())?;
    if !args.no_build && !args.no_kmod {
        kmod::build(&kernel)?;
    }
    let module = (!args.no_kmod).then(|| kmod::module(&kernel));
    let log = new_log()?;
    let shares = args.rw.iter().map(|dir| share(dir)).collect::<Result<Vec<_>>>()?;
    let home = env::var_os("HOME").unwrap_or_else(|| "/root".into());
    let folder = env::current_dir().context("the current folder is gone")?;
    let programs = paths::target().join(if args.release { "release" } else { "debug" });
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
    let outcome = guest::run(machine, &task, io::stdout(), io::stderr())?;
    judge(outcome, &log, args)
}

/// Turns how the guest ended and what its kernel said into an exit code and messages.
fn judge(outcome: Outcome, log: &Path, args: &Args) -> Result<u8> {
    let bytes = fs::read(log).with_context(|| format!("cannot read the kernel log {}", log.display()))?;
    let text = String::from_utf8_lossy(&bytes);
    let findings = log::scan(&text);
    for (line, reason) in &findings.excused {
        eprintln!("xtask: excused: {line} ({reason})");
    }
    let place = log.display();
    let code = match outcome {
        Outcome::Exited(status) => status,
        Outcome::TimedOut { booted } => {
            let what = if booted { "the command had not ended" } else { "the guest had not booted" };
            let limit = args.timeout.unwrap_or_default();
            eprintln!("xtask: {what} after {limit} s (--timeout); killed the guest. Kernel log: {place}");
            EXIT_TIMEOUT
        }
        Outcome::Gone { booted } => {
            let what = if booted { "before the command ended" } else { "before it had booted" };
            eprintln!("xtask: the guest went away {what}. Kernel log: {place}, which ends:\n{}", tail(&text));
            EXIT_RUNNER
        }
        // As a shell reports SIGPIPE and other signals.
        Outcome::Unread => 128 + 13,
        Outcome::Stopped(signal) => 128 + signal as u8,
    };
    if findings.trouble.is_empty() {
        return Ok(code);
    }
    eprintln!(
        "xtask: the guest's kernel is in trouble (the command's own exit code: {code}). Kernel log: {place}"
    );
    for line in &findings.trouble {
        eprintln!("  {line}");
    }
    Ok(EXIT_KERNEL)
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(10)..].iter().map(|line| format!("  {line}\n")).collect()
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
