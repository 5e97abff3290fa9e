//! The mappings, in the order that readers want.
//!
//! In: a profile. Out: its mappings as pprof has them, and the ID of each.

use super::tables::Strings;
use super::wire;
use crate::profile::{Mapping, MappingIndex, Profile};
use std::cmp::Reverse;
use std::collections::HashSet;

/// The mappings of a profile, and for each of them its ID.
pub(super) fn mappings(profile: &Profile, strings: &mut Strings) -> (Vec<wire::Mapping>, Vec<u64>) {
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
    for (id, index) in (1..).zip(by_weight(profile)) {
        ids[index] = id;
        let mapping = &profile.mappings()[index];
        let key = Some(MappingIndex(index as u32));
        let build_id: String = mapping
            .build_id
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let path = mapping.path.to_string_lossy();
        let name = match path.is_empty() {
            true => mapping.module.as_str(),
            false => &path,
        };
        let has_lines = lines.contains(&key);
        written.push(wire::Mapping {
            id,
            memory_start: mapping.range.start,
            // Where the range is not known, addresses are places in the file.
            memory_limit: match mapping.range.is_empty() {
                true => u64::MAX,
                false => mapping.range.end,
            },
            file_offset: mapping.offset,
            filename: strings.number(name),
            build_id: strings.number(&build_id),
            // Each location has a name or a placeholder for one. Without this, readers look for the file where
            // they are.
            has_functions: true,
            has_filenames: has_lines,
            has_line_numbers: has_lines,
            has_inline_frames: inlined.contains(&key),
        });
    }
    (written, ids)
}

/// The mappings by the weight of the stacks that lead through them, programs before libraries: readers call a profile
/// by the first of them.
fn by_weight(profile: &Profile) -> Vec<usize> {
    let mut weights = vec![0u64; profile.mappings().len()];
    for sample in profile.samples() {
        let stacks = [sample.user, sample.kernel].into_iter().flatten();
        let locations = stacks.flat_map(|stack| &profile.stack_at(stack).locations);
        let met: HashSet<MappingIndex> = locations
            .filter_map(|location| profile.location_at(*location).mapping)
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
