//! What is done with reports that are there.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::measure::ShowArgs;

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlainFormat {
    /// For people
    Text,
    /// For programs
    Json,
}
