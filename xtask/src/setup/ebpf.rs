//! What compiling eBPF programs needs beside the host's Rust: the standard library's source and
//! bpf-linker, for exactly the compiler in use.
//!
//! They lie in `<cache>/toolchain/<rustc version>/`, as `rust-src/library` (unless rustup has the
//! source) and `bin/bpf-linker`; tbv-core's build script looks there.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
};

use anyhow::{Context, Result, bail};

use super::{apt::PrivateApt, say};
use crate::{paths, process};

/// The release that links against the LLVM of the pinned compiler.
const BPF_LINKER: &str = "0.13.0";

/// The compiler in use.
struct Rustc {
    version: String,
    sysroot: PathBuf,
}

impl Rustc {
    fn in_use() -> Result<Self> {
        // Asked in the workspace, where rust-toolchain.toml picks the compiler.
        let ask = |args: &[&str]| process::output(process::command("rustc", args).current_dir(paths::root()));
        let version = ask(&["--version"])?;
        let version = version.split(' ').nth(1).context("`rustc --version` prints no version")?.to_owned();
        Ok(Self { version, sysroot: PathBuf::from(ask(&["--print", "sysroot"])?.trim()) })
    }

    fn folder(&self) -> Result<PathBuf> {
        Ok(paths::cache()?.join("toolchain").join(&self.version))
    }

    fn has_source(&self) -> Result<bool> {
        let own = self.sysroot.join("lib/rustlib/src/rust/library");
        Ok([own, self.folder()?.join("rust-src/library")]
            .iter()
            .any(|dir| dir.join("core/src/lib.rs").is_file()))
    }

    fn linker(&self) -> Result<PathBuf> {
        Ok(self.folder()?.join("bin/bpf-linker"))
    }
}

/// Whether eBPF programs can be built now.
pub(crate) fn is_ready() -> Result<bool> {
    let rustc = Rustc::in_use()?;
    Ok(rustc.has_source()? && rustc.linker()?.is_file())
}

/// Installs what is missing, and meanwhile does something else that doesn't need it.
pub(crate) fn install(meanwhile: impl FnOnce() -> Result<()>) -> Result<()> {
    let _lock = super::lock("toolchain")?;
    let rustc = Rustc::in_use()?;
    // Before cargo uses the toolchain that rustup may change.
    let has_source = rustc.has_source()? || source_by_rustup(&rustc)?;
    thread::scope(|scope| {
        let linker = scope.spawn(|| install_linker(&rustc));
        if has_source {
            say("rust-src: there");
        } else {
            install_source(&rustc)?;
        }
        meanwhile()?;
        linker.join().unwrap_or_else(|_| bail!("installing bpf-linker panicked"))
    })
}

fn install_linker(rustc: &Rustc) -> Result<()> {
    if rustc.linker()?.is_file() {
        say("bpf-linker: there");
        return Ok(());
    }
    say("bpf-linker: building it, one or two minutes (links eBPF programs)");
    build_linker(rustc)?;
    say("bpf-linker: built");
    Ok(())
}

fn source_by_rustup(rustc: &Rustc) -> Result<bool> {
    say("rust-src: asking rustup (eBPF programs are built with their own core library)");
    let rustup =
        process::command("rustup", ["component", "add", "rust-src"]).current_dir(paths::root()).output();
    Ok(rustup.is_ok_and(|output| output.status.success()) && rustc.has_source()?)
}

fn install_source(rustc: &Rustc) -> Result<()> {
    say("rust-src: rustup cannot provide it; fetching Debian's package of the same version, about 45 MB");
    let apt = PrivateApt::refresh()?;
    let versions = apt.versions("rust-src")?;
    let Some(version) = pick(&versions, &rustc.version) else {
        bail!(
            "no rust-src for rustc {}: rustup cannot add it and Debian packages {}; `rustup component add rust-src` \
             must work, or rustc be one of these",
            rustc.version,
            versions.join(", ")
        );
    };
    let folder = rustc.folder()?;
    let part = folder.join("rust-src.part");
    apt.unpack(&[format!("rust-src={version}")], &part)?;
    let source = part.join(format!("usr/src/rustc-{}", rustc.version));
    let place = folder.join("rust-src");
    remove(&place)?;
    fs::rename(&source, &place).with_context(|| format!("cannot move {} into place", source.display()))?;
    remove(&part)?;
    if !rustc.has_source()? {
        bail!(
            "Debian's rust-src {version} unpacks differently than known: no library/core under {}",
            place.display()
        );
    }
    Ok(())
}

fn pick<'a>(versions: &'a [String], rustc: &str) -> Option<&'a String> {
    versions
        .iter()
        .find(|version| version.strip_prefix(rustc).is_some_and(|rest| rest.starts_with(['+', '-'])))
}

fn remove(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", dir.display()))
        }
        _ => Ok(()),
    }
}

/// Builds bpf-linker against the LLVM that rustc itself brings: no other LLVM reads its bitcode
/// for certain, and none needs to be installed.
fn build_linker(rustc: &Rustc) -> Result<()> {
    let lib = rustc.sysroot.join("lib");
    let names = fs::read_dir(&lib).with_context(|| format!("cannot list {}", lib.display()))?;
    let names: Vec<String> = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    let Some((llvm, major)) = names.iter().find_map(|name| llvm_library(name)) else {
        bail!("rustc {} has no libLLVM under {}; a rustup toolchain has one", rustc.version, lib.display());
    };
    let lib = lib.display();
    let flags = format!("-L native={lib} -l dylib={llvm} -C link-arg=-Wl,-rpath,{lib}");
    let features = format!("llvm-{major},no-llvm-linking");
    let args =
        ["install", "bpf-linker", "--version", BPF_LINKER, "--locked", "--no-default-features", "--quiet"];
    process::run(
        process::command("cargo", args)
            .args(["--features", &features, "--root"])
            .arg(rustc.folder()?)
            .env("RUSTFLAGS", flags)
            // LLVM, which is built already, does its work; optimised, it takes twice as long to build, and links no faster.
            .envs([("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"), ("CARGO_PROFILE_RELEASE_DEBUG", "false")])
            // The workspace's own target folder stays free of it.
            .env_remove("CARGO_TARGET_DIR")
            .current_dir(paths::root()),
    )
}

/// `libLLVM-22-rust-1.95.0-stable.so` → (`LLVM-22-rust-1.95.0-stable`, `22`).
fn llvm_library(file: &str) -> Option<(&str, &str)> {
    let name = file.strip_prefix("lib")?.strip_suffix(".so")?;
    let major = name.strip_prefix("LLVM-")?.split(['-', '.']).next()?;
    Some((name, major))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_must_be_of_the_same_version() {
        let versions =
            ["1.97.1+dfsg1-1", "1.95.01+dfsg1-2", "1.95.0+dfsg1-2~bpo13+1", "1.9"].map(str::to_owned);
        assert_eq!(pick(&versions, "1.95.0").unwrap(), "1.95.0+dfsg1-2~bpo13+1");
        assert!(pick(&versions, "1.97").is_none());
    }

    #[test]
    fn llvm_library_names() {
        let found = llvm_library("libLLVM-22-rust-1.95.0-stable.so");
        assert_eq!(found, Some(("LLVM-22-rust-1.95.0-stable", "22")));
        assert_eq!(llvm_library("librustc_driver-0123.so"), None);
        assert_eq!(llvm_library("libLLVM.so.22.1-rust-1.95.0-stable"), None);
    }
}
