//! Where frames stand: rectangles in pixels.
//!
//! In: a tree and a style. Out: the frames that are wide enough to be drawn, and for those that are not the spans
//! that they cover together. Never: text or colours. The script does the same for a zoom.

use super::tree::Tree;
use crate::output::Style;
use crate::output::style::{MARGIN, NOMINAL_WIDTH};

/// More frames than this are not drawn, however wide they are, or the file becomes large. The script draws more.
const MAX_DRAWN: usize = 4_000;
/// Spans of narrow frames that are closer to each other than this are one span, in pixels.
const GAP: f64 = 0.5;
/// Narrower spans are not drawn, in pixels.
const MIN_SPAN: f64 = 0.5;

/// A rectangle: pixels from the left edge of all frames, and levels above the root.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) level: u32,
    pub(super) x: f64,
    pub(super) width: f64,
}

/// Frames that are drawn, and where.
#[derive(Debug)]
pub(super) struct Layout {
    /// The width of the picture.
    pub(super) width: f64,
    /// Frames, by their place in the tree.
    pub(super) frames: Vec<(usize, Span)>,
    /// Where frames stand that are too narrow to be drawn one by one.
    pub(super) joined: Vec<Span>,
    /// How many these are.
    pub(super) narrow: usize,
    /// Narrower than this, in pixels.
    pub(super) least: f64,
    /// How many levels hold something, the root's included.
    pub(super) levels: u32,
}

impl Layout {
    /// `row`: the level of a frame, by its place and its depth.
    pub(super) fn new(
        tree: &Tree,
        row: impl Fn(usize, u32) -> u32,
        is_by_weight: bool,
        style: &Style,
    ) -> Self {
        let width = f64::from(style.width.unwrap_or(NOMINAL_WIDTH));
        let inner = width - 2.0 * f64::from(MARGIN);
        let scale = inner / tree.total().max(1) as f64;
        let least = enough(tree, scale, style.least_pixels(inner));
        let mut layout = Self {
            width,
            frames: Vec::new(),
            joined: Vec::new(),
            narrow: 0,
            least,
            levels: 1,
        };
        // For each level the span that may still grow.
        let mut open: Vec<Option<Span>> = Vec::new();
        let places = match is_by_weight {
            true => tree.by_weight(),
            false => {
                let lefts = tree.nodes.iter().map(|node| node.left);
                lefts.enumerate().collect()
            }
        };
        for (index, left) in places {
            let node = &tree.nodes[index];
            let span = Span {
                level: row(index, node.depth),
                x: left as f64 * scale,
                width: node.weight as f64 * scale,
            };
            if index == 0 || span.width >= least {
                layout.levels = layout.levels.max(span.level + 1);
                layout.frames.push((index, span));
                continue;
            }
            layout.narrow += 1;
            let level = span.level as usize;
            open.resize(open.len().max(level + 1), None);
            match &mut open[level] {
                Some(grown) if span.x - (grown.x + grown.width) < GAP => {
                    grown.width = span.x + span.width - grown.x;
                }
                place => layout.close(place.replace(span)),
            }
        }
        for span in open {
            layout.close(span);
        }
        layout.joined.sort_by(|a, b| {
            let place = |span: &Span| (span.level, span.x);
            place(a).partial_cmp(&place(b)).expect("no NaN")
        });
        layout
    }

    fn close(&mut self, span: Option<Span>) {
        if let Some(span) = span.filter(|span| span.width >= MIN_SPAN) {
            self.levels = self.levels.max(span.level + 1);
            self.joined.push(span);
        }
    }
}

/// The least width at which not too many frames are drawn: what was asked for, or more.
fn enough(tree: &Tree, scale: f64, least: f64) -> f64 {
    let widths = tree.nodes.iter().map(|node| node.weight as f64 * scale);
    let mut widths: Vec<f64> = widths.filter(|&width| width >= least).collect();
    if widths.len() <= MAX_DRAWN {
        return least;
    }
    widths.sort_by(|a, b| b.total_cmp(a));
    // Just above the first that is too many.
    let too_many = widths[MAX_DRAWN];
    widths[..MAX_DRAWN]
        .iter()
        .rev()
        .find(|&&width| width > too_many)
        .copied()
        .unwrap_or(too_many * 1.001)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::MinWidth;
    use crate::profile::fold::parse;
    use crate::profile::{Unit, View};
    use std::fmt::Write as _;

    fn layout(text: &str, minwidth: MinWidth) -> Layout {
        let profile = parse(text.as_bytes(), Unit::Samples).expect("folded text");
        let view = View::new(&profile);
        let (tree, _) = Tree::new(&view, &Style::default());
        let style = Style {
            width: Some(1020),
            minwidth,
            ..Style::default()
        };
        Layout::new(&tree, |_, depth| depth, false, &style)
    }

    #[test]
    fn narrow_neighbours_are_one_span() {
        // A pixel is a hundred samples.
        let text = "a;b 30\na;c 30\na;d 30\na;e 500\na;f 30\na;g 99380\n";
        let layout = layout(text, MinWidth::Pixels(0.5));
        let shown: Vec<u32> = layout.frames.iter().map(|(_, span)| span.level).collect();
        assert_eq!(shown, [0, 1, 2, 2]);
        assert_eq!(layout.narrow, 4);
        assert_eq!(layout.joined.len(), 1);
        let span = layout.joined[0];
        assert_eq!((span.level, span.x), (2, 0.0));
        assert!((span.width - 0.9).abs() < 1e-9, "{span:?}");
    }

    #[test]
    fn no_more_frames_are_drawn_than_browsers_like() {
        let mut text = String::new();
        for number in 0..MAX_DRAWN * 2 {
            let weight = 10 + number % 7;
            writeln!(text, "f{number} {weight}").expect("a string takes all");
        }
        let layout = layout(&text, MinWidth::Pixels(0.0));
        assert!(layout.frames.len() <= MAX_DRAWN + 1);
        assert!(layout.frames.len() > MAX_DRAWN / 2);
        assert_eq!(layout.narrow + layout.frames.len(), 2 * MAX_DRAWN + 1);
        assert!(layout.least > 0.0);
    }
}
