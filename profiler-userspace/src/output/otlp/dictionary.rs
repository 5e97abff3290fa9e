//! The tables that samples refer to: each text, function, mapping, location, attribute and stack once.
//!
//! In: a profile's locations, as samples come upon them. Out: their indices, in the order of their first use. Element 0
//! of each table stands for nothing, as the format wants it. What nobody asked for is in no table.

use super::super::leaf_first::Places;
use super::attributes::{self, Attributes, Value};
use super::wire;
use crate::profile::normalized::LocationIndex;
use crate::profile::{FunctionIndex, MappingIndex, Profile};
use foldhash::fast::RandomState;
use indexmap::IndexSet;
use std::collections::HashMap;
use std::hash::Hash;

type Table<T> = IndexSet<T, RandomState>;

/// All that tells locations apart: the mapping, the address, lines and attributes.
type Place = (i32, u64, Vec<wire::Line>, Vec<i32>);

/// The dictionary of a file, as far as it was asked for.
pub(super) struct Dictionary<'a> {
    profile: &'a Profile,
    mappings: Table<wire::Mapping>,
    locations: Table<Place>,
    functions: Table<wire::Function>,
    texts: Table<String>,
    /// Their keys are texts.
    attributes: Table<(i32, Value)>,
    stacks: Table<Box<[i32]>>,
    /// Indices by the profile's number.
    known_locations: HashMap<LocationIndex, i32, RandomState>,
    known_functions: HashMap<FunctionIndex, i32, RandomState>,
    known_mappings: HashMap<MappingIndex, i32, RandomState>,
}

impl<'a> Dictionary<'a> {
    /// A dictionary of nothing but zero elements.
    pub(super) fn new(profile: &'a Profile) -> Self {
        fn zero<T: Default + Hash + Eq>() -> Table<T> {
            std::iter::once(T::default()).collect()
        }
        Self {
            profile,
            mappings: zero(),
            locations: zero(),
            functions: zero(),
            texts: zero(),
            attributes: zero(),
            stacks: zero(),
            known_locations: HashMap::default(),
            known_functions: HashMap::default(),
            known_mappings: HashMap::default(),
        }
    }

    /// The index of a text.
    pub(super) fn text(&mut self, text: &str) -> i32 {
        match self.texts.get_index_of(text) {
            Some(known) => number(known),
            None => add(&mut self.texts, text.to_owned()),
        }
    }

    /// The indices of some attributes.
    pub(super) fn attributes(&mut self, attributes: Attributes) -> Vec<i32> {
        let attributes = attributes.into_iter();
        attributes
            .map(|(key, value)| {
                let key = self.text(key);
                add(&mut self.attributes, (key, value))
            })
            .collect()
    }

    /// The index of a stack, which begins at the leaf.
    pub(super) fn stack(&mut self, locations: Vec<i32>) -> i32 {
        add(&mut self.stacks, locations.into())
    }

    fn mapping(&mut self, index: MappingIndex) -> i32 {
        if let Some(known) = self.known_mappings.get(&index) {
            return *known;
        }
        let profile = self.profile;
        let mapping = &profile.mappings()[index.0 as usize];
        let path = mapping.path.to_string_lossy();
        let name = match path.is_empty() {
            true => &*mapping.module,
            false => &path,
        };
        let written = wire::Mapping {
            memory_start: mapping.range.start,
            // Where the range is not known, addresses are places in the file.
            memory_limit: match mapping.range.is_empty() {
                true => u64::MAX,
                false => mapping.range.end,
            },
            file_offset: mapping.offset,
            filename_strindex: self.text(name),
            attribute_indices: self.attributes(attributes::build_id(&mapping.build_id)),
        };
        let number = add(&mut self.mappings, written);
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
            name_strindex: self.text(&function.name),
            system_name_strindex: self.text(&function.system_name),
            filename_strindex: self.text(&function.file),
            start_line: 0,
        };
        let number = add(&mut self.functions, written);
        self.known_functions.insert(index, number);
        number
    }

    /// The whole dictionary.
    pub(super) fn into_message(self) -> wire::ProfilesDictionary {
        let location = |(mapping_index, address, lines, attribute_indices)| wire::Location {
            mapping_index,
            address,
            lines,
            attribute_indices,
        };
        let stack = |locations: Box<[i32]>| wire::Stack {
            location_indices: locations.into(),
        };
        let attribute = |(key_strindex, value): (_, Value)| wire::KeyValueAndUnit {
            key_strindex,
            value: value.into(),
            unit_strindex: 0,
        };
        wire::ProfilesDictionary {
            mapping_table: self.mappings.into_iter().collect(),
            location_table: self.locations.into_iter().map(location).collect(),
            function_table: self.functions.into_iter().collect(),
            link_table: vec![wire::Link::default()],
            string_table: self.texts.into_iter().collect(),
            attribute_table: self.attributes.into_iter().map(attribute).collect(),
            stack_table: self.stacks.into_iter().map(stack).collect(),
        }
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
        let place = (mapping, location.address, lines, attributes);
        let number = add(&mut self.locations, place);
        self.known_locations.insert(index, number);
        number
    }

    fn mark(&mut self, name: &'static str) -> i32 {
        let function = wire::Function {
            name_strindex: self.text(name),
            ..wire::Function::default()
        };
        let line = wire::Line {
            function_index: add(&mut self.functions, function),
            ..wire::Line::default()
        };
        add(&mut self.locations, (0, 0, vec![line], Vec::new()))
    }
}

/// The index of a value in its table, to which it is added when it is not there yet.
fn add<T: Hash + Eq>(table: &mut Table<T>, value: T) -> i32 {
    number(table.insert_full(value).0)
}

fn number(place: usize) -> i32 {
    i32::try_from(place).expect("a profile has fewer than 2^31 distinct parts")
}
