//! Scripts that run in a guest and print a line for each run.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use anyhow::{Context as _, Result, ensure};

use crate::{build, paths, process};

/// Most seconds of one run.
const RUN_S: u32 = 30;

/// Runs a script of the workspace in a guest that sees it; `add` is given each of the `runs` lines.
pub(super) fn lines(
    script: &str,
    rounds: u32,
    runs: u32,
    mut add: impl FnMut(&str) -> Result<()>,
) -> Result<()> {
    build::all(false)?;
    let limit = (120 + runs * RUN_S).to_string();
    let mut guest = process::xtask(["vm", "--no-build", "--timeout", &limit, "--", "sh", script])?
        .arg(rounds.to_string())
        .current_dir(paths::root())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the guest")?;
    let output = BufReader::new(guest.stdout.take().context("no output to read")?);
    for (number, line) in (1..).zip(output.lines()) {
        let line = line.context("reading the guest's output")?;
        add(&line).with_context(|| format!("not a run: {line:?}"))?;
        eprintln!("bench: {number}/{runs} {line}");
    }
    let status = guest.wait().context("waiting for the guest")?;
    ensure!(status.success(), "the guest: {status}");
    Ok(())
}

/// Least, median and most.
pub(super) fn spread(of: &[f64]) -> [f64; 3] {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |i: usize| sorted.get(i).copied().unwrap_or(f64::NAN);
    let last = sorted.len().saturating_sub(1);
    [at(0), at(last / 2).midpoint(at(sorted.len() / 2)), at(last)]
}
