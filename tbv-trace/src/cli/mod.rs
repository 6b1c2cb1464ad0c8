//! The command line.

mod files;
mod measure;
mod single;
mod values;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use files::{CheckArgs, DiffArgs, PlainFormat, ReportArgs};
pub(crate) use measure::{
    AttachArgs, CommonArgs, ExportArgs, Format, MeasureArgs, ProbeArgs, RecordArgs, RunArgs, ShowArgs,
    SourceArgs, WhoArgs,
};
pub(crate) use single::{EventsArgs, HistArgs, HistFormat, Key, StreamFormat, TimelineArgs};

const EXIT: &str = "\
Exit status:
  0    fine
  1    a budget is exceeded (`check` only)
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

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Of what
    #[arg(value_enum, default_value_t = SchemaOf::Report)]
    pub(crate) of: SchemaOf,
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
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
    fn the_providers_file_can_be_named_or_left_to_be_found() {
        let usdt = |words: &str| match Cli::try_parse_from(words.split(' ')).unwrap().command {
            Command::Run(args) => (args.measure.common.probes.usdt, args.command.len()),
            _ => panic!("not run"),
        };
        let files = |names: &[&str]| Some(names.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(usdt("tbv-trace run -- true"), (None, 1));
        assert_eq!(usdt("tbv-trace run --usdt -- true"), (files(&[]), 1));
        assert_eq!(usdt("tbv-trace run --usdt true x"), (files(&[]), 2));
        assert_eq!(usdt("tbv-trace run --usdt=a,b -- true"), (files(&["a", "b"]), 1));
        assert!(Cli::try_parse_from(["tbv-trace", "run", "--usdt=", "true"]).is_err());
        assert!(Cli::try_parse_from(["tbv-trace", "events", "-a", "--usdt"]).is_err());
        assert!(Cli::try_parse_from(["tbv-trace", "hist", "--from", "x", "--usdt"]).is_err());
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
        assert_eq!(args.source.command, ["sh", "-c", "true"]);
    }
}
