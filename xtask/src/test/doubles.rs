//! Test doubles: our own provider and module, built by a flag to be another one than they are.

use std::fs;

use anyhow::{Context as _, Result};

use crate::{kernels, kmod, paths, process};

/// Features of the provider, and the folders under `target/doubles` where vm-tests finds what they make, named as
/// libibverbs wants it.
const PROVIDERS: [&str; 4] = ["double-listed", "double-opened", "double-old", "double-regressed"];

/// Builds them apart from the real ones, which stay what they are.
pub(super) fn build() -> Result<()> {
    let doubles = paths::target().join("doubles");
    for double in PROVIDERS {
        let mut cargo = process::command("cargo", ["build", "--quiet", "-p", "tbv-provider", "--features"]);
        cargo.arg(double).arg("--target-dir").arg(doubles.join("build"));
        process::run(cargo.current_dir(paths::root()))?;
        let built = doubles.join("build/debug");
        fs::create_dir_all(doubles.join(double)).context("cannot make a folder for test doubles")?;
        for entry in fs::read_dir(&built).with_context(|| format!("cannot list {}", built.display()))? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with("libusb4_rdma-rdmav") {
                // Follows the link to the library.
                fs::copy(&path, doubles.join(double).join(name)).context("cannot copy a test double")?;
            }
        }
    }
    kmod::build_double(&kernels::choose(None)?)
}
