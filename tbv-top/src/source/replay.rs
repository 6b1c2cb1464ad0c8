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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn read_lines(name: &str, lines: &[String]) -> Result<Recording> {
        let path = std::env::temp_dir().join(format!("tbv-replay-{name}-{}", std::process::id()));
        std::fs::write(&path, lines.join("\n")).unwrap();
        let read = read(&path);
        std::fs::remove_file(&path).unwrap();
        read
    }

    #[test]
    fn what_is_there_twice_is_refused_and_what_is_left_out_is_not() {
        let line = |number| serde_json::to_string(&fixture::interval(number, 1)).unwrap();
        let read = |name, numbers: &[u64]| {
            let lines: Vec<String> = numbers.iter().map(|number| line(*number)).collect();
            read_lines(name, &lines)
                .map(|recording| recording.intervals.len())
                .map_err(|error| error.to_string())
        };
        assert_eq!(read("gap", &[2, 3, 9]), Ok(3));
        assert!(
            read("twice", &[2, 3, 3])
                .is_err_and(|error| error.contains("report 3 of it: interval 3 begins before"))
        );
        assert!(read("back", &[3, 2]).is_err());
        let blank = [String::new(), line(1), "  ".to_owned(), line(2), String::new()];
        assert_eq!(read_lines("blank", &blank).unwrap().intervals.len(), 2);
    }
}
