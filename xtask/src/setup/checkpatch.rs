//! checkpatch.pl and its word lists: they come with the kernel's source, not with its headers.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::{
    linux_source::{self, Tarball},
    say,
};
use crate::paths;

/// Under scripts/ in the kernel's source; the script looks for the lists beside itself.
const FILES: [&str; 3] = ["checkpatch.pl", "spelling.txt", "const_structs.checkpatch"];

/// Where the script is, once installed.
pub(crate) fn script() -> Result<PathBuf> {
    Ok(folder()?.join(FILES[0]))
}

/// Puts the script into the cache.
pub(crate) fn install() -> Result<()> {
    let _lock = super::lock("linux")?;
    let folder = folder()?;
    if is_complete(&folder) {
        say("checkpatch: there");
        return Ok(());
    }
    say("checkpatch: fetching the kernel's source, 150 MB, to take three files out of it");
    let tarball = Tarball::fetch(&folder)?;
    let part = folder.with_extension("part");
    linux_source::remove(&part)?;
    tarball.unpack(&FILES.map(|name| format!("scripts/{name}")).each_ref().map(String::as_str), &part)?;
    linux_source::remove(&folder)?;
    fs::rename(part.join("scripts"), &folder)
        .with_context(|| format!("cannot move {} into place", folder.display()))?;
    linux_source::remove(&part)?;
    say(&format!("checkpatch: that of Linux {} is in {}", tarball.version, folder.display()));
    Ok(())
}

fn folder() -> Result<PathBuf> {
    Ok(paths::cache()?.join("checkpatch"))
}

fn is_complete(folder: &Path) -> bool {
    FILES.iter().all(|name| folder.join(name).is_file())
}
