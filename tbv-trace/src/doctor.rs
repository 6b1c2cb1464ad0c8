//! `tbv-trace doctor`.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::Result;
use tbv_core::doctor::{Check, Status, examine};

use crate::{
    cli::{DoctorArgs, PlainFormat},
    exit,
};

/// Columns before what was found.
const STATUS: usize = 8;
const NAME: usize = 19;
const GAP: usize = 2;

/// Prints every check; the status tells whether anything can be measured.
pub(crate) fn doctor(args: &DoctorArgs) -> Result<ExitCode> {
    let checks = examine();
    let mut out = io::stdout().lock();
    match args.format {
        PlainFormat::Text => text(&checks, &mut out)?,
        PlainFormat::Json => writeln!(out, "{}", serde_json::to_string_pretty(&checks)?)?,
    }
    let usable = checks.iter().all(|check| check.status != Status::Missing);
    Ok(ExitCode::from(if usable { 0 } else { exit::CANNOT_MEASURE }))
}

fn text(checks: &[Check], out: &mut impl Write) -> io::Result<()> {
    let indent = " ".repeat(STATUS + GAP + NAME + GAP);
    for check in checks {
        let status = match check.status {
            Status::Ok => "ok",
            Status::Degraded => "degraded",
            Status::Missing => "MISSING",
        };
        let found = check.found.replace('\n', &format!("\n{indent}"));
        writeln!(out, "{status:<STATUS$}  {:<NAME$}  {found}", check.name)?;
        if let Some(fix) = &check.fix {
            writeln!(out, "{indent}-> {fix}")?;
        }
    }
    Ok(())
}
