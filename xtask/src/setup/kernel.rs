//! Puts a distribution kernel (image, modules, headers) into the cache.

use std::{fs, os::unix::fs::symlink, path::Path};

use anyhow::{Context, Result, bail};

use super::{apt::PrivateApt, say};
use crate::{kernels::Kernel, process};

/// The long-term series that tests run on: recent enough for dma-buf memory regions and for BTF
/// of modules, and native to Debian 12 through its security archive and backports.
pub(super) const SERIES: &str = "6.12";

/// Installs `version`, or the newest stock kernel of the series that the archive has.
pub(crate) fn install(version: Option<&str>) -> Result<Kernel> {
    let _lock = super::lock("linux")?;
    // Somebody else may have finished it while we waited for the lock.
    if let Some(version) = version {
        let kernel = Kernel::named(version)?;
        if kernel.is_complete() {
            return Ok(kernel);
        }
    }
    say(&format!("kernel: looking up {} in the Debian archive", version.unwrap_or("the newest one")));
    let apt = PrivateApt::refresh()?;
    let available: Vec<String> = apt
        .names(&format!("linux-image-{}", version.unwrap_or(SERIES)))?
        .iter()
        .filter_map(|name| name.strip_prefix("linux-image-").map(str::to_owned))
        .collect();
    let Some(version) = pick(&available, version) else {
        bail!(
            "the Debian archive has no package linux-image-{}; kernels added by hand go to the folder `kernels` of \
             the cache",
            version.unwrap_or(SERIES)
        );
    };
    let kernel = Kernel::named(version)?;
    if !kernel.is_complete() {
        say(&format!(
            "kernel: fetching {version} with headers, about 120 MB (guests boot it; the host is untouched)"
        ));
        fetch(&apt, &kernel)?;
    }
    Ok(kernel)
}

fn pick<'a>(available: &'a [String], version: Option<&str>) -> Option<&'a String> {
    match version {
        Some(version) => available.iter().find(|name| *name == version),
        None => available.iter().filter(|name| is_stock(name)).max_by_key(|name| order(name)),
    }
}

/// Whether this is the distribution's plain kernel: no rt, cloud, debug or unsigned flavour.
pub(crate) fn is_stock(version: &str) -> bool {
    let Some(rest) = version.strip_prefix(SERIES).and_then(|rest| rest.strip_suffix("-amd64")) else {
        return false;
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match rest.strip_prefix('.').and_then(|rest| rest.split_once("+deb")) {
        Some((patch, release)) => digits(patch) && digits(release),
        None => false,
    }
}

/// Sorts versions by their numbers, not by their characters.
pub(crate) fn order(version: &str) -> Vec<u64> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|run| run.parse().ok()).collect()
}

fn fetch(apt: &PrivateApt, kernel: &Kernel) -> Result<()> {
    let version = &kernel.version;
    // 6.12.117+deb12-amd64 shares its common headers and build tools with the other flavours.
    let base = version.strip_suffix("-amd64").context("only amd64 kernels can be set up")?;
    let packages = [
        format!("linux-image-{version}"),
        format!("linux-headers-{version}"),
        format!("linux-headers-{base}-common"),
        format!("linux-kbuild-{base}"),
    ];
    let part = kernel.dir.with_file_name(format!("{version}.part"));
    if part.exists() {
        fs::remove_dir_all(&part).with_context(|| format!("cannot remove {}", part.display()))?;
    }
    apt.unpack(&packages, &part)?;
    // A merged-/usr image keeps its modules under usr/lib only.
    if !part.join("lib").exists() {
        symlink("usr/lib", part.join("lib"))?;
    }
    let headers = format!("usr/src/linux-headers-{version}");
    point_makefile_at(&part.join(&headers).join("Makefile"), &kernel.dir)?;
    for link in ["build", "source"] {
        let link = part.join("lib/modules").join(version).join(link);
        let _ = fs::remove_file(&link);
        symlink(kernel.dir.join(&headers), &link)
            .with_context(|| format!("cannot link {}", link.display()))?;
    }
    let depmod = process::find_program("depmod").context("no program depmod; install the package kmod")?;
    process::quiet(process::command("env", [depmod.as_os_str()]).arg("-b").arg(&part).arg(version))?;
    if kernel.dir.exists() {
        fs::remove_dir_all(&kernel.dir).with_context(|| format!("cannot remove {}", kernel.dir.display()))?;
    }
    fs::rename(&part, &kernel.dir).with_context(|| format!("cannot move {} into place", part.display()))
}

/// The headers' Makefile includes the common one by its installed, absolute path. The links to
/// the build tools are relative and work anywhere. The headers also carry a `vmlinux` that holds
/// nothing but BTF, so modules get theirs at build time (with pahole).
fn point_makefile_at(makefile: &Path, root: &Path) -> Result<()> {
    let text = fs::read_to_string(makefile).with_context(|| format!("cannot read {}", makefile.display()))?;
    let text = text.replace(" /usr/src/", &format!(" {}/usr/src/", root.display()));
    fs::write(makefile, text).with_context(|| format!("cannot write {}", makefile.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn picks_the_newest_stock_kernel() {
        let all = names(&[
            "6.12.9+deb12-amd64",
            "6.12.117+deb12-amd64",
            "6.12.95+deb12-amd64",
            "6.12.200+deb12-rt-amd64",
            "6.12.200+deb12-amd64-dbg",
            "6.12.200+deb12-cloud-amd64",
            "6.12.200+deb12-amd64-unsigned",
            "6.120.1+deb12-amd64",
            "6.12-amd64",
        ]);
        assert_eq!(pick(&all, None).unwrap(), "6.12.117+deb12-amd64");
        assert_eq!(pick(&all, Some("6.12.200+deb12-rt-amd64")).unwrap(), "6.12.200+deb12-rt-amd64");
        assert!(pick(&all, Some("6.12.1+deb12-amd64")).is_none());
    }
}
