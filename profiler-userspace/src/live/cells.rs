//! The flame graph in cells.
//!
//! In: rows of spans. Out: cells. An edge within a cell is drawn by the colours of both sides; what is too narrow to be
//! told apart is one dim cell.

use super::canvas::Canvas;
use super::flame::{self, Filling, NEVER_FOLDED, Span};
use super::label::fit;
use super::shape::ROOT;
use super::theme::Colors;
use super::top::Top;
use ratatui::style::{Color, Modifier, Style};

/// Blocks that fill a part of a cell from the left, by eighths.
const BLOCKS: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// Draws the rows that are in sight.
pub(super) fn draw(top: &Top, canvas: &mut Canvas<'_>) {
    let state = &top.state;
    let units = top.theme.units();
    let body = top.body_rows();
    let rows = flame::rows(&top.shape, state.zoom, top.columns, units, body);
    let matches = Matches::new(top);
    let scrolled = state.scrolled[state.view as usize];
    for (line, row) in rows.all.iter().skip(scrolled).take(body).enumerate() {
        let line = match state.icicle {
            true => line,
            false => body - 1 - line,
        };
        let painter = Painter {
            top,
            folded: rows.folded,
            matches: &matches,
            row,
            line: line as u16 + 1,
            units,
        };
        painter.draw(canvas);
    }
}

/// Which names meet what was searched for.
struct Matches(Vec<bool>);

impl Matches {
    fn new(top: &Top) -> Self {
        let Some(pattern) = &top.state.search else {
            return Self(Vec::new());
        };
        let names = top.shape.names.iter();
        Self(names.map(|name| pattern.is_met_by(&name.text)).collect())
    }

    fn is_met(&self, top: &Top, node: u32) -> bool {
        let name = top.shape.node(node).name as usize;
        node != ROOT && self.0.get(name).copied().unwrap_or(false)
    }
}

/// Draws one row.
struct Painter<'a> {
    top: &'a Top,
    matches: &'a Matches,
    row: &'a [Span],
    /// How many levels have no row.
    folded: usize,
    /// The line of the screen.
    line: u16,
    units: u32,
}

impl Painter<'_> {
    fn draw(&self, canvas: &mut Canvas<'_>) {
        let styles: Vec<Style> = (self.row.iter().enumerate())
            .map(|(place, span)| self.style(place, span))
            .collect();
        let mut first = 0;
        for column in 0..self.top.columns {
            let (from, to) = self.cell(column);
            while first < self.row.len() && self.row[first].range.end <= from {
                first += 1;
            }
            let here = self.row[first..].iter().take_while(|s| s.range.start < to);
            let here = here.count();
            if here > 0 {
                let spans = first..first + here;
                self.draw_cell(canvas, column, spans, &styles);
            }
        }
        for (span, style) in self.row.iter().zip(&styles) {
            match span.filling {
                Filling::Node(node) => {
                    let name = &self.top.shape.name(node).text;
                    self.draw_name(canvas, span, name, *style);
                }
                Filling::Trunk(node) => {
                    let name = self.trunk_name(node);
                    self.draw_name(canvas, span, &name, *style);
                }
                Filling::Joined => {}
            }
        }
    }

    /// The units that a cell begins and ends at.
    fn cell(&self, column: u16) -> (u32, u32) {
        let from = u32::from(column) * self.units;
        (from, from + self.units)
    }

    fn draw_cell(
        &self,
        canvas: &mut Canvas<'_>,
        column: u16,
        spans: std::ops::Range<usize>,
        styles: &[Style],
    ) {
        let (from, to) = self.cell(column);
        let row = &self.row[spans.clone()];
        let left = styles[spans.start];
        let covers = |span: &Span| span.range.start <= from && span.range.end >= to;
        let (c, style) = match row {
            [span] if covers(span) => match span.filling {
                Filling::Node(_) | Filling::Trunk(_) => (' ', left),
                Filling::Joined => self.joined(),
            },
            [span] if span.range.start <= from => {
                let part = span.range.end - from;
                let style = Style::new().fg(left.bg.unwrap_or(Color::Reset));
                (BLOCKS[part as usize], style)
            }
            [span] => match span.range.end.min(to) - span.range.start.max(from) {
                part if part * 2 >= self.units => (' ', left),
                _ => return,
            },
            [one, other]
                if one.range.start <= from
                    && one.range.end == other.range.start
                    && other.range.end >= to =>
            {
                let part = one.range.end - from;
                let right = styles[spans.start + 1];
                let of = |style: Style| style.bg.unwrap_or(Color::Reset);
                let style = Style::new().fg(of(left)).bg(of(right));
                (BLOCKS[part as usize], style)
            }
            _ => self.joined(),
        };
        canvas.cell(column, self.line, c, style);
    }

    /// A cell that several frames share.
    fn joined(&self) -> (char, Style) {
        let c = if self.top.theme.unicode { '░' } else { ':' };
        (c, self.top.theme.joined())
    }

    fn style(&self, place: usize, span: &Span) -> Style {
        let (top, theme) = (self.top, self.top.theme);
        let (node, is_trunk) = match span.filling {
            Filling::Node(node) => (node, false),
            Filling::Trunk(node) => (node, true),
            Filling::Joined => return theme.joined(),
        };
        let style = match node {
            ROOT => theme.bar(),
            node => {
                let name = top.shape.name(node);
                let palette = top.channels[top.state.channel].palette;
                let time = top.shape.node(node).total;
                // Neighbours differ, and so do callers and callees.
                let is_even = (place + usize::from(self.line)).is_multiple_of(2);
                theme.frame(palette, name, time, is_even)
            }
        };
        let is_below = top.state.zoom != node && top.shape.is_above(top.state.zoom, node);
        let style = match is_below && node != ROOT {
            // Nodes below the zoomed one are its callers.
            true => style.add_modifier(Modifier::DIM),
            false => style,
        };
        let selected = top.state.selected;
        let has_row = |level: u32| (level as usize) < NEVER_FOLDED;
        let is_in_trunk = is_trunk && !has_row(top.shape.node(selected).depth);
        let is_selected = node == selected || is_in_trunk && top.shape.is_above(node, selected);
        match (is_selected, self.matches.is_met(top, node)) {
            (true, _) => style.patch(theme.selected()),
            (false, true) => style.patch(theme.matching()),
            (false, false) => style,
        }
    }

    /// The frames that have no row are named by how many they are.
    fn trunk_name(&self, node: u32) -> String {
        let sign = if self.top.theme.unicode { '…' } else { '~' };
        let name = &self.top.shape.name(node).text;
        format!("{sign} {} more frames {sign} {name}", self.folded)
    }

    fn draw_name(&self, canvas: &mut Canvas<'_>, span: &Span, name: &str, style: Style) {
        let first = span.range.start.div_ceil(self.units) as u16;
        let end = (span.range.end / self.units) as u16;
        let mut columns = usize::from(end.saturating_sub(first));
        if columns == 0 {
            return;
        }
        if self.top.theme.colors == Colors::None {
            // Nothing else parts neighbours.
            columns -= 1;
            let edge = if self.top.theme.unicode { '│' } else { '|' };
            for column in first..end - 1 {
                canvas.cell(column, self.line, ' ', style);
            }
            canvas.cell(end - 1, self.line, edge, Style::new());
        }
        let label = fit(name, columns, self.top.theme.cut());
        canvas.text(first, self.line, &label, style);
    }
}
