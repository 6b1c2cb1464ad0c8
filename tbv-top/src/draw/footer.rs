//! What was lost, what is to be said, and keys.

use ratatui::style::Style;
use tbv_core::loss::Losses;

use super::paper::Paper;
use crate::{
    app::{App, Source, menu::Menu},
    keys::{Binding, KEYS},
};

/// Draws it, into one line or two.
pub(crate) fn draw(app: &App, paper: &mut Paper<'_>) {
    let look = paper.look;
    let message = message(app);
    // On one line, what is to be said goes before, and what was lost before keys.
    let last = paper.area.height.saturating_sub(1);
    if last > 0 || message.is_none() {
        let (text, lost) = losses(app);
        paper.put(0, 0, &text, if lost { look.alarm() } else { look.good() });
    }
    match message {
        Some(words) => {
            paper.put(0, last, &words, look.title());
        }
        None if last > 0 => keys(app, &mut paper.lines(last, 1)),
        None => {}
    }
}

/// What was lost in what is shown, and in all; whether anything was.
fn losses(app: &App) -> (String, bool) {
    let Some(shown) = &app.shown else { return ("loss n/a: nothing measured yet".to_owned(), false) };
    let all = app.history.losses();
    let ran = match app.history.ran_at_begin() {
        0 => String::new(),
        calls => format!("; calls that ran when tracing began, in no count: {calls}"),
    };
    if all.total == 0 {
        return (format!("loss none: the counts are exact{ran}"), false);
    }
    (format!("LOSS {} here, {} in all: {}{ran}", shown.report.loss.total, all.total, parts(all)), true)
}

fn parts(losses: &Losses) -> String {
    let parts = losses.parts();
    let parts: Vec<String> =
        parts.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name} {n}")).collect();
    parts.join(", ")
}

fn message(app: &App) -> Option<String> {
    if let Some(Menu::Filter { .. }) = &app.menu {
        let filter = &app.table(app.focused()).filter;
        return Some(format!("filter: {filter}_   Enter keeps it, Esc leaves it as it was"));
    }
    if let Some(said) = &app.said {
        return Some(said.clone());
    }
    if let Source::Live { let_go: Some(waits_for), .. } = &app.source {
        return Some(format!("let go of all modules; {waits_for}, or attaches again by D"));
    }
    let filter = &app.table(app.focused()).filter;
    let filtered = (!filter.is_empty()).then(|| format!("only rows that contain {filter:?} (Esc shows all)"));
    let recorded = app.recording.as_ref().map(|file| format!("recording to {file} (r ends it)"));
    let parts: Vec<String> = [filtered, recorded].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("  "))
}

/// Those that a recording has no use for are left out there.
fn keys(app: &App, paper: &mut Paper<'_>) {
    let look = paper.look;
    let mut x = 0;
    let live = matches!(app.source, Source::Live { .. });
    let useful = |binding: &&Binding| !binding.short.is_empty() && (live || !binding.action.is_live_only());
    for binding in KEYS.iter().filter(useful) {
        let key = binding.names.split(' ').next().unwrap_or_default();
        let wide = (key.len() + binding.short.len() + 2) as u16;
        if x + wide > paper.area.width {
            break;
        }
        x = paper.put(x, 0, key, look.head());
        x = paper.put(x + 1, 0, binding.short, Style::new()) + 2;
    }
}
