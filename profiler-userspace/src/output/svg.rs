//! The interactive flame graph: click to zoom, search with highlights, reset.
//!
//! In: a profile's view and its style. Out: one SVG file with its script inside, the same bytes for the same
//! view. Never: characters in it that XML forbids, or markup that came from a name.
//!
//! The drawing is inferno's, which this is the only module to name. It reads folded lines; they are
//! made here in the order of its flames, so that it need not sort them, and without what would be
//! too narrow to draw, which is most of a large profile's text.

mod colors;
pub(super) mod palettes;

use super::{Error, Style};
use crate::profile::View;
use crate::profile::fold::{FoldStyle, Folded, Order, visible};
use inferno::flamegraph::{self, Direction, Options, TextTruncateDirection};
use std::io::{self, BufWriter, Write};

/// Frames always carry their annotations here: the palettes read it, and nobody sees it.
const ANNOTATED: bool = true;

/// Draws the view of a profile. Fails on one without weight, and on a style that cannot be drawn.
pub(super) fn write(view: &View, style: &Style, out: &mut dyn Write) -> Result<(), Error> {
    style.check()?;
    let total = view.total_weight();
    if total == 0 {
        return Err(Error::Empty);
    }
    let order = if style.reverse {
        Order::LeafFirst
    } else {
        Order::RootFirst
    };
    let fold_style = FoldStyle {
        annotate: ANNOTATED,
        ..style.fold
    };
    let mut folded = Folded::new(view, fold_style, order);
    folded.prune(view.unit.shown(total) as f64 * style.min_percent() / 100.0);
    let mut text = String::new();
    for line in folded.lines().iter().filter(|line| line.weight() > 0) {
        folded.append(line, &mut text);
    }
    drop(folded);

    let mut colors = colors::map(style.colors, view);
    let mut options = options(view, style);
    options.palette_map = colors.as_mut();
    let mut out = BufWriter::with_capacity(64 * 1024, WithPreface::new(out, preface(style)));
    flamegraph::from_lines(&mut options, text.lines().rev(), &mut out)?;
    Ok(out.flush()?)
}

fn options(view: &View, style: &Style) -> Options<'static> {
    let mut options = Options::default();
    if !style.colors.is_ours() {
        options.colors = style
            .colors
            .name()
            .parse()
            .expect("a palette is one of inferno's names");
    }
    // One function is one colour, wherever it is and whenever it is drawn.
    options.deterministic = true;
    options.title = visible(&style.title).into_owned();
    options.subtitle = style
        .subtitle
        .as_deref()
        .map(|text| visible(text).into_owned());
    options.image_width = style.width.map(|width| width as usize);
    options.frame_height = style.height as usize;
    options.min_width = style.min_percent();
    options.direction = if style.inverted {
        Direction::Inverted
    } else {
        Direction::Straight
    };
    // With a margin, since the width counts where no script will measure the font that is there.
    options.font_width = 0.66;
    // A name's beginning tells more than its end.
    options.text_truncate_direction = TextTruncateDirection::Right;
    options.count_name = visible(view.unit.noun()).into_owned();
    // All that a flame chart does is to take the lines in the order given, last one first. That
    // order, unlike inferno's own, keeps what `main` called beside `main` where there is a
    // `main(int)`; and it has been sorted already.
    options.flame_chart = true;
    options
}

/// What the file has to say before the drawing begins.
fn preface(style: &Style) -> String {
    let mut preface = String::new();
    if !style.notes.is_empty() {
        // A description is the format's place for text that tells rather than shows. The comment
        // that inferno has to offer could not hold the `--` of a flag that the notes recommend.
        preface = format!("<desc>{}</desc>", escape(&style.notes));
    }
    if !style.inverted {
        preface.push_str(SHOW_ROOT);
    }
    preface
}

/// Flames grow from the bottom. When some are higher than the window, begin there, and not with what
/// may be one deep recursion in an empty sky. Not in somebody's page, which scrolls as it likes, nor
/// in headless Chromium, whose picture of a page that scrolled itself is white.
const SHOW_ROOT: &str = r#"<script>addEventListener("load",function(){var root=document.documentElement;
root.nodeName!=="svg"||/Headless/.test(navigator.userAgent)||scrollTo(0,root.getBoundingClientRect().height)})</script>"#;

/// Passes SVG on, and puts a preface in front of its first element.
struct WithPreface<'a> {
    out: &'a mut dyn Write,
    /// Empty when it is written.
    preface: String,
    /// What came before the place for the preface, which may be cut anywhere.
    held: Vec<u8>,
}

impl<'a> WithPreface<'a> {
    /// The first element within the picture. No text of the user's comes before it.
    const FIRST_ELEMENT: &'static [u8] = b"<defs>";

    fn new(out: &'a mut dyn Write, preface: String) -> Self {
        Self {
            out,
            preface,
            held: Vec::new(),
        }
    }
}

impl Write for WithPreface<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.preface.is_empty() {
            return self.out.write(bytes);
        }
        self.held.extend_from_slice(bytes);
        let found = self
            .held
            .windows(Self::FIRST_ELEMENT.len())
            .position(|window| window == Self::FIRST_ELEMENT);
        if let Some(place) = found {
            let (head, tail) = self.held.split_at(place);
            self.out.write_all(head)?;
            self.out.write_all(self.preface.as_bytes())?;
            self.out.write_all(tail)?;
            self.preface.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The text as XML content, line by line.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (index, line) in text.lines().enumerate() {
        if index > 0 {
            escaped.push('\n');
        }
        for c in visible(line).chars() {
            match c {
                '<' => escaped.push_str("&lt;"),
                '>' => escaped.push_str("&gt;"),
                '&' => escaped.push_str("&amp;"),
                _ => escaped.push(c),
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
