//! A profile's own numbers in the tables that samples refer to.
//!
//! In: a profile's locations, as samples come upon them. Out: their indices. What nobody asked for is in no table.

use super::super::leaf_first::Places;
use super::attributes::{self, Attributes};
use super::tables::Tables;
use super::wire;
use crate::profile::normalized::LocationIndex;
use crate::profile::{FunctionIndex, MappingIndex, Profile};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// The dictionary of a file, as far as it was asked for.
pub(super) struct Dictionary<'a> {
    profile: &'a Profile,
    pub(super) tables: Tables,
    /// Indices by the profile's number.
    known_locations: HashMap<LocationIndex, i32, RandomState>,
    known_functions: HashMap<FunctionIndex, i32, RandomState>,
    known_mappings: HashMap<MappingIndex, i32, RandomState>,
}

impl<'a> Dictionary<'a> {
    /// A dictionary of nothing but zero elements.
    pub(super) fn new(profile: &'a Profile) -> Self {
        Self {
            profile,
            tables: Tables::new(),
            known_locations: HashMap::default(),
            known_functions: HashMap::default(),
            known_mappings: HashMap::default(),
        }
    }

    /// The indices of some attributes.
    pub(super) fn attributes(&mut self, attributes: Attributes) -> Vec<i32> {
        let attributes = attributes.into_iter();
        attributes
            .map(|(key, value)| {
                let key = self.tables.text(key);
                self.tables.attribute(key, value)
            })
            .collect()
    }

    fn mapping(&mut self, index: MappingIndex) -> i32 {
        if let Some(known) = self.known_mappings.get(&index) {
            return *known;
        }
        let profile = self.profile;
        let mapping = &profile.mappings()[index.0 as usize];
        let written = wire::Mapping {
            memory_start: mapping.range.start,
            // Where the range is not known, addresses are places in the file.
            memory_limit: mapping.end(),
            file_offset: mapping.offset,
            filename_strindex: self.tables.text(&mapping.shown_path()),
            attribute_indices: self.attributes(attributes::build_id(mapping)),
        };
        let number = self.tables.mapping(written);
        self.known_mappings.insert(index, number);
        number
    }

    fn function(&mut self, index: FunctionIndex) -> i32 {
        if let Some(known) = self.known_functions.get(&index) {
            return *known;
        }
        let profile = self.profile;
        let function = profile.function_at(index);
        let written = wire::Function {
            name_strindex: self.tables.text(&function.name),
            system_name_strindex: self.tables.text(&function.system_name),
            filename_strindex: self.tables.text(&function.file),
            start_line: 0,
        };
        let number = self.tables.function(written);
        self.known_functions.insert(index, number);
        number
    }
}

impl Places for Dictionary<'_> {
    type Id = i32;

    fn location(&mut self, index: LocationIndex) -> i32 {
        if let Some(known) = self.known_locations.get(&index) {
            return *known;
        }
        let profile = self.profile;
        let location = profile.location_at(index);
        let lines = profile.lines_at(location).iter().map(|line| wire::Line {
            function_index: self.function(line.function),
            line: i64::from(line.line),
            column: 0,
        });
        let lines = lines.collect();
        let mapping = location.mapping.map_or(0, |index| self.mapping(index));
        let attributes = self.attributes(attributes::frame_type(location.kind));
        let number = self.tables.location(wire::Location {
            mapping_index: mapping,
            address: location.address,
            lines,
            attribute_indices: attributes,
        });
        self.known_locations.insert(index, number);
        number
    }

    fn mark(&mut self, name: &'static str) -> i32 {
        let function = wire::Function {
            name_strindex: self.tables.text(name),
            ..wire::Function::default()
        };
        let line = wire::Line {
            function_index: self.tables.function(function),
            ..wire::Line::default()
        };
        self.tables.location(wire::Location {
            lines: vec![line],
            ..wire::Location::default()
        })
    }
}
