//! Where results go.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};
use tbv_core::{
    Report,
    result_file::{ResultFile, is_same_file},
};

use crate::{
    cli::{Format, ReportArgs, SchemaArgs, SchemaOf, ShowArgs},
    exit, stream_line, table, text,
};

/// `tbv-trace report`.
pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode> {
    let out = Reports::open(None, Output::Stdout, Box::new(Shown::new(&args.show)))?;
    recorded(&args.file, out, args.intervals).map(|shown| shown.code)
}

/// What was shown of a file.
pub(crate) struct Recorded {
    pub(crate) code: ExitCode,
    /// Whether intervals were among it.
    pub(crate) intervals: bool,
    /// What the whole of it lost.
    pub(crate) lost: u64,
}

/// Shows a report or a recording: the result of the whole time, and before it all intervals if these are wanted. Of a file
/// that can be used up to some place, what comes before that.
pub(crate) fn recorded(file: &Path, mut out: Reports, intervals: bool) -> Result<Recorded> {
    let mut shown = Recorded { code: ExitCode::SUCCESS, intervals: false, lost: 0 };
    // The result of the whole time, or what the intervals so far add up to.
    let mut whole: Option<Report> = None;
    for report in tbv_core::recording::read(file)? {
        let report = match (report, &whole) {
            (Ok(report), _) => report,
            (Err(error), None) => return Err(error.into()),
            (Err(error), Some(_)) => {
                say!("{error}; what comes before is shown");
                shown.code = ExitCode::from(exit::USAGE);
                break;
            }
        };
        if whole.as_ref().is_some_and(|whole| whole.interval.is_none()) {
            say!(
                "{}: after a result of the whole time comes another report; only the first result is shown",
                file.display()
            );
            shown.code = ExitCode::from(exit::USAGE);
            break;
        }
        shown.intervals |= report.interval.is_some();
        if intervals && report.interval.is_some() && !still_read(out.write(&report))? {
            return Ok(shown);
        }
        match &mut whole {
            Some(sum) if report.interval.is_some() => sum.merge(&report),
            _ => whole = Some(report),
        }
    }
    let Some(mut whole) = whole else { return Ok(shown) };
    if whole.interval.is_some() {
        whole = whole.to_add_up();
        say!("{} has no result of the whole time: its writer was killed, or still writes", file.display());
        say!("its intervals are added up");
    }
    shown.lost = whole.loss.total;
    still_read(out.write(&whole))?;
    Ok(shown)
}

/// `tbv-trace schema`.
pub(crate) fn schema(args: &SchemaArgs) -> Result<ExitCode> {
    let schema = match args.of {
        SchemaOf::Report => Report::json_schema(),
        SchemaOf::Events => stream_line::json_schema(),
        SchemaOf::Budget => tbv_core::Budget::json_schema(),
        SchemaOf::Doctor => tbv_core::doctor::json_schema(),
    };
    writeln!(io::stdout().lock(), "{}", serde_json::to_string_pretty(&schema)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Where results go unless `-o` says otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Output {
    /// For text beside a command: standard output belongs to it.
    Stderr,
    /// Else.
    Stdout,
}

/// The file that lines go to, or standard output.
pub(crate) fn open(file: Option<&Path>) -> Result<Box<dyn Write>> {
    let Some(path) = file else { return Ok(Box::new(io::stdout())) };
    let file = ResultFile::open(path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(Box::new(file))
}

/// Files as [`distinct`] takes them.
pub(crate) fn paths(files: &[PathBuf]) -> Vec<&Path> {
    files.iter().map(PathBuf::as_path).collect()
}

/// An error if `result` is one of the other files, by whatever name.
pub(crate) fn distinct(result: Option<&Path>, others: &[&Path]) -> Result<()> {
    let Some(result) = result else { return Ok(()) };
    match others.iter().find(|other| is_same_file(result, other)) {
        Some(other) => bail!("{} is named twice: a result would be lost", other.display()),
        None => Ok(()),
    }
}

/// One or more reports, in the form asked for.
pub(crate) struct Reports {
    to: Box<dyn Write>,
    /// Names what is written to, in errors.
    name: String,
    form: Box<dyn Form>,
}

/// A form that reports can have.
pub(crate) trait Form {
    /// The next report of a file. Nothing if that form has no place for it.
    fn render(&mut self, report: &Report) -> Result<Vec<u8>>;
}

impl Reports {
    /// To `file`, else to `default`.
    pub(crate) fn open(file: Option<&Path>, default: Output, form: Box<dyn Form>) -> Result<Self> {
        let to = match default {
            Output::Stderr if file.is_none() => Box::new(io::stderr()),
            _ => open(file)?,
        };
        let name = file.map_or_else(|| "standard output".to_owned(), |path| path.display().to_string());
        Ok(Reports { to, name, form })
    }

    /// Writes one, less what was not asked for.
    pub(crate) fn write(&mut self, report: &Report) -> Result<()> {
        let rendered = self.form.render(report)?;
        self.try_write(&rendered).with_context(|| format!("cannot write to {}", self.name))
    }

    fn try_write(&mut self, rendered: &[u8]) -> Result<()> {
        self.to.write_all(rendered)?;
        self.to.flush()?;
        Ok(())
    }
}

/// Reports as tables, JSON or CSV.
pub(crate) struct Shown {
    show: ShowArgs,
    first: bool,
}

impl Shown {
    pub(crate) fn new(show: &ShowArgs) -> Self {
        Shown { show: show.clone(), first: true }
    }
}

impl Form for Shown {
    fn render(&mut self, report: &Report) -> Result<Vec<u8>> {
        let first = std::mem::take(&mut self.first);
        let mut out = Vec::new();
        if !first && self.show.format == Format::Text {
            out.push(b'\n');
        }
        out.extend(render(report, &self.show, first)?);
        Ok(out)
    }
}

/// A report less what was not asked for, in the form asked for; the `first` one of a file may have a head.
pub(crate) fn render(report: &Report, show: &ShowArgs, first: bool) -> Result<Vec<u8>> {
    let mut report = report.clone();
    if show.failed {
        report.keep_failed();
    }
    if let Some(n) = show.top {
        report.keep_top(n);
    }
    Ok(match show.format {
        Format::Text => text::render(&report, show.iterations).into_bytes(),
        Format::Json => (report.to_json()? + "\n").into_bytes(),
        Format::Jsonl => (serde_json::to_string(&report)? + "\n").into_bytes(),
        Format::Csv => table::render(&report, first)?,
    })
}

/// Whether what was written had a reader; a reader that went away is no error.
pub(crate) fn still_read(written: Result<()>) -> Result<bool> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if exit::is_closed_pipe(&error) => Ok(false),
        Err(error) => Err(error),
    }
}
