//! Writing into a part of the screen, and never beyond it.

use ratatui::{buffer::Buffer, layout::Rect, style::Style};
use unicode_width::UnicodeWidthStr as _;

use super::look::Look;

/// A part of the screen.
pub struct Paper<'a> {
    buffer: &'a mut Buffer,
    /// Where it lies.
    pub area: Rect,
    /// What can be shown on it.
    pub look: Look,
}

impl<'a> Paper<'a> {
    /// A part of a buffer.
    pub fn new(buffer: &'a mut Buffer, area: Rect, look: Look) -> Self {
        let area = area.intersection(buffer.area);
        Paper { buffer, area, look }
    }

    /// Some of its lines, from the one at `y` on.
    pub fn lines(&mut self, y: u16, height: u16) -> Paper<'_> {
        let top = self.area.y.saturating_add(y.min(self.area.height));
        let area = Rect { y: top, height: height.min(self.area.height.saturating_sub(y)), ..self.area };
        Paper { area, look: self.look, buffer: self.buffer }
    }

    /// Some of its columns, from the one at `x` on.
    pub fn columns(&mut self, x: u16, width: u16) -> Paper<'_> {
        let left = self.area.x.saturating_add(x.min(self.area.width));
        let area = Rect { x: left, width: width.min(self.area.width.saturating_sub(x)), ..self.area };
        Paper { area, look: self.look, buffer: self.buffer }
    }

    /// Writes into a line, as far as there is room; where it ends.
    pub fn put(&mut self, x: u16, y: u16, text: &str, style: Style) -> u16 {
        if x >= self.area.width || y >= self.area.height {
            return x;
        }
        let safe = self.look.safe(text);
        let room = usize::from(self.area.width - x);
        let (end, _) = self.buffer.set_stringn(self.area.x + x, self.area.y + y, safe, room, style);
        end.saturating_sub(self.area.x)
    }

    /// Lays a style over a line.
    pub fn paint(&mut self, y: u16, style: Style) {
        if y < self.area.height {
            self.buffer.set_style(Rect { y: self.area.y + y, height: 1, ..self.area }, style);
        }
    }

    /// Empties all of it.
    pub fn clear(&mut self) {
        let width = usize::from(self.area.width);
        for y in 0..self.area.height {
            self.put(0, y, &" ".repeat(width), Style::reset());
            self.paint(y, Style::reset());
        }
    }

    /// A line that begins a section.
    pub fn section(&mut self, title: &str, style: Style) {
        let line = self.look.either("─", "-");
        let end = self.put(0, 0, &format!("{line}{line} {title} "), style);
        let rest = usize::from(self.area.width.saturating_sub(end));
        self.put(end, 0, &line.repeat(rest), self.look.faint());
    }
}

/// A text of at most so many cells; one that is cut says so.
pub fn fitted(text: &str, width: usize, look: Look) -> String {
    let safe = look.safe(text);
    if safe.width() <= width {
        return safe;
    }
    let mut cut = String::new();
    for c in safe.chars() {
        let mut more = cut.clone();
        more.push(c);
        if more.width() + 1 > width {
            break;
        }
        cut = more;
    }
    if width > 0 {
        cut.push_str(look.cut());
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Look = Look { color: true, unicode: true };

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(["abc", "abcd", "😀😀"].map(|text| fitted(text, 3, LOOK)), ["abc", "ab…", "😀…"]);
        assert_eq!([0, 1].map(|width| fitted("abc", width, LOOK)), ["", "…"]);
    }

    #[test]
    fn nothing_is_written_outside() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 4, 2));
        let mut paper = Paper::new(&mut buffer, Rect::new(1, 1, 9, 9), LOOK);
        assert_eq!((paper.area.width, paper.area.height), (3, 1));
        paper.put(0, 0, "abcdef", Style::new());
        paper.put(0, 5, "x", Style::new());
        paper.put(7, 0, "x", Style::new());
        paper.lines(3, 4).put(0, 0, "x", Style::new());
        paper.columns(9, 9).section("x", Style::new());
        assert_eq!(buffer, Buffer::with_lines(["    ", " abc"]));
    }
}
