//! The command line.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use tbv_core::{Filter, Hook, events};

const EXIT: &str = "\
Exit status:
  0    fine
  2    wrong usage, or a file that cannot be used
  3    cannot measure here; the message says what to do
  4    data was lost, under --strict
  126  the command cannot be executed
  127  there is no such command
  otherwise the command's own; 128 + n if signal n ended it";

/// Counts every call of RDMA programs into the kernel (ib_uverbs), exactly
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT, propagate_version = true)]
pub(crate) struct Cli {
    /// Say more on standard error: what is attached, and what the eBPF programs log
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command and count its calls and those of its children
    Run(RunArgs),
    /// Count the calls of programs that run already
    Attach(AttachArgs),
    /// Print single calls as they return, a line each
    Events(EventsArgs),
    /// Show where the time goes: latency histograms of messages and calls
    Hist(HistArgs),
    /// Write a recording: counts and histograms of every interval
    Record(RecordArgs),
    /// Offer counts and histograms to Prometheus, over HTTP
    Export(ExportArgs),
    /// Write a trace for Perfetto: calls, and the way of every message
    Timeline(TimelineArgs),
    /// Show a report that `-f json` wrote, or a recording
    Report(ReportArgs),
    /// Compare two reports
    Diff(DiffArgs),
    /// Judge a report's counts by a budget, for CI
    Check(CheckArgs),
    /// Print the JSON schema of reports, of `events -f jsonl`, of budgets or of `doctor -f json`
    Schema(SchemaArgs),
    /// Say what works on this machine, what doesn't, and what to do about it
    Doctor(DoctorArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Print or write the manual pages
    Man(ManArgs),
}

const RUN_EXAMPLES: &str = "\
Examples:
  tbv-trace run -- ib_send_lat -d rxe0 10.0.0.1
  tbv-trace run --iterations 1000 -- ib_send_lat -n 1000 10.0.0.1
  tbv-trace run -f json -o report.json -- ibv_devinfo -v
  tbv-trace run -i 1 -- ib_send_bw -d rxe0 -D 10 10.0.0.1
  tbv-trace run -- sh -c 'server & client; wait'

Children and threads are followed. Tracing ends when CMD ends; processes that it leaves running are counted in
the loss as left_running, unless --wait is given. JSON and CSV go to standard output by default, where CMD's own
output goes too: -o keeps them apart. Statuses 2, 3 and 4 may be CMD's own; exit_status of the JSON report tells.
Under sudo the command runs as the user who called sudo.";

#[derive(Debug, Args)]
#[command(after_help = format!("{RUN_EXAMPLES}\n\n{EXIT}"))]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
    /// When CMD has ended, also wait for the processes that it left running (a signal ends the waiting)
    #[arg(long)]
    pub(crate) wait: bool,
    /// Under sudo, run the command as root all the same
    #[arg(long)]
    pub(crate) as_root: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

const ATTACH_EXAMPLES: &str = "\
Examples:
  tbv-trace attach -p 4242                    until the process ends, or Ctrl-C
  tbv-trace attach -p 4242 -d 10 -i 1         ten seconds, a table every second and one of all
  tbv-trace attach --comm python3 --dev mlx5_0
  tbv-trace attach --cgroup /system.slice/job.service -f jsonl -i 5 -o job.jsonl
  tbv-trace attach -a -d 5 --top 10
  tbv-trace attach -a -d 60 --failed          what failed in a minute";

#[derive(Debug, Args)]
#[command(after_help = format!("{ATTACH_EXAMPLES}\n\n{EXIT}"))]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    pub(crate) who: WhoArgs,
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
    /// End after so many seconds
    #[arg(short, long, value_name = "SECS", value_parser = seconds)]
    pub(crate) duration: Option<Duration>,
}

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

const HIST_EXAMPLES: &str = "\
Examples:
  tbv-trace hist -- sh -c 'ib_send_lat -d usb4_rdma0 & sleep 1; ib_send_lat -d usb4_rdma1 localhost'
  tbv-trace hist -p 4242 -d 10 --by process,qp,opcode
  tbv-trace hist -a -d 60 -i 1 --heatmap      of post_to_completion; --heatmap=call of calls
  tbv-trace hist -a -d 60 -i 1 -f hdr -o times.hlog
  tbv-trace hist --from recording.jsonl --by qp

Shown are, of devices with our own driver: the time from posting a work request to its completion, from there until a
consumer took it (of queues that are polled by system call), recoveries after lost frames, waits for a receive, and
stalls for want of credit; and of every device, the time inside each call. Requests and completions are paired by the
driver's own numbers; what cannot be paired is counted and said. Four thousand histograms are kept, one for each kind,
process, queue pair and opcode and each operation; beyond that counts stay exact, and what has no histogram is said.";
const TIMELINE_EXAMPLES: &str = "\
Examples:
  tbv-trace timeline -o lat.pftrace -- ib_send_lat -d rxe0 10.0.0.1
  tbv-trace timeline -o stall.pftrace -p 4242 -d 5
  tbv-trace timeline -o all.pftrace -a        until Ctrl-C

FILE opens at https://ui.perfetto.dev. A process has a track for each thread's calls and one for each queue pair,
with what happens to it, and below it lanes of requests from posting to completion, of completions until they are
consumed, and of credit stalls, recoveries and RNR waits. Queue pairs need thunderbolt_ibverbs; completions that a
process takes from memory end in no call and are not seen to be consumed. Requests that have no completion when
tracing ends are instants named `open at the end`. Times are CLOCK_MONOTONIC.
What the ring buffers had no room for is counted, and shown on the track `lost` where it happened.";

#[derive(Debug, Args)]
#[command(after_help = format!("{TIMELINE_EXAMPLES}\n\n{EXIT}"))]
#[command(mut_group("WhoArgs", |who| who.required(false)))]
pub(crate) struct TimelineArgs {
    #[command(flatten)]
    pub(crate) who: WhoArgs,
    /// Write the trace to FILE
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// End after so many seconds
    #[arg(short, long, value_name = "SECS", value_parser = seconds, conflicts_with = "command")]
    pub(crate) duration: Option<Duration>,
    /// Size of either ring buffer, of calls and of messages, in bytes, a power of two from 4K to 1G (K, M and G are
    /// understood)
    #[arg(long, value_name = "BYTES", default_value = "8M", value_parser = ring_bytes)]
    pub(crate) ringbuf_size: u32,
    /// When CMD has ended, also wait for the processes that it left running (a signal ends the waiting)
    #[arg(long, conflicts_with = "WhoArgs")]
    pub(crate) wait: bool,
    /// Under sudo, run the command as root all the same
    #[arg(long, conflicts_with = "WhoArgs")]
    pub(crate) as_root: bool,
    #[command(flatten)]
    pub(crate) how: HowArgs,
    /// The command and its arguments: it and its children are traced until it ends
    #[arg(last = true, value_name = "CMD", conflicts_with = "WhoArgs")]
    pub(crate) command: Vec<OsString>,
}

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
            "command", "WhoArgs", "duration", "interval", "samples", "wait", "as_root", "hook", "max_rows"
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

const RECORD_EXAMPLES: &str = "\
Examples:
  tbv-trace record -o job.jsonl -- ib_send_bw -d usb4_rdma1 -D 60 localhost
  tbv-trace record -o day.jsonl -a -i 10
  tbv-trace report day.jsonl
  tbv-trace hist --from day.jsonl --heatmap

A recording is JSON lines: a report of every interval, and one of the whole time at the end. `tbv-trace schema` describes
them. What was recorded up to then is kept whatever ends the recording.";

#[derive(Debug, Args)]
#[command(after_help = format!("{RECORD_EXAMPLES}\n\n{EXIT}"))]
#[command(mut_group("WhoArgs", |who| who.required(false)))]
pub(crate) struct RecordArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  tbv-trace export -a
  tbv-trace export --comm python3 --listen 127.0.0.1:9100
  curl -s http://127.0.0.1:9477/metrics

OpenMetrics text, made anew for every request. docs/grafana.json is a board for it. Only this machine can ask, unless
--listen names another address; there is no authentication.";

#[derive(Debug, Args)]
#[command(after_help = format!("{EXPORT_EXAMPLES}\n\n{EXIT}"))]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) who: WhoArgs,
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9477")]
    pub(crate) listen: std::net::SocketAddr,
    /// End after so many seconds
    #[arg(short, long, value_name = "SECS", value_parser = seconds)]
    pub(crate) duration: Option<Duration>,
    /// Keep at most N rows (process × device × operation); calls beyond are counted as lost
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) max_rows: Option<u32>,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

/// What is measured: a command, or programs that run already.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    #[command(flatten)]
    pub(crate) who: Option<WhoArgs>,
    /// End after so many seconds
    #[arg(short, long, value_name = "SECS", value_parser = seconds, conflicts_with = "command")]
    pub(crate) duration: Option<Duration>,
    /// When the command has ended, also wait for the processes that it left running (a signal ends the waiting)
    #[arg(long, conflicts_with = "WhoArgs")]
    pub(crate) wait: bool,
    /// Under sudo, run the command as root all the same
    #[arg(long, conflicts_with = "WhoArgs")]
    pub(crate) as_root: bool,
    /// A command to run and measure, and its arguments
    #[arg(last = true, value_name = "CMD", conflicts_with = "WhoArgs")]
    pub(crate) command: Vec<OsString>,
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

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tbv-trace report --iterations 1000 report.json
  tbv-trace report --intervals recording.jsonl")]
pub(crate) struct ReportArgs {
    /// Of a recording, show every interval too
    #[arg(long)]
    pub(crate) intervals: bool,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    /// The report; - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

const DIFF_EXAMPLES: &str = "\
Examples:
  tbv-trace diff before.json after.json
  tbv-trace diff --iterations 1000 before.json after.json

Rows are added up over processes of the same name. Times are compared only if both reports come from the
same environment; what differs is said.";

#[derive(Debug, Args)]
#[command(after_help = DIFF_EXAMPLES)]
pub(crate) struct DiffArgs {
    /// Form of the result
    #[arg(short, long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
    /// Also show calls per iteration, for workloads of N iterations
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) iterations: Option<u64>,
    /// The first report
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// The second report
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,
}

const CHECK_EXAMPLES: &str = "\
Examples:
  tbv-trace run -f json -o report.json -- sh -c 'server & client -n 1000 && wait $!'
  tbv-trace check report.json --budget budget.toml --iterations 1000 --strict
  tbv-trace check report.json --budget budget.toml --iterations 1000 --expect post_send=N,completions=2N
  tbv-trace check report.json --budget budget.toml --iterations 1000 --github --junit check.xml

Counts are judged, never times. The work has to be proven first: the command succeeded, and work requests and
completions are exactly those that the budget or --expect declares for N iterations. A report that does not prove
its work is not judged, however few calls it has. docs/budget.md describes budgets, `tbv-trace schema budget`
their form.

Exit status:
  0    the work was done, within every limit
  1    a limit is exceeded; every one that is, is shown
  2    wrong usage, or a file that cannot be used
  3    cannot judge: the work is not proven; what is missing is shown
  4    data was lost, under --strict; nothing is judged";

#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub(crate) struct CheckArgs {
    /// The budget, a TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) budget: PathBuf,
    /// N: how many iterations the workload was told to do
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) iterations: u64,
    /// Work of N iterations, beside or instead of the budget's: post_send=N,completions=2N
    #[arg(long, value_name = "KEY=COUNT", value_delimiter = ',')]
    pub(crate) expect: Vec<String>,
    /// Exit with status 4, and judge nothing, if anything was lost
    #[arg(long)]
    pub(crate) strict: bool,
    /// Form of the result
    #[arg(short, long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
    /// Also write the result to FILE, as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Also write the result to FILE, as tables in Markdown
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Also print what is wrong as annotations of a GitHub workflow; not with -f json
    #[arg(long)]
    pub(crate) github: bool,
    /// The report; - for standard input
    #[arg(value_name = "REPORT")]
    pub(crate) report: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Of what
    #[arg(value_enum, default_value_t = SchemaOf::Report)]
    pub(crate) of: SchemaOf,
}

const DOCTOR_STATUS: &str = "\
Exit status:
  0    something can be measured, perhaps with less than everything
  3    nothing can be measured here; what is MISSING says what to do";

#[derive(Debug, Args)]
#[command(after_help = DOCTOR_STATUS)]
pub(crate) struct DoctorArgs {
    /// Form of the result
    #[arg(short, long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tbv-trace completions bash > /etc/bash_completion.d/tbv-trace")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tbv-trace man | man -l -\n  tbv-trace man --dir /usr/local/share/man/man1"
)]
pub(crate) struct ManArgs {
    /// Write the page of every command into this folder, instead of printing that of tbv-trace
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// Whose calls count. All conditions have to hold.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct WhoArgs {
    /// Processes with these ids, and what they start from now on
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pub(crate) pid: Vec<u32>,
    /// Processes of this name (the first 15 bytes count)
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) comm: Option<String>,
    /// Calls made in this cgroup (version 2) or below it
    #[arg(long, value_name = "PATH")]
    pub(crate) cgroup: Option<PathBuf>,
    /// Calls on these RDMA devices
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) dev: Vec<String>,
    /// Every process
    #[arg(short, long, conflicts_with_all = ["pid", "comm", "cgroup"])]
    pub(crate) all: bool,
}

impl WhoArgs {
    pub(crate) fn filter(&self) -> Filter {
        Filter {
            descendants: false,
            pids: self.pid.clone(),
            comm: self.comm.clone(),
            cgroup: self.cgroup.clone(),
            devices: self.dev.clone(),
        }
    }

    /// As it was said.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if !self.pid.is_empty() {
            let pids: Vec<String> = self.pid.iter().map(u32::to_string).collect();
            words.push(format!("--pid {}", pids.join(",")));
        }
        words.extend(self.comm.iter().map(|comm| format!("--comm {comm}")));
        words.extend(self.cgroup.iter().map(|path| format!("--cgroup {}", path.display())));
        if !self.dev.is_empty() {
            words.push(format!("--dev {}", self.dev.join(",")));
        }
        words
    }
}

/// What `run` and `attach` share.
#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// What all that measure share.
#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    /// Write the result to FILE
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Also give a result of every SECS seconds; the last one is of the whole time
    #[arg(short, long, value_name = "SECS", value_parser = seconds)]
    pub(crate) interval: Option<Duration>,
    /// Keep at most N rows (process × device × operation); calls beyond are counted as lost
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) max_rows: Option<u32>,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

/// How to trace.
#[derive(Debug, Args)]
pub(crate) struct HowArgs {
    /// Attach in this way only: fentry, kprobe, syscall-fentry or raw-syscall
    #[arg(long, value_name = "HOOK")]
    pub(crate) hook: Option<Hook>,
    /// Exit with status 4 if anything was lost
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ShowArgs {
    /// Form of the result
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Also show calls per iteration, for a workload of N iterations
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) iterations: Option<u64>,
    /// Only rows with calls that failed
    #[arg(short = 'x', long)]
    pub(crate) failed: bool,
    /// Only the N rows with the most calls
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people
    Text,
    /// The report, for programs; `tbv-trace schema` describes it
    Json,
    /// The same, a line for each report
    Jsonl,
    /// A line for each row, with one for each way to lose calls
    Csv,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StreamFormat {
    /// A line for people
    Text,
    /// A JSON object a line; `tbv-trace schema events` describes them
    Jsonl,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlainFormat {
    /// For people
    Text,
    /// For programs
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaOf {
    /// A report
    Report,
    /// A line of `events -f jsonl`
    Events,
    /// A budget of `check`, as JSON; it is written in TOML
    Budget,
    /// What `doctor -f json` prints
    Doctor,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if duration >= Duration::from_millis(1) => Ok(duration),
        Err(_) if !seconds.is_nan() && seconds > 0.0 => Err("is too long".to_owned()),
        _ => Err("must be at least 0.001".to_owned()),
    }
}

fn ring_bytes(text: &str) -> Result<u32, String> {
    let (number, unit) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 1 << 10),
        Some((at, 'M' | 'm')) => (&text[..at], 1 << 20),
        Some((at, 'G' | 'g')) => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    let bytes = number.parse::<u32>().ok().and_then(|n| n.checked_mul(unit));
    let fits = |n: &u32| n.is_power_of_two() && (events::RING_MIN..=events::RING_MAX).contains(n);
    bytes.filter(fits).ok_or_else(|| "must be a power of two from 4K to 1G".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_and_times_are_understood_or_refused() {
        assert_eq!(
            ["4096", "4K", "8M", "1g"].map(|t| ring_bytes(t).unwrap()),
            [4096, 4096, 8 << 20, 1 << 30]
        );
        for bad in ["", "K", "3K", "2048", "2G", "4G", "-4K", "8MB"] {
            assert!(ring_bytes(bad).is_err(), "{bad}");
        }
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for bad in ["", "0", "-1", "nan", "inf", "x"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
        assert_eq!(seconds("1e300"), Err("is too long".to_owned()));
    }

    #[test]
    fn someone_has_to_be_named() {
        let parse = |words: &str| Cli::try_parse_from(words.split(' '));
        assert!(parse("tbv-trace attach").is_err());
        assert!(parse("tbv-trace attach -a -p 1").is_err());
        assert!(parse("tbv-trace attach -a --dev rxe0").is_ok());
        let Command::Attach(args) = parse("tbv-trace attach -p 1,2 -p 3 --comm x").unwrap().command else {
            panic!("not attach");
        };
        assert_eq!(args.who.filter().pids, [1, 2, 3]);
        assert_eq!(args.who.words(), ["--pid 1,2,3", "--comm x"]);
    }

    #[test]
    fn a_timeline_is_of_someone_or_of_a_command() {
        let parse = |words: &str| Cli::try_parse_from(words.split(' '));
        let refused = |words: &str| parse(words).unwrap_err().exit_code();
        assert_eq!(refused("tbv-trace timeline -a"), 2);
        assert_eq!(refused("tbv-trace timeline -o x -a -- true"), 2);
        assert_eq!(refused("tbv-trace timeline -o x -p 1 -- true"), 2);
        assert_eq!(refused("tbv-trace timeline -o x -d 1 -- true"), 2);
        assert_eq!(refused("tbv-trace timeline -o x -a --wait"), 2);
        assert_eq!(refused("tbv-trace timeline -o x -a --as-root"), 2);
        assert!(parse("tbv-trace timeline -o x -p 1 -d 5 --strict").is_ok());
        let Command::Timeline(args) = parse("tbv-trace timeline -o x -- sh -c true").unwrap().command else {
            panic!("not timeline");
        };
        assert_eq!(args.command, ["sh", "-c", "true"]);
    }
}
