//! Names that are kept from window to window of a recording that is watched, and that may come late.
//!
//! In: the locations of each window. Out: questions, which another thread answers while sampling goes on, each about one
//! object; and profiles, with the names that are known by then. A location is asked for once.
//! Never: opens what another file has replaced by the time that it is named; files are opened when they are asked for.

use super::backings::{self, open};
use super::kernel::KernelSymbols;
use super::locations::Answer;
use super::memory_budget::MemoryBudget;
use super::native::{self, Function, Named, Symbol};
use super::objects::{Key, Object, Objects, module};
use super::unsymbolized::UnsymbolizedCode;
use super::{Naming, Sources, build};
use crate::object::{ElfAddress, Fetch, FileOffset};
use crate::process::{Backing, Opened, Processes};
use crate::profile::normalized::{Location, NormalizedProfile, ObjectIndex};
use crate::profile::{Profile, Unit};
use foldhash::HashMap;
use std::path::PathBuf;

/// With more places than this, those in objects that have not been seen for a while are forgotten.
const MANY_PLACES: usize = 1 << 17;

/// With more than this, all are.
const MOST_PLACES: usize = 1 << 19;

/// Objects that were not seen in so many windows have not been seen for a while.
const A_WHILE: u64 = 60;

/// The names of a recording that is watched.
#[derive(Debug, Default)]
pub struct KnownNames {
    objects: HashMap<Key, KnownObject>,
    /// How many places there are in all of them.
    places: usize,
    /// How many windows there were.
    windows: u64,
    /// How many questions are not answered.
    open: usize,
}

#[derive(Debug)]
struct KnownObject {
    module: String,
    path: PathBuf,
    functions: Vec<Function>,
    /// None of those that are asked for.
    places: HashMap<FileOffset, Option<(Symbol, Option<ElfAddress>)>>,
    /// Answers about the object as a whole; empty before the first.
    whole: Named,
    code: Option<UnsymbolizedCode>,
    /// The last window that it was seen in.
    seen: u64,
}

/// Some places of an object that have no names yet.
#[derive(Debug)]
pub struct Question {
    key: Key,
    object: Object,
    backing: Backing,
    opened: Option<(Opened, PathBuf)>,
    offsets: Vec<FileOffset>,
}

/// Their names.
pub struct Answered {
    key: Key,
    offsets: Vec<FileOffset>,
    answer: Answer,
}

impl Question {
    /// Looks for the names, which may take long.
    pub fn answer(self, naming: &Naming, fetch: Option<&Fetch<'_>>) -> Answered {
        let memory = MemoryBudget::new(naming.memory);
        let sources = native::Sources {
            naming,
            fetch,
            memory: &memory,
        };
        let Self {
            key,
            object,
            backing,
            opened,
            offsets,
        } = self;
        Answered {
            key,
            answer: backings::answer(&object, &backing, opened, sources, &offsets),
            offsets,
        }
    }
}

impl KnownNames {
    /// Of how many objects names are still being looked for.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Begins the next window, and forgets what may be forgotten.
    pub fn begin_window(&mut self) {
        self.windows += 1;
        self.forget();
    }

    /// Questions that have to be asked for an event of the window.
    pub fn ask(
        &mut self,
        normalized: &NormalizedProfile,
        objects: &Objects,
        processes: &Processes,
    ) -> Vec<Question> {
        let mut wanted: HashMap<ObjectIndex, Vec<FileOffset>> = HashMap::default();
        for location in normalized.locations() {
            if let Location::At { object, offset } = *location {
                wanted.entry(object).or_default().push(FileOffset(offset));
            }
        }
        let keys = objects.keys();
        let mut questions = Vec::new();
        for (index, mut offsets) in wanted {
            let (key, object) = (keys[index.0 as usize], objects.get(index));
            let backing = processes.backing(object.backing);
            let known = self.objects.entry(key).or_insert_with(|| KnownObject {
                module: module(backing),
                path: backings::path(backing),
                functions: Vec::new(),
                places: HashMap::default(),
                whole: Named::default(),
                code: None,
                seen: 0,
            });
            known.seen = self.windows;
            offsets.retain(|offset| !known.places.contains_key(offset));
            if offsets.is_empty() {
                continue;
            }
            offsets.sort_unstable();
            (known.places).extend(offsets.iter().map(|offset| (*offset, None)));
            self.places += offsets.len();
            self.open += 1;
            questions.push(Question {
                key,
                object: object.clone(),
                backing: backing.clone(),
                opened: open(object, processes),
                offsets,
            });
        }
        // Most names first: a few places of a large object may take as long.
        questions.sort_by_key(|question| std::cmp::Reverse(question.offsets.len()));
        questions
    }

    /// Forgets what has not been seen for a while, where there is much.
    fn forget(&mut self) {
        if self.places > MANY_PLACES {
            let least = self.windows.saturating_sub(A_WHILE);
            self.objects.retain(|_, object| object.seen >= least);
            self.places = self.objects.values().map(|known| known.places.len()).sum();
        }
        if self.places > MOST_PLACES {
            self.objects.clear();
            self.places = 0;
        }
    }

    /// Takes in an answer.
    pub fn learn(&mut self, answered: Answered) {
        self.open = self.open.saturating_sub(1);
        let Answered {
            key,
            offsets,
            answer,
        } = answered;
        let Some(known) = self.objects.get_mut(&key) else {
            // Forgotten meanwhile; it is asked again when it is seen again.
            return;
        };
        let first = known.functions.len();
        let Answer {
            mut named, code, ..
        } = answer;
        known.functions.append(&mut named.functions);
        let symbols = named.of.drain(..).zip(named.addresses.drain(..));
        for (offset, (symbol, address)) in offsets.into_iter().zip(symbols) {
            let symbol = match symbol {
                Symbol::Named(index) => Symbol::Named(first + index),
                Symbol::Within(_) | Symbol::Unsymbolized => symbol,
            };
            known.places.insert(offset, Some((symbol, address)));
        }
        known.whole = named;
        known.code = code;
    }

    /// Whether there are all names for what a window brought that there will be.
    pub fn is_complete(&self, normalized: &NormalizedProfile, objects: &Objects) -> bool {
        let keys = objects.keys();
        let is_open = |location: &Location| match *location {
            Location::At { object, offset } => (self.objects.get(&keys[object.0 as usize]))
                .and_then(|known| known.places.get(&FileOffset(offset)))
                .is_some_and(Option::is_none),
            _ => false,
        };
        self.open == 0 || !normalized.locations().iter().any(is_open)
    }

    /// The profile of a window, with the names that are known.
    pub fn symbolize(
        &self,
        normalized: NormalizedProfile,
        objects: &Objects,
        unit: Unit,
        kernel: &KernelSymbols,
        naming: &Naming,
    ) -> Profile {
        let keys = objects.keys();
        let look_up = |index: ObjectIndex, offsets: &[FileOffset], _: Option<&Fetch<'_>>| {
            self.answer(keys[index.0 as usize], offsets)
        };
        let sources = Sources {
            naming,
            fetch: None,
            progress: None,
        };
        // Lookups of known names are not worth a thread.
        build(normalized, unit, kernel, &sources, 1, &look_up).profile
    }

    /// The names that are known of places of an object.
    fn answer(&self, key: Key, offsets: &[FileOffset]) -> Answer {
        let mut named = Named::nothing(offsets.len());
        let Some(known) = self.objects.get(&key) else {
            return Answer {
                named,
                module: String::new(),
                path: PathBuf::new(),
                code: None,
            };
        };
        named.code.clone_from(&known.whole.code);
        named.build_id.clone_from(&known.whole.build_id);
        named.is_object = known.whole.is_object;
        named.has_symbols = known.whole.has_symbols;
        let mut numbers: HashMap<usize, usize> = HashMap::default();
        for (at, offset) in offsets.iter().enumerate() {
            let Some(Some((symbol, address))) = known.places.get(offset) else {
                continue;
            };
            named.addresses[at] = *address;
            named.of[at] = match symbol {
                Symbol::Named(index) => {
                    Symbol::Named(*numbers.entry(*index).or_insert_with(|| {
                        named.functions.push(known.functions[*index].clone());
                        named.functions.len() - 1
                    }))
                }
                Symbol::Within(_) | Symbol::Unsymbolized => *symbol,
            };
        }
        Answer {
            named,
            module: known.module.clone(),
            path: known.path.clone(),
            code: known.code.clone(),
        }
    }
}
