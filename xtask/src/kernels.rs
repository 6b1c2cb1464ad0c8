//! The kernels in the cache: `<cache>/kernels/<version>/` holds a distribution's image, modules
//! and headers as its packages lay them out under `/`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{paths, setup};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Kernel version, as `uname -r` prints it [default: the newest in the cache]
    #[arg(long)]
    kernel: Option<String>,
}

/// One kernel in the cache.
#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    /// What `uname -r` prints in it.
    pub(crate) version: String,
    /// The folder that stands for `/`.
    pub(crate) dir: PathBuf,
}

impl Kernel {
    /// The kernel called `version`, which need not be in the cache yet.
    pub(crate) fn named(version: &str) -> Result<Self> {
        Ok(Self { version: version.to_owned(), dir: kernels_dir()?.join(version) })
    }

    /// The bootable image.
    pub(crate) fn image(&self) -> PathBuf {
        self.dir.join(format!("boot/vmlinuz-{}", self.version))
    }

    /// The folder that holds `modules/<version>`.
    pub(crate) fn lib(&self) -> PathBuf {
        self.dir.join("lib")
    }

    /// `/lib/modules/<version>`.
    pub(crate) fn modules(&self) -> PathBuf {
        self.lib().join("modules").join(&self.version)
    }

    /// What `make -C` takes to build a module for this kernel.
    pub(crate) fn headers(&self) -> PathBuf {
        self.dir.join(format!("usr/src/linux-headers-{}", self.version))
    }

    /// Whether `setup` finished this one: it writes modules.dep last.
    pub(crate) fn is_complete(&self) -> bool {
        self.image().is_file() && self.modules().join("modules.dep").is_file()
    }
}

/// The kernel called `version`, or the newest; set up first if the cache has none.
pub(crate) fn choose(version: Option<&str>) -> Result<Kernel> {
    if let Some(version) = version {
        let kernel = Kernel::named(version)?;
        if !kernel.is_complete() {
            setup::kernel::install(Some(version))?;
        }
        return Ok(kernel);
    }
    match newest(&cached()?) {
        Some(kernel) => Ok(kernel.clone()),
        None => setup::kernel::install(None),
    }
}

pub(crate) fn print_dir(args: &Args) -> Result<()> {
    let kernel = choose(args.kernel.as_deref())?;
    let headers = kernel.headers();
    if !headers.join("Makefile").is_file() {
        bail!("kernel {} in the cache has no headers: no {}", kernel.version, headers.display());
    }
    println!("{}", headers.display());
    Ok(())
}

fn kernels_dir() -> Result<PathBuf> {
    Ok(paths::cache()?.join("kernels"))
}

/// Those that are complete.
pub(crate) fn cached() -> Result<Vec<Kernel>> {
    let dir = kernels_dir()?;
    if !dir.exists() {
        return Ok(Vec::new());
    }
    let kernels = entries(&dir)?.into_iter().map(|version| Kernel { dir: dir.join(&version), version });
    Ok(kernels.filter(Kernel::is_complete).collect())
}

fn entries(dir: &Path) -> Result<Vec<String>> {
    let names = fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    Ok(names.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
}

/// Others, such as the debug kernel, are only taken by name.
fn newest(kernels: &[Kernel]) -> Option<&Kernel> {
    kernels
        .iter()
        .filter(|kernel| setup::kernel::is_stock(&kernel.version))
        .max_by_key(|kernel| setup::kernel::order(&kernel.version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_is_by_number_and_stock_only() {
        let kernels =
            ["6.12.95+deb12-amd64", "6.12.117+deb12-amd64", "6.12.200-lockdep", "6.12.9+deb12-amd64"]
                .map(|version| Kernel { version: version.into(), dir: PathBuf::new() });
        assert_eq!(newest(&kernels).unwrap().version, "6.12.117+deb12-amd64");
        assert!(newest(&kernels[2..3]).is_none());
    }
}
