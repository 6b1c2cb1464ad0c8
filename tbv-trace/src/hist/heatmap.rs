//! A terminal heat map: a line for each interval, a character for each half power of two of latency.

use anyhow::Result;
use tbv_core::{Report, latency::Distribution};

use super::rows::{By, Rows, middle};
use crate::text::{duration, printable};

/// From nothing to the most of a line.
const DENSITY: [char; 10] = [' ', '.', ':', '-', '=', '+', '*', '#', '%', '@'];
/// The first and the last power of two that have columns of their own, in nanoseconds: 128 ns to 34 s. What lies
/// beyond is in the outer columns.
const EXPONENTS: std::ops::Range<u32> = 7..35;
/// Two for each power of two.
const COLUMNS: usize = 2 * (EXPONENTS.end - EXPONENTS.start) as usize;
/// Columns from one mark of the axis to the next.
const MARKS: usize = 8;
/// Lines from one axis to the next.
const HEADER_EVERY: u64 = 40;
/// Characters of the time at the left.
const LEFT: usize = 12;

/// Writes lines of one kind of span, or of calls.
#[derive(Clone, Debug)]
pub(crate) struct Heatmap {
    what: String,
    lines: u64,
}

impl Heatmap {
    /// Of spans of this name, or of `call`.
    pub(crate) fn new(what: &str) -> Self {
        Heatmap { what: what.to_owned(), lines: 0 }
    }

    /// The line of an interval, with the axis above it where one is due.
    pub(crate) fn line(&mut self, report: &Report) -> Result<String> {
        let by = By { process: false, qp: false, opcode: false };
        let mut cells = [0; COLUMNS];
        let (mut count, mut unresolved) = (0, 0);
        for row in Rows::of(report, by)?.0.iter().filter(|row| row.what == self.what) {
            count += row.times.count;
            match add(&mut cells, &row.times) {
                Some(()) => {}
                None => unresolved += row.times.count,
            }
        }
        let end_ns = report.interval.map_or(report.duration_ns, |part| part.end_ns);
        let head = if self.lines.is_multiple_of(HEADER_EVERY) { self.axis() } else { String::new() };
        self.lines += 1;
        let density: String = cells.iter().map(|n| character(*n, &cells)).collect();
        let mut line = format!("{head}{:>10.3} s|{density}| {count}", end_ns as f64 / 1e9);
        if unresolved > 0 {
            line.push_str(&format!("  ({unresolved} without a histogram)"));
        }
        if report.loss.total > 0 {
            line.push_str(&format!("  LOSS {}", report.loss.total));
        }
        Ok(line + "\n")
    }

    /// What the columns mean.
    fn axis(&self) -> String {
        let mut marks = String::new();
        for column in (0..COLUMNS).step_by(MARKS) {
            let low = 1_u64 << (EXPONENTS.start + (column / 2) as u32);
            marks.push_str(&format!("{:<MARKS$}", format!("'{}", short(low))));
        }
        let what = printable(&self.what);
        format!(
            "{what}, dark where most of a line are ({}), outer columns and what lies beyond\n{:>LEFT$}|{marks}| COUNT\n",
            DENSITY.iter().collect::<String>().trim_start(),
            "UNTIL"
        )
    }
}

/// A duration that fits between two marks.
fn short(ns: u64) -> String {
    duration(ns).replace(' ', "")
}

/// Adds a row to the columns; `None` if it has no histogram.
fn add(cells: &mut [u64; COLUMNS], times: &Distribution) -> Option<()> {
    for (low, high, n) in times.filled()? {
        if let Some(cell) = cells.get_mut(column(middle(low, high))) {
            *cell += n;
        }
    }
    Some(())
}

fn column(ns: u64) -> usize {
    let half_powers = (2.0 * (ns.max(1) as f64).log2()).floor() as usize;
    half_powers.saturating_sub(2 * EXPONENTS.start as usize).min(COLUMNS - 1)
}

/// Scaled to the fullest column of the line; whatever is there shows.
fn character(n: u64, cells: &[u64]) -> char {
    let most = cells.iter().max().copied().unwrap_or(0).max(1);
    let level = (u128::from(n) * (DENSITY.len() - 1) as u128).div_ceil(u128::from(most));
    DENSITY.get(level as usize).copied().unwrap_or('@')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hist::fixture;

    #[test]
    fn columns_are_half_powers_of_two_and_the_outer_ones_take_the_rest() {
        assert_eq!([0, 1, 128, 181, 182, 255, 256].map(column), [0, 0, 0, 0, 1, 1, 2]);
        assert_eq!([1 << 35, u64::MAX].map(column), [COLUMNS - 1; 2]);
    }

    #[test]
    fn the_axis_comes_first_and_every_forty_lines() {
        let mut map = Heatmap::new("post_to_completion");
        let report = fixture::report();
        let heads: Vec<usize> = (0..81).filter(|_| map.line(&report).unwrap().lines().count() == 3).collect();
        assert_eq!(heads, [0, 40, 80]);
    }

    #[test]
    fn lines_are_equally_wide_and_an_empty_one_is_blank() {
        let mut map = Heatmap::new("no such span");
        let text = map.line(&fixture::report()).unwrap();
        let bars: Vec<usize> =
            text.lines().skip(1).map(|line| line.chars().take_while(|c| *c != '|').count()).collect();
        assert_eq!(bars, [LEFT, LEFT]);
        assert!(text.contains(&format!("|{}| 0", " ".repeat(COLUMNS))));
        assert_eq!([0, 1, 50, 100].map(|n| character(n, &[0, 100])), [' ', '.', '+', '@']);
    }
}
