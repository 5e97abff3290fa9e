//! The tables that samples refer to: functions and locations, each written once.
//!
//! In: a profile's functions and locations, as samples come upon them. Out: their IDs, which are dense and begin at 1, in
//! the order of their first use. Locations that read alike are one.

use super::super::leaf_first::Places;
use super::mappings::MappingIds;
use super::strings::Strings;
use crate::pprof::{Function, Line, Location};
use crate::profile::Profile;
use crate::profile::normalized::LocationIndex;
use std::collections::HashMap;

/// All that tells written locations apart: the mapping's ID, the address, and lines.
type LocationKey = (u64, u64, Vec<Line>);

/// The functions and locations of a profile, as far as they were asked for.
pub(super) struct Tables<'a> {
    profile: &'a Profile,
    /// Texts.
    pub(super) strings: Strings,
    /// Functions, by ID less 1.
    pub(super) functions: Vec<Function>,
    /// Locations, by ID less 1.
    pub(super) locations: Vec<Location>,
    mapping_ids: MappingIds,
    /// IDs by the profile's number.
    function_ids: HashMap<u32, u64>,
    /// IDs by name.
    mark_ids: HashMap<&'static str, u64>,
    /// IDs by the profile's number.
    location_ids: HashMap<u32, u64>,
    places: HashMap<LocationKey, u64>,
}

impl<'a> Tables<'a> {
    /// Empty tables for a profile whose mappings have these IDs.
    pub(super) fn new(profile: &'a Profile, strings: Strings, mapping_ids: MappingIds) -> Self {
        Self {
            profile,
            strings,
            functions: Vec::new(),
            locations: Vec::new(),
            mapping_ids,
            function_ids: HashMap::new(),
            mark_ids: HashMap::new(),
            location_ids: HashMap::new(),
            places: HashMap::new(),
        }
    }

    fn place(&mut self, place: LocationKey) -> u64 {
        let written = &mut self.locations;
        *self
            .places
            .entry(place)
            .or_insert_with_key(|(mapping_id, address, lines)| {
                let id = written.len() as u64 + 1;
                written.push(Location {
                    id,
                    mapping_id: *mapping_id,
                    address: *address,
                    line: lines.clone(),
                });
                id
            })
    }

    fn function(&mut self, name: &str, system_name: &str, file: &str) -> u64 {
        let id = self.functions.len() as u64 + 1;
        let function = Function {
            id,
            name: self.strings.number(name),
            // Where it is the name itself, readers demangle that; where it is empty, they leave it.
            system_name: self.strings.number(match system_name == name {
                true => "",
                false => system_name,
            }),
            filename: self.strings.number(file),
        };
        self.functions.push(function);
        id
    }
}

impl Places for Tables<'_> {
    type Id = u64;

    fn mark(&mut self, name: &'static str) -> u64 {
        if let Some(id) = self.mark_ids.get(name) {
            return *id;
        }
        let function_id = self.function(name, "", "");
        let id = self.place((
            0,
            0,
            vec![Line {
                function_id,
                line: 0,
            }],
        ));
        self.mark_ids.insert(name, id);
        id
    }

    fn location(&mut self, index: LocationIndex) -> u64 {
        if let Some(id) = self.location_ids.get(&index.0) {
            return *id;
        }
        let profile = self.profile;
        let location = profile.location_at(index);
        let lines = profile.lines_at(location).iter().map(|line| {
            let number = line.function.0;
            let function_id = self.function_ids.get(&number).copied().unwrap_or_else(|| {
                let function = profile.function_at(line.function);
                self.function(&function.name, &function.system_name, &function.file)
            });
            self.function_ids.insert(number, function_id);
            Line {
                function_id,
                line: i64::from(line.line),
            }
        });
        let lines = lines.collect();
        let mapping_id = self.mapping_ids.of(location);
        let id = self.place((mapping_id, location.address, lines));
        self.location_ids.insert(index.0, id);
        id
    }
}
