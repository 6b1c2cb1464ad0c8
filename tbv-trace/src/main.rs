//! `tbv-trace`: counts what RDMA programs ask of the kernel.

mod cli;
mod doctor;
mod exit;
mod output;
mod run;
mod text;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let done = match &cli.command {
        cli::Command::Run(args) => run::run(args),
        cli::Command::Report(args) => output::report(args),
        cli::Command::Schema => output::schema(),
        cli::Command::Doctor => doctor::doctor(),
    };
    done.unwrap_or_else(|error| exit::explain(&error))
}
