//! Everything a person or CI types to work on tbv: `cargo xtask --help`.

mod bench;
mod build;
mod demo;
mod kernels;
mod kmod;
mod paths;
mod process;
mod setup;
mod test;
mod top;
mod vm;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Work on tbv: set up, build, boot a VM, test", after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  cargo xtask demo                           see what it is for
  cargo xtask top                            look at the live view of a workload
  cargo xtask test                           run the quick tier of all tests
  cargo xtask setup                          install what this machine lacks
  cargo xtask build                          build the workspace with its eBPF programs
  cargo xtask vm -- uname -r                 run a command as root in a guest
  cargo xtask vm -it -- bash                 look around in a guest";

#[derive(Subcommand)]
enum Command {
    /// Install what building and testing needs and this machine lacks
    Setup(setup::Args),
    /// Build the workspace, eBPF programs included
    Build(build::Args),
    /// Run a command as root in a virtual machine that sees this machine's files
    Vm(vm::Args),
    /// Show the main job: a real program's calls, counted in a guest
    Demo(demo::Args),
    /// Look at tbv-top in a guest, with a workload
    Top(top::Args),
    /// Run all checks and tests
    Test(test::Args),
    /// Measure what tracing costs, what polling costs, and throughput
    Bench(bench::Args),
    /// Run sparse and checkpatch over the kernel module
    CheckKmod,
    /// Give the files that tbv-trace's tests write to other implementations of their formats
    CheckFormats,
    /// Print the folder of kernel headers that out-of-tree modules are built against
    KernelDir(kernels::Args),
}

fn main() -> ExitCode {
    let (result, failed) = match Cli::parse().command {
        Command::Setup(args) => (setup::all(&args), 1),
        Command::Build(args) => (build::run(&args), 1),
        Command::Bench(args) => (bench::run(&args), 1),
        Command::CheckKmod => (test::kmod_static::run(), 1),
        Command::CheckFormats => (test::formats::run(), 1),
        Command::KernelDir(args) => (kernels::print_dir(&args), 1),
        Command::Test(args) => (test::run(&args), 1),
        Command::Demo(args) => match demo::run(&args) {
            Ok(status) => return status,
            Err(error) => (Err(error), 1),
        },
        Command::Top(args) => match top::run(&args) {
            Ok(status) => return status,
            Err(error) => (Err(error), 1),
        },
        Command::Vm(args) => match vm::run(&args) {
            Ok(status) => return ExitCode::from(status),
            Err(error) => (Err(error), vm::EXIT_RUNNER),
        },
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(failed)
        }
    }
}
