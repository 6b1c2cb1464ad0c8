//! Single calls of one process.

use ratatui::style::Style;
use tbv_core::display::{duration, printable};

use super::paper::Paper;
use crate::app::{App, Source, events::Line};

/// Draws the pane.
pub(crate) fn draw(app: &App, paper: &mut Paper<'_>) {
    let look = paper.look;
    let events = &app.events;
    let whose = app.process.as_ref().map_or_else(
        || "no process is selected".to_owned(),
        |key| format!("calls of {} {}", key.0, printable(&key.2)),
    );
    let paused = if events.paused { "  PAUSED (Space goes on)" } else { "" };
    paper.section(&format!("{whose}: {} came, {} lost{paused}", events.delivered, events.lost), look.title());
    let trouble = match (&app.source, &events.trouble) {
        (Source::Replay(_), _) => Some("a recording has no single calls"),
        (Source::Live { let_go: Some(_), .. }, _) => Some("not attached"),
        (_, Some(why)) => Some(why.as_str()),
        _ if events.pid.is_none() => Some("select a process in the first view"),
        _ if events.lines.is_empty() => Some("no call yet"),
        _ => None,
    };
    if let Some(words) = trouble {
        for (y, line) in words.lines().enumerate() {
            paper.put(2, y as u16 + 1, line, look.faint());
        }
        return;
    }
    let head = format!(
        "{:>14} {:>7} {:<20} {:<10} {:>9} {:<12} {}",
        "TIME", "TID", "OPERATION", "QUEUE", "LATENCY", "RESULT", "DEVICE"
    );
    paper.put(0, 1, &head, look.head());
    let height = usize::from(paper.area.height.saturating_sub(2));
    let end = events.lines.len().saturating_sub(events.scrolled);
    let lines = events.lines.range(end.saturating_sub(height)..end);
    for (y, line) in lines.enumerate() {
        let style = if line.errno.is_some() { look.alarm() } else { Style::new() };
        paper.put(0, y as u16 + 2, &shown(line), style);
    }
}

fn shown(line: &Line) -> String {
    format!(
        "{:>4}.{:09} {:>7} {:<20} {:<10} {:>9} {:<12} {}",
        line.time_ns / 1_000_000_000,
        line.time_ns % 1_000_000_000,
        line.tid,
        line.op,
        line.queue.as_deref().unwrap_or("-"),
        line.latency_ns.map_or_else(|| "n/a".to_owned(), duration),
        line.errno.as_deref().unwrap_or("ok"),
        printable(&line.device)
    )
}
