//! `tbv-trace check`: a report judged by a budget.

mod github;
mod junit;
mod markdown;
mod text;

use std::{
    collections::BTreeSet,
    io::{self, Write as _},
    path::Path,
    process::ExitCode,
};

use anyhow::{Result, anyhow, bail};
use tbv_core::{
    Budget, Report,
    budget::{Bound, Check, Outcome, Proof, Verdict, Worker},
};

pub(crate) use self::{github::annotations, junit::junit, markdown::markdown, text::render};
use crate::{
    cli::{CheckArgs, PlainFormat},
    exit, output,
};

pub(crate) fn check(args: &CheckArgs) -> Result<ExitCode> {
    if args.github && args.format == PlainFormat::Json {
        bail!("--github prints lines that are not JSON: leave it or -f json out");
    }
    distinct(args)?;
    let mut budget = Budget::read(&args.budget)?;
    let mut expected = BTreeSet::new();
    for what in &args.expect {
        if !expected.insert(what.split('=').next()) {
            bail!("--expect: {what}: that is expected twice");
        }
        budget.expect(what).map_err(|why| anyhow!("--expect: {why}"))?;
    }
    let verdict = budget.judge(&Report::read(&args.report)?, args.iterations, args.strict)?;
    for (file, text) in [(&args.junit, junit(&verdict)), (&args.markdown, markdown(&verdict))] {
        if let Some(file) = file {
            write(file, &text)?;
        }
    }
    // A reader that went away does not turn a breach into a success.
    output::still_read(print(args, &verdict))?;
    Ok(ExitCode::from(conclude(&verdict)))
}

/// An error if a result would be written over what is read, or over another result.
fn distinct(args: &CheckArgs) -> Result<()> {
    let read = [args.report.as_path(), args.budget.as_path()];
    let results = [args.junit.as_deref(), args.markdown.as_deref()];
    output::distinct(results[0], &read)?;
    output::distinct(results[1], &[&read[..], results[0].as_slice()].concat())
}

fn write(file: &Path, text: &str) -> Result<()> {
    let written = output::open(Some(file)).and_then(|mut out| {
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    });
    // Without its cause, for a pipe without a reader is an error here: someone asked for this file.
    written.map_err(|error| anyhow!("writing {}: {error:#}", file.display()))
}

fn print(args: &CheckArgs, verdict: &Verdict) -> Result<()> {
    let mut out = io::stdout().lock();
    match args.format {
        PlainFormat::Text => write!(out, "{}", render(verdict))?,
        PlainFormat::Json => writeln!(out, "{}", serde_json::to_string_pretty(verdict)?)?,
    }
    if args.github {
        write!(out, "{}", annotations(verdict))?;
    }
    Ok(out.flush()?)
}

/// Says why it is no success, and gives the status.
fn conclude(verdict: &Verdict) -> u8 {
    let summary = summary(verdict);
    match verdict.outcome {
        Outcome::Passed => 0,
        Outcome::Exceeded => {
            say!("the budget is exceeded: {summary}");
            exit::EXCEEDED
        }
        Outcome::Unproven => {
            say!("cannot judge: {summary}");
            exit::CANNOT_MEASURE
        }
        Outcome::Lost => {
            say!("{summary}, and --strict was given");
            exit::LOST
        }
    }
}

/// The outcome in some words.
fn summary(verdict: &Verdict) -> String {
    let checks = verdict.checks.len();
    let unproven = verdict.proofs.iter().filter(|proof| !proof.holds).count();
    match verdict.outcome {
        Outcome::Passed => format!("{checks} of {checks} limits hold"),
        Outcome::Exceeded => {
            let beyond = verdict.checks.iter().filter(|check| !check.holds).count();
            format!("{beyond} of {checks} limits do not hold")
        }
        Outcome::Unproven => {
            format!("the work is not proven, {unproven} of {} demands are not met", verdict.proofs.len())
        }
        Outcome::Lost => format!("{} events were lost", verdict.loss.total),
    }
}

fn bound(bound: Bound) -> String {
    match bound {
        Bound::Equal(limit) => format!("= {limit}"),
        Bound::AtMost(limit) => format!("<= {limit}"),
        Bound::AtLeast(limit) => format!(">= {limit}"),
    }
}

/// As exact as it takes to see on which side of a limit it is, mostly; the calls are exact.
fn rate(check: &Check) -> String {
    let text = format!("{:.4}", check.measured);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn whose(process: Option<&Worker>) -> String {
    process.map_or_else(|| "run".to_owned(), |worker| format!("{} {}", worker.comm, worker.pid))
}

/// A limit, in words.
fn limit(check: &Check) -> String {
    format!("{} per {} {}", check.op, check.per.name(), bound(check.bound))
}

fn breach(check: &Check) -> String {
    format!("{} per {} ({} calls), limit {}", rate(check), check.per.name(), check.calls, bound(check.bound))
}

fn mismatch(proof: &Proof) -> String {
    format!("found {}, expected {}", proof.found, proof.expected)
}
