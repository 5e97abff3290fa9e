//! Where the code of frames is: what it lies in, and its place in source.
//!
//! In: what frames stand for. Out: for each frame a module and a file, each text once. Where frames that read alike stand for
//! code of several, that is said instead of one of them.

use super::model::{FunctionIndex, MappingIndex, Profile};
use super::{Frame, FrameKind, IndexSet, number};
use std::sync::Arc;

/// A frame's place in its tree's table; meaningless in any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub(super) u32);

impl FrameId {
    /// The place as a number, from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Function of a frame that is code, in the tables of its profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code {
    /// The function.
    pub function: FunctionIndex,
    /// The line of its file, from 1; 0 where it is not known.
    pub line: u32,
    /// Its module.
    pub mapping: Option<MappingIndex>,
}

/// Text for a module where there are several.
const MODULES: &str = "several modules";

/// Text for a file where there are several.
const FILES: &str = "several places";

/// The places of all frames of a view.
#[derive(Clone, Debug, Default)]
pub struct CodePlaces {
    modules: IndexSet<String>,
    /// With the line, 0 where that is not known or not wanted.
    files: IndexSet<(Arc<str>, u32)>,
    of_frames: Vec<CodePlace>,
}

/// A module and a file, either of which may be unknown. Its own numbers mean something to its [`CodePlaces`] alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CodePlace {
    module: Part,
    file: Part,
}

/// One part of a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Part {
    #[default]
    Unknown,
    One(u32),
    Several,
}

impl Part {
    fn and(self, other: Self) -> Self {
        if self == other { self } else { Self::Several }
    }
}

impl CodePlace {
    /// That of frames that read alike.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            module: self.module.and(other.module),
            file: self.file.and(other.file),
        }
    }
}

impl CodePlaces {
    /// The places of these frames, by what they stand for.
    pub(super) fn new<'f>(
        profile: &Profile,
        frames: impl Iterator<Item = (&'f Frame, Option<Code>)>,
    ) -> Self {
        let mut places = Self::default();
        let place = |(frame, code): (&Frame, Option<Code>)| {
            code.map_or_else(CodePlace::default, |code| {
                places.of_code(profile, frame.kind, code)
            })
        };
        let of_frames = frames.map(place).collect();
        Self {
            of_frames,
            ..places
        }
    }

    fn of_code(&mut self, profile: &Profile, kind: FrameKind, code: Code) -> CodePlace {
        let module = profile.module(kind, code.mapping, code.function);
        let file = &profile.function_at(code.function).file;
        CodePlace {
            module: match module {
                "" => Part::Unknown,
                module => Part::One(number(&mut self.modules, module.to_owned())),
            },
            file: match &**file {
                "" => Part::Unknown,
                _ => Part::One(number(&mut self.files, (Arc::clone(file), code.line))),
            },
        }
    }

    /// Gives a frame that is no code a module.
    pub(super) fn set_module(&mut self, frame: FrameId, module: &str) {
        let module = Part::One(number(&mut self.modules, module.to_owned()));
        self.of_frames[frame.index()].module = module;
    }

    /// The place of each frame, by their IDs.
    pub fn all(&self) -> impl ExactSizeIterator<Item = CodePlace> {
        self.of_frames.iter().copied()
    }

    /// A place's module; empty where it is not known.
    pub fn module(&self, place: CodePlace) -> &str {
        match place.module {
            Part::Unknown => "",
            Part::One(module) => &self.modules[module as usize],
            Part::Several => MODULES,
        }
    }

    /// A place's file with its directories, and the line behind it where that is known; empty where the file is not.
    pub fn file(&self, place: CodePlace) -> String {
        match place.file {
            Part::Unknown => String::new(),
            Part::One(file) => match &self.files[file as usize] {
                (file, 0) => file.to_string(),
                (file, line) => format!("{file}:{line}"),
            },
            Part::Several => FILES.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::profile::{
        CodePlace, FrameKind, FrameProfile, FrameRef, Profile, SourceFrame, Unit, View, Window,
    };

    #[test]
    fn frames_know_their_file_and_line_and_say_where_there_are_several() {
        let frame = |name, file, line| SourceFrame {
            frame: FrameRef {
                name,
                kind: FrameKind::User,
            },
            file,
            line,
        };
        let mut profile = FrameProfile::new(Profile::new(Unit::Samples, Window::default()));
        profile.push(
            &[frame("main", "/src/a.c", 3), frame("work", "/src/b.c", 7)],
            1,
            1,
        );
        profile.push(
            &[frame("main", "/src/a.c", 3), frame("work", "/src/c.c", 7)],
            1,
            1,
        );
        profile.push(&[frame("plain", "", 0)], 1, 1);
        let mut profile = profile.into_profile();
        profile.line_frames = false;
        let view = View::new(&profile);
        let places = view.code_places();
        let of = |name: &str| {
            let all = view.tree().frames().zip(places.all());
            let all = all.filter(|((frame, _), _)| frame.name == name);
            let place = all
                .map(|(_, place)| place)
                .reduce(CodePlace::and)
                .expect(name);
            (places.module(place).to_owned(), places.file(place))
        };
        assert_eq!(of("main").1, "/src/a.c");
        assert_eq!(of("work").1, "several places");
        assert_eq!(of("plain").1, "");
        profile.line_frames = true;
        let view = View::new(&profile);
        let files: Vec<String> = (view.code_places().all())
            .map(|place| view.code_places().file(place))
            .collect();
        assert!(files.contains(&"/src/b.c:7".to_owned()), "{files:?}");
    }
}
