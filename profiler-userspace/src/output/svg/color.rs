//! Colours as numbers.
//!
//! In: hue, saturation, lightness. Out: red, green and blue on which black text can be read.

use std::fmt;

/// A colour on a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Color {
    pub(super) r: u8,
    pub(super) g: u8,
    pub(super) b: u8,
}

/// The least luminance of a frame. Black text on it has a contrast of 7, and where dark mode dims it still of 4.5.
const MIN_LUMINANCE: f64 = 0.3;

impl Color {
    pub(super) const fn new(r: u8, g: u8, b: u8) -> Self {
        Self { r, g, b }
    }

    /// From degrees, and two parts of one.
    pub(super) fn from_hsl(hue: f64, saturation: f64, lightness: f64) -> Self {
        let chroma = saturation * lightness.min(1.0 - lightness);
        let channel = |n: f64| {
            let k = (n + hue.rem_euclid(360.0) / 30.0) % 12.0;
            let value = lightness - chroma * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
            (value * 255.0).round() as u8
        };
        Self::new(channel(0.0), channel(8.0), channel(4.0))
    }

    /// The same colour, or as much lighter as black text on it demands.
    pub(super) fn readable(self) -> Self {
        let lighter = |part: u32| {
            let mix = |c: u8| (u32::from(c) + (255 - u32::from(c)) * part / 20) as u8;
            Self::new(mix(self.r), mix(self.g), mix(self.b))
        };
        (0..=20)
            .map(lighter)
            .find(|color| color.luminance() >= MIN_LUMINANCE)
            .expect("white is bright enough")
    }

    /// How bright it looks, from 0 to 1, as the Web Content Accessibility Guidelines reckon.
    fn luminance(self) -> f64 {
        let linear = |c: u8| {
            let c = f64::from(c) / 255.0;
            match c <= 0.04045 {
                true => c / 12.92,
                false => ((c + 0.055) / 1.055).powf(2.4),
            }
        };
        0.2126 * linear(self.r) + 0.7152 * linear(self.g) + 0.0722 * linear(self.b)
    }
}

impl fmt::Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.r, self.g, self.b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hues_are_where_they_belong() {
        assert_eq!(Color::from_hsl(0.0, 1.0, 0.5), Color::new(255, 0, 0));
        assert_eq!(Color::from_hsl(120.0, 1.0, 0.5), Color::new(0, 255, 0));
        assert_eq!(Color::from_hsl(240.0, 1.0, 0.25), Color::new(0, 0, 128));
        assert_eq!(Color::from_hsl(77.0, 0.0, 1.0), Color::new(255, 255, 255));
        assert_eq!(Color::new(1, 35, 69).to_string(), "#012345");
    }

    #[test]
    fn black_text_is_readable_on_every_readable_color() {
        for color in [
            (0, 0, 0),
            (255, 0, 0),
            (0, 0, 255),
            (80, 80, 80),
            (9, 200, 3),
        ] {
            let readable = Color::new(color.0, color.1, color.2).readable();
            assert!(readable.luminance() >= MIN_LUMINANCE, "{readable}");
        }
        let bright = Color::new(250, 180, 90);
        assert_eq!(bright.readable(), bright);
    }
}
