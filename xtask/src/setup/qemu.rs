//! A newer QEMU than this release of Debian has, out of its backports: where it emulates, the same guest takes about a
//! tenth less of a processor. The distribution's own stays as it is, and brings the libraries for both.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use super::{apt::PrivateApt, linux_source, say};
use crate::{paths, process};

/// The program.
pub(crate) const NAME: &str = "qemu-system-x86_64";
/// From this version on the distribution's own will do.
const NEW: u32 = 10;
const PACKAGES: [&str; 3] = ["qemu-system-x86", "qemu-system-common", "qemu-system-data"];

/// The program to use: that of the cache, if it is there.
pub(crate) fn program() -> Result<PathBuf> {
    let own = folder()?.join("usr/bin").join(NAME);
    Ok(if own.is_file() { own } else { NAME.into() })
}

/// Where its firmware is, for one of the cache.
pub(crate) fn firmware() -> Result<Option<PathBuf>> {
    let folder = folder()?.join("usr/share/qemu");
    Ok(folder.is_dir().then_some(folder))
}

/// Puts one into the cache, if the distribution's is old and its backports have a newer one that runs here.
pub(super) fn install() -> Result<()> {
    let _lock = super::lock("qemu")?;
    if program()?.is_absolute() {
        say("qemu: there");
        return Ok(());
    }
    let version = version(Path::new(NAME))?;
    if major(&version).is_some_and(|major| major >= NEW) {
        return Ok(());
    }
    let apt = PrivateApt::refresh()?;
    let Some(newer) = apt.backport(PACKAGES[0])? else {
        say("qemu: the release has no newer one");
        return Ok(());
    };
    say(&format!(
        "qemu: fetching {newer}, 15 MB (emulates faster than this system's; the system is untouched)"
    ));
    let folder = folder()?;
    let part = folder.with_extension("part");
    linux_source::remove(&part)?;
    apt.unpack(&PACKAGES.map(|package| format!("{package}={newer}")), &part)?;
    // What it is linked with may be missing where the distribution's own was not installed by us.
    if let Err(error) = self::version(&part.join("usr/bin").join(NAME)) {
        say(&format!("qemu: it does not run here, so the system's is used: {error:#}"));
        return linux_source::remove(&part);
    }
    fs::rename(&part, &folder).with_context(|| format!("cannot move {} into place", part.display()))
}

fn folder() -> Result<PathBuf> {
    Ok(paths::cache()?.join("qemu"))
}

/// What it says that it is.
pub(crate) fn version(program: &Path) -> Result<String> {
    let said = process::output(&mut process::command(&program.to_string_lossy(), ["--version"]))?;
    Ok(said.lines().next().unwrap_or_default().to_owned())
}

/// `QEMU emulator version 7.2.22 (Debian …)` → 7.
fn major(version: &str) -> Option<u32> {
    version.split_once("version ")?.1.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(major("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)"), Some(7));
        assert_eq!(major("QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)"), Some(10));
        assert_eq!(major("something else"), None);
    }
}
