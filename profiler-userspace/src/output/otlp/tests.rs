use super::super::sender::Sender;
use super::*;
use crate::profile::{
    Activity, Frame, FrameKind, FrameProfile, Function, Labels, Mapping, Origin, Sample, Unit,
    Window, WindowIndex, WindowTotals, fold,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use profiler_common::abi::StackEnd;
use std::collections::HashSet;
use std::time::SystemTime;
use wire::ProfilesDictionary;

fn written(profile: &Profile) -> wire::ProfilesData {
    let style = Style {
        notes: "recorded: 3\nlost: nothing\n".to_owned(),
        ..Style::default()
    };
    let (mut bytes, mut again) = (Vec::new(), Vec::new());
    write(profile, &style, &mut bytes).unwrap();
    write(profile, &style, &mut again).unwrap();
    assert_eq!(bytes, again);
    wire::ProfilesData::decode(&*bytes).unwrap()
}

fn profiles(data: &wire::ProfilesData) -> Vec<&wire::Profile> {
    let scopes = data.resource_profiles.iter();
    let scopes = scopes.flat_map(|resource| &resource.scope_profiles);
    scopes.flat_map(|scope| &scope.profiles).collect()
}

fn assert_is_whole(data: &wire::ProfilesData) {
    assert_dictionary_is_whole(data);
    for resource in &data.resource_profiles {
        let profiles = &resource.scope_profiles[0].profiles;
        let types: HashSet<_> = profiles.iter().map(|profile| profile.sample_type).collect();
        assert_eq!(types.len(), profiles.len());
    }
}

/// Every element that is referred to, table by table: what refers to one that is not there panics.
fn assert_dictionary_is_whole(data: &wire::ProfilesData) {
    let dictionary = data.dictionary.as_ref().unwrap();
    let ProfilesDictionary {
        mapping_table: mappings,
        location_table: locations,
        function_table: functions,
        link_table: links,
        string_table: texts,
        attribute_table: attributes,
        stack_table: stacks,
    } = dictionary;
    assert_eq!(mappings[0], wire::Mapping::default());
    assert_eq!(locations[0], wire::Location::default());
    assert_eq!(functions[0], wire::Function::default());
    assert_eq!(*links, [wire::Link::default()]);
    assert_eq!(texts[0], "");
    assert_eq!(attributes[0], wire::KeyValueAndUnit::default());
    assert_eq!(stacks[0], wire::Stack::default());

    let mut used: [HashSet<usize>; 6] = std::array::from_fn(|_| HashSet::from([0]));
    let [strings, keyed, placed, called, mapped, stacked] = &mut used;
    let see = |set: &mut HashSet<usize>, index: i32| set.insert(usize::try_from(index).unwrap());
    let see_all = |set: &mut HashSet<usize>, indices: &[i32]| {
        set.extend(indices.iter().map(|index| usize::try_from(*index).unwrap()));
    };
    for profile in profiles(data) {
        for of in [profile.sample_type, profile.period_type].iter().flatten() {
            see(strings, of.type_strindex);
            see(strings, of.unit_strindex);
        }
        see_all(keyed, &profile.attribute_indices);
        for sample in &profile.samples {
            see(stacked, sample.stack_index);
            see_all(keyed, &sample.attribute_indices);
        }
    }
    for stack in &*stacked {
        see_all(placed, &stacks[*stack].location_indices);
    }
    for location in placed.iter().map(|index| &locations[*index]) {
        see(mapped, location.mapping_index);
        see_all(keyed, &location.attribute_indices);
        location.lines.iter().for_each(|line| {
            see(called, line.function_index);
        });
    }
    for mapping in mapped.iter().map(|index| &mappings[*index]) {
        see(strings, mapping.filename_strindex);
        see_all(keyed, &mapping.attribute_indices);
    }
    for function in called.iter().map(|index| &functions[*index]) {
        see(strings, function.name_strindex);
        see(strings, function.system_name_strindex);
        see(strings, function.filename_strindex);
    }
    for attribute in keyed.iter().map(|index| &attributes[*index]) {
        see(strings, attribute.key_strindex);
        see(strings, attribute.unit_strindex);
    }
    let lengths = [
        texts.len(),
        attributes.len(),
        locations.len(),
        functions.len(),
        mappings.len(),
        stacks.len(),
    ];
    assert_eq!(
        used.map(|set| set.len()),
        lengths,
        "nothing is there for nobody"
    );

    fn assert_distinct<T: PartialEq + std::fmt::Debug>(table: &[T]) {
        for (place, one) in table.iter().enumerate() {
            assert!(!table[..place].contains(one), "{one:?} is there twice");
        }
    }
    assert_distinct(mappings);
    assert_distinct(locations);
    assert_distinct(functions);
    assert_distinct(texts);
    assert_distinct(attributes);
    assert_distinct(stacks);
    for profile in profiles(data) {
        let mut keys = HashSet::new();
        for sample in &profile.samples {
            let key = (
                sample.stack_index,
                &sample.attribute_indices,
                sample.link_index,
            );
            assert!(keys.insert(key), "{sample:?} is there twice");
        }
    }
}

fn text(data: &wire::ProfilesData, index: i32) -> &str {
    &data.dictionary.as_ref().unwrap().string_table[index as usize]
}

/// Key and value of each of these attributes.
fn said<'a>(data: &'a wire::ProfilesData, indices: &[i32]) -> Vec<(&'a str, &'a Value)> {
    let table = &data.dictionary.as_ref().unwrap().attribute_table;
    let attributes = indices.iter().map(|index| &table[*index as usize]);
    attributes
        .map(|of| {
            let value = of.value.as_ref().and_then(|value| value.value.as_ref());
            (text(data, of.key_strindex), value.unwrap())
        })
        .collect()
}

#[test]
fn each_type_of_value_is_a_profile_and_inlined_functions_are_lines() {
    let unit = Unit::Events("cache-misses".to_owned());
    let mut frames = FrameProfile::new(Profile::new(unit, Window::default()));
    let stack = [
        Frame::new("app", FrameKind::Process),
        Frame::new("[tid 7]", FrameKind::Label),
        Frame::new("<Vec<T> as Drop>::drop", FrameKind::User),
        Frame::new("core", FrameKind::Inlined),
        Frame::new("vfs_read", FrameKind::Kernel),
    ];
    frames.push(&stack, 3_000, 3);
    frames.push(&stack, 500, 2);
    frames.push(&stack[..3], 1_000, 1);
    let data = written(&frames.into_profile());
    assert_is_whole(&data);
    let profiles = profiles(&data);
    let values: Vec<_> = profiles
        .iter()
        .map(|profile| {
            let values = profile.samples.iter().map(|sample| &*sample.values);
            let of = profile.sample_type.unwrap();
            (text(&data, of.type_strindex), values.collect::<Vec<_>>())
        })
        .collect();
    assert_eq!(
        values,
        [
            ("cache_misses", vec![&[3_500][..], &[1_000]]),
            ("samples", vec![&[5][..], &[1]])
        ]
    );
    let dictionary = data.dictionary.as_ref().unwrap();
    let sample = &profiles[0].samples[0];
    let locations = &dictionary.stack_table[sample.stack_index as usize].location_indices;
    let shown: Vec<_> = locations
        .iter()
        .map(|index| {
            let location = &dictionary.location_table[*index as usize];
            let function =
                |line: &wire::Line| dictionary.function_table[line.function_index as usize];
            let names = location
                .lines
                .iter()
                .map(|line| text(&data, function(line).name_strindex));
            let kind = said(&data, &location.attribute_indices)[0].1.clone();
            (names.collect::<Vec<_>>(), kind)
        })
        .collect();
    let kind = |kind: &str| Value::StringValue(kind.to_owned());
    assert_eq!(
        shown,
        [
            (vec!["vfs_read"], kind("kernel")),
            (vec!["core", "<Vec<T> as Drop>::drop"], kind("native"))
        ]
    );
    assert_eq!(
        said(&data, &sample.attribute_indices),
        [
            ("thread.name", &kind("app")),
            ("thread.id", &Value::IntValue(7))
        ]
    );
    let comment = said(&data, &profiles[0].attribute_indices);
    assert_eq!(comment[0].0, "pprof.profile.comment");
    assert!(format!("{comment:?}").contains("lost: nothing"));
}

#[test]
fn processes_are_resources_and_windows_are_values_with_times() {
    let text = b"a;main 3\nb;main 4\n";
    let mut profile = fold::parse(text, Unit::Nanoseconds).unwrap();
    let second = Duration::from_secs(1);
    profile.window.end = 2 * second;
    profile.origin = Origin {
        started: Some(SystemTime::UNIX_EPOCH + 100 * second),
        period_ns: None,
        activity: Activity::Waiting,
        ..Origin::default()
    };
    profile.windows = (0..2)
        .map(|number| WindowTotals::nth(second, number))
        .collect();
    let mut samples = profile.samples().to_vec();
    profile.clear();
    for (pid, sample) in [(1, 0), (2, 1)] {
        let comm = profile.labels_at(samples[sample].labels).comm.clone();
        samples[sample].labels = profile.labels(Labels {
            comm,
            pid: Some(pid),
            ..Labels::default()
        });
    }
    samples.push(Sample {
        window: WindowIndex(1),
        weight: 2_000,
        ..samples[0]
    });
    samples.into_iter().for_each(|sample| profile.push(sample));
    let data = written(&profile);
    assert_is_whole(&data);
    let processes: Vec<_> = data
        .resource_profiles
        .iter()
        .map(|resource| {
            let attribute = &resource.resource.as_ref().unwrap().attributes[0];
            let pid = attribute
                .value
                .as_ref()
                .and_then(|value| value.value.clone());
            (attribute.key.as_str(), pid.unwrap())
        })
        .collect();
    assert_eq!(
        processes,
        [1, 2].map(|pid| ("process.pid", Value::IntValue(pid)))
    );
    let sample = &profiles(&data)[0].samples[0];
    assert_eq!(sample.values, [3_000, 2_000]);
    let time = |seconds: u64| seconds * 1_000_000_000;
    assert_eq!(sample.timestamps_unix_nano, [time(100), time(101)]);
    assert!(
        profiles(&data)
            .iter()
            .all(|profile| profile.time_unix_nano == time(100) && profile.duration_nano == time(2))
    );
}

#[test]
fn mappings_have_their_build_ids_once() {
    let mut profile = Profile::new(Unit::Samples, Window::default());
    let mapping = Some(profile.mapping(Mapping {
        path: "/usr/bin/a".into(),
        build_id: [0xab, 0xcd].into(),
        ..Mapping::default()
    }));
    for (address, line) in [(16, 1), (16, 1), (32, 2)] {
        let function = Function::named("main");
        profile.push_line(mapping, address, (function, line), StackEnd::Truncated);
    }
    let data = written(&profile);
    assert_is_whole(&data);
    let dictionary = data.dictionary.as_ref().unwrap();
    let mapping = &dictionary.mapping_table[1];
    assert_eq!(text(&data, mapping.filename_strindex), "/usr/bin/a");
    let id = Value::StringValue("abcd".to_owned());
    assert_eq!(
        said(&data, &mapping.attribute_indices),
        [("process.executable.build_id.gnu", &id)]
    );
    // The zero element, two places, and the mark of stacks that go on.
    assert_eq!(dictionary.location_table.len(), 4);
    assert_eq!(profiles(&data)[0].samples[0].values, [2]);
}

/// A request with a window that began so many seconds after 1970.
fn window(text: &str, began: u64) -> Vec<u8> {
    let mut profile = fold::parse(text.as_bytes(), Unit::Samples).unwrap();
    profile.origin = Origin {
        started: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(began)),
        period_ns: Some(52_631_578),
        ..Origin::default()
    };
    let sender = Sender {
        host: "web-1".to_owned(),
        firings: [began, 2, 0],
        ..Sender::default()
    };
    let mut bytes = Vec::new();
    write_request(&profile, &sender, &mut bytes).unwrap();
    bytes
}

/// All that samples say, without the dictionary's numbers; resources and profiles in any order.
fn spelled(data: &wire::ProfilesData) -> Vec<String> {
    let dictionary = data.dictionary.as_ref().unwrap();
    let function = |line: &wire::Line| dictionary.function_table[line.function_index as usize];
    let place = |index: &i32| {
        let location = &dictionary.location_table[*index as usize];
        let named = |line| text(data, function(line).name_strindex);
        let names: Vec<_> = location.lines.iter().map(named).collect();
        format!("{names:?}{:?}", said(data, &location.attribute_indices))
    };
    let kind = |of: Option<wire::ValueType>| {
        let of = of.unwrap();
        [of.type_strindex, of.unit_strindex].map(|index| text(data, index).to_owned())
    };
    let mut all = Vec::new();
    for resource in &data.resource_profiles {
        for profile in &resource.scope_profiles[0].profiles {
            for sample in &profile.samples {
                let stack = &dictionary.stack_table[sample.stack_index as usize];
                let stack: Vec<_> = stack.location_indices.iter().map(place).collect();
                all.push(format!(
                    "{:?} {:?} {:?} {:?} {:?} {stack:?} {:?} {:?}",
                    resource.resource,
                    [kind(profile.sample_type), kind(profile.period_type)],
                    (profile.time_unix_nano, &profile.profile_id),
                    said(data, &profile.attribute_indices),
                    profile.period,
                    said(data, &sample.attribute_indices),
                    sample.values,
                ));
            }
        }
    }
    all.sort_unstable();
    all
}

const FIRST: &str = "nginx;main;work;read_[k] 3\nnginx;main;accept 4\nredis;main;loop 5\n";
const SECOND: &str = "redis;main;loop 6\npostgres;main;work 2\nnginx;main;work;read_[k] 1\n";

#[test]
fn several_requests_are_one_with_one_dictionary() {
    let requests = [window(FIRST, 100), window(SECOND, 110), window(FIRST, 120)];
    let bytes = joined(&requests).unwrap();
    let data = wire::ProfilesData::decode(&*bytes).unwrap();
    assert_dictionary_is_whole(&data);
    let mut apart: Vec<_> = requests
        .iter()
        .flat_map(|bytes| spelled(&wire::ProfilesData::decode(&**bytes).unwrap()))
        .collect();
    apart.sort_unstable();
    assert_eq!(spelled(&data), apart);
    assert_eq!(data.resource_profiles.len(), 3, "one for each process");
    let all: usize = requests.iter().map(Vec::len).sum();
    assert!(bytes.len() * 3 < all * 2, "{} of {all}", bytes.len());
    // One is the same as itself, and what was joined can be joined again.
    let one = joined(&requests[..1]).unwrap();
    assert_eq!(
        spelled(&wire::ProfilesData::decode(&*one).unwrap()),
        spelled(&wire::ProfilesData::decode(&*requests[0]).unwrap())
    );
    assert_eq!(joined(std::slice::from_ref(&bytes)).unwrap(), bytes);
}

#[test]
fn requests_that_were_changed_are_not_joined_and_harm_nobody() {
    let (good, mut bad) = (window(FIRST, 100), window(SECOND, 110));
    for place in 0..bad.len() {
        for change in [0x01, 0x80, 0xff] {
            bad[place] ^= change;
            if let Some(bytes) = joined(&[good.clone(), bad.clone()]) {
                let data = wire::ProfilesData::decode(&*bytes).unwrap();
                let stacks = data.dictionary.as_ref().unwrap().stack_table.len();
                let mut samples = profiles(&data).into_iter().flat_map(|of| &of.samples);
                assert!(samples.all(|sample| (sample.stack_index as usize) < stacks));
            }
            bad[place] ^= change;
        }
        assert!(joined(&[good.clone(), bad[..place].to_vec()]).is_none());
    }
}
