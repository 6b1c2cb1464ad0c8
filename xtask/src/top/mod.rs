//! `cargo xtask top`: tbv-top in a guest, in front of a workload.

use std::{
    io::{IsTerminal as _, stdin, stdout},
    process::ExitCode,
};

use anyhow::{Context as _, Result, ensure};

use crate::{build, paths, process, setup, vm};

/// What the guest runs, in the workspace: the guest sees this machine's files.
const SCRIPT: &str = "xtask/src/top/guest.sh";

#[derive(clap::Args)]
#[command(
    after_help = "Ends with tbv-top: q. The workload is ib_send_lat over our driver's virtual cable, again and again.\n\n\
                        Examples:\n  cargo xtask top\n  cargo xtask top -- -i 0.5 --view completion-queues"
)]
pub(crate) struct Args {
    /// Build with optimisations, and use those programs
    #[arg(long)]
    release: bool,
    /// Options of tbv-top
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

/// Installs what is missing, builds, boots and shows.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    // Found out now, not after minutes of building.
    ensure!(
        stdin().is_terminal() && stdout().is_terminal(),
        "tbv-top needs a terminal; without one: target/debug/tbv-top --replay docs/demo.jsonl --batch"
    );
    setup::run(&setup::Args::default())?;
    build::all(args.release)?;
    let mut words = vec!["vm", "-it", "--no-build"];
    words.extend(args.release.then_some("--release"));
    words.extend(["--", "sh", SCRIPT]);
    words.extend(args.options.iter().map(String::as_str));
    let mut guest = process::xtask(words)?;
    let status = guest.current_dir(paths::root()).status().context("cannot start the guest")?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(vm::EXIT_RUNNER)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_are_there() {
        for name in [SCRIPT, "xtask/src/top/workload.sh", "xtask/src/top/record.sh"] {
            assert!(paths::root().join(name).is_file(), "{name}");
        }
    }
}
