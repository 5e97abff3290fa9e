//! Profiles as files that people and programs read.
//!
//! In: a [`Profile`] and a [`Style`]. Out: bytes of one [`Format`], and through [`sink`] a file that
//! is complete or not there.
//! Never: the network, or the terminal; what goes wrong is a value.

mod annotation;
mod bound;
mod diff;
mod firefox;
mod html;
mod json;
mod json_stream;
mod labels;
mod leaf_first;
mod otlp;
mod owner;
mod parquet_file;
mod pprof;
pub mod request;
mod sender;
pub mod sink;
mod source_text;
mod speedscope;
mod style;
mod svg;
mod text;
mod text_style;
mod together;
mod value_types;
mod web;

pub use annotation::{Annotation, Instruction, SourceLocation};
pub use diff::{DiffFormat, Report as DiffReport, summary as diff_summary, write as write_diff};
pub use html::{Section, write_page};
pub use labels::{LABELS, LabelNames, without_dots};
pub use parquet_file::{EventTable, write_events};
pub use source_text::{SourceFile, SourceRun, SourceText};
pub(crate) use style::length;
use style::timed;
pub use style::{CalleeOrder, MinWidth, Palette, Style};
pub use svg::frame_color;
pub use text::hottest;
pub use text_style::{MIN_COLUMNS, Peek, TextStyle};
pub use together::Together;

use crate::profile::{Profile, View, fold};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A row of the table of formats.
struct FormatSpec {
    /// Endings of its files' names, without the dot. The first is the usual one.
    extensions: &'static [&'static str],
    /// Whether it is a picture, so that flags about looks mean something.
    is_drawn: bool,
    /// Whether it tells of the windows that a recording is divided into.
    has_windows: bool,
    /// How several events are written, if one file can hold them.
    together: Option<TogetherWriter>,
    writer: Writer,
    /// How it is written as a flame chart, if it can be.
    chart: Option<ProfileWriter>,
}

type TogetherWriter = fn(&Together, &Style, &mut dyn Write) -> Result<(), Error>;

type ProfileWriter = fn(&Profile, &Style, &mut dyn Write) -> Result<(), Error>;

/// Writer of a format that is made of a view.
pub type ViewWriter = fn(&View, &Style, &mut dyn Write) -> Result<(), Error>;

/// Source of a format.
enum Writer {
    /// The model.
    Profile(ProfileWriter),
    /// Stacks of frames.
    View(ViewWriter),
}

/// A row of a format that is no picture, tells of no windows and holds one event.
const fn row(extensions: &'static [&'static str], writer: Writer) -> FormatSpec {
    FormatSpec {
        extensions,
        is_drawn: false,
        has_windows: false,
        together: None,
        writer,
        chart: None,
    }
}

impl FormatSpec {
    const fn with_windows(self) -> Self {
        Self {
            has_windows: true,
            ..self
        }
    }
}

/// All formats. Whatever there is to know of one is in its row and its file.
const FORMATS: &[FormatSpec] = &[
    row(
        &["folded"],
        Writer::View(|view, style, out| Ok(fold::write(view, style.fold, out)?)),
    ),
    FormatSpec {
        is_drawn: true,
        chart: Some(svg::write_chart),
        ..row(&["svg"], Writer::View(svg::write))
    },
    FormatSpec {
        together: Some(pprof::write_together),
        ..row(&["pb.gz", "pprof"], Writer::Profile(pprof::write))
    },
    row(&["txt"], Writer::Profile(text::write)),
    row(&["speedscope.json"], Writer::Profile(speedscope::write)),
    row(&["json.gz"], Writer::Profile(firefox::write)).with_windows(),
    row(&["json"], Writer::Profile(json::write)).with_windows(),
    FormatSpec {
        is_drawn: true,
        chart: Some(html::write),
        ..row(&["html"], Writer::Profile(html::write)).with_windows()
    },
    row(&["otlp"], Writer::Profile(otlp::write)).with_windows(),
    row(&["parquet"], Writer::Profile(parquet_file::write)).with_windows(),
];

/// Format that can be written: a row's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format(usize);

impl Format {
    /// One line per stack, as text.
    pub const FOLDED: Self = Self(0);
    /// An interactive flame graph.
    pub const SVG: Self = Self(1);
    /// The text report.
    pub const TEXT: Self = Self(3);
    /// Threads over time, for Firefox Profiler.
    pub const FIREFOX: Self = Self(5);
    /// A page with views, filters and search.
    pub const HTML: Self = Self(7);
    /// A table of samples.
    pub const PARQUET: Self = Self(9);

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..FORMATS.len()).map(Self)
    }

    const fn row(self) -> &'static FormatSpec {
        &FORMATS[self.0]
    }

    /// The file name extension that usually stands for the format, without its dot.
    pub const fn extension(self) -> &'static str {
        self.row().extensions[0]
    }

    /// Whether it is a picture, so that flags about looks mean something.
    pub const fn is_drawn(self) -> bool {
        self.row().is_drawn
    }

    /// Whether its readers choose among threads, which then are told apart.
    pub fn shows_threads(self) -> bool {
        self == Self::HTML || self == Self::FIREFOX
    }

    /// Whether its readers choose among CPUs, which then are told apart.
    pub fn shows_cpus(self) -> bool {
        self == Self::HTML
    }

    /// Whether it tells of each window as it is in the recording, however many these are.
    pub fn has_all_windows(self) -> bool {
        self == Self::PARQUET
    }

    /// Whether one file can hold several events.
    pub const fn takes_several(self) -> bool {
        self.row().together.is_some()
    }

    /// Ending of a name that stands for a format, without the dot before it; none if nothing does.
    pub fn extension_in(path: &Path) -> Option<&'static str> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.to_ascii_lowercase();
        let ends_in = |extension: &&&str| {
            let stem = name.strip_suffix(**extension);
            stem.and_then(|stem| stem.strip_suffix('.'))
                .is_some_and(|stem| !stem.is_empty())
        };
        let mut all = FORMATS.iter().flat_map(|row| row.extensions);
        all.find(ends_in).copied()
    }

    /// Writer of a profile's view in it, which refuses an empty one where it would have to draw it; none if it takes the
    /// profile itself.
    pub fn of_view(self, style: &Style) -> Option<ViewWriter> {
        match self.row().writer {
            Writer::View(write) if !style.chart || self.row().chart.is_none() => Some(write),
            _ => None,
        }
    }

    /// Whether it can be a flame chart.
    pub const fn can_be_chart(self) -> bool {
        self.row().chart.is_some()
    }

    /// Whether it tells of the windows that a recording is divided into.
    pub const fn has_windows(self) -> bool {
        self.row().has_windows
    }

    /// The format that the name of `path` asks for. Names in `/dev` and `/proc` are those of pipes
    /// and the like, which say nothing; they get text.
    pub fn from_path(path: &Path) -> Result<Self, Error> {
        if let Some(extension) = Self::extension_in(path) {
            let is_its = |format: &Self| format.row().extensions.contains(&extension);
            if let Some(format) = Self::all().find(is_its) {
                return Ok(format);
            }
        }
        let says_nothing = path.starts_with("/dev") || path.starts_with("/proc");
        if says_nothing && path.extension().is_none() {
            return Ok(Self::FOLDED);
        }
        Err(Error::UnknownFormat {
            path: path.to_owned(),
        })
    }

    /// The extensions of all formats, as in `.folded or .svg`; `last` stands before the last one.
    pub fn known_extensions(last: &str) -> String {
        let mut all: Vec<String> = Self::all()
            .map(|format| format!(".{}", format.extension()))
            .collect();
        match all.pop() {
            Some(end) if !all.is_empty() => format!("{} {last} {end}", all.join(", ")),
            end => end.unwrap_or_default(),
        }
    }
}

/// Why a profile was not written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file's name does not end in a known extension.
    #[error("cannot tell a format from the name `{}`; let it end in {}, or in .fbpf for a raw recording", path.display(), Format::known_extensions("or"))]
    UnknownFormat {
        /// The name as given.
        path: PathBuf,
    },
    /// The file's name does not end in an extension that comparisons can have.
    #[error("cannot tell a format from the name `{}`; let it end in .svg, .html, .txt, .json or .folded", path.display())]
    NoDiffFormat {
        /// The name as given.
        path: PathBuf,
    },
    /// Nothing was sampled, so there is nothing to draw.
    #[error(
        "the profile is empty, so there is no graph to draw; record for longer, or while the target is busy"
    )]
    Empty,
    /// Nobody knows when what was counted.
    #[error(
        "nothing says when samples were taken, so there is no flame chart; several files, folded text and --wall have no times; record again with --flamechart, or render one raw recording"
    )]
    NoWindows,
    /// A format that holds one event was to hold more.
    #[error("a .{extension} file holds one event; write a file for each")]
    Several {
        /// Endings of its files.
        extension: &'static str,
    },
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
        /// Values that it may have.
        remedy: String,
    },
    /// The writer refused the bytes. [`sink::Sink`] knows its name and says more.
    #[error("cannot write the profile: {0}")]
    Write(#[from] io::Error),
    /// The place that was to be written to refused.
    #[error(transparent)]
    Sink(#[from] sink::Error),
}

/// Writes `profile` in `format`. Refuses an empty profile where the format would have to draw it.
pub fn write(
    profile: &Profile,
    format: Format,
    style: &Style,
    out: &mut dyn Write,
) -> Result<(), Error> {
    match (&format.row().writer, format.row().chart) {
        (_, Some(write)) if style.chart => write(profile, style, out),
        (Writer::Profile(write), _) => write(profile, style, out),
        (Writer::View(write), _) => {
            write(&View::delimited(profile, style.fold.delimited), style, out)
        }
    }
}

/// Writes several events in a format that takes several.
///
/// # Errors
/// When the format does not, when there is not one sample, or when the bytes are refused.
pub fn write_together(
    together: &Together,
    format: Format,
    style: &Style,
    out: &mut dyn Write,
) -> Result<(), Error> {
    match format.row().together {
        Some(write) => write(together, style, out),
        None => Err(Error::Several {
            extension: format.extension(),
        }),
    }
}

#[cfg(test)]
mod tests;
