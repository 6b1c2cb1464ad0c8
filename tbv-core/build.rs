//! Builds the eBPF programs from source with the pinned stable compiler and leaves them in
//! `OUT_DIR`. What that needs beyond cargo, `cargo xtask setup` puts into a cache folder.
//!
//! Not by the crate aya-build: it fixes the compiler flags, and the atomic operations that
//! the programs count with need `target-cpu=v3` (kernels since 5.12).

use std::{env, ffi::OsString, fs, path::Path, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};

const TARGET: &str = "bpfel-unknown-none";

fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for dir in ["tbv-common", "tbv-ebpf"] {
        println!("cargo:rerun-if-changed={}", root.join(dir).display());
    }
    println!("cargo:rerun-if-env-changed=TBV_CACHE");
    let out = PathBuf::from(var("OUT_DIR")?);
    let cache = cache().context("neither TBV_CACHE, XDG_CACHE_HOME nor HOME is set")?;
    let release = rustc(&["-vV"], "release: ")?;
    // `target/debug/build/tbv-core-HASH/out`: one folder for all that build this script (debug, release, clippy), or each
    // would compile the same anew.
    let target = out.ancestors().nth(4).context("OUT_DIR is not where cargo puts it")?;
    let target_dir = target.join("ebpf").join(&release);
    let toolchain = cache.join("toolchain").join(release);

    let mut cargo = Command::new(var("CARGO")?);
    cargo
        .current_dir(&root)
        .args(["build", "--package", "tbv-ebpf", "--bins", "--release", "--features", "bpf"])
        .args(["--target", TARGET, "-Z", "build-std=core", "--target-dir"])
        .arg(&target_dir)
        // A host build's own settings must not reach the nested one.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("RUSTFLAGS")
        .env("CARGO_ENCODED_RUSTFLAGS", flags())
        // Opens what builds `core` for a target that rustup has no library for.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("PATH", path(&toolchain)?);
    let cached = toolchain.join("rust-src");
    if !rustup_source()?.exists() {
        println!("cargo:rerun-if-changed={}", cached.display());
        ensure!(
            cached.join("library").exists(),
            "the eBPF programs need the Rust library's source: run `cargo xtask setup`"
        );
        // Cargo's own test hook: the only way to hand it a library source that rustup did
        // not install. It is why rust-toolchain.toml pins the compiler.
        cargo.env("__CARGO_TESTS_ONLY_SRC_ROOT", cached.join("library").canonicalize()?);
    }
    ensure!(
        cargo.status().context("starting cargo")?.success(),
        "building the eBPF programs failed (above); `cargo xtask setup` installs what they need"
    );
    fs::copy(target_dir.join(TARGET).join("release/tbv"), out.join("tbv.bpf.o"))?;
    Ok(())
}

fn flags() -> OsString {
    ["--cfg=bpf_target_arch=\"x86_64\"", "-Cdebuginfo=2", "-Ctarget-cpu=v3", "-Clink-arg=--btf"]
        .join("\x1f")
        .into()
}

fn var(name: &str) -> Result<OsString> {
    env::var_os(name).with_context(|| format!("cargo did not set {name}"))
}

/// PATH with the cached bpf-linker first.
fn path(toolchain: &Path) -> Result<OsString> {
    let path = env::var_os("PATH").unwrap_or_default();
    Ok(env::join_paths(std::iter::once(toolchain.join("bin")).chain(env::split_paths(&path)))?)
}

/// Where `rustup component add rust-src` puts the library.
fn rustup_source() -> Result<PathBuf> {
    Ok(Path::new(&rustc(&["--print", "sysroot"], "")?).join("lib/rustlib/src/rust/library"))
}

/// What follows `prefix` on the first line of rustc's answer that starts with it.
fn rustc(args: &[&str], prefix: &str) -> Result<String> {
    let answer = String::from_utf8(Command::new(var("RUSTC")?).args(args).output()?.stdout)?;
    let found = answer.lines().find_map(|line| line.strip_prefix(prefix));
    Ok(found.with_context(|| format!("rustc {args:?} answered {answer:?}"))?.trim().to_owned())
}

/// The same folder as xtask's.
fn cache() -> Option<PathBuf> {
    let dir = |name| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    dir("TBV_CACHE")
        .or_else(|| dir("XDG_CACHE_HOME").map(|d| d.join("tbv")))
        .or_else(|| dir("HOME").map(|d| d.join(".cache/tbv")))
}
