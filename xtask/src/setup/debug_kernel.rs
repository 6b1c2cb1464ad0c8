//! A kernel that looks for mistakes in its drivers, built from Debian's kernel source: KASAN, lockdep, kmemleak and
//! others, see debug-kernel.config. It lies in the cache beside the stock ones and is only taken by name.

use std::{fs, path::Path, process::Command, thread, time::Instant};

use anyhow::{Context, Result, ensure};

use super::{
    linux_source::{self, Tarball},
    say,
};
use crate::{
    kernels::{self, Kernel},
    process,
};

const CONFIG: &str = include_str!("debug-kernel.config");

/// CONFIG_LOCALVERSION of the above.
const SUFFIX: &str = "-tbv-debug";

/// What building modules needs of the source, and of the folder that it was built in.
const KEPT_SOURCE: [&str; 4] = ["Makefile", "arch", "include", "scripts"];
const KEPT_BUILD: [&str; 8] =
    [".config", "Makefile", "Module.symvers", "arch", "include", "scripts", "source", "tools"];

/// The debug kernel; built first if the cache has none of this configuration.
pub(crate) fn install() -> Result<Kernel> {
    let _lock = super::lock("linux")?;
    let known = kernels::cached()?.into_iter().filter(|kernel| kernel.version.ends_with(SUFFIX));
    for kernel in known {
        if fs::read_to_string(config_of(&kernel)).is_ok_and(|config| config == CONFIG) {
            say(&format!("debug kernel: {} is there", kernel.version));
            return Ok(kernel);
        }
    }
    build()
}

fn build() -> Result<Kernel> {
    say("debug kernel: fetching the kernel's source, 150 MB");
    let tarball = Tarball::fetch(&Kernel::named(SUFFIX)?.dir)?;
    let release = tarball.version.split('-').next().unwrap_or_default();
    let kernel = Kernel::named(&format!("{release}{SUFFIX}"))?;
    linux_source::remove(&kernel.dir)?;
    let source = kernel.dir.join("usr/src/linux-source");
    say(&format!("debug kernel: unpacking {release}"));
    tarball.unpack(&[], &source)?;
    drop(tarball);

    let begin = Instant::now();
    let make = || {
        let mut make = process::command("make", ["-s", "-C"]);
        make.arg(&source).arg(format!("O={}", kernel.headers().display()));
        make
    };
    let folder = kernel.headers();
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let fragment = folder.join("fragment.config");
    fs::write(&fragment, CONFIG).with_context(|| format!("cannot write {}", fragment.display()))?;
    process::quiet(make().arg(format!("KCONFIG_ALLCONFIG={}", fragment.display())).arg("allnoconfig"))?;
    check(&folder.join(".config"))?;
    let name = process::output(make().arg("kernelrelease"))?;
    ensure!(name.trim() == kernel.version, "the source makes {}, not {}", name.trim(), kernel.version);
    let jobs = thread::available_parallelism().map_or(1, |n| n.get());
    say(&format!("debug kernel: building {} with {jobs} jobs, about ten minutes", kernel.version));
    for target in ["bzImage", "modules"] {
        process::quiet(make().arg(format!("-j{jobs}")).arg(target))?;
        say(&format!("debug kernel: {target} built, {} s", begin.elapsed().as_secs()));
    }
    put_in_place(&kernel, make())?;
    prune(&source, &KEPT_SOURCE)?;
    prune(&kernel.headers(), &KEPT_BUILD)?;
    Ok(kernel)
}

/// Kconfig drops in silence what it does not know or what depends on something else.
fn check(config: &Path) -> Result<()> {
    let got = fs::read_to_string(config).with_context(|| format!("cannot read {}", config.display()))?;
    let missing: Vec<&str> =
        wanted(CONFIG).filter(|wanted| !got.lines().any(|line| line == *wanted)).collect();
    ensure!(missing.is_empty(), "the kernel's configuration lacks {}", missing.join(" "));
    Ok(())
}

fn wanted(config: &str) -> impl Iterator<Item = &str> {
    config.lines().filter(|line| line.starts_with("CONFIG_"))
}

/// Image, configuration and then modules, whose modules.dep tells that the kernel is complete.
fn put_in_place(kernel: &Kernel, mut make: Command) -> Result<()> {
    let boot = kernel.dir.join("boot");
    fs::create_dir_all(&boot).with_context(|| format!("cannot create {}", boot.display()))?;
    fs::copy(kernel.headers().join("arch/x86/boot/bzImage"), kernel.image())
        .context("cannot copy the image")?;
    fs::write(config_of(kernel), CONFIG).context("cannot write the configuration")?;
    process::quiet(make.arg(format!("INSTALL_MOD_PATH={}", kernel.dir.display())).arg("modules_install"))
}

fn config_of(kernel: &Kernel) -> std::path::PathBuf {
    kernel.dir.join(format!("boot/config-{}", kernel.version))
}

/// Removes all but these from a folder: two gigabytes of source and objects.
fn prune(folder: &Path, kept: &[&str]) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let entry = entry?;
        if kept.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        let path = entry.path();
        let removed =
            if entry.file_type()?.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_names_the_kernel_and_has_the_checks() {
        let wanted: Vec<&str> = wanted(CONFIG).collect();
        assert!(wanted.contains(&format!("CONFIG_LOCALVERSION=\"{SUFFIX}\"").as_str()));
        for check in ["KASAN", "PROVE_LOCKING", "DEBUG_KMEMLEAK", "DEBUG_ATOMIC_SLEEP", "PROVE_RCU"] {
            assert!(wanted.contains(&format!("CONFIG_{check}=y").as_str()), "{check}");
        }
    }
}
