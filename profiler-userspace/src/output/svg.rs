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

use super::{Error, Palette, Style, timed};
use crate::profile::{Frame, FrameKind, Profile, View};
use chart::Chart;
pub(super) use differential::{Widths, write as write_differential};
pub(super) use draw::escape;
use layout::Layout;
use paint::Paints;
use std::borrow::Cow;
use std::io::Write;
use tree::Tree;

/// The colour that a frame has in a palette, as red, green and blue; black text on it can be read. `time`: for how long its
/// threads ran, and for how long they did not.
pub fn frame_color(palette: Palette, name: &str, kind: FrameKind, time: [f64; 2]) -> [u8; 3] {
    let frame = Frame {
        name: name.to_owned(),
        kind,
    };
    let color = colors::of_frame(palette, &frame, time);
    [color.r, color.g, color.b]
}

/// Draws the view of a profile. Fails on one without weight, and on a style that cannot be drawn.
pub(super) fn write(view: &View, style: &Style, out: &mut dyn Write) -> Result<(), Error> {
    style.check()?;
    if view.total_weight() == 0 {
        return Err(Error::Empty);
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
    bounded(make, chart, &texts, (style, MOST_BYTES, MOST_FRAMES), out)
}

/// Files are not larger than about this, in bytes: browsers show them at once, and tickets take them.
pub(super) const MOST_BYTES: usize = 3_000_000;

/// So many frames are tried at first, which is as many as that often holds.
const MOST_FRAMES: usize = 250_000;

/// As many are there however long their names are.
const FEWEST_FRAMES: usize = 100;

/// Draws as many frames as about so many bytes hold; a chart has a bound of its own. `make` makes a tree of so many frames, and
/// their colours.
fn bounded<'t>(
    make: impl Fn(usize) -> (Cow<'t, Tree>, Paints),
    chart: Option<&Chart>,
    texts: &draw::Texts,
    (style, most_bytes, most_frames): (&Style, usize, usize),
    out: &mut dyn Write,
) -> Result<(), Error> {
    let has_bound = chart.is_none() && !style.minwidth.is_zero();
    let mut most = if has_bound { most_frames } else { usize::MAX };
    loop {
        let (tree, paints) = make(most);
        let packed = pack::pack((&tree, chart), &paints, texts, style)?;
        let layout = Layout::new(&tree, style);
        let drawing = draw::draw((&tree, chart), &paints, &layout, texts, style);
        let excess = (packed.text.len() + drawing.body.len()) as f64 / most_bytes as f64;
        let frames = tree.nodes.len().min(most);
        if !has_bound || excess <= 1.0 || frames <= FEWEST_FRAMES {
            return Ok(page::write(&drawing, &packed, out)?);
        }
        // Somewhat fewer than fit if all take as much.
        most = ((frames as f64 / excess * 0.9) as usize).clamp(FEWEST_FRAMES, frames - 1);
    }
}

#[cfg(test)]
mod tests;
