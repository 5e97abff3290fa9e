//! Names of programs' code, kept for all who ask: the windows and the events of a recording.
//!
//! In: locations in objects. Out: names. Sinks that may wait have new ones looked up; the live view asks questions,
//! each about one object, which another thread answers while sampling goes on, and shows the names that are known by
//! then. A location is looked up once.
//! Never: opens what another file has replaced by the time that it is named; files are opened when they are asked for.

use super::backings::{self, open};
use super::kernel::KernelSymbols;
use super::locations::{Answer, offsets_of};
use super::memory_budget::MemoryBudget;
use super::native::{self, Function, Named, Symbol};
use super::objects::{Key, Object, Objects, module};
use super::symbol_cache::SymbolCache;
use super::unsymbolized::UnsymbolizedCode;
use super::{Naming, Sources, build};
use crate::object::{ElfAddress, Fetch, FileOffset};
use crate::process::{Backing, Opened, Processes, Unreachable};
use crate::profile::normalized::{Location, NormalizedProfile, ObjectIndex};
use crate::profile::{Profile, Unit};
use crate::usage::{Budget, Limit};
use foldhash::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// With more places than this, those in objects that have not been seen for a while are forgotten.
const MANY_PLACES: usize = 1 << 17;

/// With more than this, all are.
const MAX_PLACES: usize = 1 << 19;

/// Objects that were not seen in so many windows have not been seen for a while.
const A_WHILE: u64 = 60;

/// Where looking for names is limited to a share of the time, it may take as much as in so long at first: nothing has a name yet.
const FIRST: Duration = Duration::from_secs(600);

/// The names of a recording.
#[derive(Debug, Default)]
pub struct NameCache {
    names: Mutex<Names>,
    /// Of the CPU time that looking for them takes.
    limit: Limit,
    symbols: SymbolCache,
}

#[derive(Debug, Default)]
struct Names {
    objects: HashMap<Key, CachedObject>,
    /// How many places there are in all of them.
    places: usize,
    /// How many windows there were.
    windows: u64,
    /// How many questions are not answered.
    open: usize,
    /// How often the names of places were not looked for, because that had taken as long as it may.
    put_off: u64,
}

#[derive(Debug)]
struct CachedObject {
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
    opened: Result<(Opened, PathBuf), Unreachable>,
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
            cache: None,
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

impl NameCache {
    /// Poisoning is ignored: what a panic of another thread left stays valid.
    fn lock(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of how many objects names are still being looked for.
    pub fn open(&self) -> usize {
        self.lock().open
    }

    /// Limits looking for names to this share of one CPU from now on.
    pub(crate) fn limit(&self, share: f64) {
        let first = FIRST.mul_f64(share);
        self.limit.set(Budget::new(first, share));
    }

    /// The CPU time that looking for names took.
    pub(crate) fn spent(&self) -> Duration {
        self.limit.spent()
    }

    /// How often the names of places were not looked for, because that had taken as long as it may.
    pub(crate) fn put_off(&self) -> u64 {
        self.lock().put_off
    }

    /// Forgets all names. Returns how many.
    pub fn forget(&self) -> usize {
        self.symbols.forget();
        let mut names = self.lock();
        names.objects = HashMap::default();
        std::mem::take(&mut names.places)
    }

    /// Begins the next window, and forgets what has not been seen for a while, where there is much.
    pub fn begin_window(&self) {
        let mut names = self.lock();
        names.windows += 1;
        if names.places > MANY_PLACES {
            let least = names.windows.saturating_sub(A_WHILE);
            names.objects.retain(|_, object| object.seen >= least);
            names.places = (names.objects.values())
                .map(|known| known.places.len())
                .sum();
        }
        if names.places > MAX_PLACES {
            names.objects.clear();
            names.places = 0;
        }
    }

    /// Questions that have to be asked for an event of the window.
    pub fn ask(
        &self,
        normalized: &NormalizedProfile,
        objects: &Objects,
        processes: &Processes,
    ) -> Vec<Question> {
        let mut names = self.lock();
        let mut questions = Vec::new();
        for (index, offsets) in offsets_of(normalized) {
            let (key, object) = (objects.key(index), objects.get(index));
            let backing = processes.backing(object.backing);
            let offsets = names.meet(key, backing, &offsets);
            if offsets.is_empty() {
                continue;
            }
            names.open += 1;
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

    /// Takes in an answer, and the CPU time that this thread takes for it.
    pub fn learn_counted(&self, answer: impl FnOnce() -> Answered) {
        self.learn(self.limit.spend(answer));
    }

    /// Takes in an answer.
    pub fn learn(&self, answered: Answered) {
        let mut names = self.lock();
        names.open = names.open.saturating_sub(1);
        names.learn(answered);
    }

    /// Whether there are all names for what a window brought that there will be.
    pub fn is_complete(&self, normalized: &NormalizedProfile, objects: &Objects) -> bool {
        let names = self.lock();
        let is_open = |location: &Location| match *location {
            Location::At { object, offset } => (names.objects.get(&objects.key(object)))
                .and_then(|known| known.places.get(&FileOffset(offset)))
                .is_some_and(Option::is_none),
            _ => false,
        };
        names.open == 0 || !normalized.locations().iter().any(is_open)
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
        let look_up = |index: ObjectIndex, offsets: &[FileOffset], _: Option<&Fetch<'_>>| {
            self.lock().answer(objects.key(index), offsets)
        };
        let sources = Sources {
            naming,
            fetch: None,
            progress: None,
            names: None,
        };
        // Lookups of known names are not worth a thread.
        build(normalized, unit, kernel, &sources, 1, &look_up).profile
    }
}

/// The symbols at some ascending offsets of an object; those that the cache has are not looked up again.
pub(super) fn look_up(
    names: Option<&NameCache>,
    (objects, index): (&Objects, ObjectIndex),
    processes: &Processes,
    sources: native::Sources<'_>,
    offsets: &[FileOffset],
) -> Answer {
    let (key, object) = (objects.key(index), objects.get(index));
    let backing = processes.backing(object.backing);
    let ask = |offsets: &[FileOffset], sources| {
        backings::answer(object, backing, open(object, processes), sources, offsets)
    };
    let Some(names) = names else {
        return ask(offsets, sources);
    };
    let sources = native::Sources {
        cache: Some(&names.symbols),
        ..sources
    };
    let new = names.lock().meet(key, backing, offsets);
    if !new.is_empty() && !names.limit.has_time() {
        names.lock().put_off(key, &new);
    } else if !new.is_empty() {
        let answer = names.limit.spend(|| ask(&new, sources));
        names.lock().learn(Answered {
            key,
            offsets: new,
            answer,
        });
    }
    names.lock().answer(key, offsets)
}

impl Names {
    /// Notes that an object was seen. Returns those of the offsets that were not, which are to be looked up.
    fn meet(&mut self, key: Key, backing: &Backing, offsets: &[FileOffset]) -> Vec<FileOffset> {
        let known = self.objects.entry(key).or_insert_with(|| CachedObject {
            module: module(backing),
            path: backing.path(),
            functions: Vec::new(),
            places: HashMap::default(),
            whole: Named::default(),
            code: None,
            seen: 0,
        });
        known.seen = self.windows;
        let is_new = |offset: &FileOffset| !known.places.contains_key(offset);
        let new: Vec<FileOffset> = offsets.iter().copied().filter(is_new).collect();
        known
            .places
            .extend(new.iter().map(|offset| (*offset, None)));
        self.places += new.len();
        new
    }

    /// Leaves places without names, which are asked for when they are seen again.
    fn put_off(&mut self, key: Key, offsets: &[FileOffset]) {
        self.put_off += offsets.len() as u64;
        self.places -= offsets.len();
        if let Some(known) = self.objects.get_mut(&key) {
            for offset in offsets {
                known.places.remove(offset);
            }
        }
    }

    fn learn(&mut self, answered: Answered) {
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
        named.asked.add(std::mem::take(&mut known.whole.asked));
        known.whole = named;
        known.code = code;
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
        named.asked.clone_from(&known.whole.asked);
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
