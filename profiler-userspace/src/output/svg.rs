//! The interactive flame graph: one SVG file that zooms, searches, and pastes into any page.
//!
//! In: a profile's view and its style. Out: one element `<svg>`, the same bytes for the same view.
//! Never: characters in it that XML forbids, markup that came from a name, or a frame that is left out: what is
//! too narrow to draw is carried packed, and drawn when a zoom makes it wide enough.
//!
//! [`tree`] makes frames of stacks, or [`chart`] frames in time, [`layout`] rectangles of frames, [`draw`] elements of rectangles. [`pack`] writes
//! all frames for the script, which is in [`page`].

mod axis;
mod chart;
mod classic;
mod color;
mod colors;
mod differential;
mod draw;
mod layout;
mod pack;
mod page;
mod paint;
mod pixels;
mod rests;
mod tree;

use super::bound::Bound;
use super::{Error, Palette, Style, timed};
use crate::profile::{Frame, FrameKind, Profile, View};
use chart::Chart;
pub(super) use differential::{Widths, write as write_differential};
use layout::Layout;
use paint::Paints;
use std::borrow::Cow;
use std::io::Write;
use tree::Tree;

/// The colour that a frame has in a palette, as red, green and blue; black text on it can be read. `time`: for how long its
/// threads ran, and for how long they did not.
pub fn frame_color(palette: Palette, name: &str, kind: FrameKind, time: [f64; 2]) -> [u8; 3] {
    let frame = Frame::new(name, kind);
    let color = colors::of_frame(palette, &frame, time);
    [color.r, color.g, color.b]
}

/// Draws the view of a profile. Fails on one without weight, and on a style that cannot be drawn.
pub(super) fn write(view: &View, style: &Style, out: &mut dyn Write) -> Result<(), Error> {
    style.check()?;
    if view.total_weight() == 0 {
        return Err(Error::Empty);
    }
    if style.classic {
        return classic::write(view, style, out);
    }
    let (tree, noun) = Tree::new(view, style);
    finish(view, (&tree, noun), None, style, out)
}

/// Draws a profile in time. Fails on one without weight or without windows, and on a style that cannot be drawn.
pub(super) fn write_chart(
    profile: &Profile,
    style: &Style,
    out: &mut dyn Write,
) -> Result<(), Error> {
    style.check()?;
    if profile.total_weight() == 0 {
        return Err(Error::Empty);
    }
    let (tree, chart) = chart::tree(profile, style)?;
    let style = Style {
        title: timed(&style.title, chart.resolution),
        ..style.clone()
    };
    // Colours are those of the flame graph.
    let view = View::new(profile);
    let noun = view.unit.noun();
    finish(&view, (&tree, noun), Some(&chart), &style, out)
}

fn finish(
    view: &View,
    (tree, noun): (&Tree, &str),
    chart: Option<&Chart>,
    style: &Style,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let texts = draw::Texts::new(style, noun);
    let make = |most: usize| {
        let tree = match most < tree.nodes.len() {
            true => Cow::Owned(tree.folded(most)),
            false => Cow::Borrowed(tree),
        };
        let paints = Paints::new(style.colors, view, &tree);
        (tree, paints)
    };
    let bound = match chart {
        None => BOUND,
        // It has a bound of its own.
        Some(_) => Bound {
            bytes: usize::MAX,
            parts: usize::MAX,
        },
    };
    bounded(make, chart, &texts, (style, bound), out)
}

/// The bound of a file, beside its script.
const BOUND: Bound = Bound {
    bytes: 2_900_000,
    parts: 250_000,
};

/// Draws as many frames as a bound allows. `make` makes a tree of about so many, and their colours.
fn bounded<'t>(
    make: impl Fn(usize) -> (Cow<'t, Tree>, Paints),
    chart: Option<&Chart>,
    texts: &draw::Texts,
    (style, bound): (&Style, Bound),
    out: &mut dyn Write,
) -> Result<(), Error> {
    let (drawing, packed) = bound.fit(style, |most| {
        let (tree, paints) = make(most);
        let packed = pack::pack((&tree, chart), &paints, texts, style)?;
        let row = |place, depth| chart.map_or(depth, |chart| chart.row(place, depth));
        let layout = Layout::new(&tree, row, chart.is_none() && style.is_by_weight(), style);
        let drawing = draw::draw((&tree, chart), &paints, &layout, texts, style);
        let bytes = packed.text.len() + drawing.body.len();
        Ok(((drawing, packed), bytes, tree.nodes.len()))
    })?;
    Ok(page::write(&drawing, &packed, out)?)
}

#[cfg(test)]
mod tests;
