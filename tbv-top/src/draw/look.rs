//! What the terminal can show: colours beyond bold and reverse, characters beyond ASCII.

use std::env;

use ratatui::style::{Color, Modifier, Style};
use tbv_core::display::is_utf8;
use unicode_width::UnicodeWidthChar as _;

/// What the terminal can show. Nothing is said by colour alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The sixteen colours.
    pub color: bool,
    /// Bars, lines and letters beyond ASCII.
    pub unicode: bool,
}

impl Look {
    /// As the environment says.
    pub fn of_environment() -> Self {
        // https://no-color.org: set, and not empty.
        let color = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Look { color, unicode: is_utf8() }
    }

    fn colored(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    /// Heads of columns.
    pub fn head(self) -> Style {
        self.colored(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// Names of sections.
    pub fn title(self) -> Style {
        self.colored(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// What is less important.
    pub fn faint(self) -> Style {
        self.colored(Color::DarkGray)
    }

    /// What is wrong.
    pub fn alarm(self) -> Style {
        self.colored(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// What is well.
    pub fn good(self) -> Style {
        self.colored(Color::Green)
    }

    /// Bars and lines of numbers.
    pub fn bar(self) -> Style {
        self.colored(Color::Blue)
    }

    /// The selected row.
    pub fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// A name or number as the terminal can show it: a cell or two for each character.
    pub fn safe(self, text: &str) -> String {
        if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return text.to_owned();
        }
        let mut safe = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                ' '..='~' => safe.push(c),
                'µ' if !self.unicode => safe.push('u'),
                '…' if !self.unicode => safe.push('~'),
                '±' if !self.unicode => safe.push_str("+-"),
                '×' if !self.unicode => safe.push('x'),
                _ if !self.unicode => safe.push('?'),
                // It would be drawn over its neighbour, or not at all.
                c if c.width().unwrap_or(0) == 0 => safe.extend(c.escape_unicode()),
                c => safe.push(c),
            }
        }
        safe
    }

    /// What follows a text that was cut.
    pub fn cut(self) -> &'static str {
        if self.unicode { "…" } else { "~" }
    }

    /// One of these, the first if the terminal can show it.
    pub fn either(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.unicode { unicode } else { ascii }
    }

    /// A line of characters that are as high as numbers are large; the largest is full.
    pub fn sparkline(self, values: &[f64], width: usize) -> String {
        const UNICODE: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const ASCII: [char; 9] = ['.', '_', '_', '-', '-', '=', '=', '#', '#'];
        let values = values.get(values.len().saturating_sub(width)..).unwrap_or_default();
        let most = values.iter().copied().fold(0.0, f64::max);
        let levels = if self.unicode { UNICODE } else { ASCII };
        let level = |value: &f64| {
            let level = if most > 0.0 { (value / most * 8.0).ceil() as usize } else { 0 };
            levels.get(level.min(8)).copied().unwrap_or(' ')
        };
        let line: String = values.iter().map(level).collect();
        // The newest is at the right.
        format!("{line:>width$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UTF8: Look = Look { color: true, unicode: true };
    const ASCII: Look = Look { color: false, unicode: false };

    #[test]
    fn hostile_names_are_harmless() {
        assert_eq!(UTF8.safe("a\u{200b}e\u{301}😀"), "a\\u{200b}e\\u{301}😀");
        assert_eq!(UTF8.safe("\u{1b}["), "\\u{1b}[");
        assert_eq!(ASCII.safe("1.5 µs ±é😀"), "1.5 us +-??");
    }

    #[test]
    fn sparklines_tell_nothing_from_little() {
        assert_eq!(UTF8.sparkline(&[0.0, 0.1, 4.0, 8.0], 6), "  ·▁▄█");
        assert_eq!(ASCII.sparkline(&[0.0, 8.0], 2), ".#");
        assert_eq!(UTF8.sparkline(&[1.0, 2.0, 3.0], 2), "▆█");
        assert_eq!(UTF8.sparkline(&[0.0], 1), "·");
        assert_eq!(UTF8.sparkline(&[], 0), "");
    }

    #[test]
    fn without_colours_there_are_none() {
        for style in [ASCII.head(), ASCII.title(), ASCII.faint(), ASCII.alarm(), ASCII.good(), ASCII.bar()] {
            assert_eq!((style.fg, style.bg), (None, None));
        }
    }
}
