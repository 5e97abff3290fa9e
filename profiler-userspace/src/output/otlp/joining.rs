//! Several requests as one, whose dictionary they share: it is most of what each of them takes.
//!
//! In: encoded requests, as [`write_request`](super::write_request) makes them; some may have waited in a folder, where anybody may have
//! changed them. Out: one request with all of their profiles, those of one resource together, in the order of the requests.

use super::attributes::Value;
use super::tables::Tables;
use super::wire;
use foldhash::fast::RandomState;
use indexmap::IndexMap;
use indexmap::map::Entry;
use prost::Message as _;

/// One request for several; none if one of them is not as we make them.
pub(in super::super) fn joined(requests: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut tables = Tables::new();
    let mut resources: IndexMap<Vec<u8>, wire::ResourceProfiles, RandomState> = IndexMap::default();
    for request in requests {
        let request = wire::ProfilesData::decode(request.as_slice()).ok()?;
        let numbers = Numbers::new(request.dictionary?, &mut tables)?;
        for mut resource in request.resource_profiles {
            let mut all = resource.scope_profiles.iter_mut();
            all.try_for_each(|scope| {
                scope
                    .profiles
                    .iter_mut()
                    .try_for_each(|profile| numbers.renumber(profile))
            })?;
            match resources.entry(resource.resource.as_ref()?.encode_to_vec()) {
                Entry::Vacant(place) => {
                    place.insert(resource);
                }
                Entry::Occupied(known) => add(known.into_mut(), resource),
            }
        }
    }
    let message = wire::ProfilesData {
        resource_profiles: resources.into_values().collect(),
        dictionary: Some(tables.into_message()),
    };
    Some(message.encode_to_vec())
}

/// Adds the profiles of a resource to those of the same one before.
fn add(known: &mut wire::ResourceProfiles, resource: wire::ResourceProfiles) {
    for scope in resource.scope_profiles {
        let mut all = known.scope_profiles.iter_mut();
        match all.find(|known| known.scope == scope.scope) {
            Some(known) => known.profiles.extend(scope.profiles),
            None => known.scope_profiles.push(scope),
        }
    }
}

/// Indices of one request's entries in the tables of all.
struct Numbers {
    texts: Vec<i32>,
    attributes: Vec<i32>,
    stacks: Vec<i32>,
}

impl Numbers {
    /// Puts a dictionary's entries into the tables of all.
    fn new(dictionary: wire::ProfilesDictionary, tables: &mut Tables) -> Option<Self> {
        let texts = dictionary.string_table.iter();
        let texts: Vec<i32> = texts.map(|text| tables.text(text)).collect();
        let attributes = dictionary.attribute_table.into_iter().map(|attribute| {
            let key = at(&texts, attribute.key_strindex)?;
            Some(tables.attribute(key, Value::of_message(attribute.value)?))
        });
        let attributes: Vec<i32> = attributes.collect::<Option<_>>()?;
        let functions = dictionary.function_table.into_iter().map(|mut function| {
            let named = [
                &mut function.name_strindex,
                &mut function.system_name_strindex,
                &mut function.filename_strindex,
            ];
            named
                .into_iter()
                .try_for_each(|text| renumber(&texts, text))?;
            Some(tables.function(function))
        });
        let functions: Vec<i32> = functions.collect::<Option<_>>()?;
        let mappings = dictionary.mapping_table.into_iter().map(|mut mapping| {
            renumber(&texts, &mut mapping.filename_strindex)?;
            renumber_all(&attributes, &mut mapping.attribute_indices)?;
            Some(tables.mapping(mapping))
        });
        let mappings: Vec<i32> = mappings.collect::<Option<_>>()?;
        let locations = dictionary.location_table.into_iter().map(|mut location| {
            renumber(&mappings, &mut location.mapping_index)?;
            renumber_all(&attributes, &mut location.attribute_indices)?;
            let mut lines = location.lines.iter_mut();
            lines.try_for_each(|line| renumber(&functions, &mut line.function_index))?;
            Some(tables.location(location))
        });
        let locations: Vec<i32> = locations.collect::<Option<_>>()?;
        let stacks = dictionary.stack_table.into_iter().map(|mut stack| {
            renumber_all(&locations, &mut stack.location_indices)?;
            Some(tables.stack(stack.location_indices))
        });
        let stacks = stacks.collect::<Option<_>>()?;
        Some(Self {
            texts,
            attributes,
            stacks,
        })
    }

    /// Has a profile refer to the tables of all.
    fn renumber(&self, profile: &mut wire::Profile) -> Option<()> {
        for kind in [&mut profile.sample_type, &mut profile.period_type] {
            let Some(kind) = kind else { continue };
            renumber(&self.texts, &mut kind.type_strindex)?;
            renumber(&self.texts, &mut kind.unit_strindex)?;
        }
        renumber_all(&self.attributes, &mut profile.attribute_indices)?;
        profile.samples.iter_mut().try_for_each(|sample| {
            renumber(&self.stacks, &mut sample.stack_index)?;
            renumber_all(&self.attributes, &mut sample.attribute_indices)
        })
    }
}

fn renumber_all(numbers: &[i32], indices: &mut [i32]) -> Option<()> {
    let mut indices = indices.iter_mut();
    indices.try_for_each(|index| renumber(numbers, index))
}

fn renumber(numbers: &[i32], index: &mut i32) -> Option<()> {
    *index = at(numbers, *index)?;
    Some(())
}

fn at(numbers: &[i32], index: i32) -> Option<i32> {
    numbers.get(usize::try_from(index).ok()?).copied()
}
