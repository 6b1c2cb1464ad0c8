//! Checks every byte that SEND and RECV move over a reliable connection.

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Parser;
use tbv_probes::cli::{self, DeviceArguments, EXIT_STATUS};
use tbv_probes::pair::Devices;
use tbv_probes::verbs::{Addressing, Error};
use tbv_probes::verify::{Runner, Settings};

const EXAMPLES: &str = "\
Examples:
  rc-verify                                    first device, connected to itself
  rc-verify -d usb4_rdma0 -p usb4_rdma1        the two ends of a cable
  rc-verify -d rxe0 --count 10000 --seed 42    repeat a run exactly

";

/// Checks every byte that SEND, SEND with immediate data and RECV move over a reliable connection.
///
/// Both ends are in this process. First every size at which something may break, up to --max-size; then --count random
/// messages: sizes, offsets, scatter/gather pieces, spare room, immediate data, signalling, bursts and directions by
/// chance. Of each message are checked: its bytes, the bytes around every piece on both sides, and all fields of its
/// completions.
#[derive(Parser)]
#[command(name = "rc-verify", version, after_help = format!("{EXAMPLES}{EXIT_STATUS}"))]
struct Arguments {
    #[command(flatten)]
    devices: DeviceArguments,
    /// Random messages
    #[arg(short, long, value_name = "N", default_value_t = 1000)]
    count: u64,
    /// Repeats the random choices of another run [default: another one each time]
    #[arg(short, long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Longest message of the sweep
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = cli::parse_bytes)]
    max_size: usize,
    /// Longest random message
    #[arg(long, value_name = "SIZE", default_value = "64K", value_parser = cli::parse_bytes)]
    random_size: usize,
    /// Most pieces of a message, as far as the devices have them
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    sges: u16,
    /// Most messages under way in one direction
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=4096))]
    depth: u16,
    /// Seconds after which a completion is given up
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    timeout: u64,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => cli::end_with("rc-verify", &error),
    }
}

fn run(arguments: Arguments) -> Result<(), Error> {
    let seed = arguments.seed.unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| u64::from(now.subsec_nanos()))
    });
    let settings = Settings {
        max_bytes: arguments.max_size,
        random_bytes: arguments.random_size,
        max_sges: arguments.sges.into(),
        depth: arguments.depth.into(),
        patience: Duration::from_secs(arguments.timeout),
    };
    let ports = Devices::from(arguments.devices).open()?;
    let mut runner = Runner::new(&ports, settings, seed)?;

    let [first, second] = &ports.contexts;
    let [from, to] = runner.queue_pairs();
    let addressing = match ports.addresses[0].addressing {
        Addressing::Lid => "by LID".to_string(),
        Addressing::Gid(index) => format!("by GID {index}"),
    };
    println!("{} qp {from} <-> {} qp {to}, {addressing}, seed {seed}", first.name(), second.name());

    runner.sweep()?;
    let swept = runner.totals();
    println!(
        "sizes: {} messages, {}, up to {}",
        swept.messages,
        cli::bytes(swept.bytes),
        cli::bytes(arguments.max_size as u64)
    );

    runner.chance(arguments.count)?;
    let all = runner.totals();
    println!(
        "random: {} messages, {}, up to {} in up to {} pieces",
        all.messages - swept.messages,
        cli::bytes(all.bytes - swept.bytes),
        cli::bytes(arguments.random_size as u64),
        runner.settings().max_sges
    );
    println!(
        "verified: messages={} bytes={} send_completions={} receive_completions={}",
        all.messages, all.bytes, all.send_completions, all.receive_completions
    );
    Ok(())
}
