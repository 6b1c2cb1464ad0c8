//! A recording, read and checked before anything is shown.

use std::path::Path;

use tbv_core::{Error, Report, Result, recording};

/// What a recording holds.
pub struct Recording {
    /// Its intervals; of a single report, that one.
    pub intervals: Vec<Report>,
    /// The whole time, if its writer came to write it.
    pub whole: Option<Report>,
}

/// Reads a recording. One that cannot be used up to its end is an error, and so are two in one file.
pub fn read(path: &Path) -> Result<Recording> {
    let (mut intervals, mut whole) = (Vec::new(), None);
    for report in recording::read(path)? {
        let report = report?;
        if whole.is_some() {
            let reason = "after a result of the whole time comes another report".to_owned();
            return Err(Error::Report { path: path.display().to_string(), reason });
        }
        match report.interval {
            Some(_) => intervals.push(report),
            None => whole = Some(report),
        }
    }
    if intervals.is_empty() {
        intervals.extend(whole.clone());
    }
    Ok(Recording { intervals, whole })
}
