//! Help and lists to choose from, over the view.

use ratatui::style::Style;
use tbv_core::display::bar;

use super::paper::Paper;
use crate::{
    app::{App, menu::Menu},
    keys::KEYS,
};

/// Draws what is open.
pub(crate) fn draw(app: &App, paper: &mut Paper<'_>) {
    let table = app.table(app.focused());
    let (title, place, lines): (&str, usize, Vec<String>) = match &app.menu {
        None | Some(Menu::Filter { .. }) => return,
        Some(Menu::Help(place)) => (
            "keys (Esc closes)",
            *place,
            KEYS.iter().map(|key| format!("{:<14} {}", key.names, key.help)).collect(),
        ),
        Some(Menu::Sort(place)) => {
            let line =
                |column: &&tbv_core::fields::Column| format!("{:<18} {}", column.title, column.description);
            ("sort by (Enter chooses, Esc closes)", *place, table.columns().iter().map(line).collect())
        }
        Some(Menu::Columns(place)) => {
            let line = |column: &&'static tbv_core::fields::Column| {
                let mark = if table.shows(column) { 'x' } else { ' ' };
                format!("[{mark}] {:<18} {} [{}]", column.title, column.description, column.unit.name())
            };
            ("columns (Space shows or hides, Esc closes)", *place, table.columns().iter().map(line).collect())
        }
    };
    let look = paper.look;
    paper.clear();
    paper.section(title, look.title());
    let height = usize::from(paper.area.height.saturating_sub(1));
    let first = place.saturating_sub(height / 2).min(lines.len().saturating_sub(height));
    for (y, line) in lines.iter().skip(first).take(height).enumerate() {
        let y = y as u16 + 1;
        paper.put(2, y, line, Style::new());
        if usize::from(y) - 1 + first == place {
            paper.put(0, y, look.either("▶", ">"), Style::new());
            paper.paint(y, look.selected());
        }
    }
    if lines.len() > height && height > 0 {
        let share = bar((first + height) as u64, lines.len() as u64, 10, false);
        let words = format!(" {share:<10} {}/{} ", (first + height).min(lines.len()), lines.len());
        let x = paper.area.width.saturating_sub(words.len() as u16);
        paper.put(x, 0, &words, look.faint());
    }
}
