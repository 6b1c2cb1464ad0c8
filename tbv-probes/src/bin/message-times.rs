//! Sends messages of which it knows how many there were, what became of each, and how long it took.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use tbv_probes::cli::{self, DeviceArguments, EXIT_STATUS};
use tbv_probes::pair::Devices;
use tbv_probes::times;
use tbv_probes::verbs::Error;

const EXAMPLES: &str = "\
Examples:
  message-times latency -d usb4_rdma0 -p usb4_rdma1 --count 1000 --samples own.txt
  message-times mixed -d usb4_rdma0 -p usb4_rdma1 --pairs 64
  tbv-trace hist -- message-times rnr -d usb4_rdma0 -p usb4_rdma1

";

/// Sends messages from one device to the other; the last line says what was posted and what became of it. To be compared
/// with what a tracer says.
#[derive(Parser)]
#[command(name = "message-times", version, after_help = format!("{EXAMPLES}{EXIT_STATUS}"))]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// One message at a time, each timed by this program
    Latency {
        #[command(flatten)]
        devices: DeviceArguments,
        /// Messages
        #[arg(long, value_name = "N", default_value_t = 1000)]
        count: u64,
        /// Write the times of all, in nanoseconds, into FILE
        #[arg(long, value_name = "FILE")]
        samples: Option<PathBuf>,
    },
    /// Many queue pairs, every opcode, signalled or not; flushed, reset, destroyed
    Mixed {
        #[command(flatten)]
        devices: DeviceArguments,
        /// Pairs of queue pairs
        #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1000))]
        pairs: u32,
        /// Lists of messages
        #[arg(long, value_name = "N", default_value_t = 1000)]
        rounds: u64,
        /// Repeats the random choices of another run
        #[arg(long, value_name = "NUMBER", default_value_t = 1)]
        seed: u64,
    },
    /// One direction, as fast as it goes
    OneWay {
        #[command(flatten)]
        devices: DeviceArguments,
        /// Messages
        #[arg(long, value_name = "N", default_value_t = 10_000)]
        count: u64,
        /// Bytes of a message
        #[arg(long, value_name = "BYTES", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=65_536))]
        bytes: u32,
    },
    /// Messages that have no receive at first
    Rnr {
        #[command(flatten)]
        devices: DeviceArguments,
        /// Messages
        #[arg(long, value_name = "N", default_value_t = 20)]
        count: u64,
        /// Milliseconds until there is one
        #[arg(long, value_name = "MS", default_value_t = 20)]
        late: u64,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().what) {
        Ok(line) => {
            println!("done: {line}");
            ExitCode::SUCCESS
        }
        Err(error) => cli::end_with("message-times", &error),
    }
}

fn run(what: What) -> Result<String, Error> {
    let open = |devices: DeviceArguments| Devices::from(devices).open();
    match what {
        What::Latency { devices, count, samples } => {
            times::latency(&open(devices)?, count, samples.as_deref())
        }
        What::Mixed { devices, pairs, rounds, seed } => times::mixed(&open(devices)?, pairs, rounds, seed),
        What::OneWay { devices, count, bytes } => times::one_way(&open(devices)?, count, bytes as usize),
        What::Rnr { devices, count, late } => times::rnr(&open(devices)?, count, Duration::from_millis(late)),
    }
}
