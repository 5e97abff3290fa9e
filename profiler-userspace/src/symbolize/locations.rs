//! Symbols for each location.
//!
//! In: the locations of a normalized profile, and a function that looks offsets of an object up. Out: the locations of a
//! [`Profile`], by the same indices. Each object is opened once, and asked for all of its locations; several are asked
//! at a time, and their answers are taken in an order that does not depend on which came first.

use super::dwarf::SourceLine;
use super::kernel::KernelSymbols;
use super::native::{self, Named, Symbol};
use super::unsymbolized::{UnsymbolizedCode, UnsymbolizedId, UnsymbolizedTable};
use super::{SkippedDebugInfo, Sources, at, parallel};
use crate::object::{Fetch, FileOffset};
use crate::profile::normalized::{self, NamedFunction, NormalizedProfile, ObjectIndex};
use crate::profile::{
    FrameKind, Function, FunctionIndex, Line, Lines, Location, Mapping, MappingIndex, Profile,
    with_line,
};
use foldhash::HashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Answer for some offsets into an object.
pub(super) struct Answer {
    /// Its symbols.
    pub(super) named: Named,
    /// How frames call it.
    pub(super) module: String,
    /// Where it was when it was mapped; empty where that was no file.
    pub(super) path: PathBuf,
    /// The code that offsets without names are in, if the report should have it.
    pub(super) code: Option<UnsymbolizedCode>,
}

/// Answers for an object and distinct, ascending offsets. It may ask for files from elsewhere.
pub(super) type LookUp<'a> =
    &'a (dyn Fn(ObjectIndex, &[FileOffset], Option<&Fetch<'_>>) -> Answer + Sync);

/// The offsets of all locations in objects, ascending.
pub(super) fn offsets_of(normalized: &NormalizedProfile) -> BTreeMap<ObjectIndex, Vec<FileOffset>> {
    let mut offsets: BTreeMap<ObjectIndex, Vec<FileOffset>> = BTreeMap::new();
    for location in normalized.locations() {
        if let normalized::Location::At { object, offset } = *location {
            offsets.entry(object).or_default().push(FileOffset(offset));
        }
    }
    offsets.values_mut().for_each(|of| of.sort_unstable());
    offsets
}

/// The name of the kernel's mapping, as perf and pprof have it.
const KERNEL: &str = "[kernel.kallsyms]";

/// The locations in one object: their offsets, ascending, and their places among all locations.
struct ObjectLocations {
    object: ObjectIndex,
    offsets: Vec<FileOffset>,
    places: Vec<usize>,
}

/// Results beside symbols.
pub(super) struct LocationResults {
    /// Code without a name at each location.
    pub(super) unsymbolized: Vec<UnsymbolizedId>,
    /// Debug information that the memory limit kept from being read, or that is missing.
    pub(super) skipped: SkippedDebugInfo,
}

/// Adds to an empty `profile` what is at each of the locations of `normalized`, by so many threads.
pub(super) fn symbolize(
    normalized: &NormalizedProfile,
    kernel: &KernelSymbols,
    (sources, threads): (&Sources<'_>, usize),
    profile: &mut Profile,
    unsymbolized: &mut UnsymbolizedTable,
    look_up: LookUp<'_>,
) -> LocationResults {
    let mut building = Building::new(profile, normalized.locations().len());
    let mut objects: BTreeMap<ObjectIndex, Vec<(FileOffset, usize)>> = BTreeMap::new();
    for (place, location) in normalized.locations().iter().enumerate() {
        match *location {
            normalized::Location::At { object, offset } => objects
                .entry(object)
                .or_default()
                .push((FileOffset(offset), place)),
            normalized::Location::Named(name) => {
                building.place_named(
                    place,
                    &normalized.names()[name as usize],
                    sources.naming.lines,
                );
            }
            normalized::Location::Within {
                name,
                place: within,
            } => {
                let function = &normalized.names()[name as usize];
                building.place_named(place, function, sources.naming.lines);
                if sources.naming.places {
                    building.place_within(place, within);
                }
            }
            normalized::Location::Kernel(address) => {
                building.place_named(place, &kernel.function(address), true);
            }
            normalized::Location::Unknown => {}
        }
    }
    let mut wanted: Vec<ObjectLocations> = objects
        .into_iter()
        .map(|(object, mut locations)| {
            // An object has a location for each of its offsets, and no other of the same.
            locations.sort_unstable();
            let (offsets, places) = locations.into_iter().unzip();
            ObjectLocations {
                object,
                offsets,
                places,
            }
        })
        .collect();
    // Objects with the most offsets come first: fetching from elsewhere has limited time.
    wanted.sort_by_key(|wanted| Reverse(wanted.offsets.len()));
    let report = |done| {
        if let Some(report) = sources.progress {
            report(done, wanted.len());
        }
    };
    report(0);
    let ask = |wanted: &ObjectLocations, fetch: Option<&Fetch<'_>>| {
        look_up(wanted.object, &wanted.offsets, fetch)
    };
    parallel::each(&wanted, threads, sources.fetch, &ask, |number, answer| {
        building.take(&wanted[number], answer, unsymbolized);
        report(number + 1);
    });
    building.finish()
}

/// The profile's locations while they come in, in any order.
struct Building<'p> {
    profile: &'p mut Profile,
    locations: Vec<Location>,
    found: LocationResults,
    /// Lines that are the same for many locations: those of one function, where no line is known.
    functions: HashMap<FunctionIndex, Lines>,
    kernel: Option<MappingIndex>,
}

impl<'p> Building<'p> {
    fn new(profile: &'p mut Profile, locations: usize) -> Self {
        let mut building = Self {
            profile,
            locations: Vec::new(),
            found: LocationResults {
                unsymbolized: vec![UnsymbolizedId::default(); locations],
                skipped: SkippedDebugInfo::default(),
            },
            functions: HashMap::default(),
            kernel: None,
        };
        let lines = building.lines_of("[unknown]".to_owned(), String::new(), None);
        let unknown = Location::new(None, 0, FrameKind::User, lines);
        building.locations = vec![unknown; locations];
        building
    }

    fn finish(self) -> LocationResults {
        for location in self.locations {
            self.profile.location(location);
        }
        self.found
    }

    /// The lines of a location in one function alone.
    fn lines_of(
        &mut self,
        name: String,
        system_name: String,
        source: Option<&SourceLine>,
    ) -> Lines {
        let line = self.line(name, system_name, source);
        let profile = &mut *self.profile;
        match line.line {
            0 => *self
                .functions
                .entry(line.function)
                .or_insert_with(|| profile.lines([line])),
            _ => profile.lines([line]),
        }
    }

    fn line(&mut self, name: String, system_name: String, source: Option<&SourceLine>) -> Line {
        let function = Function {
            name,
            system_name,
            file: source.map_or_else(Arc::default, |source| Arc::clone(&source.file)),
        };
        Line {
            function: self.profile.function(function),
            line: source.map_or(0, |source| source.line),
        }
    }

    /// `lines`: whether those of interpreters' functions are shown. All others have one only if that was asked for.
    fn place_named(&mut self, place: usize, function: &NamedFunction, lines: bool) {
        let NamedFunction {
            name,
            kind,
            file,
            line,
            defined,
        } = function;
        let is_interpreted = matches!(kind, FrameKind::Interpreted(_));
        let line = if is_interpreted && !lines { 0 } else { *line };
        let source = (line > 0 || is_interpreted).then(|| SourceLine {
            file: Arc::clone(file),
            line,
        });
        let name = if line == 0 {
            with_line(name, file, *defined)
        } else {
            name.clone()
        };
        let lines = self.lines_of(name, String::new(), source.as_ref());
        let mapping = (*kind == FrameKind::Kernel).then(|| self.kernel());
        self.locations[place] = Location::new(mapping, 0, *kind, lines);
    }

    /// Adds where in its function a named location is. Beginnings are places, too, so that 0 stays what is not known.
    fn place_within(&mut self, place: usize, within: u64) {
        self.locations[place].address = within.saturating_add(1);
    }

    fn kernel(&mut self) -> MappingIndex {
        let profile = &mut *self.profile;
        *self.kernel.get_or_insert_with(|| {
            profile.mapping(Mapping {
                path: PathBuf::from(KERNEL),
                module: "kernel".to_owned(),
                has_functions: true,
                ..Mapping::default()
            })
        })
    }

    fn take(
        &mut self,
        wanted: &ObjectLocations,
        answer: Answer,
        unsymbolized: &mut UnsymbolizedTable,
    ) {
        let Answer {
            named,
            module,
            path,
            code,
        } = answer;
        self.found.skipped.note(&module, named.asked);
        // Code of no file was made while the program ran; the kernel's part of a process was not.
        let kind = match path.as_os_str().is_empty() && module != "vdso" {
            true => FrameKind::Jit,
            false => FrameKind::User,
        };
        let mapped = named.code.unwrap_or_default();
        let build_id = named.build_id.as_ref().map(|id| id.bytes().into());
        let mapping = self.profile.mapping(Mapping {
            path,
            module: module.clone(),
            build_id: build_id.unwrap_or_default(),
            range: mapped.addresses,
            offset: mapped.offset,
            has_functions: named.has_symbols,
        });
        // Many locations lie in one function.
        let functions: Vec<Lines> = named
            .functions
            .into_iter()
            .map(|function| self.function(function))
            .collect();
        let code = code.map_or_else(UnsymbolizedId::default, |code| unsymbolized.intern(code));
        let locations = wanted.offsets.iter().zip(&wanted.places);
        for ((offset, place), (symbol, address)) in
            locations.zip(named.of.iter().zip(&named.addresses))
        {
            let address = address.map_or(offset.0, |address| address.0);
            let lines = match symbol {
                Symbol::Named(index) => functions[*index],
                Symbol::Within(_) | Symbol::Unsymbolized => {
                    self.found.unsymbolized[*place] = code;
                    let shown = match symbol {
                        Symbol::Within(begin) => begin.0,
                        _ => address,
                    };
                    self.lines_of(at(&module, shown), String::new(), None)
                }
            };
            self.locations[*place] = Location::new(Some(mapping), address, kind, lines);
        }
    }

    fn function(&mut self, function: native::Function) -> Lines {
        let native::Function { outermost, inlined } = function;
        if inlined.is_empty() {
            let source = outermost.source.as_ref();
            return self.lines_of(outermost.name, outermost.system_name, source);
        }
        let levels = std::iter::once(outermost).chain(inlined);
        let lines: Vec<Line> = levels
            .map(|level| self.line(level.name, level.system_name, level.source.as_ref()))
            .collect();
        self.profile.lines(lines.into_iter().rev())
    }
}
