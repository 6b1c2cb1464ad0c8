//! Counting tests from what libtest prints.

/// Tests by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Passed.
    pub(super) passed: u64,
    /// Failed.
    pub(super) failed: u64,
    /// Not run.
    pub(super) skipped: u64,
}

/// How a suite ended.
#[derive(Clone)]
pub(super) struct Outcome {
    /// Its name.
    pub(super) suite: &'static str,
    /// Its tests.
    pub(super) counts: Counts,
    /// How long it took.
    pub(super) seconds: u64,
}

impl Counts {
    /// Adds what a summary line says; other lines are none.
    pub(super) fn read(&mut self, line: &str) {
        let Some(rest) = line.trim().strip_prefix("test result: ") else { return };
        let Some((_, numbers)) = rest.split_once(". ") else { return };
        for part in numbers.split("; ") {
            let mut words = part.split(' ');
            let number = words.next().and_then(|n| n.parse::<u64>().ok());
            match (number, words.next()) {
                (Some(n), Some("passed")) => self.passed += n,
                (Some(n), Some("failed")) => self.failed += n,
                (Some(n), Some("ignored")) => self.skipped += n,
                _ => {}
            }
        }
    }
}

/// All suites together.
pub(super) fn total(outcomes: &[Outcome]) -> Counts {
    outcomes.iter().fold(Counts::default(), |sum, outcome| Counts {
        passed: sum.passed + outcome.counts.passed,
        failed: sum.failed + outcome.counts.failed,
        skipped: sum.skipped + outcome.counts.skipped,
    })
}

/// A markdown table, which also reads well as text.
pub(super) fn table(outcomes: &[Outcome]) -> String {
    let mut lines = vec![
        "| suite          | passed | failed | skipped | seconds |".to_owned(),
        "|----------------|-------:|-------:|--------:|--------:|".to_owned(),
    ];
    lines.extend(outcomes.iter().map(|o| {
        let c = o.counts;
        format!(
            "| {:<14} | {:>6} | {:>6} | {:>7} | {:>7} |",
            o.suite, c.passed, c.failed, c.skipped, o.seconds
        )
    }));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_lines_add_up_and_others_do_not_count() {
        let mut counts = Counts::default();
        counts.read("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished");
        counts.read("test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out");
        counts.read("7 passed; 8 failed");
        assert_eq!(counts, Counts { passed: 5, failed: 1, skipped: 1 });
    }
}
