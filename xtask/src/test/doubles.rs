//! Test doubles: our own provider and module, built by a flag to be another one than they are.

use anyhow::Result;

use crate::{kernels, kmod, paths, process};

/// Features of the provider, and the folders under `target/doubles` where vm-tests finds what they make.
const PROVIDERS: [&str; 4] = ["double-listed", "double-opened", "double-old", "double-regressed"];

/// Builds each into a folder of its own, so that the real ones stay what they are.
pub(super) fn build() -> Result<()> {
    for double in PROVIDERS {
        let mut cargo = process::command("cargo", ["build", "--quiet", "-p", "tbv-provider", "--features"]);
        cargo.arg(double).arg("--target-dir").arg(paths::target().join("doubles").join(double));
        process::run(cargo.current_dir(paths::root()))?;
    }
    kmod::build_double(&kernels::choose(None)?)
}
