//! `cargo xtask demo`: the main job, on a real kernel, in a guest.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::{paths, process, setup, vm};

/// What the guest runs: a software RDMA device, then both sides of `ib_send_lat` under
/// tbv-trace. The server is ready once it listens.
const SCRIPT: &str = r#"
set -e
modprobe rdma_rxe
ip link add d0 type dummy
ip addr add 10.9.9.1/24 dev d0
ip link set d0 up
ip link set lo up
rdma link add rxe0 type rxe netdev d0
exec tbv-trace run --strict --iterations "$1" -- sh -c '
    ib_send_lat -F -d rxe0 -n "$1" >/dev/null & server=$!
    until grep -q ":4853 0*:0000 0A " /proc/net/tcp /proc/net/tcp6; do
        kill -0 $server || exit 2
        sleep 0.1
    done
    ib_send_lat -F -d rxe0 -n "$1" 10.9.9.1 >/dev/null && wait $server
' sh "$1" 2>&1
"#;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cargo xtask demo\n  cargo xtask demo --iterations 5000")]
pub(crate) struct Args {
    /// Iterations of ib_send_lat; an even number
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(2..))]
    iterations: u32,
}

/// Installs what is missing, builds, boots and shows the table.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    setup::run(&setup::Args::default())?;
    eprintln!("demo: building tbv-trace and its eBPF programs");
    crate::build::workspace(false)?;
    eprintln!(
        "demo: booting a guest; in it, ib_send_lat -n {} talks to itself over a software RDMA device (rdma_rxe)",
        args.iterations
    );
    let own = std::env::current_exe().context("cannot tell where xtask itself is")?;
    let words = ["vm", "--no-build", "--timeout", "300", "--", "bash", "-c", SCRIPT, "demo"];
    let mut guest = process::command(&own.to_string_lossy(), words);
    let status = guest
        .arg(args.iterations.to_string())
        .current_dir(paths::root())
        .status()
        .context("cannot start the guest")?;
    if status.success() {
        println!(
            "\nWhat this shows: each side posts its send by one system call (write(2), POST_SEND) an iteration.\n\
             rdma_rxe's other data path never enters the kernel through ib_uverbs, and the QUERY_GID_ENTRY calls\n\
             come from start-up, not from messages."
        );
    }
    Ok(ExitCode::from(status.code().and_then(|c| u8::try_from(c).ok()).unwrap_or(vm::EXIT_RUNNER)))
}
