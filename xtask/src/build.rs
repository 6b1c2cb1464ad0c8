//! `cargo xtask build`: the workspace with its eBPF programs, and the kernel module.

use anyhow::Result;

use crate::{kernels, kmod, paths, process, setup};

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cargo xtask build\n  cargo xtask build --release")]
pub(crate) struct Args {
    /// Build with optimisations
    #[arg(long)]
    release: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    workspace(args.release)?;
    kmod::build(&kernels::choose(None)?)
}

/// Builds every crate; installs the eBPF toolchain first if it is missing.
pub(crate) fn workspace(release: bool) -> Result<()> {
    if !setup::ebpf::is_ready()? {
        setup::ebpf::install()?;
    }
    // Not xtask: it runs, and would be built anew with other features than `cargo xtask` builds.
    let mut cargo = process::command("cargo", ["build", "--workspace", "--exclude", "xtask", "--quiet"]);
    if release {
        cargo.arg("--release");
    }
    process::run(cargo.current_dir(paths::root()))
}
