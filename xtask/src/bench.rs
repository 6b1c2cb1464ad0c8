//! `cargo xtask bench`: builds and runs tbv-bench.

use std::{fs, path::Path, process::Stdio};

use anyhow::{Context as _, Result};

use crate::{paths, process, setup};

#[derive(clap::Args)]
#[command(
    after_help = "Runs on this machine, not in a guest: needs root, a kernel with BTF, and about three minutes.
It prints and judges nothing. Times are those of this machine while nothing else runs on it.

Examples:
  cargo xtask bench
  cargo xtask bench --rounds 3
  cargo xtask bench --write                  also into docs/results/{bench,poll}.md"
)]
pub(crate) struct Args {
    /// Rounds; every tracer has its turn in each
    #[arg(long, default_value_t = 9)]
    rounds: u32,
    /// Write the results to docs/results/bench.md and poll.md, too
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
    let tracing = measure(&program, &["--rounds", &rounds])?;
    let poll = measure(&program, &["poll"])?;
    if args.write {
        let command = format!("cargo xtask bench --rounds {rounds} --write");
        write("bench.md", "What tracing costs", &command, &tracing)?;
        write("poll.md", "What a poll of a published completion queue costs", &command, &poll)?;
    }
    Ok(())
}

/// Runs the program and prints the table it makes.
fn measure(program: &Path, words: &[&str]) -> Result<String> {
    let mut command = process::command(&program.to_string_lossy(), words);
    let table = process::output(command.stderr(Stdio::inherit()))?;
    println!("{table}");
    Ok(table)
}

fn write(name: &str, title: &str, command: &str, table: &str) -> Result<()> {
    let file = paths::root().join("docs/results").join(name);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = kernel.trim();
    let text = format!("# {title}\n\n`{command}`, Linux {kernel}, natively.\n\n```\n{table}```\n");
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
}
