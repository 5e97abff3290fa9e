//! Abilities of the terminal, and the theme of frames on it.
//!
//! In: the environment's variables, a frame's kind and name. Out: styles of cells. Kinds are told by hue, names by shades
//! of it; without colours by what stands between frames.

use super::calls::Name;
use crate::output::{Palette, frame_color};
use crate::profile::FrameKind;
use ratatui::style::{Color, Modifier, Style};

/// Which colours a terminal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colors {
    /// None, or none are wanted.
    None,
    /// Those of a console.
    Sixteen,
    /// The 216 of a cube, and grey.
    Palette,
    /// All.
    True,
}

/// Abilities of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// Which colours.
    pub colors: Colors,
    /// Whether there are other characters than those of ASCII.
    pub unicode: bool,
}

impl Theme {
    /// The terminal's abilities, by the environment.
    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> Self {
        let of = |name: &str| variable(name).filter(|value| !value.is_empty());
        let term = of("TERM").unwrap_or_default();
        let colors = if of("NO_COLOR").is_some() || term == "dumb" {
            Colors::None
        } else if of("COLORTERM").is_some_and(|value| value == "truecolor" || value == "24bit") {
            Colors::True
        } else if term.contains("256color") || term.contains("direct") {
            Colors::Palette
        } else {
            Colors::Sixteen
        };
        // The first of these that is set counts.
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .find_map(|name| of(name));
        let locale = locale.unwrap_or_default().to_ascii_lowercase();
        Self {
            colors,
            unicode: locale.contains("utf-8") || locale.contains("utf8"),
        }
    }

    /// Mark of a part that was cut out of a name.
    pub(super) fn cut(self) -> &'static str {
        if self.unicode { "…" } else { ".." }
    }

    /// How many parts of a cell edges are rounded to.
    pub(super) fn units(self) -> u32 {
        // Parts of cells are drawn by the colours on both sides.
        match self.unicode && self.colors != Colors::None {
            true => 8,
            false => 1,
        }
    }

    /// A frame, by its name and how much of its time was spent running, and not.
    pub(super) fn frame(
        self,
        palette: Palette,
        name: &Name,
        time: [f64; 2],
        is_even: bool,
    ) -> Style {
        let style = Style::new().fg(Color::Black);
        match self.colors {
            Colors::None => Style::new(),
            Colors::Sixteen => style.bg(sixteen(name.kind, time, is_even)),
            Colors::Palette | Colors::True => {
                let (text, kind) = (&name.text, name.kind);
                let [r, g, b] = frame_color(palette, text, kind, time);
                style.fg(self.rgb([0; 3])).bg(self.rgb([r, g, b]))
            }
        }
    }

    /// Frames that are too narrow to be told apart.
    pub(super) fn joined(self) -> Style {
        match self.colors {
            Colors::None => Style::new().add_modifier(Modifier::DIM),
            Colors::Sixteen => Style::new().fg(Color::Gray).bg(Color::DarkGray),
            _ => Style::new().fg(self.rgb([150; 3])).bg(self.rgb([110; 3])),
        }
    }

    /// Style of the selected row or frame.
    pub(super) fn selected(self) -> Style {
        match self.colors {
            Colors::None => Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD),
            _ => Style::new()
                .fg(Color::White)
                .bg(Color::Black)
                .add_modifier(Modifier::BOLD),
        }
    }

    /// Style of matches of a search.
    pub(super) fn matching(self) -> Style {
        match self.colors {
            Colors::None => Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            Colors::Sixteen => Style::new().fg(Color::White).bg(Color::Red),
            _ => (Style::new().fg(self.rgb([0; 3])))
                .bg(self.rgb([238, 110, 238]))
                .add_modifier(Modifier::BOLD),
        }
    }

    /// Lines above and below.
    pub(super) fn bar(self) -> Style {
        match self.colors {
            Colors::None => Style::new().add_modifier(Modifier::REVERSED),
            Colors::Sixteen => Style::new().fg(Color::Black).bg(Color::Gray),
            _ => Style::new().fg(self.rgb([235; 3])).bg(self.rgb([58; 3])),
        }
    }

    /// Style of warnings.
    pub(super) fn warning(self) -> Style {
        match self.colors {
            Colors::None => Style::new().add_modifier(Modifier::BOLD),
            _ => (Style::new().fg(Color::White).bg(Color::Red)).add_modifier(Modifier::BOLD),
        }
    }

    /// Names of columns.
    pub(super) fn heading(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    fn rgb(self, [r, g, b]: [u8; 3]) -> Color {
        match self.colors {
            Colors::True => Color::Rgb(r, g, b),
            _ => Color::Indexed(indexed([r, g, b])),
        }
    }
}

/// A console's colour; neighbours have two shades in turn.
fn sixteen(kind: FrameKind, [on, off]: [f64; 2], is_even: bool) -> Color {
    let (dark, light) = match kind {
        FrameKind::Kernel => (Color::Cyan, Color::LightCyan),
        FrameKind::Jit | FrameKind::Interpreted(_) => (Color::Green, Color::LightGreen),
        FrameKind::Inlined => (Color::Magenta, Color::LightMagenta),
        FrameKind::Process | FrameKind::Label => (Color::Gray, Color::White),
        FrameKind::Mark | FrameKind::State(_) => (Color::Gray, Color::White),
        FrameKind::User if off > on => (Color::LightBlue, Color::Blue),
        FrameKind::User => (Color::Yellow, Color::LightYellow),
    };
    if is_even { dark } else { light }
}

/// The levels of each channel in the cube of the 256 colours.
const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// The nearest of the 256 colours: one of the cube, or a grey.
fn indexed(color: [u8; 3]) -> u8 {
    let distance = |a: [u8; 3]| -> u32 {
        let each = a.iter().zip(color).map(|(a, b)| u32::from(a.abs_diff(b)));
        each.map(|difference| difference * difference).sum()
    };
    let nearest = |channel: u8| {
        let level = |place: &usize| LEVELS[*place].abs_diff(channel);
        (0..LEVELS.len()).min_by_key(level).unwrap_or(0)
    };
    let [r, g, b] = color.map(nearest);
    let grey = |step: u8| [8 + 10 * step; 3];
    let step = (0..24)
        .min_by_key(|step| distance(grey(*step)))
        .unwrap_or(0);
    match distance(grey(step)) < distance([LEVELS[r], LEVELS[g], LEVELS[b]]) {
        true => 232 + step,
        false => (16 + 36 * r + 6 * g + b) as u8,
    }
}
