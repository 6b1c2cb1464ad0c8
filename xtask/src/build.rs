//! `cargo xtask build`: the workspace with its eBPF programs, and the kernel module.

use std::path::PathBuf;

use anyhow::Result;

use crate::{
    kernels::{self, Kernel},
    kmod, paths, process, setup,
};

#[derive(clap::Args)]
#[command(after_help = "The first build takes some minutes.\n\nExamples:\n  cargo xtask build\n  \
                        cargo xtask build --release")]
pub(crate) struct Args {
    /// Build with optimisations
    #[arg(long)]
    release: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let kernel = all(args.release)?;
    println!("tbv-trace:     {} (the test programs are beside it)", tracer(args.release).display());
    println!("kernel module: {} (for Linux {})", kmod::module(&kernel).display(), kernel.version);
    Ok(())
}

/// Builds the workspace and the module for the kernel that guests have.
pub(crate) fn all(release: bool) -> Result<Kernel> {
    workspace(release, false)?;
    let kernel = kernels::choose(None)?;
    kmod::build(&kernel)?;
    Ok(kernel)
}

/// Where the workspace's programs are.
pub(crate) fn programs(release: bool) -> PathBuf {
    paths::target().join(if release { "release" } else { "debug" })
}

fn tracer(release: bool) -> PathBuf {
    programs(release).join("tbv-trace")
}

/// Builds every crate; installs the eBPF toolchain first if it is missing. `quiet` leaves out all but errors.
pub(crate) fn workspace(release: bool, quiet: bool) -> Result<()> {
    if !setup::ebpf::is_ready()? {
        setup::ebpf::install(|| Ok(()))?;
    }
    // Not xtask: it runs, and would be built anew with other features than `cargo xtask` builds.
    let mut cargo = process::command("cargo", ["build", "--workspace", "--exclude", "xtask"]);
    if release {
        cargo.arg("--release");
    }
    if quiet {
        cargo.arg("--quiet");
    } else {
        let first = !tracer(release).is_file();
        let time = if first { "; the first time, this takes some minutes" } else { "" };
        eprintln!("build: building the programs, those for eBPF too{time}");
    }
    process::run(cargo.current_dir(paths::root()))
}
