//! Frames for each spot.
//!
//! In: the spots of a located profile, and whoever can be asked about an object. Out: [`Frames`]. Objects
//! are asked one after the other, so that each is opened once, and no two at a time.

use super::gaps::{Gap, GapId, Gaps};
use super::kernel::{KernelNames, KernelNaming};
use super::native::{Function, Named, Symbol};
use super::{Sources, at, frame};
use crate::object::FileOffset;
use crate::profile::located::{Located, ObjectIndex, Spot, SpotIndex};
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

/// Answers for an object and distinct, ascending offsets.
pub(super) type LookUp<'a> = &'a mut dyn FnMut(ObjectIndex, &[FileOffset]) -> Answer;

/// Frames by spot.
#[derive(Debug)]
pub(super) struct Frames {
    // One for each spot.
    frames: Vec<FrameId>,
    gaps: Vec<GapId>,
    // What was compiled into the function at a spot.
    inlined: HashMap<SpotIndex, Rc<[FrameId]>>,
}

impl Frames {
    /// The frames of a spot, the outermost first.
    pub(super) fn levels(&self, spot: SpotIndex) -> impl Iterator<Item = FrameId> {
        let inlined = match self.inlined.is_empty() {
            true => None,
            false => self.inlined.get(&spot),
        };
        let inlined = inlined.into_iter().flat_map(|levels| levels.iter());
        std::iter::once(self.frames[spot.0 as usize]).chain(inlined.copied())
    }

    /// What has no name at a spot.
    pub(super) fn gap(&self, spot: SpotIndex) -> GapId {
        self.gaps[spot.0 as usize]
    }

    /// Frames for all spots of a profile.
    pub(super) fn name(
        located: &Located,
        sources: &mut Sources<'_>,
        profile: &mut Profile,
        gaps: &mut Gaps,
        look_up: LookUp<'_>,
    ) -> (Self, KernelNaming) {
        let unknown = profile.intern(frame("[unknown]".to_owned(), FrameKind::User));
        let mut frames = Self {
            frames: vec![unknown; located.spots().len()],
            gaps: vec![GapId::default(); located.spots().len()],
            inlined: HashMap::new(),
        };
        let mut objects: BTreeMap<ObjectIndex, Vec<(FileOffset, usize)>> = BTreeMap::new();
        let mut addresses: BTreeMap<u64, usize> = BTreeMap::new();
        for (place, spot) in located.spots().iter().enumerate() {
            match *spot {
                Spot::At { object, offset } => objects
                    .entry(object)
                    .or_default()
                    .push((FileOffset(offset), place)),
                Spot::Named(name) => {
                    let known = located.names()[name as usize].clone();
                    frames.frames[place] = profile.intern(known);
                }
                Spot::Kernel(address) => {
                    addresses.insert(address, place);
                }
                Spot::Unknown => {}
            }
        }
        let naming = frames.name_kernel(&addresses, &mut sources.kernel, profile);
        // What may have to be fetched from elsewhere, in limited time, is fetched where most is asked for.
        let mut objects: Vec<(ObjectIndex, Vec<(FileOffset, usize)>)> =
            objects.into_iter().collect();
        objects.sort_by_key(|(_, wanted)| Reverse(wanted.len()));
        let all = objects.len();
        for (done, (object, mut wanted)) in objects.into_iter().enumerate() {
            if let Some(tell) = sources.progress {
                tell(done, all);
            }
            // An object has a spot for each of its offsets, and no other of the same.
            wanted.sort_unstable();
            let offsets: Vec<FileOffset> = wanted.iter().map(|(offset, _)| *offset).collect();
            let answer = look_up(object, &offsets);
            frames.take(&wanted, answer, profile, gaps);
        }
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

    fn take(
        &mut self,
        wanted: &[(FileOffset, usize)],
        answer: Answer,
        profile: &mut Profile,
        gaps: &mut Gaps,
    ) {
        let Answer { named, module, gap } = answer;
        // Many spots lie in one function.
        let functions: Vec<(FrameId, Rc<[FrameId]>)> = named
            .functions
            .into_iter()
            .map(|function| intern(function, profile))
            .collect();
        let gap = gap.map_or_else(GapId::default, |gap| gaps.intern(gap));
        for ((offset, place), symbol) in wanted.iter().zip(named.of) {
            let number = match symbol {
                Symbol::Named(index) => {
                    let (outermost, inlined) = &functions[index];
                    self.frames[*place] = *outermost;
                    if !inlined.is_empty() {
                        let spot = u32::try_from(*place).expect("spots have 32 bits");
                        self.inlined.insert(SpotIndex(spot), Rc::clone(inlined));
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
