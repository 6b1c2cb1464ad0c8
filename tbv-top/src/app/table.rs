//! What is common to all tables: the order of rows, the filter, the chosen columns and the selected row.

use std::collections::BTreeSet;

use tbv_core::fields::{Column, Field, Unit, Value};

/// Tells one row from another, also when numbers change.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(pub u32, pub u32, pub String);

/// How a table of rows of one kind is shown.
#[derive(Clone, Debug)]
pub struct TableState {
    columns: Vec<&'static Column>,
    shown: BTreeSet<&'static str>,
    /// Name of the column that rows are sorted by.
    pub sort: &'static str,
    /// Largest first.
    pub descending: bool,
    /// What rows have to contain.
    pub filter: String,
    /// The selected row.
    pub selected: Option<Key>,
    /// Its place, for when it is gone.
    index: usize,
    /// Columns that are scrolled out to the left, behind those that stay.
    pub scrolled: usize,
}

impl TableState {
    /// Of these fields, sorted by one of them.
    pub fn new<R>(fields: &'static [Field<R>], sort: &'static str, descending: bool) -> Self {
        let columns: Vec<&'static Column> = fields.iter().map(|field| &field.column).collect();
        TableState {
            shown: columns.iter().filter(|column| column.usual).map(|column| column.name).collect(),
            columns,
            sort,
            descending,
            filter: String::new(),
            selected: None,
            index: 0,
            scrolled: 0,
        }
    }

    /// All columns that there are.
    pub fn columns(&self) -> &[&'static Column] {
        &self.columns
    }

    /// Whether a column is shown.
    pub fn shows(&self, column: &Column) -> bool {
        self.shown.contains(column.name)
    }

    /// Shows a column, or not; one stays.
    pub fn toggle(&mut self, column: &'static Column) {
        if !self.shown.remove(column.name) || self.shown.is_empty() {
            self.shown.insert(column.name);
        }
    }

    /// Shows these columns only.
    pub fn choose(&mut self, names: &[&'static str]) {
        self.shown = names.iter().copied().collect();
    }

    /// Sorts by a column; numbers the largest first.
    pub fn sort_by(&mut self, column: &'static Column) {
        self.sort = column.name;
        self.descending = !matches!(column.unit, Unit::Word | Unit::Id);
    }

    /// Places of the rows that pass the filter, in the order in which they are shown.
    pub fn order<R>(&self, fields: &'static [Field<R>], rows: &[R], seconds: f64) -> Vec<usize> {
        let passes = |row: &R| self.passes(fields, row, seconds);
        let mut places: Vec<usize> =
            rows.iter().enumerate().filter(|(_, row)| passes(row)).map(|(at, _)| at).collect();
        let Some(field) = fields.iter().find(|field| field.column.name == self.sort) else { return places };
        let mut values: Vec<(usize, Value<'_>)> =
            places.iter().filter_map(|at| Some((*at, (field.read)(rows.get(*at)?, seconds)))).collect();
        // Rows that are equal keep the order of their keys, in either direction.
        values.sort_by(|(_, a), (_, b)| if self.descending { b.order(a) } else { a.order(b) });
        places.clear();
        places.extend(values.into_iter().map(|(at, _)| at));
        places
    }

    /// Whether a row contains the filter's text: in any column, or in the one that it names.
    fn passes<R>(&self, fields: &'static [Field<R>], row: &R, seconds: f64) -> bool {
        if self.filter.is_empty() {
            return true;
        }
        let named = self.filter.split_once(':').and_then(|(name, text)| {
            let is = |field: &&Field<R>| {
                field.column.name.eq_ignore_ascii_case(name) || field.column.title.eq_ignore_ascii_case(name)
            };
            Some((fields.iter().find(is)?, text))
        });
        let contains = |field: &Field<R>, text: &str| {
            let shown = (field.read)(row, seconds).shown(field.column.unit);
            shown.to_lowercase().contains(&text.to_lowercase())
        };
        match named {
            Some((field, text)) => contains(field, text),
            None => fields.iter().any(|field| contains(field, &self.filter)),
        }
    }

    /// The place among these keys of the selected row; of the one that took its place, if it is gone.
    pub fn place(&self, keys: &[Key]) -> usize {
        let found = self.selected.as_ref().and_then(|key| keys.iter().position(|other| other == key));
        found.unwrap_or(self.index.min(keys.len().saturating_sub(1)))
    }

    /// Selects the row so many places further down, or up.
    pub fn step(&mut self, keys: &[Key], by: isize) {
        let place = self.place(keys).saturating_add_signed(by).min(keys.len().saturating_sub(1));
        self.index = place;
        self.selected = keys.get(place).cloned();
    }

    /// Sticks to the row that is selected now, so that it is followed when the order changes.
    pub fn settle(&mut self, keys: &[Key]) {
        // The first row is where the most goes on, until someone selects another.
        if self.selected.is_some() {
            self.step(keys, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use tbv_core::fields::{ProcessRow, process::FIELDS};

    use super::*;

    fn rows() -> Vec<ProcessRow> {
        let row = |pid, comm: &str, calls| {
            let mut row = ProcessRow::idle(pid, comm);
            row.calls = calls;
            row
        };
        vec![row(7, "seven", 10), row(8, "eight", 30), row(9, "nine", 20)]
    }

    fn state() -> TableState {
        TableState::new(FIELDS, "calls_per_second", true)
    }

    #[test]
    fn rows_are_sorted_by_any_column_and_filtered_by_any() {
        let mut state = state();
        let order = |state: &TableState| state.order(FIELDS, &rows(), 1.0);
        assert_eq!(order(&state), [1, 2, 0]);
        state.descending = false;
        assert_eq!(order(&state), [0, 2, 1]);
        state.sort_by(&FIELDS[2].column);
        assert_eq!((state.sort, order(&state)), ("comm", vec![1, 2, 0]));
        state.filter = "N".to_owned();
        assert_eq!(order(&state), [1, 2, 0], "n/a and idle contain none, seven, nine and n/a do");
        state.filter = "comm:NI".to_owned();
        assert_eq!(order(&state), [2]);
        state.filter = "pid:8".to_owned();
        assert_eq!(order(&state), [1]);
        state.filter = "no such".to_owned();
        assert!(order(&state).is_empty());
    }

    #[test]
    fn the_selected_row_is_followed_and_its_place_kept_when_it_goes() {
        let keys = |pids: &[u32]| pids.iter().map(|pid| Key(*pid, 0, String::new())).collect::<Vec<_>>();
        let mut state = state();
        assert_eq!(state.place(&keys(&[1, 2, 3])), 0);
        state.step(&keys(&[1, 2, 3]), 1);
        assert_eq!(state.place(&keys(&[3, 1, 2])), 2);
        state.settle(&keys(&[3, 1, 2]));
        assert_eq!(state.place(&keys(&[3, 1])), 1);
        state.step(&keys(&[3, 1]), isize::MIN);
        assert_eq!(state.selected, Some(Key(3, 0, String::new())));
        state.step(&[], isize::MAX);
        assert_eq!((state.selected.clone(), state.place(&[])), (None, 0));
    }

    #[test]
    fn one_column_stays() {
        let mut state = state();
        for column in state.columns().to_vec() {
            if state.shows(column) {
                state.toggle(column);
            }
        }
        assert_eq!(state.columns().iter().filter(|column| state.shows(column)).count(), 1);
    }
}
