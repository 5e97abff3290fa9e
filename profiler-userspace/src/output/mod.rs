//! Profiles as files that people and programs read.
//!
//! In: a [`Profile`] and a [`Style`]. Out: bytes of one [`Format`], and through [`sink`] a file that
//! is complete or not there.
//! Never: the network, or the terminal; what goes wrong is a value.

pub mod sink;
mod style;
mod svg;

pub use style::{MinWidth, Palette, Style};

use crate::profile::{Profile, fold};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One line per stack, as text.
    Folded,
    /// An interactive flame graph.
    Svg,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Folded, Self::Svg];

    /// The file name extension that stands for the format, without its dot.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Folded => "folded",
            Self::Svg => "svg",
        }
    }

    /// Whether it is a picture, so that a [`Style`] shows in it.
    pub const fn is_drawn(self) -> bool {
        match self {
            Self::Folded => false,
            Self::Svg => true,
        }
    }

    /// The format that the name of `path` asks for. Names in `/dev` and `/proc` are those of pipes
    /// and the like, which say nothing; they get text.
    pub fn from_path(path: &Path) -> Result<Self, Error> {
        let extension = path
            .extension()
            .map(|extension| extension.to_string_lossy());
        if let Some(extension) = &extension {
            let known = |format: &Self| format.extension().eq_ignore_ascii_case(extension);
            if let Some(format) = Self::ALL.into_iter().find(known) {
                return Ok(format);
            }
        } else if path.starts_with("/dev") || path.starts_with("/proc") {
            return Ok(Self::Folded);
        }
        Err(Error::UnknownFormat {
            path: path.to_owned(),
        })
    }
}

/// Why a profile was not written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file's name does not end in a known extension.
    #[error("cannot tell a format from the name `{}`; let it end in {}, or in .fbpf for a raw recording", path.display(), known_extensions())]
    UnknownFormat {
        /// The name as given.
        path: PathBuf,
    },
    /// Nothing was sampled, so there is nothing to draw.
    #[error(
        "the profile is empty, so there is no graph to draw; record for longer, or while the target is busy"
    )]
    Empty,
    /// Not one of [`Palette::names`].
    #[error("there is no palette `{}`; choose one of {}", fold::visible(name), Palette::names().collect::<Vec<_>>().join(", "))]
    UnknownPalette {
        /// The name as given.
        name: String,
    },
    /// A part of [`Style`] that cannot be drawn.
    #[error("{what} `{}` cannot be drawn; give {remedy}", fold::visible(given))]
    Undrawable {
        /// Which part.
        what: &'static str,
        /// Its value as given.
        given: String,
        /// What it may be.
        remedy: String,
    },
    /// The writer refused the bytes. [`sink::Sink`] knows its name and says more.
    #[error("cannot write the profile: {0}")]
    Write(#[from] io::Error),
    /// The place that was to be written to refused.
    #[error(transparent)]
    Sink(#[from] sink::Error),
}

fn known_extensions() -> String {
    Format::ALL
        .map(|format| format!(".{}", format.extension()))
        .join(" or ")
}

/// Writes `profile` in `format`. Refuses an empty profile where the format would have to draw it.
pub fn write(
    profile: &Profile,
    format: Format,
    style: &Style,
    out: &mut dyn Write,
) -> Result<(), Error> {
    match format {
        Format::Folded => Ok(fold::fold(profile, style.fold, out)?),
        Format::Svg => svg::write(profile, style, out),
    }
}

#[cfg(test)]
mod tests;
