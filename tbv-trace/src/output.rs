//! Where results go.

use std::{
    fs::{self, File, Metadata},
    io::{self, Write},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};
use tbv_core::Report;

use crate::{
    cli::{Format, ReportArgs, SchemaArgs, SchemaOf, ShowArgs},
    exit, stream_line, table, text,
};

/// `tbv-trace report`.
pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode> {
    let out = Reports::new(Box::new(io::stdout()), Box::new(Shown::new(&args.show)));
    recorded(&args.file, out, args.intervals).map(|shown| shown.code)
}

/// What was shown of a file.
pub(crate) struct Recorded {
    pub(crate) code: ExitCode,
    /// Whether intervals were among it.
    pub(crate) intervals: bool,
    /// What the last report lost.
    pub(crate) lost: u64,
}

/// Shows a report or a recording: the result of the whole time, and before it all intervals if these are wanted. Of a file
/// that can be used up to some place, what comes before that.
pub(crate) fn recorded(file: &Path, mut out: Reports, intervals: bool) -> Result<Recorded> {
    let mut shown = Recorded { code: ExitCode::SUCCESS, intervals: false, lost: 0 };
    let mut last: Option<Report> = None;
    for report in tbv_core::recording::read(file)? {
        let report = match (report, &last) {
            (Ok(report), _) => report,
            (Err(error), None) => return Err(error.into()),
            (Err(error), Some(_)) => {
                say!("{error}; what comes before is shown");
                shown.code = ExitCode::from(exit::USAGE);
                break;
            }
        };
        shown.intervals |= report.interval.is_some();
        shown.lost = report.loss.total;
        if intervals && report.interval.is_some() && !still_read(out.write(&report))? {
            return Ok(shown);
        }
        last = Some(report);
    }
    let Some(report) = last else { return Ok(shown) };
    if report.interval.is_none() {
        still_read(out.write(&report))?;
    } else {
        say!("{} has no result of the whole time: its writer was killed, or still writes", file.display());
        if !intervals {
            say!("this is its last interval");
            still_read(out.write(&report))?;
        }
    }
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

/// A file that is to be written to. It keeps what it held until there is something new.
struct Untouched {
    file: File,
    path: PathBuf,
    /// Whether it is there only because of us, and still empty.
    ours: bool,
}

impl Drop for Untouched {
    /// Nothing came: there is no result to be found.
    fn drop(&mut self) {
        if self.ours {
            // Someone else may have removed it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Untouched {
    /// Before anything is traced, so that a file that cannot be written costs no run.
    fn open(path: &Path) -> Result<Self> {
        let (file, ours) = match File::create_new(path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                // Also through a symbolic link that leads nowhere yet.
                (File::options().write(true).create(true).truncate(false).open(path), false)
            }
            new => (new, true),
        };
        Ok(Untouched { file: file.with_context(|| cannot_write(path))?, path: path.to_owned(), ours })
    }

    /// Gives up what the file held.
    fn begin(mut self) -> Result<File> {
        self.ours = false;
        // A pipe or a device has no length to set.
        if self.file.metadata().is_ok_and(|m| m.is_file()) {
            self.file.set_len(0).with_context(|| cannot_write(&self.path))?;
        }
        self.file.try_clone().with_context(|| cannot_write(&self.path))
    }
}

/// What lines go to, once there are any.
pub(crate) struct Target(Option<Untouched>);

impl Target {
    pub(crate) fn open(file: Option<&Path>) -> Result<Self> {
        file.map(Untouched::open).transpose().map(Target)
    }

    pub(crate) fn begin(self) -> Result<Box<dyn Write>> {
        Ok(match self.0 {
            Some(file) => Box::new(file.begin()?),
            None => Box::new(io::stdout()),
        })
    }
}

/// An error if `result` is one of the other files, by whatever name.
pub(crate) fn distinct(result: Option<&Path>, others: &[&Path]) -> Result<()> {
    let identity =
        |path: &Path| fs::metadata(path).ok().filter(Metadata::is_file).map(|of| (of.dev(), of.ino()));
    let Some(result) = result else { return Ok(()) };
    for other in others {
        if result == *other || identity(result).is_some_and(|of| Some(of) == identity(other)) {
            bail!("{} is named twice: a result would be lost", other.display());
        }
    }
    Ok(())
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// One or more reports, in the form asked for.
pub(crate) struct Reports {
    untouched: Option<Untouched>,
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
        let mut reports = match default {
            Output::Stderr => Self::new(Box::new(io::stderr()), form),
            Output::Stdout => Self::new(Box::new(io::stdout()), form),
        };
        reports.untouched = file.map(Untouched::open).transpose()?;
        reports.name = file.map_or(reports.name, |path| path.display().to_string());
        Ok(reports)
    }

    fn new(to: Box<dyn Write>, form: Box<dyn Form>) -> Self {
        Reports { untouched: None, to, name: "standard output".to_owned(), form }
    }

    /// Writes one, less what was not asked for.
    pub(crate) fn write(&mut self, report: &Report) -> Result<()> {
        let rendered = self.form.render(report)?;
        self.try_write(&rendered).with_context(|| format!("cannot write to {}", self.name))
    }

    fn try_write(&mut self, rendered: &[u8]) -> Result<()> {
        if let Some(untouched) = self.untouched.take() {
            self.to = Box::new(untouched.begin()?);
        }
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
