//! Frames for each location.
//!
//! In: the locations of a normalized profile, and whoever can be asked about an object. Out: [`Frames`]. Each object
//! is opened once, and asked for all of its locations; several are asked at a time, and what they say is taken in
//! an order that does not depend on who was the first to say it.

use super::gaps::{Gap, GapId, Gaps};
use super::kernel::{KernelNames, KernelNaming};
use super::native::{Function, Named, Symbol};
use super::{Sources, Untold, at, frame, side_by_side};
use crate::object::{Fetch, FileOffset};
use crate::profile::normalized::{Location, LocationIndex, NormalizedProfile, ObjectIndex};
use crate::profile::{Frame, FrameId, FrameKind, Profile};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// What is known of some offsets into an object.
pub(super) struct Answer {
    /// What the object tells.
    pub(super) named: Named,
    /// How frames call it.
    pub(super) module: String,
    /// What is to be said of offsets without names.
    pub(super) gap: Option<Gap>,
}

/// Answers for an object and distinct, ascending offsets, asking for files from elsewhere where it is told
/// whom.
pub(super) type LookUp<'a> =
    &'a (dyn Fn(ObjectIndex, &[FileOffset], Option<&Fetch<'_>>) -> Answer + Sync);

/// The locations in one object: their offsets, ascending, and their places among all locations.
struct Wanted {
    object: ObjectIndex,
    offsets: Vec<FileOffset>,
    places: Vec<usize>,
}

/// Frames by location.
#[derive(Debug)]
pub(super) struct Frames {
    // One for each location.
    frames: Vec<FrameId>,
    gaps: Vec<GapId>,
    // What was compiled into the function at a location.
    inlined: HashMap<LocationIndex, Rc<[FrameId]>>,
    untold: Untold,
}

impl Frames {
    /// The frames of a location, the outermost first.
    pub(super) fn levels(&self, location: LocationIndex) -> impl Iterator<Item = FrameId> {
        let inlined = match self.inlined.is_empty() {
            true => None,
            false => self.inlined.get(&location),
        };
        let inlined = inlined.into_iter().flat_map(|levels| levels.iter());
        std::iter::once(self.frames[location.0 as usize]).chain(inlined.copied())
    }

    /// What has no name at a location.
    pub(super) fn gap(&self, location: LocationIndex) -> GapId {
        self.gaps[location.0 as usize]
    }

    /// What the limit on memory did to names.
    pub(super) fn take_untold(&mut self) -> Untold {
        std::mem::take(&mut self.untold)
    }

    /// Frames for all locations of a profile.
    pub(super) fn name(
        normalized: &NormalizedProfile,
        sources: &mut Sources<'_>,
        profile: &mut Profile,
        gaps: &mut Gaps,
        look_up: LookUp<'_>,
    ) -> (Self, KernelNaming) {
        let unknown = profile.intern(frame("[unknown]".to_owned(), FrameKind::User));
        let mut frames = Self {
            frames: vec![unknown; normalized.locations().len()],
            gaps: vec![GapId::default(); normalized.locations().len()],
            inlined: HashMap::new(),
            untold: Untold::default(),
        };
        let mut objects: BTreeMap<ObjectIndex, Vec<(FileOffset, usize)>> = BTreeMap::new();
        let mut addresses: BTreeMap<u64, usize> = BTreeMap::new();
        for (place, location) in normalized.locations().iter().enumerate() {
            match *location {
                Location::At { object, offset } => objects
                    .entry(object)
                    .or_default()
                    .push((FileOffset(offset), place)),
                Location::Named(name) => {
                    let known = normalized.names()[name as usize].clone();
                    frames.frames[place] = profile.intern(known);
                }
                Location::Kernel(address) => {
                    addresses.insert(address, place);
                }
                Location::Unknown => {}
            }
        }
        let naming = frames.name_kernel(&addresses, &mut sources.kernel, profile);
        let mut wanted: Vec<Wanted> = objects
            .into_iter()
            .map(|(object, mut locations)| {
                // An object has a location for each of its offsets, and no other of the same.
                locations.sort_unstable();
                let (offsets, places) = locations.into_iter().unzip();
                Wanted {
                    object,
                    offsets,
                    places,
                }
            })
            .collect();
        // What may have to be fetched from elsewhere, in limited time, is fetched where most is asked for.
        wanted.sort_by_key(|wanted| Reverse(wanted.offsets.len()));
        let told = |done| {
            if let Some(tell) = sources.progress {
                tell(done, wanted.len());
            }
        };
        told(0);
        let ask = |wanted: &Wanted, fetch: Option<&Fetch<'_>>| {
            look_up(wanted.object, &wanted.offsets, fetch)
        };
        side_by_side::each(
            &wanted,
            side_by_side::threads(),
            sources.fetch,
            &ask,
            |number, answer| {
                frames.take(&wanted[number], answer, profile, gaps);
                told(number + 1);
            },
        );
        (frames, naming)
    }

    fn name_kernel(
        &mut self,
        wanted: &BTreeMap<u64, usize>,
        names: &mut KernelNames<'_>,
        profile: &mut Profile,
    ) -> KernelNaming {
        let addresses: Vec<u64> = wanted.keys().copied().collect();
        let (names, naming) = names.name(&addresses);
        for ((address, place), name) in wanted.iter().zip(names) {
            let name = name.unwrap_or_else(|| at("kernel", *address));
            self.frames[*place] = profile.intern(frame(name, FrameKind::Kernel));
        }
        naming
    }

    fn take(&mut self, wanted: &Wanted, answer: Answer, profile: &mut Profile, gaps: &mut Gaps) {
        let Answer { named, module, gap } = answer;
        self.untold.note(&module, named.asked);
        // Many locations lie in one function.
        let functions: Vec<(FrameId, Rc<[FrameId]>)> = named
            .functions
            .into_iter()
            .map(|function| intern(function, profile))
            .collect();
        let gap = gap.map_or_else(GapId::default, |gap| gaps.intern(gap));
        let locations = wanted.offsets.iter().zip(&wanted.places);
        for ((offset, place), symbol) in locations.zip(named.of) {
            let number = match symbol {
                Symbol::Named(index) => {
                    let (outermost, inlined) = &functions[index];
                    self.frames[*place] = *outermost;
                    if !inlined.is_empty() {
                        let location = u32::try_from(*place).expect("locations have 32 bits");
                        self.inlined
                            .insert(LocationIndex(location), Rc::clone(inlined));
                    }
                    continue;
                }
                Symbol::At(address) => address.0,
                Symbol::Unknown => offset.0,
            };
            self.frames[*place] = profile.intern(unnamed(&module, number));
            self.gaps[*place] = gap;
        }
    }
}

fn intern(function: Function, profile: &mut Profile) -> (FrameId, Rc<[FrameId]>) {
    let outermost = frame(function.name, FrameKind::User);
    let inlined = function.inlined.into_iter();
    (
        profile.intern(outermost),
        inlined
            .map(|name| profile.intern(frame(name, FrameKind::Inlined)))
            .collect(),
    )
}

/// A frame that has no name.
fn unnamed(module: &str, offset: u64) -> Frame {
    frame(at(module, offset), FrameKind::User)
}
