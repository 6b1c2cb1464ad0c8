//! Any table: a head, rows, the selected one marked.

use ratatui::style::{Modifier, Style};
use tbv_core::fields::{Column, Field, Unit, Value};
use unicode_width::UnicodeWidthStr as _;

use super::paper::{Paper, fitted};
use crate::app::table::{Key, TableState};

/// Cells of the widest column of names.
const WIDEST: usize = 40;
/// Cells that a line of history has at least.
const LEAST_HISTORY: usize = 12;
/// Cells that it has at most.
const MOST_HISTORY: usize = 40;

/// The numbers of a row over time, at most so many.
pub(crate) type Numbers<'a, R> = dyn Fn(&R, usize) -> Vec<f64> + 'a;

/// What is shown.
pub(crate) struct Table<'a, R: 'static> {
    /// Its columns.
    pub(crate) fields: &'static [Field<R>],
    /// Its rows.
    pub(crate) rows: &'a [R],
    /// How it is shown.
    pub(crate) state: &'a TableState,
    /// Seconds that the rows are of.
    pub(crate) seconds: f64,
    /// Tells rows apart.
    pub(crate) key: fn(&R) -> Key,
    /// Whether keys go to it.
    pub(crate) focused: bool,
    /// What it says without rows.
    pub(crate) empty: &'a str,
    /// What a line is drawn of at the end of each row.
    pub(crate) history: Option<&'a Numbers<'a, R>>,
}

/// Cells that a column of numbers has at least, so that it does not move at every number.
fn least(column: &Column) -> usize {
    match column.unit {
        Unit::Id => 6,
        Unit::Word => 0,
        Unit::Percent | Unit::Ratio => 6,
        Unit::Count | Unit::PerSecond | Unit::Nanoseconds | Unit::BytesPerSecond => 8,
    }
}

impl<R: 'static> Table<'_, R> {
    /// Draws it.
    pub(crate) fn draw(&self, paper: &mut Paper<'_>) {
        let look = paper.look;
        let order = self.state.order(self.fields, self.rows, self.seconds);
        let rows: Vec<&R> = order.iter().filter_map(|at| self.rows.get(*at)).collect();
        let height = usize::from(paper.area.height.saturating_sub(1));
        let keys: Vec<Key> = rows.iter().map(|row| (self.key)(row)).collect();
        let place = self.state.place(&keys);
        // The selected row is in the middle, unless an end is nearer.
        let first = place.saturating_sub(height / 2).min(rows.len().saturating_sub(height));
        let visible = rows.get(first..(first + height).min(rows.len())).unwrap_or_default();
        let columns = self.columns();
        let values = |field: &Field<R>| -> Vec<Value<'_>> {
            visible.iter().map(|row| (field.read)(row, self.seconds)).collect()
        };
        // The last cell is for the mark that there is more.
        let room = usize::from(paper.area.width.saturating_sub(1));
        let mut x = 2;
        let mut all_fit = true;
        for field in columns {
            let column = &field.column;
            let mark = if column.name == self.state.sort {
                if self.state.descending { look.either("▼", "v") } else { look.either("▲", "^") }
            } else {
                ""
            };
            let head = format!("{}{mark}", column.title);
            let cells: Vec<String> =
                values(field).iter().map(|value| look.safe(&value.shown(column.unit))).collect();
            let widest = cells.iter().map(|cell| cell.width()).max().unwrap_or(0).min(WIDEST);
            let mut width = widest.max(head.width()).max(least(column));
            if x + width > room {
                // Names may be cut, numbers not.
                let left = room.saturating_sub(x);
                if column.unit != Unit::Word || left < 4 {
                    all_fit = false;
                    break;
                }
                width = left;
            }
            let aligned = |text: &str| {
                let text = fitted(text, width, look);
                let blank = " ".repeat(width.saturating_sub(text.width()));
                if column.unit.is_number() { blank + &text } else { text + &blank }
            };
            paper.put(x as u16, 0, &aligned(&head), look.head());
            for (y, cell) in cells.iter().enumerate() {
                paper.put(x as u16, y as u16 + 1, &aligned(cell), Style::new());
            }
            x += width + 1;
        }
        if !all_fit {
            let more = look.either("›", ">");
            paper.put(paper.area.width.saturating_sub(1), 0, more, look.head());
        }
        let left = room.saturating_sub(x + 1).min(MOST_HISTORY);
        if let Some(history) = self.history.filter(|_| all_fit && left >= LEAST_HISTORY) {
            paper.put(x as u16 + 1, 0, "HISTORY", look.head());
            for (y, row) in visible.iter().enumerate() {
                let line = look.sparkline(&history(row, left), left);
                paper.put(x as u16 + 1, y as u16 + 1, &line, look.bar());
            }
        }
        if rows.is_empty() {
            let words = match self.rows.is_empty() {
                true => self.empty.to_owned(),
                false => format!("no row contains {:?}", self.state.filter),
            };
            paper.put(2, 1, &words, look.faint());
        } else {
            let y = (place - first) as u16 + 1;
            paper.put(0, y, look.either("▶", ">"), Style::new().add_modifier(Modifier::BOLD));
            if self.focused {
                paper.paint(y, look.selected());
            }
        }
    }

    /// The columns that are shown, less those that are scrolled out behind the first.
    fn columns(&self) -> Vec<&'static Field<R>> {
        let shown = self.fields.iter().filter(|field| self.state.shows(&field.column));
        let scrolled = 1..=self.state.scrolled;
        shown.enumerate().filter(|(at, _)| !scrolled.contains(at)).map(|(_, field)| field).collect()
    }
}
