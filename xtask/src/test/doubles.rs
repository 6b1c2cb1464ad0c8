//! Test doubles of the provider: our own code, built to know another ABI than the module speaks.

use anyhow::Result;

use crate::{paths, process};

/// Features of the provider, and the folders under `target/doubles` where vm-tests finds what they make.
const DOUBLES: [&str; 2] = ["double-listed", "double-opened"];

/// Builds each into a folder of its own, so that the real provider stays what it is.
pub(super) fn build() -> Result<()> {
    for double in DOUBLES {
        let mut cargo = process::command("cargo", ["build", "--quiet", "-p", "tbv-provider", "--features"]);
        cargo.arg(double).arg("--target-dir").arg(paths::target().join("doubles").join(double));
        process::run(cargo.current_dir(paths::root()))?;
    }
    Ok(())
}
