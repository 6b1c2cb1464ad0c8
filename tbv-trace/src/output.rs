//! Where results go.

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use anyhow::{Context as _, Result};
use tbv_core::Report;

use crate::{
    cli::{Format, ReportArgs, ShowArgs},
    text,
};

/// `tbv-trace report`.
pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode> {
    let report = Report::read(&args.file)?;
    write(&report, &args.show, &mut io::stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}

/// `tbv-trace schema`.
pub(crate) fn schema() -> Result<ExitCode> {
    let schema = serde_json::to_string_pretty(&Report::json_schema())?;
    writeln!(io::stdout().lock(), "{schema}")?;
    Ok(ExitCode::SUCCESS)
}

/// Opens where `run` writes to: before the command starts, so that a file that cannot be
/// written costs no run. Text goes to standard error by default, for standard output
/// belongs to the command.
pub(crate) fn open(file: Option<&Path>, format: Format) -> Result<Box<dyn Write>> {
    Ok(match (file, format) {
        (Some(path), _) => {
            let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            Box::new(file)
        }
        (None, Format::Text) => Box::new(io::stderr()),
        (None, Format::Json) => Box::new(io::stdout()),
    })
}

/// Writes a report in the form asked for.
pub(crate) fn write(report: &Report, show: &ShowArgs, to: &mut dyn Write) -> Result<()> {
    match show.format {
        Format::Text => to.write_all(text::render(report, show.iterations).as_bytes())?,
        Format::Json => writeln!(to, "{}", report.to_json()?)?,
    }
    to.flush()?;
    Ok(())
}
