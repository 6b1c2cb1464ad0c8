//! `cargo xtask demo`: the main job, on a real kernel, in a guest.

mod proof;

use std::{
    io::{BufRead as _, BufReader},
    process::{ExitCode, Stdio},
};

use anyhow::{Context as _, Result};

use self::proof::Proof;
use crate::{build, paths, process, setup, vm};

/// What the guest runs, in the workspace: the guest sees this machine's files.
const SCRIPT: &str = "xtask/src/demo/guest.sh";

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cargo xtask demo\n  cargo xtask demo --iterations 5000 --rounds 2")]
pub(crate) struct Args {
    /// Iterations of ib_send_lat in a run; an even number, 1000 or more
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = iterations)]
    iterations: u32,
    /// Runs of each arm
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
}

/// With an odd number ib_send_lat can post one receive more than it needs, and the calls per iteration do not
/// come out even; with few, setting up weighs more (ci/mapped.toml).
fn iterations(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number) if number >= 1000 && number % 2 == 0 => Ok(number),
        _ => Err("it must be an even number, 1000 or more".into()),
    }
}

/// Installs what is missing, builds, boots and shows the table.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    setup::run(&setup::Args::default())?;
    build::all(false)?;
    let runs = 2 * args.rounds;
    eprintln!(
        "demo: booting a guest; in it, ib_send_lat -n {} runs {runs} times over our driver, with completions polled by \
         ioctl and from memory in turn",
        args.iterations
    );
    // Every run takes some seconds, in an emulator and beside strict counting.
    let limit = 120 + 30 * runs + args.iterations / 100 * runs;
    let mut guest =
        process::xtask(["vm", "--no-build", "--timeout", &limit.to_string(), "--", "sh", SCRIPT])?;
    let mut guest = guest
        .args([args.iterations.to_string(), args.rounds.to_string()])
        .current_dir(paths::root())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the guest")?;
    let mut proof = Proof::new(args.iterations);
    for line in BufReader::new(guest.stdout.take().context("no output to read")?).lines() {
        let told = proof.add(&line.context("reading the guest's output")?)?;
        eprintln!("demo: {}/{runs} {told}", proof.runs());
    }
    let status = guest.wait().context("waiting for the guest")?;
    if status.success() {
        println!("{}", proof.table()?);
    }
    Ok(ExitCode::from(status.code().and_then(|c| u8::try_from(c).ok()).unwrap_or(vm::EXIT_RUNNER)))
}

#[cfg(test)]
mod tests {
    use clap::Args as _;

    use super::*;

    #[test]
    fn iterations_are_even_and_many() {
        let parsed = |number: &str| {
            let command = Args::augment_args(clap::Command::new("demo"));
            let matches = command.try_get_matches_from(["demo", "--iterations", number]);
            matches.map(|matches| matches.get_one::<u32>("iterations").copied())
        };
        assert_eq!(parsed("1000").unwrap(), Some(1000));
        for wrong in ["1001", "998", "0", "-2", "lots", "4294967296"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
        let message = parsed("7").unwrap_err().to_string();
        assert!(message.contains("even number"), "{message}");
    }

    #[test]
    fn the_script_is_there() {
        assert!(paths::root().join(SCRIPT).is_file());
    }
}
