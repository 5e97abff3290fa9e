//! The mappings, in the order that readers want.
//!
//! In: a profile. Out: its mappings as pprof has them, and the ID of each. Locations have no kinds in pprof, so code of the
//! kernel and of runtimes that lies in no mapping is in one that says so.

use super::strings::Strings;
use crate::pprof;
use crate::profile::{FrameKind, Location, Mapping, MappingIndex, Profile, Sample};
use std::cmp::Reverse;
use std::collections::HashSet;

/// Names of the kernel in pprof files of other profilers.
const KERNEL: &str = "[kernel.kallsyms]";

/// Code that runtimes made.
const JIT: &str = "[jit]";

/// The IDs of mappings.
pub(super) struct MappingIds {
    /// By the profile's numbers.
    by_index: Vec<u64>,
    /// Of the kernel's code without a mapping; 0 if there is none.
    kernel: u64,
    /// Of code that runtimes made; 0 if there is none.
    jit: u64,
}

impl MappingIds {
    /// The ID of a location's mapping; 0 if it has none.
    pub(super) fn of(&self, location: &Location) -> u64 {
        match (location.mapping, location.kind) {
            (Some(mapping), _) => self.by_index[mapping.0 as usize],
            (None, FrameKind::Kernel) => self.kernel,
            (None, FrameKind::Jit) => self.jit,
            (None, _) => 0,
        }
    }
}

/// The mappings of a profile, and for each of them its ID. Some of the samples say in which order.
pub(super) fn mappings(
    profile: &Profile,
    weighing: &[Sample],
    strings: &mut Strings,
) -> (Vec<pprof::Mapping>, MappingIds) {
    let (mut inlined, mut lines) = (HashSet::new(), HashSet::new());
    for location in profile.locations() {
        let at = profile.lines_at(location);
        if at.len() > 1 {
            inlined.insert(location.mapping);
        }
        if at.iter().any(|line| line.line > 0) {
            lines.insert(location.mapping);
        }
    }
    let mut written = Vec::new();
    let mut ids = vec![0; profile.mappings().len()];
    for (id, index) in (1..).zip(by_weight(profile, weighing)) {
        ids[index] = id;
        let mapping = &profile.mappings()[index];
        let key = Some(MappingIndex(index as u32));
        let has_lines = lines.contains(&key);
        written.push(pprof::Mapping {
            id,
            memory_start: mapping.range.start,
            // Where the range is not known, addresses are places in the file.
            memory_limit: mapping.end(),
            file_offset: mapping.offset,
            filename: strings.number(&mapping.shown_path()),
            build_id: strings.number(&mapping.build_id_hex()),
            // Each location has a name or a placeholder for one. Without this, readers look for the file where
            // they are.
            has_functions: true,
            has_filenames: has_lines,
            has_line_numbers: has_lines,
            has_inline_frames: inlined.contains(&key),
        });
    }
    let mut without = |kind, name| {
        let is_one = |location: &Location| location.mapping.is_none() && location.kind == kind;
        if !profile.locations().iter().any(is_one) {
            return 0;
        }
        let id = written.len() as u64 + 1;
        written.push(pprof::Mapping {
            id,
            memory_limit: u64::MAX,
            filename: strings.number(name),
            has_functions: true,
            ..pprof::Mapping::default()
        });
        id
    };
    let ids = MappingIds {
        by_index: ids,
        kernel: without(FrameKind::Kernel, KERNEL),
        jit: without(FrameKind::Jit, JIT),
    };
    (written, ids)
}

/// The mappings by the weight of the stacks that lead through them, programs before libraries: readers call a profile
/// by the first of them.
fn by_weight(profile: &Profile, samples: &[Sample]) -> Vec<usize> {
    let mut weights = vec![0u64; profile.mappings().len()];
    for sample in samples {
        let stacks = [sample.user, sample.kernel].into_iter().flatten();
        let locations = stacks.flat_map(|stack| profile.stack_at(stack).locations());
        let met: HashSet<MappingIndex> = locations
            .filter_map(|location| profile.location_at(location).mapping)
            .collect();
        for mapping in met {
            let weight = &mut weights[mapping.0 as usize];
            *weight = weight.saturating_add(sample.weight);
        }
    }
    let is_program =
        |mapping: &Mapping| mapping.path.is_absolute() && !mapping.module.contains(".so");
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|index| {
        let is_program = is_program(&profile.mappings()[*index]);
        (!is_program, Reverse(weights[*index]), *index)
    });
    order
}
