//! Stacks and weights, read out of every format without flame-bpf's own writers and readers.
//!
//! In: the bytes of an output. Out: each stack from root to leaf, with all that was counted for it. A broken file is a
//! panic that says where.

use std::collections::BTreeMap;
use std::io::Read as _;

use bytes::Bytes;
use flate2::read::GzDecoder;
use parquet::file::reader::FileReader as _;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::record::Field;
use serde_json::Value;

use crate::protobuf::Message;
use crate::{Folded, Graph, PageData};

/// Weights by stacks of names, root first.
pub type Stacks = BTreeMap<Vec<String>, u64>;

fn add(stacks: &mut Stacks, stack: Vec<String>, weight: u64) {
    *stacks.entry(stack).or_default() += weight;
}

fn unzipped(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let read = GzDecoder::new(bytes).read_to_end(&mut plain);
    read.expect("a gzip stream");
    plain
}

/// The text in a gzip stream.
pub fn unzipped_text(bytes: &[u8]) -> String {
    String::from_utf8(unzipped(bytes)).expect("UTF-8")
}

/// Folded text; its weights are as they are shown.
pub fn of_folded(bytes: &[u8]) -> Stacks {
    let mut stacks = Stacks::new();
    for stack in Folded::parse(bytes).expect("folded text").stacks {
        add(&mut stacks, stack.frames, stack.weight);
    }
    stacks
}

/// The frames that a graph carries; its weights are as they are shown.
pub fn of_svg(bytes: &[u8]) -> Stacks {
    let text = std::str::from_utf8(bytes).expect("UTF-8");
    let mut stacks = Stacks::new();
    let mut path = Vec::new();
    for frame in Graph::parse(text).expect("a graph").frames {
        path.truncate(frame.depth);
        path.push(frame.name);
        if frame.own > 0 {
            add(&mut stacks, path[1..].to_vec(), frame.own);
        }
    }
    stacks
}

/// The nodes that a page carries.
pub fn of_html(bytes: &[u8]) -> Stacks {
    let data = PageData::read(std::str::from_utf8(bytes).expect("UTF-8"));
    let [columns] = &data.columns[..] else {
        panic!("one profile");
    };
    let names: Vec<String> = texts(&data.header["names"]);
    let mut paths = vec![Vec::new()];
    let mut path: Vec<String> = Vec::new();
    for (up, frame) in columns["node_up"].iter().zip(&columns["node_frame"]) {
        path.truncate(path.len().checked_sub(*up as usize).expect("a parent"));
        path.push(names[columns["frame_name"][*frame as usize] as usize].clone());
        paths.push(path.clone());
    }
    let mut stacks = Stacks::new();
    let mut node = 0;
    for (step, weight) in columns["sample_node"].iter().zip(&columns["sample_weight"]) {
        node += *step as usize;
        add(&mut stacks, paths[node].clone(), *weight);
    }
    stacks
}

/// pprof's profile.proto: the last value of each sample.
pub fn of_pprof(bytes: &[u8]) -> Stacks {
    let bytes = unzipped(bytes);
    let profile = Message::new(&bytes);
    let texts = profile.texts(6);
    let by_id = |messages: Vec<Message<'_>>, of: &dyn Fn(&Message<'_>) -> Vec<String>| {
        let entries = messages
            .iter()
            .map(|message| (message.number(1), of(message)));
        entries.collect::<BTreeMap<u64, Vec<String>>>()
    };
    let functions = by_id(profile.messages(5), &|function| {
        vec![texts[function.number(2) as usize].to_owned()]
    });
    let locations = by_id(profile.messages(4), &|location| {
        let lines = location.messages(4);
        // The innermost function comes first.
        lines
            .iter()
            .rev()
            .flat_map(|line| functions[&line.number(1)].clone())
            .collect()
    });
    let mut stacks = Stacks::new();
    for sample in profile.messages(2) {
        let ids = sample.numbers(1);
        let stack = ids
            .iter()
            .rev()
            .flat_map(|id| locations[id].clone())
            .collect();
        add(
            &mut stacks,
            stack,
            *sample.numbers(2).last().expect("a value"),
        );
    }
    stacks
}

/// OTLP's `ProfilesData`: the profiles of each resource's first type.
pub fn of_otlp(bytes: &[u8]) -> Stacks {
    let mut all = Stacks::new();
    for (stack, weight) in profiles_of_otlp(bytes).into_iter().flat_map(|(_, of)| of) {
        add(&mut all, stack, weight);
    }
    all
}

/// The same, profile by profile, with their IDs.
pub fn profiles_of_otlp(bytes: &[u8]) -> Vec<(Vec<u8>, Stacks)> {
    let data = Message::new(bytes);
    let dictionary = data.message(2);
    let texts = dictionary.texts(5);
    let [functions, locations, all] = [3, 2, 7].map(|table| dictionary.messages(table));
    let named = |location: u64| {
        let lines = locations[location as usize].messages(3);
        let names = lines.iter().rev().map(|line| {
            let function = &functions[line.number(1) as usize];
            texts[function.number(1) as usize].to_owned()
        });
        names.collect::<Vec<_>>()
    };
    let mut known = Vec::new();
    for resource in data.messages(1) {
        for profile in profiles_of_first_type(&resource) {
            let mut stacks = Stacks::new();
            for sample in profile.messages(2) {
                let locations = all[sample.number(1) as usize].numbers(1);
                let stack = locations.into_iter().rev().flat_map(named).collect();
                add(&mut stacks, stack, value(&sample));
            }
            known.push((id(&profile), stacks));
        }
    }
    known
}

/// The sums of the same profiles, by their IDs in hexadecimal digits.
///
/// # Panics
///
/// When two profiles with one ID differ.
pub fn sums_of_otlp<'b>(bodies: impl IntoIterator<Item = &'b [u8]>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for body in bodies {
        // Without a look at what is in a stack: there may be thousands of bodies.
        let resources = Message::new(body).messages(1);
        for profile in resources.iter().flat_map(profiles_of_first_type) {
            let digits = id(&profile).into_iter().map(|byte| format!("{byte:02x}"));
            let sum = profile.messages(2).iter().map(value).sum();
            let before = sums.insert(digits.collect(), sum);
            assert!(
                before.is_none_or(|before| before == sum),
                "one ID, two sums"
            );
        }
    }
    sums
}

/// The profiles of a resource that count what its first one does.
fn profiles_of_first_type<'b>(resource: &Message<'b>) -> Vec<Message<'b>> {
    let mut profiles = resource.messages(2)[0].messages(2);
    let kind = |profile: &Message<'_>| profile.message(1).number(1);
    let first = kind(&profiles[0]);
    profiles.retain(|profile| kind(profile) == first);
    profiles
}

fn id(profile: &Message<'_>) -> Vec<u8> {
    profile.bytes(7).into_iter().next().unwrap_or_default()
}

fn value(sample: &Message<'_>) -> u64 {
    sample.numbers(4).iter().sum()
}

/// Keys and texts of each resource of OTLP.
pub fn resources_of_otlp(bytes: &[u8]) -> Vec<BTreeMap<String, String>> {
    let of_resource = |resource: Message<'_>| {
        let attributes = resource.message(1).messages(1).into_iter();
        let attributes = attributes.map(|attribute| {
            let value = attribute.message(2).texts(1).join(" ");
            (attribute.texts(1).join(" "), value)
        });
        attributes.collect()
    };
    let resources = Message::new(bytes).messages(1).into_iter();
    resources.map(of_resource).collect()
}

/// Keys and texts of OTLP's attributes.
pub fn attributes_of_otlp(bytes: &[u8]) -> Vec<String> {
    let dictionary = Message::new(bytes).message(2);
    let texts = dictionary.texts(5);
    let attributes = dictionary.messages(6).into_iter().map(|attribute| {
        let value = attribute.message(2).texts(1).join(" ");
        format!("{} {value}\n", texts[attribute.number(1) as usize])
    });
    attributes.collect()
}

/// speedscope's first profile.
pub fn of_speedscope(bytes: &[u8]) -> Stacks {
    let file: Value = serde_json::from_slice(bytes).expect("JSON");
    let frames: Vec<&str> = list(&file["shared"]["frames"])
        .map(|frame| frame["name"].as_str().expect("a name"))
        .collect();
    let profile = &file["profiles"][0];
    let mut stacks = Stacks::new();
    for (stack, weight) in list(&profile["samples"]).zip(numbers(&profile["weights"])) {
        let stack = numbers(stack).map(|frame| frames[frame as usize].to_owned());
        add(&mut stacks, stack.collect(), weight);
    }
    stacks
}

/// Firefox Profiler's processed profile: what is in milliseconds is made nanoseconds again.
pub fn of_firefox(bytes: &[u8]) -> Stacks {
    let file: Value = serde_json::from_slice(&unzipped(bytes)).expect("JSON");
    let shared = &file["shared"];
    let texts = texts(&shared["stringArray"]);
    let column = |table: &str, name: &str| numbers(&shared[table][name]).collect::<Vec<_>>();
    let (func, name) = (column("frameTable", "func"), column("funcTable", "name"));
    let frame = column("stackTable", "frame");
    let named = |frame: u64| texts[name[func[frame as usize] as usize] as usize].clone();
    let paths = paths(
        &shared["stackTable"]["prefix"],
        frame.into_iter().map(named),
    );
    let mut stacks = Stacks::new();
    for thread in list(&file["threads"]) {
        let samples = &thread["samples"];
        let is_time = samples["weightType"] == "tracing-ms";
        for (stack, weight) in list(&samples["stack"]).zip(list(&samples["weight"])) {
            let weight = match is_time {
                true => (weight.as_f64().expect("a number") * 1e6).round() as u64,
                false => weight.as_u64().expect("a whole number"),
            };
            add(&mut stacks, path(&paths, stack), weight);
        }
    }
    stacks
}

/// Our own JSON.
pub fn of_json(bytes: &[u8]) -> Stacks {
    let file: Value = serde_json::from_slice(bytes).expect("JSON");
    let texts = texts(&file["names"]);
    let name: Vec<u64> = numbers(&file["frames"]["name"]).collect();
    let named = |frame: u64| texts[name[frame as usize] as usize].clone();
    let nodes = &file["nodes"];
    let paths = paths(&nodes["parent"], numbers(&nodes["frame"]).map(named));
    let samples = &file["samples"];
    let mut stacks = Stacks::new();
    for (node, weight) in list(&samples["node"]).zip(numbers(&samples["weight"])) {
        add(&mut stacks, path(&paths, node), weight);
    }
    stacks
}

/// A table of samples; rows of firings that are none have no value.
pub fn of_parquet(bytes: &[u8]) -> Stacks {
    let mut stacks = Stacks::new();
    for row in rows_of_parquet(bytes) {
        let Field::ListInternal(frames) = &row["stack"] else {
            panic!("stack is {}", row["stack"]);
        };
        let name = |frame: &Field| match frame {
            Field::Group(frame) => match frame.get_column_iter().next() {
                Some((name, Field::Str(function))) if name == "function" => function.clone(),
                other => panic!("it is {other:?}"),
            },
            other => panic!("it is {other:?}"),
        };
        let stack = frames.elements().iter().rev().map(name);
        let Field::Long(value) = row["value"] else {
            panic!("value is {}", row["value"]);
        };
        if value > 0 {
            add(&mut stacks, stack.collect(), value.cast_unsigned());
        }
    }
    stacks
}

/// The rows of a table, by the names of columns.
pub fn rows_of_parquet(bytes: &[u8]) -> Vec<BTreeMap<String, Field>> {
    let bytes = Bytes::copy_from_slice(bytes);
    let file = SerializedFileReader::new(bytes).expect("a footer");
    let rows = file.get_row_iter(None).expect("rows");
    rows.map(|row| row.expect("a row").into_columns().into_iter().collect())
        .collect()
}

/// For each node of a tree the names from its root to it.
fn paths(parents: &Value, names: impl Iterator<Item = String>) -> Vec<Vec<String>> {
    let mut paths: Vec<Vec<String>> = Vec::new();
    for (parent, name) in list(parents).zip(names) {
        let mut path = path(&paths, parent);
        path.push(name);
        paths.push(path);
    }
    paths
}

/// That of a node, which is `null` where there is no stack.
fn path(paths: &[Vec<String>], node: &Value) -> Vec<String> {
    let node = node.as_u64();
    node.map_or_else(Vec::new, |node| paths[node as usize].clone())
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().expect("a list").iter()
}

fn numbers(value: &Value) -> impl Iterator<Item = u64> {
    list(value).map(|number| number.as_u64().expect("a number"))
}

fn texts(value: &Value) -> Vec<String> {
    list(value)
        .map(|text| text.as_str().expect("a text").to_owned())
        .collect()
}
