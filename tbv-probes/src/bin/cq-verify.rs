//! Checks one completion queue against everything that may happen to it.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use tbv_probes::cli::{self, DeviceArguments, EXIT_STATUS};
use tbv_probes::pair::Devices;
use tbv_probes::queue::{self, Ending};
use tbv_probes::verbs::Error;

const EXAMPLES: &str = "\
Examples:
  cq-verify threads -d usb4_rdma0 -p usb4_rdma1        eight threads at one queue
  cq-verify threads --cqe 1 --lanes 4 --count 10000    the smallest queue, four queue pairs
  cq-verify overflow --cqe 7                           more completions than it holds
  USB4_RDMA_CQ=ioctl cq-verify threads                 the same queue, polled by system call

";

/// Checks a completion queue: that each completion comes once and in order, whoever polls, and that nothing that
/// happens to the queue does harm.
#[derive(Parser)]
#[command(name = "cq-verify", version, after_help = format!("{EXAMPLES}{EXIT_STATUS}"))]
struct Arguments {
    #[command(subcommand)]
    check: Check,
}

#[derive(clap::Args)]
struct Common {
    #[command(flatten)]
    devices: DeviceArguments,
    /// Capacity of the queue
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    cqe: u32,
}

#[derive(Subcommand)]
enum Check {
    /// Several threads poll one queue: each completion once, in the order of its queue pair
    Threads {
        #[command(flatten)]
        common: Common,
        /// Threads that poll
        #[arg(long, value_name = "N", default_value_t = 8)]
        threads: u32,
        /// Queue pairs that complete to the queue
        #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
        lanes: u32,
        /// Messages of each queue pair
        #[arg(long, value_name = "N", default_value_t = 1000)]
        count: u64,
    },
    /// More completions than the queue holds: told once, and the queue works on
    Overflow(Common),
    /// An extended queue, polled by two threads
    Extended {
        #[command(flatten)]
        common: Common,
        /// Messages
        #[arg(long, value_name = "N", default_value_t = 1000)]
        count: u64,
    },
    /// Arming and sleeping: never on a completion that is there
    Events {
        #[command(flatten)]
        common: Common,
        /// Times to arm the queue
        #[arg(long, value_name = "N", default_value_t = 10_000)]
        rounds: u64,
        /// Threads that keep processors busy meanwhile
        #[arg(long, value_name = "N", default_value_t = 2)]
        burners: u32,
        /// Milliseconds that no sleep lasts
        #[arg(long, value_name = "MS", default_value_t = 20_000)]
        limit: i32,
    },
    /// What the process may do with the memory of a published queue, and what not
    Access(Common),
    /// Writes into the ring of a published queue, which must kill this program
    WriteRing(Common),
    /// Scribbles over all that the process may write
    Hostile {
        #[command(flatten)]
        common: Common,
        /// Messages
        #[arg(long, value_name = "N", default_value_t = 10_000)]
        count: u64,
    },
    /// Forks while a queue is in use
    Fork(Common),
    /// Receives are flushed when the device goes; waits for that
    Gone(Common),
    /// Closes the device and leaves a queue: nothing of it may stay mapped
    Left(Common),
    /// Traffic until the device goes or this program is killed
    Load {
        #[command(flatten)]
        common: Common,
        /// Closes the device's file after so many milliseconds
        #[arg(long, value_name = "MS", conflicts_with = "destroy_for")]
        close_after: Option<u64>,
        /// Destroys the queue and makes another, for so many milliseconds
        #[arg(long, value_name = "MS")]
        destroy_for: Option<u64>,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().check) {
        Ok(line) => {
            println!("verified: {line}");
            ExitCode::SUCCESS
        }
        Err(error) => cli::end_with("cq-verify", &error),
    }
}

fn run(check: Check) -> Result<String, Error> {
    let open = |common: Common| Ok::<_, Error>((Devices::from(common.devices).open()?, common.cqe));
    match check {
        Check::Threads { common, threads, lanes, count } => {
            let (ports, cqe) = open(common)?;
            queue::threads(&ports, cqe, threads, lanes, count)
        }
        Check::Overflow(common) => open(common).and_then(|(ports, cqe)| queue::overflow(&ports, cqe)),
        Check::Extended { common, count } => {
            open(common).and_then(|(ports, _)| queue::extended(&ports, count))
        }
        Check::Events { common, rounds, burners, limit } => {
            open(common).and_then(|(ports, _)| queue::events(&ports, rounds, burners, limit))
        }
        Check::Access(common) => open(common).and_then(|(ports, cqe)| queue::access(&ports, cqe)),
        Check::WriteRing(common) => open(common).and_then(|(ports, _)| queue::write_ring(&ports)),
        Check::Hostile { common, count } => {
            open(common).and_then(|(ports, cqe)| queue::hostile(&ports, cqe, count))
        }
        Check::Gone(common) => open(common).and_then(|(ports, cqe)| queue::gone(&ports, cqe)),
        Check::Left(common) => open(common).and_then(|(ports, _)| queue::left(ports)),
        Check::Fork(common) => {
            let devices = Devices::from(common.devices);
            queue::fork(&devices.open()?, &devices)
        }
        Check::Load { common, close_after, destroy_for } => {
            let (ports, cqe) = open(common)?;
            let ending = match (close_after, destroy_for) {
                (Some(ms), _) => Ending::CloseFile(Duration::from_millis(ms)),
                (_, Some(ms)) => Ending::Destroy(Duration::from_millis(ms)),
                _ => Ending::Outside,
            };
            queue::load(&ports, cqe, ending)
        }
    }
}
