//! What is measured, how, and in which form it is shown.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::Result;
use clap::{Args, ValueEnum};
use tbv_core::{Filter, Hook, usdt};

use super::{
    EXIT,
    values::{address, seconds},
};

const RUN_EXAMPLES: &str = "\
Examples:
  tbv-trace run -- ib_send_lat -d rxe0 10.0.0.1
  tbv-trace run --iterations 1000 -- ib_send_lat -n 1000 10.0.0.1
  tbv-trace run -f json -o report.json -- ibv_devinfo -v
  tbv-trace run -i 1 -- ib_send_bw -d rxe0 -D 10 10.0.0.1
  tbv-trace run --usdt -- ib_send_lat -d usb4_rdma1 localhost
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

const RECORD_EXAMPLES: &str = "\
Examples:
  tbv-trace record -o job.jsonl -- ib_send_bw -d usb4_rdma1 -D 60 localhost
  tbv-trace record -o day.jsonl -a -i 10
  tbv-trace report day.jsonl
  tbv-trace hist --from day.jsonl --heatmap

A recording is JSON lines: a report of every interval (a second, unless -i says
otherwise), and one of the whole time at the end. `tbv-trace schema` describes
them. What was recorded up to then is kept whatever ends the recording.";

#[derive(Debug, Args)]
#[command(after_help = format!("{RECORD_EXAMPLES}\n\n{EXIT}"))]
#[command(mut_group("WhoArgs", |who| who.required(false)), mut_arg("output", |output| output.required(true)))]
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
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9477", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// End after so many seconds
    #[arg(short, long, value_name = "SECS", value_parser = seconds)]
    pub(crate) duration: Option<Duration>,
    /// Keep at most N rows (process × device × operation); calls beyond are counted as lost
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) max_rows: Option<u32>,
    #[command(flatten)]
    pub(crate) probes: ProbeArgs,
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

    /// Files of our provider that these processes use, or may.
    pub(crate) fn providers(&self) -> tbv_core::Result<Vec<PathBuf>> {
        if self.pid.is_empty() { usdt::find_anywhere() } else { usdt::find(&self.pid) }
    }

    /// As it was said.
    pub(crate) fn words(&self) -> Vec<String> {
        self.filter().words()
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
    pub(crate) probes: ProbeArgs,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

/// What else to attach to.
#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// Also attach to the probes of our provider: how often queues are polled in user space, and how long completions wait
    /// there. Every such poll then takes a breakpoint, so that polling gets slower. FILE is the provider's library, where it
    /// is not found in the processes or by libibverbs' rules
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, value_delimiter = ',')]
    pub(crate) usdt: Option<Vec<PathBuf>>,
}

impl ProbeArgs {
    /// The files to attach to; none unless asked for.
    pub(crate) fn files(
        &self,
        find: impl FnOnce() -> tbv_core::Result<Vec<PathBuf>>,
    ) -> Result<Vec<PathBuf>> {
        Ok(match &self.usdt {
            None => Vec::new(),
            Some(files) if files.is_empty() => find()?,
            Some(files) => files.clone(),
        })
    }
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
