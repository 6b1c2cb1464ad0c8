//! `cargo xtask bench`: what tracing costs, what polling costs, the throughput of both ways to poll, and what histograms
//! cost.

mod guest;
mod hist;
mod sweep;

use std::{fs, path::PathBuf, process::Stdio};

use anyhow::{Context as _, Result};

use crate::{paths, process, setup};

#[derive(clap::Args)]
#[command(
    after_help = "Prints and judges nothing. Times are those of this machine while nothing else runs on it.

  tracing  what a traced call costs, natively: needs root and a kernel with BTF; about three minutes
  poll     what a poll of a published completion queue costs next to a system call, natively; seconds
  sweep    throughput of ib_send_bw in a guest, completions polled by ioctl and from memory; about ten minutes
  hist     what latency histograms cost a message of ib_send_lat and ib_send_bw in a guest; about five minutes
  top      how long tbv-top takes for a picture of 500 processes and 2,000 completion queues, natively; seconds
  load     what tbv-top takes of a processor at ten looks a second while four processes call, natively: needs root and a
           kernel with BTF; two minutes

Examples:
  cargo xtask bench
  cargo xtask bench --only tracing --rounds 3
  cargo xtask bench --write                  also into docs/results/{tracing,poll,sweep,hist,top,load}.md"
)]
pub(crate) struct Args {
    /// Rounds; every tracer has its turn in each [default: 9 for tracing, 25 for poll, 3 for sweep, 5 for hist and load,
    /// 200 for top]
    #[arg(long)]
    rounds: Option<u32>,
    /// Only this part
    #[arg(long, value_name = "PART")]
    only: Option<Part>,
    /// Write the results to docs/results, too
    #[arg(long)]
    write: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Tracing,
    Poll,
    Sweep,
    Hist,
    Top,
    Load,
}

impl Part {
    const ALL: [Part; 6] = [Part::Tracing, Part::Poll, Part::Sweep, Part::Hist, Part::Top, Part::Load];

    fn name(self) -> &'static str {
        match self {
            Part::Tracing => "tracing",
            Part::Poll => "poll",
            Part::Sweep => "sweep",
            Part::Hist => "hist",
            Part::Top => "top",
            Part::Load => "load",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Part::Tracing => "What tracing costs",
            Part::Poll => "What a poll of a published completion queue costs",
            Part::Sweep => "Throughput, completions polled by ioctl and from memory",
            Part::Hist => "What latency histograms cost a message",
            Part::Top => "How long tbv-top takes for a picture",
            Part::Load => "What tbv-top takes of a processor",
        }
    }

    /// What the table does not say.
    fn note(self) -> &'static str {
        match self {
            Part::Tracing => {
                "\nWhat limits it: the hook raw-syscall finds the file behind the descriptor by nine reads of kernel memory, \
                 and each\ncall needs three look-ups in hash maps (thread twice, row once). The hooks on ib_uverbs itself \
                 are given the file.\n"
            }
            Part::Poll | Part::Top => "",
            Part::Load => {
                "\nThe calls are ioctls on /dev/null, traced by the hook raw-syscall. What the programs in the kernel take is \
                 the callers'\ntime and not in it.\n"
            }
            Part::Sweep => "\nA difference inside the spread is none.\n",
            Part::Hist => {
                "\nThe arms: nothing is traced; the driver's tracepoints are on, into tracefs, without a program; \
                 `tbv-trace hist -a`;\nthe same with every span streamed (`--samples`). An emulated processor makes \
                 programs dearer than a real one does:\ncompare the arms, and claim no time.\n"
            }
        }
    }

    fn rounds(self, asked: Option<u32>) -> u32 {
        asked.unwrap_or(match self {
            Part::Tracing => 9,
            Part::Poll => 25,
            Part::Sweep => 3,
            Part::Hist | Part::Load => 5,
            Part::Top => 200,
        })
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    setup::run(&setup::Args::default())?;
    let chosen = Part::ALL.into_iter().filter(|part| args.only.is_none_or(|only| only == *part));
    for part in chosen {
        let rounds = part.rounds(args.rounds);
        eprintln!("bench: {}", part.name());
        let table = match part {
            Part::Tracing => natively(&["--rounds", &rounds.to_string()])?,
            Part::Poll => natively(&["poll", "--rounds", &rounds.to_string()])?,
            Part::Top => natively(&["top", "--rounds", &rounds.to_string()])?,
            Part::Sweep => sweep::run(rounds)?,
            Part::Hist => hist::run(rounds)?,
            Part::Load => natively(&["load", "--rounds", &rounds.to_string()])?,
        };
        println!("{table}");
        if args.write {
            write(part, rounds, &table)?;
        }
    }
    Ok(())
}

/// Builds tbv-bench with optimisations and runs it; the table it makes.
fn natively(words: &[&str]) -> Result<String> {
    let build = ["build", "--quiet", "--release", "-p", "tbv-bench"];
    process::quiet(process::command("cargo", build).current_dir(paths::root()))?;
    let program: PathBuf = paths::target().join("release/tbv-bench");
    process::output(process::command(&program.to_string_lossy(), words).stderr(Stdio::inherit()))
}

fn write(part: Part, rounds: u32, table: &str) -> Result<()> {
    let file = paths::root().join("docs/results").join(part.name()).with_extension("md");
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let place = if matches!(part, Part::Sweep | Part::Hist) { "in an emulated guest" } else { "natively" };
    let (title, name, kernel) = (part.title(), part.name(), kernel.trim());
    let text = format!(
        "# {title}\n\n`cargo xtask bench --only {name} --rounds {rounds} --write`, Linux {kernel}, {place}.\n\n```\n\
         {table}```\n{}",
        part.note()
    );
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
}
