//! Where results go.

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
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

/// Where `run` writes to.
pub(crate) enum Output {
    /// A file with its name. It keeps what it held until there is something new.
    File(File, PathBuf),
    /// Text, by default: standard output belongs to the command.
    Stderr,
    /// JSON, by default.
    Stdout,
}

impl Output {
    /// Before the command starts, so that a file that cannot be written costs no run.
    pub(crate) fn open(file: Option<&Path>, format: Format) -> Result<Self> {
        Ok(match (file, format) {
            (Some(path), _) => {
                let mut options = File::options();
                let file = options.write(true).create(true).truncate(false).open(path);
                Output::File(file.with_context(|| cannot_write(path))?, path.to_owned())
            }
            (None, Format::Text) => Output::Stderr,
            (None, Format::Json) => Output::Stdout,
        })
    }

    /// Gives up what a file held before.
    pub(crate) fn begin(self) -> Result<Box<dyn Write>> {
        Ok(match self {
            Output::File(file, path) => {
                // A pipe or a device has no length to set.
                if file.metadata().is_ok_and(|m| m.is_file()) {
                    file.set_len(0).with_context(|| cannot_write(&path))?;
                }
                Box::new(file)
            }
            Output::Stderr => Box::new(io::stderr()),
            Output::Stdout => Box::new(io::stdout()),
        })
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
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
