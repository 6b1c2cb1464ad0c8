//! A Python environment with other implementations of the formats that tbv-trace writes.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};

use super::{linux_source, say};
use crate::{paths, process};

/// What is in it; another version of one makes the environment anew.
const REQUIREMENTS: [&str; 3] = ["hdrhistogram==0.10.8", "prometheus_client==0.26.0", "perfetto==0.59.1"];

/// Its interpreter, once installed.
pub(crate) fn interpreter() -> Result<PathBuf> {
    Ok(folder()?.join("bin/python"))
}

/// Makes the environment, once for all checkouts.
pub(crate) fn install() -> Result<()> {
    let _lock = super::lock("python")?;
    let (folder, interpreter) = (folder()?, interpreter()?);
    // Written last, so that an installation that broke off is made anew.
    let done = folder.join("requirements");
    let wanted = REQUIREMENTS.join("\n");
    if interpreter.is_file() && fs::read_to_string(&done).is_ok_and(|had| had == wanted) {
        say("python: the formats' other implementations are there");
        return Ok(());
    }
    say(&format!("python: installing {} with pip", REQUIREMENTS.join(", ")));
    linux_source::remove(&folder)?;
    process::quiet(process::command("python3", ["-m", "venv"]).arg(&folder))
        .context("cannot make a Python environment; is python3-venv installed?")?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    process::quiet(process::command(&interpreter.to_string_lossy(), pip).args(REQUIREMENTS))
        .context("cannot install Python packages; pip needs a package index that it can reach")?;
    fs::write(&done, wanted).with_context(|| format!("cannot write {}", done.display()))?;
    say(&format!("python: they are in {}", folder.display()));
    Ok(())
}

fn folder() -> Result<PathBuf> {
    Ok(paths::cache()?.join("python-formats"))
}
