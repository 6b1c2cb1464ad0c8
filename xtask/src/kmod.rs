//! The kernel module, built for the guest's kernel.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use crate::{kernels::Kernel, paths, process};

/// Folders that the build reads.
const SOURCES: [&str; 2] = ["kmod", "proto"];

/// Where the module for `kernel` is.
pub(crate) fn module(kernel: &Kernel) -> PathBuf {
    folder(kernel).join("kmod/thunderbolt_ibverbs.ko")
}

/// One folder a kernel: a module fits only the kernel it was built for.
fn folder(kernel: &Kernel) -> PathBuf {
    paths::target().join("kmod").join(&kernel.version)
}

/// Builds what is stale, with W=1. A warning is an error.
pub(crate) fn build(kernel: &Kernel) -> Result<()> {
    build_in(&folder(kernel), kernel, &[])
}

/// Builds the test double: target/doubles/kmod/thunderbolt_ibverbs.ko.
pub(crate) fn build_double(kernel: &Kernel) -> Result<()> {
    build_in(&paths::target().join("doubles"), kernel, &["TBV_DOUBLE=1"])
}

fn build_in(folder: &Path, kernel: &Kernel, variables: &[&str]) -> Result<()> {
    let mut stale = !folder.join("kmod/thunderbolt_ibverbs.ko").is_file();
    for name in SOURCES {
        stale |= copy(&paths::root().join(name), &folder.join(name))?;
    }
    if stale {
        let variables = variables.join(" ");
        eprintln!(
            "build: building the kernel module for Linux {}",
            format!("{} {variables}", kernel.version).trim_end()
        );
    }
    let mut make = make_in(folder, kernel, variables);
    let said = make.output().with_context(|| format!("cannot start `{}`", process::shown(&make)))?;
    let text = String::from_utf8_lossy(&said.stderr);
    if !said.status.success() || text.contains("warning:") {
        bail!("building the kernel module: {}\n{}", said.status, text.trim_end());
    }
    Ok(())
}

/// `make` in the folder of the build, which must have been done.
pub(crate) fn make(kernel: &Kernel, targets: &[&str]) -> Command {
    make_in(&folder(kernel), kernel, targets)
}

fn make_in(folder: &Path, kernel: &Kernel, arguments: &[&str]) -> Command {
    let jobs = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut make = process::command("make", ["-s", &format!("-j{jobs}"), "-C"]);
    make.arg(folder.join("kmod")).arg(format!("KDIR={}", kernel.headers().display())).args(arguments);
    make
}

/// Copies C sources and build files that differ, so that make sees only real changes.
/// Returns whether any did.
fn copy(from: &Path, to: &Path) -> Result<bool> {
    let mut any = false;
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let path = entry?.path();
        let Some(name) = path.file_name() else { continue };
        let source = path.extension().is_some_and(|e| e == "c" || e == "h");
        if !path.is_file() || !(source || name == "Kbuild" || name == "Makefile") || made(&path) {
            continue;
        }
        let (new, target) = (fs::read(&path)?, to.join(name));
        if fs::read(&target).ok().as_ref() != Some(&new) {
            fs::write(&target, new).with_context(|| format!("cannot write {}", target.display()))?;
            any = true;
        }
    }
    Ok(any)
}

/// Whether a build in the source folder made the file.
pub(crate) fn made(path: &Path) -> bool {
    path.to_string_lossy().ends_with(".mod.c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_copied_when_they_differ() {
        let place = std::env::temp_dir().join(format!("tbv-kmod-copy-{}", std::process::id()));
        let (from, to) = (place.join("from"), place.join("to"));
        fs::create_dir_all(&from).unwrap();
        for name in ["a.c", "a.mod.c", "a.o", "Kbuild"] {
            fs::write(from.join(name), "1").unwrap();
        }
        assert!(copy(&from, &to).unwrap());
        assert!(!copy(&from, &to).unwrap());
        fs::write(from.join("a.c"), "2").unwrap();
        assert!(copy(&from, &to).unwrap());
        assert_eq!(fs::read(to.join("a.c")).unwrap(), b"2");
        assert!(to.join("Kbuild").is_file() && !to.join("a.mod.c").exists() && !to.join("a.o").exists());
        fs::remove_dir_all(&place).unwrap();
    }
}
