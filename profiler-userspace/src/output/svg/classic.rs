//! The flame graph as FlameGraph draws it, by inferno: for whoever wants exactly the picture that they know.
//!
//! In: a profile's view and its style. Out: inferno's SVG, with every frame wide enough, the same bytes for the same view. Of what
//! ours has it has titles, sizes, palettes and direction; inferno takes callees in the order of bytes.

use crate::output::style::{MARGIN, MinWidth, NOMINAL_WIDTH};
use crate::output::{Error, Palette, Style};
use crate::profile::View;
use crate::profile::fold::{self, Lines, frame_name, visible};
use inferno::flamegraph::color::{MultiPalette, Palette as Colors};
use inferno::flamegraph::{Direction, Options, from_lines};
use std::io::Write;

pub(super) fn write(view: &View, style: &Style, out: &mut dyn Write) -> Result<(), Error> {
    let lines = Lines::new(view, style.stack_order(), |frame| frame_name(frame, true));
    let mut stacks: Vec<(String, u64)> = Vec::new();
    fold::each_line(&lines, |stack, weight| {
        stacks.push((stack.to_owned(), weight));
        Ok(())
    })?;
    // inferno refuses any other order.
    stacks.sort_unstable();
    let text: Vec<String> = (stacks.into_iter())
        .map(|(stack, weight)| stack + " " + &weight.to_string())
        .collect();
    let noun = lines.noun(&view.unit);
    let mut options = options(style, noun);
    Ok(from_lines(
        &mut options,
        text.iter().map(String::as_str),
        out,
    )?)
}

fn options(style: &Style, noun: &str) -> Options<'static> {
    let mut options = Options::default();
    // inferno escapes markup, and no characters that XML forbids.
    options.title = visible(&style.title).into_owned();
    let subtitle = style.subtitle.as_deref();
    options.subtitle = subtitle.map(|text| visible(text).into_owned());
    options.notes = comment(&style.notes);
    options.count_name = visible(noun).into_owned();
    options.image_width = style.width.map(|width| width as usize);
    options.frame_height = style.height as usize;
    // In percent, of as many pixels as there are without a window.
    let frames = style
        .width
        .unwrap_or(NOMINAL_WIDTH)
        .saturating_sub(2 * MARGIN);
    options.min_width = match style.minwidth {
        MinWidth::Percent(percent) => percent,
        MinWidth::Pixels(pixels) => pixels * 100.0 / f64::from(frames.max(1)),
    };
    options.direction = match style.inverted {
        true => Direction::Inverted,
        false => Direction::Straight,
    };
    options.colors = colors(style.colors);
    // The same picture each time.
    options.hash = true;
    options
}

/// Text that may stand in a comment of XML, where inferno puts notes as they are: two hyphens, as options begin with, end one.
fn comment(notes: &str) -> String {
    let lines = notes
        .lines()
        .map(|line| visible(line).replace("--", "\u{2010}\u{2010}"));
    lines.map(|line| line + "\n").collect()
}

/// FlameGraph's palette of a name; those that tell kinds of code apart are its palette for Java, which knows our suffixes.
fn colors(palette: Palette) -> Colors {
    match palette {
        Palette::COLD => "blue".parse(),
        Palette::WALL => "hot".parse(),
        _ => palette.name().parse(),
    }
    .unwrap_or(Colors::Multi(MultiPalette::Java))
}
