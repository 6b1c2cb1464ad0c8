//! A recording, read and checked before anything is shown.

use std::path::Path;

use tbv_core::{Report, Result, recording};

/// What a recording holds.
pub struct Recording {
    /// Its intervals; of a single report, that one.
    pub intervals: Vec<Report>,
    /// The whole time, if its writer came to write it.
    pub whole: Option<Report>,
}

/// Reads a recording. One that cannot be used up to its end is an error.
pub fn read(path: &Path) -> Result<Recording> {
    let (mut intervals, mut whole) = (Vec::new(), None);
    for report in recording::read(path)? {
        let report = report?;
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
