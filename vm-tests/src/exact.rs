//! tbv-trace on a client that knows exactly what it sent.

use anyhow::{Result, ensure};

use crate::command::LIMIT;
use crate::report::{self, Report};
use crate::{calls, rxe};

/// Runs `client`, which prints what it sent, under the tbv-trace that `tracer` starts; fails unless the report has
/// exactly that.
pub fn run(tracer: &[&str], options: &[&str], client: &[&str]) -> Result<Report> {
    rxe::set_up()?;
    let (report, output) = report::run_by(tracer, options, client, LIMIT)?;
    check(&report, &output.success()?.stdout)?;
    println!("{} calls, hook {}", calls::total(&report.calls), report.hook());
    Ok(report)
}

/// Fails unless `report` has exactly what a client says that it sent.
pub fn check(report: &Report, printed: &str) -> Result<()> {
    let sent = calls::from_json_lines(printed)?;
    ensure!(calls::total(&sent) > 0, "nothing sent");
    let difference = calls::difference(("sent", &sent), ("counted", &report.calls));
    ensure!(difference.is_empty(), "{difference}");
    ensure!(report.lost()? == 0, "loss: {}", report.json["loss"]);
    Ok(())
}
