//! Chooses between KVM and emulation by trying: a /dev/kvm that exists may still not run a guest
//! (inside another virtual machine, for example).

use std::{env, fs, path::PathBuf, time::Duration};

use anyhow::{Context, Result, bail};

use super::{guest::Outcome, qemu};
use crate::{kernels::Kernel, paths, process};

/// How the guest's instructions are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accel {
    Kvm,
    Tcg,
}

/// A guest under KVM says that it is ready within 2 s.
const PROBE: Duration = Duration::from_secs(10);

impl Accel {
    pub(super) fn arguments(self) -> [&'static str; 4] {
        match self {
            Self::Kvm => ["-accel", "kvm", "-cpu", "host"],
            // One thread for all processors: with one each, QEMU 7.2 lets a processor run kernel code while
            // another patches it (jump labels, ftrace, kprobes), and the guest dies of `Oops: int3`.
            //
            // No cmpxchg16b: after one, QEMU 7.2 now and then has the low half of RAX in EFLAGS, and the
            // guest dies of `Oops: double fault` in the allocator. The kernel does without where it is missing.
            //
            // The plain model, because what `max` has beside it (5-level page tables, AVX) costs an emulator time: a
            // start of tbv-trace takes an eighth longer. With the guards against stray accesses to user memory.
            Self::Tcg => {
                ["-accel", "tcg,thread=single,tb-size=256", "-cpu", "qemu64,cx16=off,smap=on,smep=on"]
            }
        }
    }

    /// What works here; the result of the probe is kept in the cache.
    pub(super) fn choose(kernel: &Kernel) -> Result<Self> {
        match env::var("TBV_ACCEL").as_deref() {
            Ok("kvm") => return Ok(Self::Kvm),
            Ok("tcg") => return Ok(Self::Tcg),
            Ok(other) => bail!("TBV_ACCEL is `{other}`; it can be kvm or tcg, or unset to choose by a trial"),
            Err(_) => {}
        }
        if fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").is_err() {
            return Ok(Self::Tcg);
        }
        let known = probe_file()?;
        match fs::read_to_string(&known).as_deref() {
            Ok("kvm") => return Ok(Self::Kvm),
            Ok("tcg") => return Ok(Self::Tcg),
            _ => {}
        }
        eprintln!("xtask: trying whether KVM runs a guest here (once)");
        let works =
            super::guest::probe(kernel, Self::Kvm, PROBE).is_ok_and(|outcome| outcome == Outcome::Exited(0));
        let (accel, name) = if works { (Self::Kvm, "kvm") } else { (Self::Tcg, "tcg") };
        fs::write(&known, name).with_context(|| format!("cannot write {}", known.display()))?;
        Ok(accel)
    }
}

/// The answer holds for one host kernel and one QEMU.
fn probe_file() -> Result<PathBuf> {
    let release =
        fs::read_to_string("/proc/sys/kernel/osrelease").context("cannot read the host kernel's release")?;
    let qemu = process::output(&mut process::command(qemu::PROGRAM, ["--version"]))?;
    let first = qemu.lines().next().unwrap_or_default();
    let name: String = format!("accel-{}-{first}", release.trim())
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || ".-+".contains(c) { c } else { '_' })
        .collect();
    Ok(paths::cache()?.join(name))
}
