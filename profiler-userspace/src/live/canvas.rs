//! Cells to draw on.
//!
//! In: texts and styles. Out: cells of a buffer, never outside of it.

use super::label::padded;
use super::theme::Theme;
use ratatui::buffer::Buffer;
use ratatui::style::Style;
use unicode_width::UnicodeWidthChar as _;

/// A screen that is being drawn.
pub(super) struct Canvas<'a> {
    pub(super) buffer: &'a mut Buffer,
    pub(super) theme: Theme,
    pub(super) columns: u16,
}

impl Canvas<'_> {
    /// Draws a text as wide as the screen.
    pub(super) fn line(&mut self, row: u16, text: &str, style: Style) {
        self.text(0, row, &padded(text, usize::from(self.columns)), style);
    }

    /// Draws a text from a column on. Without other characters than ASCII, others are `?`.
    pub(super) fn text(&mut self, mut column: u16, row: u16, text: &str, style: Style) {
        for c in text.chars() {
            let width = c.width().unwrap_or(0) as u16;
            let (c, width) = match self.theme.unicode || c.is_ascii() {
                true => (c, width),
                false => ('?', 1),
            };
            if width == 0 || column + width > self.columns {
                continue;
            }
            self.cell(column, row, c, style);
            for covered in 1..width {
                self.cell(column + covered, row, '\0', style);
            }
            column += width;
        }
    }

    /// Draws one cell; `\0` is one that the character before it covers.
    pub(super) fn cell(&mut self, column: u16, row: u16, c: char, style: Style) {
        let Some(cell) = self.buffer.cell_mut((column, row)) else {
            return;
        };
        match c {
            '\0' => cell.set_symbol(""),
            c => cell.set_char(c),
        };
        cell.set_style(style);
    }
}
