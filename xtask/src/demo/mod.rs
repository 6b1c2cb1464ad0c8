//! `cargo xtask demo`: the main job, on a real kernel, in a guest.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::{build, paths, process, setup, vm};

/// What the guest runs, in the workspace: the guest sees this machine's files.
const SCRIPT: &str = "xtask/src/demo/guest.sh";

const LESSON: &str = "
What this shows: on rdma_rxe each side posts its send by one write(2) an iteration, and the rest of
its data path never passes ib_uverbs. On our driver every verb is an ioctl: a POST_SEND, a POST_RECV
and the many POLL_CQ of an iteration; each completion queue says how much was put in and taken out.

The errors are no faults: libibverbs asks for what may be there, and is told that it is not, by
QUERY_DEVICE (ENOSPC) and, for each empty entry of the GID table, by QUERY_GID_ENTRY (ENODATA).
The calls per iteration in the line `total` are those of both sides, set-up and end included.";

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cargo xtask demo\n  cargo xtask demo --iterations 5000")]
pub(crate) struct Args {
    /// Iterations of ib_send_lat; an even number
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = even)]
    iterations: u32,
}

/// With an odd number ib_send_lat posts one receive more than it needs, and the calls per iteration do not
/// come out even.
fn even(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number) if number >= 2 && number % 2 == 0 => Ok(number),
        _ => Err("it must be an even number, 2 or more".into()),
    }
}

/// Installs what is missing, builds, boots and shows the table.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    setup::run(&setup::Args::default())?;
    build::all(false)?;
    eprintln!("demo: booting a guest; in it, ib_send_lat -n {} runs over two RDMA drivers", args.iterations);
    let mut guest = process::xtask(["vm", "--no-build", "--timeout", "300", "--", "sh", SCRIPT])?;
    let status = guest
        .arg(args.iterations.to_string())
        .current_dir(paths::root())
        .status()
        .context("cannot start the guest")?;
    if status.success() {
        println!("{LESSON}");
    }
    Ok(ExitCode::from(status.code().and_then(|c| u8::try_from(c).ok()).unwrap_or(vm::EXIT_RUNNER)))
}

#[cfg(test)]
mod tests {
    use clap::Args as _;

    use super::*;

    #[test]
    fn iterations_are_even() {
        let parsed = |number: &str| {
            let command = Args::augment_args(clap::Command::new("demo"));
            let matches = command.try_get_matches_from(["demo", "--iterations", number]);
            matches.map(|matches| matches.get_one::<u32>("iterations").copied())
        };
        assert_eq!(parsed("8").unwrap(), Some(8));
        for wrong in ["7", "0", "-2", "lots", "4294967296"] {
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
