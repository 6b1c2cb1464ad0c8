//! Recordings: a report after the other. What holds one is a report.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read as _},
    path::Path,
};

use serde::Deserialize;
use serde_json::error::Category;

use crate::{
    error::{Error, Result},
    report::{Interval, Report, SCHEMA_VERSION},
};

/// Bytes of the largest report that is read: every row and bucket that the maps hold makes less.
const MOST_BYTES: u64 = 1 << 30;

/// The reports of a file, `-` for standard input, as they are read; the last one is an error if the file cannot be used
/// from there on. A file without any is an error.
pub fn read(path: &Path) -> Result<impl Iterator<Item = Result<Report>>> {
    let name = path.display().to_string();
    let fail = |reason: String| Error::Report { path: name.clone(), reason };
    let file: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(BufReader::new(io::stdin()))
    } else {
        Box::new(BufReader::new(File::open(path).map_err(|e| fail(e.to_string()))?))
    };
    let mut reports = Reports { file, whole: Vec::new(), number: 0, ended: false, last_end_ns: 0 };
    let first = match reports.next() {
        Some(first) => first,
        None => return Err(fail("the file is empty".to_owned())),
    };
    let rest = std::iter::once(first).chain(reports);
    Ok(rest.map(move |report| report.map_err(|reason| Error::Report { path: name.clone(), reason })))
}

struct Reports {
    file: Box<dyn BufRead>,
    /// Lines that make up one report.
    whole: Vec<u8>,
    /// Reports so far.
    number: u64,
    ended: bool,
    /// End of the last interval.
    last_end_ns: u64,
}

impl Iterator for Reports {
    type Item = Result<Report, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let report = self.read().and_then(|report| self.in_order(report)).transpose();
        self.number += 1;
        self.ended = !matches!(report, Some(Ok(_)));
        let number = self.number;
        report.map(|report| {
            report.map_err(
                |reason| if number == 1 { reason } else { format!("report {number} of it: {reason}") },
            )
        })
    }
}

impl Reports {
    /// What would be counted twice is an error. After a result of the whole time another recording may begin.
    fn in_order(&mut self, report: Option<Report>) -> Result<Option<Report>, String> {
        let interval = report.as_ref().and_then(|report| report.interval);
        let Some(Interval { number, start_ns, end_ns }) = interval else {
            self.last_end_ns = 0;
            return Ok(report);
        };
        if start_ns < self.last_end_ns || end_ns < start_ns {
            return Err(format!(
                "interval {number} begins before the one before it ends: something is there twice"
            ));
        }
        self.last_end_ns = end_ns;
        Ok(report)
    }

    /// The next one: a line, or as many as an indented one has.
    fn read(&mut self) -> Result<Option<Report>, String> {
        self.whole.clear();
        loop {
            let room = MOST_BYTES.saturating_sub(self.whole.len() as u64) + 1;
            let begin = self.whole.len();
            let read = (&mut self.file).take(room).read_until(b'\n', &mut self.whole);
            let read = read.map_err(|e| e.to_string())?;
            if self.whole.len() as u64 > MOST_BYTES {
                return Err("not a tbv-trace report: none is that large".to_owned());
            }
            if read > 0 && self.whole.iter().all(u8::is_ascii_whitespace) {
                self.whole.clear();
                continue;
            }
            if read == 0 {
                return match self.whole.iter().all(u8::is_ascii_whitespace) {
                    true => Ok(None),
                    // It says in which way.
                    false => parse(&self.whole).map(Some),
                };
            }
            // An indented one ends with a brace at the begin of a line; others are a line each.
            let line = self.whole.get(begin..).unwrap_or_default().trim_ascii_end();
            if line == b"}" || (begin == 0 && line.len() > 1 && line.ends_with(b"}")) {
                return parse(&self.whole).map(Some);
            }
        }
    }
}

/// Reads one report, or says what is wrong with it.
pub(crate) fn parse(text: &[u8]) -> Result<Report, String> {
    #[derive(Deserialize)]
    struct Version {
        schema_version: u32,
    }
    let not_a_report = |e: serde_json::Error| match e.classify() {
        Category::Eof => "the file is cut off: its JSON ends too early".to_owned(),
        _ => format!("not a tbv-trace report: {e}"),
    };
    let version: Version = serde_json::from_slice(text).map_err(not_a_report)?;
    if version.schema_version != SCHEMA_VERSION {
        return Err(format!(
            "schema version {} is not the one this tbv-trace reads ({SCHEMA_VERSION}); \
             use the tbv-trace that wrote it",
            version.schema_version
        ));
    }
    let report: Report = serde_json::from_slice(text).map_err(not_a_report)?;
    report.contradiction().map_or(Ok(report), |what| Err(format!("not a tbv-trace report: {what}")))
}
