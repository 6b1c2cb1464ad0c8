//! `tbv-trace hist`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use tbv_core::{Report, Spans, display::is_utf8};

use super::{By, csv, hdr, heatmap::Heatmap, openmetrics, text};
use crate::{
    cli::{HistArgs, HistFormat, Key},
    exit,
    measure::{self, Lines, What},
    output::{self, Form, Output},
    verbose::Log,
};

/// `tbv-trace hist`.
pub(crate) fn hist(args: &HistArgs, log: &Log) -> Result<ExitCode> {
    if args.common.interval.is_some() && matches!(args.format, HistFormat::Json | HistFormat::Openmetrics) {
        bail!("-f json and -f openmetrics have no intervals: use -f jsonl, or `tbv-trace export`");
    }
    if args.heatmap.is_some() && args.common.interval.is_none() && args.from.is_none() {
        bail!("a heat map has a line for every interval: -i SECS");
    }
    let form = Box::new(Histograms::new(args));
    // Beside a command's own output.
    let people = args.format == HistFormat::Text && !args.source.command.is_empty();
    let default = if people { Output::Stderr } else { Output::Stdout };
    let Some(file) = &args.from else {
        let what = What {
            form,
            default,
            spans: Spans::Counted,
            samples: args.samples.as_deref(),
            ..What::new(&args.common)
        };
        return measure::measure((&args.source).try_into()?, what, log);
    };
    output::distinct(args.common.output.as_deref(), &[file])?;
    let intervals = form.takes_intervals();
    let out = output::Reports::open(args.common.output.as_deref(), default, form)?;
    let shown = output::recorded(file, out, intervals)?;
    if args.heatmap.is_some() && !shown.intervals {
        bail!("{} has no intervals, and a heat map has a line for each", file.display());
    }
    let lost = args.common.how.strict && shown.lost > 0;
    Ok(if lost { exit::after(true, shown.lost, None) } else { shown.code })
}

/// Reports as histograms.
struct Histograms {
    by: By,
    format: HistFormat,
    heatmap: Option<Heatmap>,
    /// Whether bars may be of characters beyond ASCII.
    unicode: bool,
    first: bool,
}

impl Histograms {
    fn new(args: &HistArgs) -> Self {
        let by = |key| args.by.contains(&key);
        Histograms {
            by: By { process: by(Key::Process), qp: by(Key::Qp), opcode: by(Key::Opcode) },
            format: args.format,
            heatmap: args.heatmap.as_deref().map(Heatmap::new),
            unicode: is_utf8(),
            first: true,
        }
    }

    /// Whether a recording's intervals are shown, or only its total.
    fn takes_intervals(&self) -> bool {
        self.heatmap.is_some() || matches!(self.format, HistFormat::Hdr | HistFormat::Jsonl)
    }
}

impl Form for Histograms {
    fn render(&mut self, report: &Report) -> Result<Vec<u8>> {
        let first = std::mem::take(&mut self.first);
        if let Some(heatmap) = &mut self.heatmap {
            let line = match report.interval {
                Some(_) => heatmap.line(report)?,
                None => crate::text::losses(&report.loss) + "\n",
            };
            return Ok(line.into_bytes());
        }
        Ok(match self.format {
            HistFormat::Text => {
                let gap = if first { "" } else { "\n" };
                (gap.to_owned() + &text::render(report, self.by, self.unicode)?).into_bytes()
            }
            HistFormat::Json => (report.to_json()? + "\n").into_bytes(),
            HistFormat::Jsonl => Lines.render(report)?,
            HistFormat::Csv => csv::render(report, self.by, first)?,
            HistFormat::Openmetrics => openmetrics::render(report, self.by)?.into_bytes(),
            // The whole time is the sum of the intervals.
            HistFormat::Hdr if report.interval.is_none() && !first => Vec::new(),
            HistFormat::Hdr => hdr::render(report, self.by, first)?,
        })
    }
}
