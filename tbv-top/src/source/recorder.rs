//! Writing a recording, as `tbv-trace record` writes it: a line for each interval, and one of the whole time.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result};
use tbv_core::{Report, result_file::ResultFile};

/// A recording that is being written.
pub struct Recorder {
    file: ResultFile,
    /// Its name.
    pub name: String,
    /// All that was written, added up.
    sum: Option<Report>,
}

impl Recorder {
    /// Into this file; what it held is gone with the first interval.
    pub fn create(path: &Path) -> Result<Self> {
        Self::new(path, ResultFile::open(path))
    }

    /// Into a new file in the current folder, named after the time.
    pub fn create_here() -> Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let path = PathBuf::from(format!("tbv-top-{now}.jsonl"));
        Self::new(&path, ResultFile::create_new(&path))
    }

    fn new(path: &Path, file: io::Result<ResultFile>) -> Result<Self> {
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Recorder { file, name: path.display().to_string(), sum: None })
    }

    /// Adds an interval.
    pub fn add(&mut self, report: &Report) -> Result<()> {
        match &mut self.sum {
            Some(sum) => sum.merge(report),
            None => self.sum = Some(report.to_add_up()),
        }
        self.line(report)
    }

    /// Ends it with the whole time; with the sum of its intervals if that is not known better.
    pub fn finish(mut self, whole: Option<Report>) -> Result<()> {
        match whole.or(self.sum.take()) {
            Some(whole) => self.line(&whole),
            None => Ok(()),
        }
    }

    fn line(&mut self, report: &Report) -> Result<()> {
        let line = serde_json::to_string(report)? + "\n";
        self.file.write_all(line.as_bytes()).with_context(|| format!("cannot write {}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fixture, source::replay};

    #[test]
    fn what_is_written_is_read_again() {
        let path = std::env::temp_dir().join(format!("tbv-recorder-{}.jsonl", std::process::id()));
        let mut recorder = Recorder::create(&path).unwrap();
        let reports: Vec<Report> = (1..=3).map(|number| fixture::interval(number, 2)).collect();
        reports.iter().for_each(|report| recorder.add(report).unwrap());
        recorder.finish(None).unwrap();
        let read = replay::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let calls = |reports: &[Report]| reports.iter().map(|report| report.totals().0).sum::<u64>();
        assert_eq!((read.intervals.len(), calls(&read.intervals)), (3, calls(&reports)));
        let whole = read.whole.unwrap();
        assert_eq!((whole.totals().0, whole.duration_ns), (calls(&reports), 3_000_000_000));
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let error = Recorder::create(Path::new("/no/such/folder/x")).err().unwrap();
        assert!(format!("{error:#}").contains("/no/such/folder/x"));
        let mut full = Recorder::create(Path::new("/dev/full")).unwrap();
        assert!(full.add(&fixture::interval(1, 1)).is_err());
    }
}
