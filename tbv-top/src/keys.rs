//! The key table: what keys do, in one place. The help is made from it.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::app::View;

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// To end.
    Quit,
    /// The list of keys.
    Help,
    /// The row above, …
    Up,
    /// … below,
    Down,
    /// a page above, …
    PageUp,
    /// … below,
    PageDown,
    /// the first row, …
    First,
    /// … the last one.
    Last,
    /// Columns further left, or the table before.
    Left,
    /// Columns further right, or the next table.
    Right,
    /// Into the selected row.
    Open,
    /// Out of it, or out of a menu.
    Back,
    /// The next view, …
    NextView,
    /// … the one before,
    PreviousView,
    /// or this one.
    Show(View),
    /// To type what rows have to contain.
    Filter,
    /// To choose what rows are sorted by.
    Sort,
    /// The other way round.
    Invert,
    /// To choose columns.
    Columns,
    /// To stop, or to go on.
    Pause,
    /// One interval back, …
    StepBack,
    /// … forward,
    StepForward,
    /// ten of them back, …
    LeapBack,
    /// … forward,
    LeapForward,
    /// to the begin, …
    Oldest,
    /// … to the newest.
    Newest,
    /// Shorter intervals, or a faster replay.
    Faster,
    /// Longer intervals, or a slower replay.
    Slower,
    /// The interval, or all up to there.
    Whole,
    /// To write a recording, or to end it.
    Record,
    /// To let go of the modules, or to attach again.
    LetGo,
    /// To draw all anew.
    Redraw,
    /// To stop as Ctrl-Z does.
    Suspend,
}

impl Action {
    /// Whether it needs the kernel, not a recording.
    pub fn is_live_only(self) -> bool {
        matches!(self, Action::Show(View::Events) | Action::Record | Action::LetGo)
    }
}

/// Keys that do the same.
pub struct Binding {
    codes: &'static [(KeyCode, KeyModifiers)],
    /// As they are written in the help.
    pub names: &'static str,
    /// What they ask for.
    pub action: Action,
    /// What that is.
    pub help: &'static str,
    /// How the footer calls it; empty if it has no room for it.
    pub short: &'static str,
}

const NONE: KeyModifiers = KeyModifiers::NONE;
const CONTROL: KeyModifiers = KeyModifiers::CONTROL;

const fn key(code: KeyCode) -> (KeyCode, KeyModifiers) {
    (code, NONE)
}

const fn char(c: char) -> (KeyCode, KeyModifiers) {
    (KeyCode::Char(c), NONE)
}

const fn binding(
    codes: &'static [(KeyCode, KeyModifiers)],
    names: &'static str,
    action: Action,
    short: &'static str,
    help: &'static str,
) -> Binding {
    Binding { codes, names, action, help, short }
}

/// All of them.
pub const KEYS: &[Binding] = &[
    binding(
        &[char('q'), key(KeyCode::F(10)), (KeyCode::Char('c'), CONTROL)],
        "q F10 Ctrl-C",
        Action::Quit,
        "quit",
        "end",
    ),
    binding(&[char('?'), key(KeyCode::F(1))], "? F1", Action::Help, "help", "this list"),
    binding(
        &[key(KeyCode::Enter)],
        "Enter",
        Action::Open,
        "open",
        "the selected process: operations, queue pairs, completion queues",
    ),
    binding(
        &[key(KeyCode::Esc), key(KeyCode::Backspace)],
        "Esc",
        Action::Back,
        "",
        "back, out of a menu, or without the filter",
    ),
    binding(&[key(KeyCode::Tab)], "Tab", Action::NextView, "view", "the next view"),
    binding(
        &[key(KeyCode::BackTab), (KeyCode::BackTab, KeyModifiers::SHIFT)],
        "Shift-Tab",
        Action::PreviousView,
        "",
        "the view before",
    ),
    binding(
        &[char('/'), key(KeyCode::F(4))],
        "/ F4",
        Action::Filter,
        "filter",
        "show only rows that contain a text, in any column or as COLUMN:TEXT",
    ),
    binding(&[char('s'), key(KeyCode::F(6))], "s F6", Action::Sort, "sort", "choose the column to sort by"),
    binding(&[char('I')], "I", Action::Invert, "", "sort the other way round"),
    binding(
        &[char('c'), key(KeyCode::F(2))],
        "c F2",
        Action::Columns,
        "columns",
        "choose columns, and read what they mean",
    ),
    binding(&[char(' ')], "Space", Action::Pause, "pause", "pause, or go on"),
    binding(&[char(','), char('[')], ", [", Action::StepBack, "back", "one interval back in time; pauses"),
    binding(&[char('.'), char(']')], ". ]", Action::StepForward, "forth", "one interval forward"),
    binding(&[char('<'), char('{')], "< {", Action::LeapBack, "", "ten intervals back"),
    binding(&[char('>'), char('}')], "> }", Action::LeapForward, "", "ten intervals forward"),
    binding(&[char('(')], "(", Action::Oldest, "", "to the first interval that is kept"),
    binding(&[char(')'), char('0')], ") 0", Action::Newest, "", "to the newest interval, and go on"),
    binding(&[char('+'), char('=')], "+", Action::Faster, "", "shorter intervals; faster, in a replay"),
    binding(&[char('-')], "-", Action::Slower, "", "longer intervals; slower, in a replay"),
    binding(
        &[char('t')],
        "t",
        Action::Whole,
        "total",
        "numbers of the interval, or of all the time up to there",
    ),
    binding(&[char('1')], "1", Action::Show(View::Processes), "", "processes"),
    binding(&[char('2')], "2", Action::Show(View::Queues), "", "completion queues"),
    binding(&[char('3')], "3", Action::Show(View::Devices), "", "devices and their links"),
    binding(
        &[char('4'), char('e')],
        "4 e",
        Action::Show(View::Events),
        "events",
        "the selected process's calls as they return",
    ),
    binding(&[key(KeyCode::Up), char('k')], "Up k", Action::Up, "", "the row above"),
    binding(&[key(KeyCode::Down), char('j')], "Down j", Action::Down, "", "the row below"),
    binding(&[key(KeyCode::PageUp)], "PgUp", Action::PageUp, "", "a page up"),
    binding(&[key(KeyCode::PageDown)], "PgDn", Action::PageDown, "", "a page down"),
    binding(&[key(KeyCode::Home), char('g')], "Home g", Action::First, "", "the first row"),
    binding(&[key(KeyCode::End), char('G')], "End G", Action::Last, "", "the last row"),
    binding(
        &[key(KeyCode::Left), char('h')],
        "Left h",
        Action::Left,
        "",
        "columns further left; in a process, the table before",
    ),
    binding(
        &[key(KeyCode::Right), char('l')],
        "Right l",
        Action::Right,
        "",
        "columns further right; in a process, the next table",
    ),
    binding(&[char('r')], "r", Action::Record, "record", "write a recording, or end it"),
    binding(
        &[char('D')],
        "D",
        Action::LetGo,
        "",
        "let go of the kernel modules, so that they can be unloaded, or attach again",
    ),
    binding(&[(KeyCode::Char('l'), CONTROL)], "Ctrl-L", Action::Redraw, "", "draw all anew"),
    binding(&[(KeyCode::Char('z'), CONTROL)], "Ctrl-Z", Action::Suspend, "", "stop, until the shell's fg"),
];

/// What a key asks for, outside of text that is typed.
pub fn action(event: &KeyEvent) -> Option<Action> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    // Terminals tell capitals with or without the key that makes them.
    let shift = if matches!(event.code, KeyCode::Char(_)) { KeyModifiers::SHIFT } else { NONE };
    let pressed = (event.code, event.modifiers.difference(shift));
    KEYS.iter().find(|binding| binding.codes.contains(&pressed)).map(|binding| binding.action)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_key_does_two_things() {
        let mut seen = HashSet::new();
        for code in KEYS.iter().flat_map(|binding| binding.codes) {
            assert!(seen.insert(format!("{code:?}")), "{code:?} is bound twice");
        }
        assert!(KEYS.iter().all(|binding| !binding.names.is_empty() && !binding.help.is_empty()));
    }

    #[test]
    fn capitals_are_understood_with_and_without_shift() {
        for modifiers in [NONE, KeyModifiers::SHIFT] {
            assert_eq!(action(&KeyEvent::new(KeyCode::Char('I'), modifiers)), Some(Action::Invert));
        }
        assert_eq!(action(&KeyEvent::new(KeyCode::Char('c'), CONTROL)), Some(Action::Quit));
        assert_eq!(action(&KeyEvent::new(KeyCode::Char('c'), NONE)), Some(Action::Columns));
        assert_eq!(action(&KeyEvent::new(KeyCode::Char('q'), KeyModifiers::ALT)), None);
        let released = KeyEvent::new_with_kind(KeyCode::Char('q'), NONE, KeyEventKind::Release);
        assert_eq!(action(&released), None);
    }
}
