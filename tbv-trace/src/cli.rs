//! The command line.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use tbv_core::Hook;

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
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command and count its calls and those of its children
    Run(RunArgs),
    /// Show a report that `run -f json` wrote
    Report(ReportArgs),
    /// Print the JSON schema of reports
    Schema,
    /// Say what works on this machine, what doesn't, and what to do about it
    Doctor,
}

const RUN_EXAMPLES: &str = "\
Examples:
  tbv-trace run -- ib_send_lat -d rxe0 10.0.0.1
  tbv-trace run --iterations 1000 -- ib_send_lat -n 1000 10.0.0.1
  tbv-trace run -f json -o report.json -- ibv_devinfo -v
  tbv-trace run -- sh -c 'server & client'";

#[derive(Debug, Args)]
#[command(after_help = format!("{RUN_EXAMPLES}\n\n{EXIT}"))]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    /// Write the result to FILE instead of standard error (text) or standard output (json)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Attach in this way only: fentry, kprobe, syscall-fentry or raw-syscall
    #[arg(long, value_name = "HOOK")]
    pub(crate) hook: Option<Hook>,
    /// Exit with status 4 if anything was lost
    #[arg(long)]
    pub(crate) strict: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tbv-trace report --iterations 1000 report.json")]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    /// The report
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Form of the result
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Also show calls per iteration, for a workload of N iterations
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) iterations: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people
    Text,
    /// The report, for programs; `tbv-trace schema` describes it
    Json,
}
