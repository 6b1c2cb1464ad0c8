//! The latency histogram of one operation.

use ratatui::style::Style;
use tbv_core::{
    display::{bar, bound, duration},
    latency::{Distribution, octaves},
    report::Call,
};
use unicode_width::UnicodeWidthStr as _;

use super::paper::Paper;

/// Draws it: a bar for each power of two, and the figures.
pub(crate) fn draw(call: &Call, paper: &mut Paper<'_>) {
    let look = paper.look;
    paper.section(&format!("{} inside the call", call.op), look.title());
    let Some(summary) = &call.latency_ns else {
        paper.put(2, 1, "nothing was timed", look.faint());
        return;
    };
    let shown = |ns: Option<u64>| ns.map_or_else(|| "n/a".to_owned(), duration);
    let figures = [
        format!("min {}", duration(summary.min)),
        format!("p50 {}", shown(summary.p50)),
        format!("p90 {}", shown(summary.p90)),
        format!("p99 {}", shown(summary.p99)),
        format!("p99.9 {}", shown(summary.p99_9)),
        format!("max {}", duration(summary.max)),
    ];
    let figures = in_lines(&figures, usize::from(paper.area.width));
    let times = Distribution::from_row(call.count, 0, Some(summary), call.latency_buckets.as_deref());
    let bars = times.as_ref().and_then(octaves);
    for (y, line) in (1..).zip(&figures) {
        paper.put(0, y, line, Style::new());
    }
    let top = figures.len() as u16 + 1;
    let height = paper.area.height.saturating_sub(top);
    match bars {
        None => {
            paper.put(2, top, "no histogram was free for all of it", look.faint());
        }
        Some(bars) => draw_bars(&bars, usize::from(height), &mut paper.lines(top, height)),
    }
}

/// As many in a line as there is room for.
fn in_lines(words: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut().filter(|line| line.width() + 2 + word.width() <= width) {
            Some(line) => line.push_str(&format!("  {word}")),
            None => lines.push(word.clone()),
        }
    }
    lines
}

/// As many of the bars as there is room for: those with the most in them. How much is in the others is told.
fn draw_bars(bars: &[(u64, u64, u64)], height: usize, paper: &mut Paper<'_>) {
    let look = paper.look;
    let all_fit = bars.len() <= height;
    let height = if all_fit { height } else { height.saturating_sub(1) };
    let count =
        |from: usize| bars.iter().skip(from).take(height).map(|(_, _, n)| *n).fold(0, u64::saturating_add);
    let first = (0..=bars.len().saturating_sub(height)).rev().max_by_key(|from| count(*from)).unwrap_or(0);
    let visible = bars.get(first..(first + height).min(bars.len())).unwrap_or_default();
    let most = visible.iter().map(|(_, _, n)| *n).max().unwrap_or(0);
    let names: Vec<String> = visible
        .iter()
        .map(|(low, high, _)| {
            let high = if *high == u64::MAX { "inf".to_owned() } else { bound(*high) };
            look.safe(&format!("[{}, {high})", bound(*low)))
        })
        .collect();
    let wide = names.iter().map(|name| name.width()).max().unwrap_or(0);
    let digits = most.to_string().len();
    let room = usize::from(paper.area.width).saturating_sub(wide + digits + 3);
    for (y, (name, (_, _, n))) in names.iter().zip(visible).enumerate() {
        let y = y as u16;
        let blank = " ".repeat(wide.saturating_sub(name.width()));
        let x = paper.put(0, y, &format!("{name}{blank} {n:>digits$} "), Style::new());
        paper.put(x, y, &bar(*n, most, room as u64, look.unicode), look.bar());
    }
    let hidden = bars.iter().map(|(_, _, n)| *n).fold(0, u64::saturating_add).saturating_sub(count(first));
    if !all_fit {
        paper.put(0, height as u16, &format!("{hidden} in other rows"), look.faint());
    }
}
