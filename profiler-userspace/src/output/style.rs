//! How a graph is to look.
//!
//! In: the user's words. Out: plain values that graphs can be drawn with, or an error that names what
//! it cannot. Never: a value that is changed silently to one that fits.

use super::Error;
use super::source_text::SourceText;
use super::text_style::TextStyle;
use crate::profile::fold::{FoldStyle, Order};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// The width in pixels that is assumed where none is given, since the graph then fits its window.
pub(super) const NOMINAL_WIDTH: u32 = 1200;
/// Margin at either side of the frames, in pixels.
pub(super) const MARGIN: u32 = 10;

/// Everything about an output that is not the profile. Formats ignore what they cannot show.
#[derive(Clone, Debug, PartialEq)]
pub struct Style {
    /// The headline. Any characters.
    pub title: String,
    /// A second line below it.
    pub subtitle: Option<String>,
    /// Text that the file carries along for whoever opens it later, such as the balance of the
    /// recording. May have several lines. Of those that begin with a label and a colon a graph
    /// shows `recorded`, `lost`, `LOST` and `left out`.
    pub notes: String,
    /// The graph's width in pixels; without one it is as wide as the window that shows it.
    pub width: Option<u32>,
    /// A frame's height in pixels.
    pub height: u32,
    /// Frames narrower than this are not drawn one by one.
    pub minwidth: MinWidth,
    /// The frames' colours.
    pub colors: Palette,
    /// Grows downwards from the root, as an icicle.
    pub inverted: bool,
    /// Merges stacks from the leaf, to show who called the functions where the time was spent.
    pub reverse: bool,
    /// Order from left to right; unless said, callees are by name, and by weight where a graph is turned over or reversed.
    pub order: Option<CalleeOrder>,
    /// As FlameGraph draws it.
    pub classic: bool,
    /// Graphs show when what was counted, as flame charts.
    pub chart: bool,
    /// How frames read in folded text. A graph draws the delimiter, too, and has its own ways to
    /// mark the kernel's frames.
    pub fold: FoldStyle,
    /// How a text report is to be.
    pub text: TextStyle,
    /// Source to show; none where nobody asked for it.
    pub source: Option<Arc<SourceText>>,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            title: "Flame Graph".to_owned(),
            subtitle: None,
            notes: String::new(),
            width: None,
            height: 16,
            minwidth: MinWidth::Pixels(0.5),
            colors: Palette::default(),
            inverted: false,
            reverse: false,
            order: None,
            classic: false,
            chart: false,
            fold: FoldStyle::default(),
            text: TextStyle::default(),
            source: None,
        }
    }
}

impl Style {
    /// Says what cannot be drawn, before anything is recorded for it.
    pub fn check(&self) -> Result<(), Error> {
        // A frame needs a line of its own and one between it and the next.
        in_range("the frame height", self.height, 2..=1_000)?;
        // The headline and the buttons beside it need some room.
        self.width
            .map_or(Ok(()), |width| in_range("the width", width, 100..=100_000))
    }

    /// The end of stacks that graphs begin with.
    pub(super) fn stack_order(&self) -> Order {
        match self.reverse {
            true => Order::LeafFirst,
            false => Order::RootFirst,
        }
    }

    /// Whether the heaviest callee is on the left.
    pub(super) fn is_by_weight(&self) -> bool {
        match self.order {
            Some(order) => order == CalleeOrder::Weight,
            None => self.inverted || self.reverse,
        }
    }

    /// The least width of a frame in pixels, where all of them share so many.
    pub(super) fn least_pixels(&self, frames_width: f64) -> f64 {
        match self.minwidth {
            MinWidth::Pixels(pixels) => pixels,
            MinWidth::Percent(percent) => frames_width * percent / 100.0,
        }
    }
}

/// The order of what a frame called, from the left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalleeOrder {
    /// By name, so that two graphs can be compared.
    Name,
    /// The heaviest first.
    Weight,
}

impl CalleeOrder {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Weight => "weight",
        }
    }
}

impl FromStr for CalleeOrder {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "name" => Ok(Self::Name),
            "weight" => Ok(Self::Weight),
            _ => Err(Error::Undrawable {
                what: "the order",
                given: text.to_owned(),
                remedy: "name, or weight for the heaviest first".to_owned(),
            }),
        }
    }
}

/// A flame chart's title, which says how long its windows are.
pub(super) fn timed(title: &str, resolution: Duration) -> String {
    format!("{title}, windows of {}", length(resolution))
}

/// A length of time, to a thousandth of its unit.
pub(crate) fn length(time: Duration) -> String {
    let milliseconds = (time.as_secs_f64() * 1000.0).round();
    match milliseconds {
        short if short < 1.0 => format!("{} µs", time.as_micros()),
        short if short < 1000.0 => format!("{short} ms"),
        long => format!("{} s", (long / 10.0).round() / 100.0),
    }
}

fn in_range(
    what: &'static str,
    given: u32,
    allowed: std::ops::RangeInclusive<u32>,
) -> Result<(), Error> {
    if allowed.contains(&given) {
        return Ok(());
    }
    Err(Error::Undrawable {
        what,
        given: given.to_string(),
        remedy: format!("{} to {} pixels", allowed.start(), allowed.end()),
    })
}

/// How wide a frame must be to be drawn by itself.
///
/// Written as FlameGraph's `--minwidth` takes it: `0.1` is a tenth of a pixel, `0.5%` is half a
/// percent of all that is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MinWidth {
    /// At least this many pixels.
    Pixels(f64),
    /// At least this share of all.
    Percent(f64),
}

impl MinWidth {
    /// Whether every frame is wide enough.
    pub fn is_zero(self) -> bool {
        let (Self::Pixels(width) | Self::Percent(width)) = self;
        width <= 0.0
    }
}

impl FromStr for MinWidth {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (number, most) = match text.strip_suffix('%') {
            Some(number) => (number, 100.0),
            None => (text.strip_suffix("px").unwrap_or(text), f64::MAX),
        };
        match number.trim().parse::<f64>() {
            Ok(width) if (0.0..=most).contains(&width) => Ok(match text.ends_with('%') {
                true => Self::Percent(width),
                false => Self::Pixels(width),
            }),
            _ => Err(Error::Undrawable {
                what: "the least width",
                given: text.to_owned(),
                remedy: "pixels, such as 0.5, or a share, such as 0.5%".to_owned(),
            }),
        }
    }
}

impl fmt::Display for MinWidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pixels(width) => write!(f, "{width}"),
            Self::Percent(width) => write!(f, "{width}%"),
        }
    }
}

/// A palette's name; always a known one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette(&'static str);

impl Palette {
    /// Warm colours for programs, green for what runtimes compiled, violet for what was inlined,
    /// blue for the kernel, grey for marks.
    pub const LAND: Self = Self("land");
    /// Blue and aqua, for what waits.
    pub const COLD: Self = Self("cold");
    /// Warm as far as a frame's threads ran, cold as far as they were blocked, green as far as they waited for a CPU.
    pub const WALL: Self = Self("wall");

    const BY_KIND: [Self; 3] = [Self::LAND, Self::COLD, Self::WALL];

    /// Palettes of one hue, such as FlameGraph has: name, degrees, and by how many these vary.
    const HUES: [(&'static str, u16, u16); 10] = [
        ("hot", 28, 28),
        ("red", 2, 6),
        ("orange", 30, 6),
        ("yellow", 54, 5),
        ("green", 110, 10),
        ("aqua", 182, 8),
        ("blue", 212, 8),
        ("purple", 288, 10),
        ("mem", 140, 16),
        ("io", 222, 16),
    ];

    /// All names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let by_kind = Self::BY_KIND.iter().map(|palette| palette.0);
        by_kind.chain(Self::HUES.iter().map(|(name, ..)| *name))
    }

    /// The hue, and by how much it varies, of a palette that has but one.
    pub(super) fn hue(self) -> Option<(u16, u16)> {
        let row = Self::HUES.iter().find(|(name, ..)| *name == self.0);
        row.map(|&(_, hue, spread)| (hue, spread))
    }

    /// The name.
    pub fn name(self) -> &'static str {
        self.0
    }
}

impl Default for Palette {
    fn default() -> Self {
        Self::LAND
    }
}

impl FromStr for Palette {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match Self::names().find(|&known| known == name) {
            Some(known) => Ok(Self(known)),
            None => Err(Error::UnknownPalette {
                name: name.to_owned(),
            }),
        }
    }
}

impl fmt::Display for Palette {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}
