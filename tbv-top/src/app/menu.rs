//! What lies over a view: help, lists to choose from, and text that is typed.

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Menu {
    /// The list of keys, scrolled by so many lines.
    Help(usize),
    /// Columns to sort by; the place of the chosen one.
    Sort(usize),
    /// Columns to show; the place of the chosen one.
    Columns(usize),
    /// What rows have to contain, and what it was before.
    Filter {
        /// The filter before.
        before: String,
    },
}
