//! `cargo xtask bench`: builds and runs tbv-bench.

use std::fs;

use anyhow::{Context as _, Result};

use crate::{paths, process, setup};

#[derive(clap::Args)]
#[command(
    after_help = "Runs on this machine, not in a guest: needs root, a kernel with BTF, and about three minutes.
It prints and judges nothing. Times are those of this machine while nothing else runs on it.

Examples:
  cargo xtask bench
  cargo xtask bench --rounds 3
  cargo xtask bench --write                  also into docs/results/bench.md"
)]
pub(crate) struct Args {
    /// Rounds; every tracer has its turn in each
    #[arg(long, default_value_t = 9)]
    rounds: u32,
    /// Write the result to docs/results/bench.md, too
    #[arg(long)]
    write: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    setup::run(&setup::Args::default())?;
    let build = ["build", "--quiet", "--release", "-p", "tbv-bench"];
    eprintln!("bench: building tbv-bench and its eBPF programs, with optimisations");
    process::quiet(process::command("cargo", build).current_dir(paths::root()))?;
    let program = paths::target().join("release/tbv-bench");
    let rounds = args.rounds.to_string();
    let mut command = process::command(&program.to_string_lossy(), ["--rounds", &rounds]);
    command.stderr(std::process::Stdio::inherit());
    let table = process::output(&mut command)?;
    print!("{table}");
    if args.write {
        let file = paths::root().join("docs/results/bench.md");
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let text = format!(
            "# What tracing costs\n\n`cargo xtask bench --rounds {rounds} --write`, Linux {}, natively.\n\n```\n{table}```\n",
            kernel.trim()
        );
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}
