//! `cargo xtask setup`: installs what a machine lacks. Safe to run again.

mod apt;
pub(crate) mod checkpatch;
pub(crate) mod debug_kernel;
pub(crate) mod ebpf;
pub(crate) mod kernel;
mod linux_source;
mod packages;
pub(crate) mod python;
mod sources;

use std::fs::{self, File};

use anyhow::{Context, Result};

use crate::{kernels, paths, process};

#[derive(clap::Args, Default)]
#[command(after_help = "Packages go to the system and need root. All else goes to a cache: $TBV_CACHE, \
                        $XDG_CACHE_HOME/tbv or ~/.cache/tbv.\n\nExamples:\n  cargo xtask setup\n  \
                        TBV_CACHE=/var/cache/tbv cargo xtask setup")]
pub(crate) struct Args {
    /// Also set up this kernel version [default: the newest that suits]
    #[arg(long)]
    kernel: Option<String>,
}

/// Also what only checks need, which install it themselves: for whoever will have no network then.
pub(crate) fn all(args: &Args) -> Result<()> {
    run(args)?;
    checkpatch::install()?;
    python::install()
}

/// What everything needs.
pub(crate) fn run(args: &Args) -> Result<()> {
    packages::can_install()?;
    // Of all packages, compiling needs those alone by which a linker comes.
    if process::find_program("cc").is_none() {
        packages::install()?;
    }
    // What is fetched comes while bpf-linker compiles.
    ebpf::install(|| {
        packages::install()?;
        let kernel = kernels::choose(args.kernel.as_deref())?;
        say(&format!("kernel: {} is there", kernel.version));
        Ok(())
    })
}

/// Tells what setup is doing.
fn say(what: &str) {
    eprintln!("setup: {what}");
}

/// Keeps two setups from writing one part of the cache at once; released when dropped.
fn lock(part: &str) -> Result<File> {
    let dir = paths::cache()?;
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}; set TBV_CACHE", dir.display()))?;
    let path = dir.join(format!("{part}.lock"));
    let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    if file.try_lock().is_err() {
        say(&format!("{part}: waiting for another setup to finish"));
        file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    }
    Ok(file)
}
