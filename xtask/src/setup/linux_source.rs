//! The kernel's own source, as Debian packages it: one tarball, from which the caller takes what it needs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::{apt::PrivateApt, kernel::SERIES};
use crate::process;

/// A tarball that was fetched, and is deleted when this is dropped.
pub(super) struct Tarball {
    folder: PathBuf,
    name: String,
    /// Version of the package it came in.
    pub(super) version: String,
}

impl Tarball {
    /// Fetches the newest one (150 MB) next to `place`.
    pub(super) fn fetch(place: &Path) -> Result<Self> {
        let apt = PrivateApt::refresh()?;
        let name = format!("linux-source-{SERIES}");
        let version = apt.versions(&name)?.into_iter().next();
        let version = version.with_context(|| format!("the Debian archive has no package {name}"))?;
        let folder = place.with_extension("source");
        remove(&folder)?;
        apt.unpack(&[format!("{name}={version}")], &folder)?;
        Ok(Self { folder, name, version })
    }

    /// Unpacks these paths of it (all, if there are none) into `into`.
    pub(super) fn unpack(&self, paths: &[&str], into: &Path) -> Result<()> {
        fs::create_dir_all(into).with_context(|| format!("cannot create {}", into.display()))?;
        let mut tar = process::command("tar", ["--strip-components=1", "-xJf"]);
        tar.arg(self.folder.join(format!("usr/src/{}.tar.xz", self.name))).arg("-C").arg(into);
        if !paths.is_empty() {
            // Each is there once: tar need not read to the end.
            tar.arg("--occurrence=1").args(paths.iter().map(|path| format!("{}/{path}", self.name)));
        }
        process::quiet(&mut tar)
    }
}

impl Drop for Tarball {
    fn drop(&mut self) {
        // What stays is removed by the next fetch.
        let _ = remove(&self.folder);
    }
}

/// Removes a folder that need not be there.
pub(super) fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}
