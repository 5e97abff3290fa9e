//! A frame for each address.
//!
//! In: the addresses of a raw profile. Out: [`Frames`], one lot for each process and one for the
//! kernel. Addresses are gathered first, then named object by object, so that each object is opened
//! once, and no two at a time.

use super::backings::{Answers, Wanted, at, want};
use super::code_map;
use super::demangle::visible;
use super::gaps::{GapId, Gaps};
use super::kernel::{KernelNames, KernelNaming};
use super::native::Sources;
use super::{frame, lookups};
use crate::process::{BackingId, Identity, Place, Process, Processes};
use crate::profile::raw::RawProfile;
use crate::profile::{FrameId, FrameKind, Profile};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

/// Addresses that no program's code has, at either end. They come of walks that went astray, and are
/// not worth reading a process's mappings again.
const PLAUSIBLE: Range<u64> = 1 << 12..1 << 56;

/// Frames by address.
#[derive(Debug, Default)]
pub(super) struct Frames {
    // Ascending and distinct.
    addresses: Vec<u64>,
    // One for each address.
    pub(super) frames: Vec<FrameId>,
    // One for each address, or none at all.
    pub(super) gaps: Vec<GapId>,
    // What was compiled into the function at an address, by the address's place.
    pub(super) inlined: HashMap<usize, Rc<[FrameId]>>,
}

impl Frames {
    /// The frames of an address that was gathered, the outermost first.
    pub(super) fn levels(&self, address: u64) -> impl Iterator<Item = FrameId> {
        let place = self.place(address);
        let inlined = match self.inlined.is_empty() {
            true => None,
            false => self.inlined.get(&place),
        };
        let inlined = inlined.into_iter().flat_map(|levels| levels.iter());
        std::iter::once(self.frames[place]).chain(inlined.copied())
    }

    /// What has no name at an address that was gathered.
    pub(super) fn gap(&self, address: u64) -> GapId {
        let gap = self.gaps.get(self.place(address));
        gap.copied().unwrap_or_default()
    }

    fn place(&self, address: u64) -> usize {
        let at = self.addresses.binary_search(&address);
        at.expect("all addresses of the profile were gathered")
    }
}

/// Distinct addresses, kept few while they come in.
#[derive(Debug, Default)]
struct Gathered {
    addresses: Vec<u64>,
    /// How many there may be before they are sorted out.
    limit: usize,
}

impl Gathered {
    fn extend(&mut self, addresses: impl Iterator<Item = u64>) {
        self.addresses.extend(addresses);
        if self.addresses.len() > self.limit {
            self.sort_out();
            self.limit = (2 * self.addresses.len()).max(4096);
        }
    }

    fn sort_out(&mut self) {
        self.addresses.sort_unstable();
        self.addresses.dedup();
    }

    fn into_distinct(mut self) -> Vec<u64> {
        self.sort_out();
        self.addresses.shrink_to_fit();
        self.addresses
    }
}

/// A frame for each address of each process's user stacks.
pub(super) fn user(
    raw: &RawProfile,
    processes: &mut Processes,
    sources: Sources<'_>,
    profile: &mut Profile,
    gaps: &mut Gaps,
) -> HashMap<Identity, Frames> {
    let mut gathered: BTreeMap<Identity, Gathered> = BTreeMap::new();
    let mut known = HashSet::new();
    for sample in &raw.samples {
        let identity = Identity::from(&sample.who);
        if let Some(index) = sample.user
            && known.insert((identity, index))
        {
            gathered
                .entry(identity)
                .or_default()
                .extend(lookups(raw.stack(index)));
        }
    }
    drop(known);
    let unknown = profile.intern(frame("[unknown]".to_owned(), FrameKind::User));
    let mut wanted: BTreeMap<BackingId, Wanted> = BTreeMap::new();
    let mut all = HashMap::new();
    for (identity, gathered) in gathered {
        let addresses = gathered.into_distinct();
        let mut frames = vec![unknown; addresses.len()];
        let mut places = find(identity, &addresses, processes);
        name_made(
            identity,
            &addresses,
            &mut places,
            &mut frames,
            processes,
            profile,
            gaps,
        );
        want(identity, places, &mut wanted);
        let frames = Frames {
            gaps: vec![GapId::default(); addresses.len()],
            addresses,
            frames,
            inlined: HashMap::new(),
        };
        all.insert(identity, frames);
    }
    // What may have to be fetched from elsewhere, in limited time, is fetched where most is asked for.
    let mut wanted: Vec<(BackingId, Wanted)> = wanted.into_iter().collect();
    wanted.sort_by_key(|(_, wanted)| Reverse(wanted.queries.len()));
    let mut naming = Answers {
        processes,
        sources,
        profile,
        gaps,
        all: &mut all,
    };
    for (backing, wanted) in wanted {
        naming.answer(backing, wanted);
    }
    all
}

/// What each address of a process lies in.
fn find(identity: Identity, addresses: &[u64], processes: &mut Processes) -> Vec<Option<Place>> {
    let known = |process: &Process| {
        let mut plausible = addresses
            .iter()
            .filter(|address| PLAUSIBLE.contains(address));
        plausible.all(|address| process.place(*address).is_some())
    };
    if !processes.get(identity).is_some_and(known) {
        processes.look(identity);
    }
    let process = processes.get(identity);
    addresses
        .iter()
        .map(|address| process?.place(*address))
        .collect()
}

/// Names what the process made itself, as its own maps tell; such places are then done with.
fn name_made(
    identity: Identity,
    addresses: &[u64],
    places: &mut [Option<Place>],
    frames: &mut [FrameId],
    processes: &mut Processes,
    profile: &mut Profile,
    gaps: &mut Gaps,
) {
    let may_be_made = |at: &usize| {
        let place: Option<&Place> = places[*at].as_ref();
        place.is_some_and(|place| processes.backing(place.backing).may_be_made())
    };
    let made: Vec<usize> = (0..places.len()).filter(may_be_made).collect();
    if made.is_empty() {
        return;
    }
    let asked: Vec<u64> = made.iter().map(|at| addresses[*at]).collect();
    let (found, whole) = code_map::name(processes, identity, &asked);
    if !whole {
        gaps.note_cut();
    }
    let ids: Vec<FrameId> = found
        .names
        .iter()
        .map(|name| profile.intern(frame(visible(name), FrameKind::Jit)))
        .collect();
    if !ids.is_empty() {
        gaps.note_teller(identity);
    }
    for (at, index) in made.into_iter().zip(found.of) {
        if let Some(index) = index {
            frames[at] = ids[index];
            places[at] = None;
        }
    }
}

/// A frame for each address of the kernel's stacks.
pub(super) fn kernel(
    raw: &RawProfile,
    names: &mut KernelNames<'_>,
    profile: &mut Profile,
) -> (Frames, KernelNaming) {
    let mut gathered = Gathered::default();
    let mut known = HashSet::new();
    for index in raw.samples.iter().filter_map(|sample| sample.kernel) {
        if known.insert(index) {
            gathered.extend(lookups(raw.stack(index)));
        }
    }
    let addresses = gathered.into_distinct();
    let (names, naming) = names.name(&addresses);
    let frames = addresses
        .iter()
        .zip(names)
        .map(|(&address, name)| {
            let name = name.unwrap_or_else(|| at("kernel", address));
            profile.intern(frame(name, FrameKind::Kernel))
        })
        .collect();
    let frames = Frames {
        addresses,
        frames,
        gaps: Vec::new(),
        inlined: HashMap::new(),
    };
    (frames, naming)
}
