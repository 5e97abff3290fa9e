//! The elements of the picture that is there without a script.
//!
//! In: rectangles, colours, texts. Out: markup, all in one line: whatever a page does with line breaks it cannot do here.
//! Never: an ID, a style sheet, or a script; looks are attributes, so that two pictures on a page cannot meet.

use super::axis;
use super::chart::Chart;
use super::layout::{Layout, Span};
use super::paint::Paints;
use super::pixels::Pixels;
use super::tree::Tree;
use crate::output::Style;
use crate::output::bound::HOW_TO_KEEP;
use crate::output::style::MARGIN;
use crate::output::web::escape;
use crate::profile::fold::visible;
use crate::text::label::{CUT, fit};
use crate::text::number::{exact_amount, grouped};
use std::cell::RefCell;
use std::fmt::Write as _;

/// The height of a line of text outside of frames.
const LINE: f64 = 18.0;
/// The size of letters, and how wide a column of a fixed-width font is then, with a margin, as nobody knows which
/// font will be there.
const FONT_SIZE: f64 = 12.0;
const COLUMN: f64 = 7.4;
/// Narrower frames have no tooltip, since no pointer finds them; in pixels.
const MIN_TITLED: f64 = 4.0;
/// Room that is left free in a frame beside its label.
const LABEL_MARGIN: f64 = 3.0;
/// Colours that follow light and dark mode; the attribute beside is for readers that know of neither.
const INK: &str = r##"fill="#1b1b1b" style="fill:light-dark(#1b1b1b,#e8e8e8)""##;
const JOINED: &str = r##"fill="#c9c9c9" style="fill:light-dark(#c9c9c9,#62666c)""##;
/// Lines across frames, and how far they are from each other in pixels.
const HATCH: &str = r##"fill="none" stroke="#000" stroke-opacity="0.25" pointer-events="none""##;
const HATCH_STEP: f64 = 8.0;
const LOST: &str = r##"fill="#b00020" style="fill:light-dark(#b00020,#ff8a80)""##;

/// Texts beside the frames.
#[derive(Debug)]
pub(super) struct Texts {
    pub(super) title: String,
    /// Empty if there is none.
    pub(super) subtitle: String,
    /// Unit of weights.
    pub(super) noun: String,
    /// Account of what was recorded, lost and left out, in one line; empty if that is not known.
    pub(super) balance: String,
    /// Whether something was lost.
    pub(super) is_lossy: bool,
}

impl Texts {
    pub(super) fn new(style: &Style, noun: &str) -> Self {
        let shown = |label: &str| matches!(label, "recorded" | "lost" | "LOST" | "left out");
        let facts: Vec<(&str, &str)> = style
            .notes
            .lines()
            .filter_map(|line| line.split_once(": "))
            .filter(|(label, _)| shown(label))
            .collect();
        let balance: Vec<String> = facts
            .iter()
            .map(|(label, text)| format!("{label} {text}"))
            .collect();
        Self {
            title: visible(&style.title).into_owned(),
            subtitle: visible(style.subtitle.as_deref().unwrap_or_default()).into_owned(),
            noun: visible(noun).into_owned(),
            balance: visible(&balance.join("; ")).into_owned(),
            is_lossy: facts.iter().any(|(label, _)| *label == "LOST"),
        }
    }
}

/// A picture: what is between the tags of its `<svg>`, and its size.
#[derive(Debug)]
pub(super) struct Drawing {
    pub(super) title: String,
    pub(super) width: f64,
    /// Whether the width was asked for.
    pub(super) is_fixed: bool,
    pub(super) height: f64,
    pub(super) body: String,
}

/// Draws everything.
pub(super) fn draw(
    (tree, chart): (&Tree, Option<&Chart>),
    paints: &Paints,
    layout: &Layout,
    texts: &Texts,
    style: &Style,
) -> Drawing {
    let mut pen = Pen {
        body: String::new(),
        y: LINE * 0.5,
    };
    pen.description(&style.notes);
    let _ = write!(
        pen.body,
        r#"<g font-family="system-ui,sans-serif" font-size="{FONT_SIZE}" {INK}>"#
    );
    let columns = ((layout.width - 2.0 * f64::from(MARGIN)) / COLUMN) as usize;
    pen.line(&texts.title, columns, r#" font-weight="bold""#);
    pen.line(&texts.subtitle, columns, "");
    pen.legend(paints);
    pen.body.push_str("</g>");
    let frames = Frames {
        tree,
        chart,
        paints,
        noun: &texts.noun,
        top: pen.y + 4.0,
        height: f64::from(style.height),
        levels: layout.levels,
        inverted: style.inverted,
        hatches: RefCell::default(),
    };
    frames.draw(layout, &mut pen.body);
    pen.y = frames.top + frames.height * f64::from(layout.levels) + 4.0;
    if let Some(chart) = chart {
        pen.y += axis::draw(chart, layout.width, pen.y, &mut pen.body);
    }
    let _ = write!(
        pen.body,
        r#"<g font-family="system-ui,sans-serif" font-size="{FONT_SIZE}" {INK}>"#
    );
    if layout.narrow > 0 {
        pen.line(&narrow(layout), columns, "");
    }
    let unkept: u64 = tree.rests.frames.iter().map(|(_, frames)| frames).sum();
    if unkept > 0 {
        let unkept = grouped(unkept);
        let text = format!("{unkept} more are hatched rests: {HOW_TO_KEEP}");
        pen.line(&text, columns, "");
    }
    pen.line(
        &texts.balance,
        columns,
        if texts.is_lossy { LOST } else { "" },
    );
    pen.body.push_str("</g>");
    Drawing {
        title: texts.title.clone(),
        width: layout.width,
        is_fixed: style.width.is_some(),
        height: (pen.y + LINE * 0.5).ceil(),
        body: pen.body,
    }
}

/// Text on frames that are not drawn one by one.
fn narrow(layout: &Layout) -> String {
    let frames = grouped(layout.narrow as u64);
    let least = (layout.least * 100.0).ceil() / 100.0;
    match layout.narrow {
        1 => format!("1 frame narrower than {least} px: zoom in to see it"),
        _ => format!("{frames} frames narrower than {least} px are joined: zoom in to see them"),
    }
}

/// Writes lines of text, from the top.
struct Pen {
    body: String,
    /// The top of the next line.
    y: f64,
}

impl Pen {
    /// The format's place for text that tells rather than shows.
    fn description(&mut self, notes: &str) {
        let lines: Vec<String> = notes
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(escape)
            .collect();
        if !lines.is_empty() {
            let _ = write!(self.body, "<desc>{}</desc>", lines.join("\n"));
        }
    }

    /// One line of text, unless it is empty.
    fn line(&mut self, text: &str, columns: usize, attributes: &str) {
        if let Some(text) = fit(text, columns, CUT).filter(|text| !text.is_empty()) {
            let y = Pixels(self.y + FONT_SIZE);
            let text = escape(&text);
            let _ = write!(
                self.body,
                r#"<text x="{MARGIN}" y="{y}"{space}{attributes}>{text}</text>"#,
                space = if attributes.is_empty() || attributes.starts_with(' ') {
                    ""
                } else {
                    " "
                },
            );
            self.y += LINE;
        }
    }

    fn legend(&mut self, paints: &Paints) {
        if paints.legend.is_empty() {
            return;
        }
        let mut x = f64::from(MARGIN);
        for (label, color) in &paints.legend {
            let (top, base) = (Pixels(self.y + 3.0), Pixels(self.y + FONT_SIZE));
            let text = Pixels(x + 14.0);
            let _ = write!(
                self.body,
                r#"<rect x="{}" y="{top}" width="10" height="10" fill="{color}"/><text x="{text}" y="{base}">{label}</text>"#,
                Pixels(x),
            );
            x += 14.0 + COLUMN * (label.chars().count() as f64 + 2.0);
        }
        self.y += LINE;
    }
}

/// Draws frames.
struct Frames<'a> {
    tree: &'a Tree,
    chart: Option<&'a Chart>,
    paints: &'a Paints,
    noun: &'a str,
    /// Where their area begins.
    top: f64,
    /// The height of each.
    height: f64,
    levels: u32,
    inverted: bool,
    /// Where frames are that are hatched: left, top, width.
    hatches: RefCell<Vec<(f64, f64, f64)>>,
}

impl Frames<'_> {
    fn draw(&self, layout: &Layout, body: &mut String) {
        if !layout.joined.is_empty() {
            let _ = write!(body, r#"<path {JOINED} d=""#);
            for span in &layout.joined {
                let (x, y) = self.corner(span);
                let (width, height) = (Pixels(span.width), self.height - 1.0);
                let _ = write!(body, "M{x} {y}h{width}v{height}h-{width}z");
            }
            body.push_str(r#""/>"#);
        }
        body.push_str(r##"<g font-family="monospace" font-size="12" fill="#000">"##);
        for (index, span) in &layout.frames {
            self.frame(*index, span, body);
        }
        body.push_str("</g>");
        self.hatch(body);
    }

    /// Lines across frames of which nothing is claimed.
    fn hatch(&self, body: &mut String) {
        let hatches = self.hatches.take();
        if hatches.is_empty() {
            return;
        }
        let _ = write!(body, r#"<path {HATCH} d=""#);
        let height = self.height - 1.0;
        for (x, y, width) in hatches {
            let mut at = x - height;
            while at < x + width {
                let (from, to) = (at.max(x), (at + height).min(x + width));
                if from < to {
                    let (low, high) = (y + height - (from - at), y + height - (to - at));
                    let _ = write!(
                        body,
                        "M{} {}L{} {}",
                        Pixels(from),
                        Pixels(low),
                        Pixels(to),
                        Pixels(high)
                    );
                }
                at += HATCH_STEP;
            }
        }
        body.push_str(r#""/>"#);
    }

    fn frame(&self, index: usize, span: &Span, body: &mut String) {
        let node = &self.tree.nodes[index];
        let (x, y) = self.corner(span);
        // A hair between neighbours, where that leaves something of them.
        let width = match span.width > 2.0 {
            true => span.width - 0.5,
            false => span.width,
        };
        let name = self.tree.name(node);
        let _ = write!(
            body,
            r#"<rect x="{x}" y="{y}" width="{}" height="{}" fill="{}""#,
            Pixels(width),
            self.height - 1.0,
            self.paints.of_names[node.name as usize].color,
        );
        let is_rest = Some(node.name) == self.tree.rests.name;
        if is_rest || (self.paints.is_hatched && index > 0) {
            // The rectangle is closed below, the lines come before its label.
            self.hatches.borrow_mut().push((x.0, y.0, width));
        }
        if span.width < MIN_TITLED {
            body.push_str("/>");
            return;
        }
        let _ = write!(
            body,
            "><title>{} ({})</title></rect>",
            escape(name),
            self.numbers(index),
        );
        let columns = ((span.width - 2.0 * LABEL_MARGIN) / COLUMN).max(0.0) as usize;
        if self.height < FONT_SIZE {
            return;
        }
        if let Some(label) = fit(name, columns, CUT) {
            let base = Pixels(y.0 + self.height / 2.0 + FONT_SIZE / 3.0);
            let _ = write!(
                body,
                r#"<text x="{}" y="{base}" pointer-events="none">{}</text>"#,
                Pixels(x.0 + LABEL_MARGIN),
                escape(&label),
            );
        }
    }

    /// How much a frame stands for, and in a chart when that was.
    fn numbers(&self, index: usize) -> String {
        let node = &self.tree.nodes[index];
        let amount = |weight| escape(&exact_amount(weight, self.noun));
        let share = |part: u64, all: u64| part as f64 * 100.0 / all.max(1) as f64;
        if let Some(frames) = self.tree.rests.frames_at(index) {
            let share = share(node.weight, self.tree.total());
            return format!("{share:.2}%, {} frames: {HOW_TO_KEEP}", grouped(frames));
        }
        if let Some(note) = self.paints.notes.get(node.name as usize) {
            return escape(note);
        }
        let Some(chart) = self.chart else {
            let share = share(node.weight, self.tree.total());
            return format!("{}, {share:.2}%", amount(node.weight));
        };
        let around = chart.around(node.left, node.left + node.weight);
        let weight = chart.weights[index];
        format!(
            "{} to {}, {}, {:.2}% of what was counted then",
            axis::clock(around.start),
            axis::clock(around.end),
            amount(weight),
            share(weight, around.weight),
        )
    }

    fn corner(&self, span: &Span) -> (Pixels, Pixels) {
        let row = match self.inverted {
            true => span.level,
            false => self.levels - 1 - span.level,
        };
        (
            Pixels(f64::from(MARGIN) + span.x),
            Pixels(self.top + self.height * f64::from(row)),
        )
    }
}
