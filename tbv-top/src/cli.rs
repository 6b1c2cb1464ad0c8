//! The command line.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use tbv_core::{Filter, Hook};

use crate::app::View;

const HELP: &str = "\
Keys are listed by ?. Without a terminal, or with --batch, --once or -f, text is printed instead.

Examples:
  tbv-top                                     all that happens on this machine (root)
  tbv-top --comm ib_send_lat -i 0.5
  tbv-top --record job.jsonl                  to be looked at again later
  tbv-top --replay docs/demo.jsonl            no root, no RDMA, no tracing
  tbv-top --replay job.jsonl --speed 10
  tbv-top --once -f json                      of one interval
  tbv-top --batch -d 60 -i 5 -f csv --view completion-queues

Exit status:
  0    fine
  2    wrong usage, or a recording that cannot be used
  3    cannot measure here; the message says what to do
  4    data was lost, under --strict
  128 + n  ended by signal n";

/// Shows live who calls the kernel how often for RDMA verbs, and where the time goes
#[derive(Debug, Parser)]
#[command(version, after_help = HELP, args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    /// Something else than to show
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// What to show
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

/// What is made from the tables of keys, fields and options.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print every column: its name, unit and meaning
    Fields,
    /// Print the completions of a shell
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

/// What to show, and how.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Only processes with these ids, and what they start from now on
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pub(crate) pid: Vec<u32>,
    /// Only processes of this name (the first 15 bytes count)
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) comm: Option<String>,
    /// Only calls made in this cgroup (version 2) or below it
    #[arg(long, value_name = "PATH")]
    pub(crate) cgroup: Option<PathBuf>,
    /// Only calls on these RDMA devices
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) dev: Vec<String>,
    /// Length of an interval
    #[arg(short, long, value_name = "SECS", default_value = "1", value_parser = seconds)]
    pub(crate) interval: Duration,
    /// End after so many seconds
    #[arg(short, long, value_name = "SECS", value_parser = seconds)]
    pub(crate) duration: Option<Duration>,
    /// Attach in this way only: fentry, kprobe, syscall-fentry or raw-syscall
    #[arg(long, value_name = "HOOK")]
    pub(crate) hook: Option<Hook>,
    /// Keep at most N rows (process × device × operation); calls beyond are counted as lost
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) max_rows: Option<u32>,
    /// Write a recording to FILE, as `tbv-trace record` does
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Show the recording in FILE, instead of measuring; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "pid", "comm", "cgroup", "dev", "interval", "duration", "hook", "max_rows", "record"
    ])]
    pub(crate) replay: Option<PathBuf>,
    /// Seconds of the recording in a second
    #[arg(long, value_name = "FACTOR", requires = "replay", default_value = "1", value_parser = factor)]
    pub(crate) speed: f64,
    /// Begin at this second of the recording, paused; with --once and --picture, show it
    #[arg(long, value_name = "SECS", requires = "replay", value_parser = moment)]
    pub(crate) at: Option<Duration>,
    /// Print every interval, and all of the time at the end
    #[arg(long, conflicts_with = "once")]
    pub(crate) batch: bool,
    /// Print one interval; of a recording, all of its time
    #[arg(long)]
    pub(crate) once: bool,
    /// Form of what is printed
    #[arg(short, long, value_enum)]
    pub(crate) format: Option<Format>,
    /// Exit with status 4 if anything was lost, when printing
    #[arg(long)]
    pub(crate) strict: bool,
    /// What to show first, or to print as text or CSV
    #[arg(long, value_enum, default_value_t = Table::Processes)]
    pub(crate) view: Table,
    /// Column to sort by
    #[arg(long, value_name = "COLUMN")]
    pub(crate) sort: Option<String>,
    /// Only rows that contain TEXT, in any column or as COLUMN:TEXT
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) filter: String,
    /// Only these columns; `tbv-top fields` lists them
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
    /// Draw the screen into FILE, as SVG, and end
    #[arg(long, value_name = "FILE", requires = "replay", conflicts_with_all = ["batch", "once", "format"])]
    pub(crate) picture: Option<PathBuf>,
    /// Columns and rows of the picture
    #[arg(long, value_name = "COLUMNSxROWS", requires = "picture", default_value = "132x40", value_parser = size)]
    pub(crate) size: (u16, u16),
}

impl ShowArgs {
    /// Whose calls count.
    pub(crate) fn kernel_filter(&self) -> Filter {
        Filter {
            descendants: false,
            pids: self.pid.clone(),
            comm: self.comm.clone(),
            cgroup: self.cgroup.clone(),
            devices: self.dev.clone(),
        }
    }
}

/// Forms of what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people
    Text,
    /// All tables, for programs; of several intervals an array
    Json,
    /// The same, a line for each interval
    Jsonl,
    /// A line for each row of one table
    Csv,
}

/// Tables to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Table {
    /// Processes
    Processes,
    /// Operations of all processes
    Operations,
    /// Queue pairs
    QueuePairs,
    /// Completion queues
    CompletionQueues,
    /// Devices and their links
    Devices,
}

impl Table {
    /// The view that has it.
    pub(crate) fn view(self) -> View {
        match self {
            Table::Processes | Table::Operations | Table::QueuePairs => View::Processes,
            Table::CompletionQueues => View::Queues,
            Table::Devices => View::Devices,
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    match moment(text)? {
        duration if duration < Duration::from_millis(10) => Err("must be at least 0.01".to_owned()),
        duration => Ok(duration),
    }
}

fn moment(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|duration| duration.as_secs() < 1 << 32)
        .ok_or_else(|| "not a number of seconds, or too many".to_owned())
}

fn factor(text: &str) -> Result<f64, String> {
    let factor: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if factor.is_finite() && factor > 0.0 { Ok(factor) } else { Err("must be more than 0".to_owned()) }
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let parts = text.split_once('x').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    parts
        .filter(|(columns, rows)| (1..=1000).contains(columns) && (1..=1000).contains(rows))
        .ok_or_else(|| "must be as 132x40".to_owned())
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
    fn a_recording_is_not_measured() {
        let refused = |words: &str| Cli::try_parse_from(words.split(' ')).unwrap_err().exit_code();
        assert_eq!(refused("tbv-top --replay x -p 1"), 2);
        assert_eq!(refused("tbv-top --replay x --record y"), 2);
        assert_eq!(refused("tbv-top --at 5"), 2);
        assert_eq!(refused("tbv-top --picture x"), 2);
        assert_eq!(refused("tbv-top --batch --once"), 2);
        for wrong in ["--speed 0", "--speed nan", "--at -1", "--at 1e300"] {
            assert_eq!(refused(&format!("tbv-top --replay x {wrong}")), 2, "{wrong}");
        }
        let cli =
            Cli::try_parse_from("tbv-top --replay x --at 1.5 --picture y --size 80x24".split(' ')).unwrap();
        assert_eq!((cli.show.at, cli.show.size), (Some(Duration::from_millis(1500)), (80, 24)));
    }
}
