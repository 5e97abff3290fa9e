//! The tables that samples refer to: each text, function, mapping, location, attribute and stack once.
//!
//! In: entries, whose references are indices of these same tables. Out: their indices, in the order of their first use. Element 0
//! of each table stands for nothing, as the format wants it.

use super::attributes::Value;
use super::wire;
use foldhash::fast::RandomState;
use indexmap::IndexSet;
use std::hash::Hash;

type Table<T> = IndexSet<T, RandomState>;

/// All that tells locations apart: the mapping, the address, lines and attributes.
type LocationKey = (i32, u64, Vec<wire::Line>, Vec<i32>);

/// The tables of one dictionary.
pub(super) struct Tables {
    mappings: Table<wire::Mapping>,
    locations: Table<LocationKey>,
    functions: Table<wire::Function>,
    texts: Table<String>,
    /// Their keys are texts.
    attributes: Table<(i32, Value)>,
    stacks: Table<Box<[i32]>>,
}

impl Tables {
    /// Tables of nothing but zero elements.
    pub(super) fn new() -> Self {
        fn zero<T: Default + Hash + Eq>() -> Table<T> {
            std::iter::once(T::default()).collect()
        }
        Self {
            mappings: zero(),
            locations: zero(),
            functions: zero(),
            texts: zero(),
            attributes: zero(),
            stacks: zero(),
        }
    }

    /// The index of a text.
    pub(super) fn text(&mut self, text: &str) -> i32 {
        match self.texts.get_index_of(text) {
            Some(known) => number(known),
            None => add(&mut self.texts, text.to_owned()),
        }
    }

    /// The index of an attribute.
    pub(super) fn attribute(&mut self, key: i32, value: Value) -> i32 {
        add(&mut self.attributes, (key, value))
    }

    /// The index of a mapping.
    pub(super) fn mapping(&mut self, mapping: wire::Mapping) -> i32 {
        add(&mut self.mappings, mapping)
    }

    /// The index of a function.
    pub(super) fn function(&mut self, function: wire::Function) -> i32 {
        add(&mut self.functions, function)
    }

    /// The index of a location.
    pub(super) fn location(&mut self, location: wire::Location) -> i32 {
        let wire::Location {
            mapping_index,
            address,
            lines,
            attribute_indices,
        } = location;
        let place = (mapping_index, address, lines, attribute_indices);
        add(&mut self.locations, place)
    }

    /// The index of a stack, which begins at the leaf.
    pub(super) fn stack(&mut self, locations: Vec<i32>) -> i32 {
        add(&mut self.stacks, locations.into())
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

/// The index of a value in its table, to which it is added when it is not there yet.
fn add<T: Hash + Eq>(table: &mut Table<T>, value: T) -> i32 {
    number(table.insert_full(value).0)
}

fn number(place: usize) -> i32 {
    i32::try_from(place).expect("a profile has fewer than 2^31 distinct parts")
}
