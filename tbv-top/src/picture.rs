//! The screen as SVG, for documents.

use std::fmt::Write as _;

use ratatui::{
    buffer::{Buffer, Cell},
    layout::Rect,
    style::{Color, Modifier},
};
use unicode_width::UnicodeWidthStr as _;

use crate::{
    app::App,
    draw::{draw, look::Look},
};

const CELL: (f64, f64) = (8.4, 18.0);
const PAPER: &str = "#1c1f26";
const INK: &str = "#d4d7dd";

/// Draws the state into so many columns and rows.
pub(crate) fn svg(app: &App, (columns, rows): (u16, u16)) -> String {
    let area = Rect::new(0, 0, columns, rows);
    let mut buffer = Buffer::empty(area);
    draw(app, Look { color: true, unicode: true }, area, &mut buffer);
    let (width, height) = (f64::from(columns) * CELL.0 + 16.0, f64::from(rows) * CELL.1 + 16.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"DejaVu Sans Mono,Menlo,Consolas,monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{PAPER}\"/>\n"
    );
    for y in 0..rows {
        line(&buffer, y, columns, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

/// Cells that look alike, one after the other, are a piece of text.
fn line(buffer: &Buffer, y: u16, columns: u16, out: &mut String) {
    let mut x = 0;
    while x < columns {
        let Some(first) = buffer.cell((x, y)) else { break };
        let (begin, style) = (x, (first.fg, first.modifier));
        let mut text = String::new();
        while let Some(cell) =
            buffer.cell((x, y)).filter(|cell| x < columns && (cell.fg, cell.modifier) == style)
        {
            text.push_str(cell.symbol());
            x += (cell.symbol().width() as u16).max(1);
        }
        piece(first, begin, y, x - begin, &text, out);
    }
}

fn piece(cell: &Cell, x: u16, y: u16, cells: u16, text: &str, out: &mut String) {
    let reversed = cell.modifier.contains(Modifier::REVERSED);
    let (left, top) = (8.0 + f64::from(x) * CELL.0, 8.0 + f64::from(y) * CELL.1);
    let wide = f64::from(cells) * CELL.0;
    if reversed {
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{}\" fill=\"{INK}\"/>",
            CELL.1
        );
    }
    if text.trim().is_empty() {
        return;
    }
    let ink = if reversed { PAPER } else { color(cell.fg) };
    let bold = if cell.modifier.contains(Modifier::BOLD) { " font-weight=\"bold\"" } else { "" };
    // Of what printable names may hold, XML has no place for these two.
    let text = text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}");
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(
        out,
        "<text x=\"{left:.1}\" y=\"{:.1}\" textLength=\"{wide:.1}\" lengthAdjust=\"spacingAndGlyphs\" fill=\"{ink}\"{bold} \
         xml:space=\"preserve\">{text}</text>",
        top + 14.0
    );
}

fn color(color: Color) -> &'static str {
    match color {
        Color::Red => "#f0716b",
        Color::Green => "#8cc265",
        Color::Yellow => "#d8b25f",
        Color::Blue => "#5ea7e8",
        Color::Cyan => "#4fb9c4",
        Color::DarkGray => "#7b8290",
        _ => INK,
    }
}
