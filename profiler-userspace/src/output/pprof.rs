//! pprof: profiles for `go tool pprof`, and for all that reads its format.
//!
//! In: a profile and its style. Out: a gzipped `profile.proto`, the same bytes for the same profile. IDs are dense and
//! begin at 1, the number of firings comes first and the weight last, the balance is in the comments.
//! Never: a name that a reader would demangle once more, or a mapping that it would look for on its own machine.
//!
//! The field numbers are those of <https://github.com/google/pprof/blob/main/proto/profile.proto>.

use super::{Error, Style};
use crate::profile::normalized::{LocationIndex, NormalizedStackIndex};
use crate::profile::off_cpu::{self, Wakers};
use crate::profile::{self, Activity, Labels, LabelsIndex, MappingIndex, Unit, wall};
use flate2::{Compression, GzBuilder};
use indexmap::IndexSet;
use profiler_common::abi::ThreadState;
use prost::Message;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::time::{Duration, SystemTime};

#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    period: i64,
    #[prost(int64, repeated, tag = "13")]
    comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    text: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Mapping {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    memory_start: u64,
    #[prost(uint64, tag = "3")]
    memory_limit: u64,
    #[prost(uint64, tag = "4")]
    file_offset: u64,
    #[prost(int64, tag = "5")]
    filename: i64,
    #[prost(int64, tag = "6")]
    build_id: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
    #[prost(bool, tag = "8")]
    has_filenames: bool,
    #[prost(bool, tag = "9")]
    has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    has_inline_frames: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(uint64, tag = "3")]
    address: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

/// Writes the profile. Fails on one without samples, of which there is nothing to tell.
pub(super) fn write(
    profile: &profile::Profile,
    style: &Style,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if profile.samples().is_empty() {
        return Err(Error::Empty);
    }
    let message = Building::new(profile).build(style).encode_to_vec();
    // Neither a time nor a file's name, so that equal profiles are equal files.
    let mut gzip = GzBuilder::new().write(out, Compression::default());
    gzip.write_all(&message)?;
    gzip.finish()?;
    Ok(())
}

/// Texts by number. The first is empty.
struct Strings(IndexSet<String>);

impl Strings {
    fn number(&mut self, text: &str) -> i64 {
        let known = self.0.get_index_of(text);
        signed(known.unwrap_or_else(|| self.0.insert_full(text.to_owned()).0) as u64)
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// All that tells written locations apart: the mapping's ID, the address, and lines.
type Place = (u64, u64, Vec<Line>);

struct Building<'a> {
    profile: &'a profile::Profile,
    strings: Strings,
    written: Profile,
    /// For each of the profile's mappings its ID.
    mappings: Vec<u64>,
    /// IDs by the profile's number.
    functions: HashMap<u32, u64>,
    /// IDs by name.
    marks: HashMap<&'static str, u64>,
    /// IDs by the profile's number.
    locations: HashMap<u32, u64>,
    places: HashMap<Place, u64>,
}

impl<'a> Building<'a> {
    fn new(profile: &'a profile::Profile) -> Self {
        Self {
            profile,
            strings: Strings(std::iter::once(String::new()).collect()),
            written: Profile::default(),
            mappings: vec![0; profile.mappings().len()],
            functions: HashMap::new(),
            marks: HashMap::new(),
            locations: HashMap::new(),
            places: HashMap::new(),
        }
    }

    fn build(mut self, style: &Style) -> Profile {
        self.write_types();
        self.write_mappings();
        let has_weights = self.written.sample_type.len() > 1;
        for sample in self.profile.samples() {
            let mut value = vec![signed(sample.count)];
            value.extend(has_weights.then_some(signed(sample.weight)));
            let sample = Sample {
                location_id: self.stack(sample),
                value,
                label: self.labels(sample),
            };
            self.written.sample.push(sample);
        }
        let since_1970 = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).ok();
        let started = self.profile.origin.started.and_then(since_1970);
        self.written.time_nanos = started.map_or(0, nanoseconds);
        let window = self.profile.window;
        self.written.duration_nanos = nanoseconds(window.end.saturating_sub(window.start));
        let comments = std::iter::once(style.title.as_str()).chain(style.notes.lines());
        for comment in comments.filter(|comment| !comment.is_empty()) {
            let comment = self.strings.number(comment);
            self.written.comment.push(comment);
        }
        self.written.string_table = self.strings.0.into_iter().collect();
        self.written
    }

    /// What is counted: firings first, and last what they weigh, if that is something else.
    fn write_types(&mut self) {
        let time = match self.profile.origin.activity {
            Activity::Running => "time",
            Activity::Waiting => "off_cpu",
            Activity::Both => "wall",
        };
        let weight = match &self.profile.unit {
            Unit::Samples => None,
            Unit::Nanoseconds => Some((time.to_owned(), "nanoseconds")),
            Unit::Events(name) if name == "bytes" => Some(("space".to_owned(), "bytes")),
            // Some readers refuse a name with a dash.
            Unit::Events(name) => Some((name.replace('-', "_"), "count")),
        };
        let samples = self.value_type("samples", "count");
        self.written.sample_type.push(samples);
        self.written.default_sample_type = samples.kind;
        if let Some((kind, unit)) = weight {
            let weight = self.value_type(&kind, unit);
            self.written.sample_type.push(weight);
            self.written.default_sample_type = weight.kind;
        }
        if let Some(period) = self.profile.origin.period_ns {
            self.written.period_type = Some(self.value_type("cpu", "nanoseconds"));
            self.written.period = signed(period);
        }
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> ValueType {
        ValueType {
            kind: self.strings.number(kind),
            unit: self.strings.number(unit),
        }
    }

    fn write_mappings(&mut self) {
        let profile = self.profile;
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
        for (id, index) in (1..).zip(by_weight(profile)) {
            self.mappings[index] = id;
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
            self.written.mapping.push(Mapping {
                id,
                memory_start: mapping.range.start,
                // Where the range is not known, addresses are places in the file.
                memory_limit: match mapping.range.is_empty() {
                    true => u64::MAX,
                    false => mapping.range.end,
                },
                file_offset: mapping.offset,
                filename: self.strings.number(name),
                build_id: self.strings.number(&build_id),
                // Each location has a name or a placeholder for one. Without this, readers look for the file where
                // they are.
                has_functions: true,
                has_filenames: has_lines,
                has_line_numbers: has_lines,
                has_inline_frames: inlined.contains(&key),
            });
        }
    }

    /// The locations of a sample from the leaf on, in the order of folded text.
    fn stack(&mut self, sample: &profile::Sample) -> Vec<u64> {
        let view = self.profile.off_cpu;
        let mut ids = Vec::new();
        match view.map(|view| view.wakers) {
            Some(Wakers::Alone) => {
                self.push_waker(sample, &mut ids);
                return ids;
            }
            Some(Wakers::Above) => {
                self.push_waker(sample, &mut ids);
                // The waker stands upside down above what waited.
                ids.reverse();
                ids.push(self.mark(off_cpu::WOKEN_BY));
            }
            Some(Wakers::None) | None => {}
        }
        let mark = match (sample.thread_state, sample.reason) {
            (ThreadState::Running, _) => None,
            (ThreadState::Ran, _) => Some(wall::NOT_SAMPLED),
            (ThreadState::Runnable, _) => Some(off_cpu::RUNNABLE),
            (ThreadState::Blocked | ThreadState::Woken, Some(reason)) => Some(reason.name()),
            (ThreadState::Blocked | ThreadState::Woken, None) => {
                let is_told = view.is_none_or(|view| view.ran);
                is_told.then_some(off_cpu::BLOCKED)
            }
        };
        ids.extend(mark.map(|mark| self.mark(mark)));
        self.push_thread(sample.user, sample.kernel, &mut ids);
        ids
    }

    fn push_thread(
        &mut self,
        user: Option<NormalizedStackIndex>,
        kernel: Option<NormalizedStackIndex>,
        ids: &mut Vec<u64>,
    ) {
        let profile = self.profile;
        for index in [kernel, user].into_iter().flatten() {
            let stack = profile.stack_at(index);
            for location in &stack.locations {
                ids.push(self.location(*location));
            }
            ids.extend(stack.end.mark().map(|mark| self.mark(mark)));
        }
    }

    fn push_waker(&mut self, sample: &profile::Sample, ids: &mut Vec<u64>) {
        let waker = sample.waker.map(|index| *self.profile.waker_at(index));
        let mark = match (sample.thread_state, waker) {
            (ThreadState::Woken, Some(waker)) if waker.interrupt => {
                self.push_thread(None, waker.kernel, ids);
                off_cpu::INTERRUPT
            }
            (ThreadState::Woken, Some(waker)) => {
                return self.push_thread(waker.user, waker.kernel, ids);
            }
            (ThreadState::Woken, None) => off_cpu::WAKER_UNSEEN,
            _ => off_cpu::NOT_WOKEN,
        };
        ids.push(self.mark(mark));
    }

    /// A location that is no place, but says something.
    fn mark(&mut self, name: &'static str) -> u64 {
        if let Some(id) = self.marks.get(name) {
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
        self.marks.insert(name, id);
        id
    }

    fn location(&mut self, index: LocationIndex) -> u64 {
        if let Some(id) = self.locations.get(&index.0) {
            return *id;
        }
        let profile = self.profile;
        let location = profile.location_at(index);
        let lines = profile.lines_at(location).iter().map(|line| {
            let number = line.function.0;
            let function_id = self.functions.get(&number).copied().unwrap_or_else(|| {
                let function = profile.function_at(line.function);
                self.function(&function.name, &function.system_name, &function.file)
            });
            self.functions.insert(number, function_id);
            Line {
                function_id,
                line: i64::from(line.line),
            }
        });
        let lines = lines.collect();
        let mapping = location.mapping.map(|mapping| mapping.0 as usize);
        let mapping_id = mapping.map_or(0, |mapping| self.mappings[mapping]);
        let id = self.place((mapping_id, location.address, lines));
        self.locations.insert(index.0, id);
        id
    }

    fn place(&mut self, place: Place) -> u64 {
        let written = &mut self.written.location;
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
        let id = self.written.function.len() as u64 + 1;
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
        self.written.function.push(function);
        id
    }

    fn labels(&mut self, sample: &profile::Sample) -> Vec<Label> {
        let mut labels = Vec::new();
        self.push_labels(sample.labels, "", &mut labels);
        let waker = sample.waker.map(|index| *self.profile.waker_at(index));
        if let Some(waker) = waker.filter(|waker| !waker.interrupt) {
            self.push_labels(waker.labels, "waker_", &mut labels);
        }
        let state = match sample.thread_state {
            ThreadState::Running | ThreadState::Ran => "running",
            ThreadState::Runnable => "runnable",
            ThreadState::Blocked | ThreadState::Woken => "blocked",
        };
        self.push_label("state", state, &mut labels);
        labels
    }

    fn push_labels(&mut self, index: LabelsIndex, before: &str, to: &mut Vec<Label>) {
        let Labels {
            comm,
            pid,
            tid,
            cpu,
            ..
        } = self.profile.labels_at(index);
        // As text: some readers drop labels that are numbers.
        let text = |number: &Option<u32>| number.map(|number| number.to_string());
        let all = [
            ("comm", comm.clone()),
            ("pid", text(pid)),
            ("tid", text(tid)),
            ("cpu", text(cpu)),
        ];
        for (key, value) in all {
            if let Some(value) = value {
                self.push_label(&format!("{before}{key}"), &value, to);
            }
        }
    }

    fn push_label(&mut self, key: &str, text: &str, to: &mut Vec<Label>) {
        to.push(Label {
            key: self.strings.number(key),
            text: self.strings.number(text),
        });
    }
}

/// The mappings by the weight of the stacks that lead through them, programs before libraries: readers call a profile
/// by the first of them.
fn by_weight(profile: &profile::Profile) -> Vec<usize> {
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
        |mapping: &profile::Mapping| mapping.path.is_absolute() && !mapping.module.contains(".so");
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|index| {
        let is_program = is_program(&profile.mappings()[*index]);
        (!is_program, Reverse(weights[*index]), *index)
    });
    order
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Frame, FrameKind, FrameProfile, Window};
    use flate2::read::GzDecoder;
    use std::io::Read as _;

    fn written(profile: &profile::Profile) -> Profile {
        let style = Style {
            notes: "recorded: 3\nlost: nothing\n".to_owned(),
            ..Style::default()
        };
        let (mut bytes, mut again) = (Vec::new(), Vec::new());
        write(profile, &style, &mut bytes).unwrap();
        write(profile, &style, &mut again).unwrap();
        assert_eq!(bytes, again);
        let mut plain = Vec::new();
        GzDecoder::new(&*bytes).read_to_end(&mut plain).unwrap();
        Profile::decode(&*plain).unwrap()
    }

    #[test]
    fn inlined_functions_are_lines_and_ids_are_dense() {
        let unit = Unit::Events("cache-misses".to_owned());
        let mut frames = FrameProfile::new(profile::Profile::new(unit, Window::default()));
        let frame = |name: &str, kind| Frame {
            name: name.to_owned(),
            kind,
        };
        let stack = [
            frame("app", FrameKind::Process),
            frame("<Vec<T> as Drop>::drop", FrameKind::User),
            frame("core", FrameKind::Inlined),
            frame("vfs_read", FrameKind::Kernel),
        ];
        frames.push(&stack, 3_000, 3);
        frames.push(&stack[..2], 1_000, 1);
        let told = written(&frames.into_profile());
        let text = |number: i64| told.string_table[number as usize].as_str();
        let types: Vec<_> = told.sample_type.iter().map(|of| text(of.kind)).collect();
        assert_eq!(types, ["samples", "cache_misses"]);
        assert_eq!(text(told.default_sample_type), "cache_misses");
        assert_eq!(told.string_table[0], "");
        assert!(
            (1..)
                .zip(&told.location)
                .all(|(id, location)| location.id == id)
        );
        assert!(
            (1..)
                .zip(&told.function)
                .all(|(id, function)| function.id == id)
        );
        let values: Vec<_> = told
            .sample
            .iter()
            .map(|sample| sample.value.clone())
            .collect();
        assert_eq!(values, [[3, 3_000], [1, 1_000]]);
        let names: Vec<Vec<&str>> = told.sample[0]
            .location_id
            .iter()
            .map(|id| &told.location[*id as usize - 1].line)
            .map(|lines| {
                let function = |line: &Line| told.function[line.function_id as usize - 1];
                lines.iter().map(|line| text(function(line).name)).collect()
            })
            .collect();
        assert_eq!(
            names,
            [vec!["vfs_read"], vec!["core", "<Vec<T> as Drop>::drop"]]
        );
        assert!(
            told.function
                .iter()
                .all(|function| text(function.system_name).is_empty())
        );
        let comments: Vec<_> = told.comment.iter().map(|comment| text(*comment)).collect();
        assert_eq!(comments[1..], ["recorded: 3", "lost: nothing"]);
        let label = &told.sample[0].label;
        assert_eq!((text(label[0].key), text(label[0].text)), ("comm", "app"));
    }
}
