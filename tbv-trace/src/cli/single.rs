//! Single calls and messages, and where their time goes.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};

use super::{
    EXIT,
    measure::{CommonArgs, HowArgs, ProbeArgs, SourceArgs, WhoArgs},
    values::{ring_bytes, seconds},
};

const EVENTS_EXAMPLES: &str = "\
Examples:
  tbv-trace events -p 4242
  tbv-trace events -a --failed                every call that fails, on any device
  tbv-trace events --comm ib_send_lat -f jsonl -d 1 | jq -r 'select(.event == \"call\") | .op'

A line is written when its call returns; its time is that of the entry, in seconds since tracing began.
QUEUE is the uverbs handle that the request names, where it names one.
What the ring buffer had no room for is counted: a line says so where it happened, and the last line
has the sum. delivered + lost = calls, always.";

#[derive(Debug, Args)]
#[command(after_help = format!("{EVENTS_EXAMPLES}\n\n{EXIT}"))]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    pub(crate) who: WhoArgs,
    /// Form of the lines
    #[arg(short, long, value_enum, default_value_t = StreamFormat::Text)]
    pub(crate) format: StreamFormat,
    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Only calls that return an error
    #[arg(short = 'x', long)]
    pub(crate) failed: bool,
    /// End after so many seconds
    #[arg(short, long, value_name = "SECS", value_parser = seconds)]
    pub(crate) duration: Option<Duration>,
    /// Size of the ring buffer in bytes, a power of two from 4K to 1G (K, M and G are understood)
    #[arg(long, value_name = "BYTES", default_value = "8M", value_parser = ring_bytes)]
    pub(crate) ringbuf_size: u32,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StreamFormat {
    /// A line for people
    Text,
    /// A JSON object a line; `tbv-trace schema events` describes them
    Jsonl,
}

const HIST_EXAMPLES: &str = "\
Examples:
  tbv-trace hist -- sh -c 'ib_send_lat -d usb4_rdma0 & sleep 1; ib_send_lat -d usb4_rdma1 localhost'
  tbv-trace hist -p 4242 -d 10 --by process,qp,opcode
  tbv-trace hist -a -d 60 -i 1 --heatmap      of post_to_completion; --heatmap=call of calls
  tbv-trace hist -a -d 60 -i 1 -f hdr -o times.hlog
  tbv-trace hist --usdt -p 4242 -d 10         also of completions that are polled in user space
  tbv-trace hist --from recording.jsonl --by qp

Shown are, of devices with our own driver: the time from posting a work request to its completion, from there until a
consumer took it (of queues that are polled by system call, and with --usdt of all), recoveries after lost frames,
waits for a receive, and stalls for want of credit; and of every device, the time inside each call. Requests and
completions are paired by the driver's own numbers; what cannot be paired is counted and said. Four thousand histograms
are kept, one for each kind, process, queue pair and opcode and each operation; beyond that counts stay exact, and what
has no histogram is said.";

#[derive(Debug, Args)]
#[command(after_help = format!("{HIST_EXAMPLES}\n\n{EXIT}"))]
#[command(mut_group("WhoArgs", |who| who.required(false)))]
pub(crate) struct HistArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Show what was recorded in FILE, instead of measuring; - for standard input
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "command", "WhoArgs", "duration", "interval", "samples", "wait", "as_root", "hook", "max_rows", "usdt"
        ]
    )]
    pub(crate) from: Option<PathBuf>,
    /// Tell apart by these; the rest is added up
    #[arg(long, value_enum, value_name = "KEY", value_delimiter = ',', default_values = ["process", "opcode"])]
    pub(crate) by: Vec<Key>,
    /// Form of the result
    #[arg(short, long, value_enum, default_value_t = HistFormat::Text)]
    pub(crate) format: HistFormat,
    /// A line of characters for every interval: how many spans of one kind, or calls, took how long, over time
    #[arg(
        long,
        value_name = "KIND",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "post_to_completion",
        value_parser = [
            "post_to_completion", "completion_to_consumed", "recovery", "rnr_wait", "credit_stall", "call"
        ],
        conflicts_with_all = ["format", "by"]
    )]
    pub(crate) heatmap: Option<String>,
    /// Also write every single span to FILE, as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) samples: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// What tells rows of histograms apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Key {
    /// Processes, by id and name
    Process,
    /// Queue pairs
    Qp,
    /// Opcodes of work requests, operations of calls
    Opcode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HistFormat {
    /// Bars and percentiles for people
    Text,
    /// The report, for programs; `tbv-trace schema` describes it
    Json,
    /// The same, a line for each report
    Jsonl,
    /// A line for each row, with one for each way to lose something
    Csv,
    /// OpenMetrics text, as `export` serves it
    Openmetrics,
    /// An HdrHistogram interval log
    Hdr,
}

const TIMELINE_EXAMPLES: &str = "\
Examples:
  tbv-trace timeline -o lat.pftrace -- ib_send_lat -d rxe0 10.0.0.1
  tbv-trace timeline -o stall.pftrace -p 4242 -d 5
  tbv-trace timeline -o all.pftrace -a        until Ctrl-C

FILE opens at https://ui.perfetto.dev. A process has a track for each thread's calls and one for each queue pair,
with what happens to it, and below it lanes of requests from posting to completion, of completions until they are
consumed, and of credit stalls, recoveries and RNR waits. Queue pairs need thunderbolt_ibverbs; completions that a
process takes from memory end in no call and are only seen to be consumed with --usdt. Requests that have no
completion when tracing ends are instants named `open at the end`. Times are CLOCK_MONOTONIC.
What the ring buffers had no room for is counted, and shown on the track `lost` where it happened.";

#[derive(Debug, Args)]
#[command(after_help = format!("{TIMELINE_EXAMPLES}\n\n{EXIT}"))]
#[command(mut_group("WhoArgs", |who| who.required(false)))]
pub(crate) struct TimelineArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Write the trace to FILE
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Size of either ring buffer, of calls and of messages, in bytes, a power of two from 4K to 1G (K, M and G are
    /// understood)
    #[arg(long, value_name = "BYTES", default_value = "8M", value_parser = ring_bytes)]
    pub(crate) ringbuf_size: u32,
    #[command(flatten)]
    pub(crate) probes: ProbeArgs,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}
