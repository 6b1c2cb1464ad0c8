//! `tbv-trace`: counts what RDMA programs ask of the kernel.

/// Tells something on standard error, if anybody can hear it.
macro_rules! say {
    ($($words:tt)*) => {
        let _ = std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("tbv-trace: {}\n", format_args!($($words)*)),
        );
    };
}

mod check;
mod cli;
mod command;
mod diff;
mod doctor;
mod ending;
mod events;
mod exit;
mod export;
mod generated;
#[cfg(test)]
mod golden;
mod hist;
mod measure;
mod output;
mod samples;
mod source;
mod stream_line;
mod table;
mod text;
mod timeline;
mod verbose;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let log = verbose::Log::new(cli.verbose);
    let done = match &cli.command {
        cli::Command::Run(args) => measure::run(args, &log),
        cli::Command::Attach(args) => measure::attach(args, &log),
        cli::Command::Events(args) => events::events(args, &log),
        cli::Command::Hist(args) => hist::command::hist(args, &log),
        cli::Command::Record(args) => measure::record(args, &log),
        cli::Command::Export(args) => export::export(args, &log),
        cli::Command::Timeline(args) => timeline::timeline(args, &log),
        cli::Command::Report(args) => output::report(args),
        cli::Command::Diff(args) => diff::diff(args),
        cli::Command::Check(args) => check::check(args),
        cli::Command::Schema(args) => output::schema(args),
        cli::Command::Doctor(args) => doctor::doctor(args),
        cli::Command::Completions(args) => generated::completions(args),
        cli::Command::Man(args) => generated::man(args),
    };
    done.unwrap_or_else(|error| exit::explain(&error))
}
