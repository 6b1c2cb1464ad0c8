//! The files that tbv-trace's tests compare with, given to other implementations of their formats.

use anyhow::Result;

use crate::{paths, process, setup};

/// Runs ci/formats.py, which says what it found.
pub(crate) fn run() -> Result<()> {
    setup::python::install()?;
    let mut command = process::command(&setup::python::interpreter()?.to_string_lossy(), ["ci/formats.py"]);
    command.arg("tbv-trace/tests/golden").current_dir(paths::root());
    // It would leave its compiled form in the checkout.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    process::run(&mut command)
}
