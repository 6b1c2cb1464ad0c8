//! `tbv-trace doctor`.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use anyhow::Result;
use tbv_core::doctor::{Status, examine};

use crate::exit;

/// Prints every check; the status tells whether anything can be measured.
pub(crate) fn doctor() -> Result<ExitCode> {
    let checks = examine();
    let mut out = io::stdout().lock();
    for check in &checks {
        let status = match check.status {
            Status::Ok => "ok",
            Status::Degraded => "degraded",
            Status::Missing => "MISSING",
        };
        let found = check.found.replace('\n', "\n                          ");
        writeln!(out, "{:<8}  {:<14}  {found}", status, check.name)?;
        if let Some(fix) = &check.fix {
            writeln!(out, "{:26}-> {fix}", "")?;
        }
    }
    let usable = checks.iter().all(|check| check.status != Status::Missing);
    Ok(ExitCode::from(if usable { 0 } else { exit::CANNOT_MEASURE }))
}
