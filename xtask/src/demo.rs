//! `cargo xtask demo`: the main job, on a real kernel, in a guest.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::{paths, process, setup, vm};

/// What the guest runs: both sides of `ib_send_lat` under tbv-trace, first on a software RDMA
/// device of the stock kernel, then over our own driver's virtual cable.
const SCRIPT: &str = r#"
set -e
modprobe rdma_rxe
ip link add d0 type dummy
ip addr add 10.9.9.1/24 dev d0
ip link set d0 up
ip link set lo up
rdma link add rxe0 type rxe netdev d0
pair() {
    tbv-trace run --strict --iterations "$1" -- sh -c '
        ib_send_lat -F -d "$2" -n "$1" >/dev/null & server=$!
        until grep -q ":4853 0*:0000 0A " /proc/net/tcp /proc/net/tcp6; do
            kill -0 $server || exit 2
            sleep 0.1
        done
        ib_send_lat -F -d "$3" -n "$1" "$4" >/dev/null && wait $server
    ' ib_send_lat "$@" 2>&1
}
echo "== rdma_rxe, both sides on rxe0"
pair "$1" rxe0 rxe0 10.9.9.1
echo
echo "== thunderbolt_ibverbs, usb4_rdma0 and usb4_rdma1 on a virtual cable"
pair "$1" usb4_rdma0 usb4_rdma1 127.0.0.1
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
    crate::kmod::build(&crate::kernels::choose(None)?)?;
    eprintln!("demo: booting a guest; in it, ib_send_lat -n {} runs over two RDMA drivers", args.iterations);
    let words = ["vm", "--no-build", "--timeout", "300", "--", "bash", "-c", SCRIPT, "demo"];
    let mut guest = process::xtask(words)?;
    let status = guest
        .arg(args.iterations.to_string())
        .current_dir(paths::root())
        .status()
        .context("cannot start the guest")?;
    if status.success() {
        println!(
            "\nWhat this shows: on rdma_rxe each side posts its send by one write(2) an iteration, and the rest of\n\
             its data path never passes ib_uverbs. On our driver every verb is an ioctl: a POST_SEND, a POST_RECV\n\
             and the many POLL_CQ of an iteration; each completion queue says how much was put in and taken out."
        );
    }
    Ok(ExitCode::from(status.code().and_then(|c| u8::try_from(c).ok()).unwrap_or(vm::EXIT_RUNNER)))
}
