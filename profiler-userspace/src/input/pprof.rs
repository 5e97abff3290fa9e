//! pprof: what `go tool pprof`, our own output and many other profilers write.
//!
//! In: a `profile.proto`. Out: a profile with its mappings, functions, lines, inlined functions and labels, of one of its
//! sample types: the one that it names as usual, else the heaviest, unless another is asked for. Our own file comes back as
//! the profile that was written, as far as that can be seen in folded text.

mod dropping;
mod labels;
#[cfg(test)]
mod tests;
mod types;

use super::kind::{self, file_name};
use super::{Error, Head, MAX_BYTES, ReadOptions, Reading, TOO_LARGE};
use crate::pprof::{self, ValueType};
use crate::profile::fold::MAX_MEMORY;
use crate::profile::is_mark;
use crate::profile::normalized::{LocationIndex, NormalizedStack};
use crate::profile::{Activity, FrameKind, Function, FunctionIndex, Line, Location, Mapping};
use crate::profile::{MappingIndex, OffCpuView, Profile, Sample, Unit, Window};
use dropping::Dropping;
use profiler_common::abi::ThreadState;
use prost::Message as _;
use std::collections::HashMap;
use std::io::BufRead;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use types::Types;

/// Whether the file is binary, and begins with a field of such a message.
pub(super) fn looks_so(head: &Head<'_>) -> bool {
    let field = head.bytes.first().map(|tag| (tag >> 3, tag & 7));
    let is_field = matches!(field, Some((1..=6 | 11, 2) | (7..=10 | 12..=15, 0 | 2)));
    head.is_binary && is_field
}

pub(super) fn read(from: &mut dyn BufRead, options: &ReadOptions<'_>) -> Result<Reading, Error> {
    // Samples come before the tables they refer to.
    let bytes = super::whole(from, MAX_BYTES, TOO_LARGE)?;
    if pprof::memory(&bytes) > MAX_MEMORY {
        let problem = "it would take more than 2 GiB of memory; divide it";
        return Err(Error::whole(problem));
    }
    let message = pprof::Profile::decode(&*bytes)
        .map_err(|error| Error::Whole(format!("it is no profile.proto: {error}")))?;
    let reader = Reader::new(&message)?;
    let types = Types::new(&message, &reader);
    let chosen = types.chosen(options.sample_type)?;
    let (profile, dropped) = reader.profile(chosen)?;
    let mut reading = Reading::from(profile);
    let (others, shown) = types.others(chosen);
    reading.note_others(&others, &shown);
    reading
        .notes
        .extend(dropped.map(|dropped| ("dropped", dropped)));
    let comments = message.comment.iter().map(|comment| reader.text(*comment));
    let comments = comments.map(|comment| ("comment", comment.to_owned()));
    reading.notes.extend(comments);
    Ok(reading)
}

struct Reader<'a> {
    message: &'a pprof::Profile,
    texts: Vec<std::borrow::Cow<'a, str>>,
}

/// The profile that is made, and its indices by the IDs of the file.
struct Made {
    profile: Profile,
    locations: HashMap<u64, LocationIndex>,
}

impl<'a> Reader<'a> {
    fn new(message: &'a pprof::Profile) -> Result<Self, Error> {
        let texts = message
            .string_table
            .iter()
            .map(|text| String::from_utf8_lossy(text));
        let reader = Self {
            message,
            texts: texts.collect(),
        };
        let of_types = message
            .sample_type
            .iter()
            .flat_map(|one| [one.kind, one.unit]);
        let of_functions = message
            .function
            .iter()
            .flat_map(|one| [one.name, one.system_name, one.filename]);
        let of_mappings = message
            .mapping
            .iter()
            .flat_map(|one| [one.filename, one.build_id]);
        let labels = message.sample.iter().flat_map(|sample| &sample.label);
        let of_labels = labels.flat_map(|label| [label.key, label.text]);
        let comments = message.comment.iter().copied();
        let all = of_types
            .chain(of_functions)
            .chain(of_mappings)
            .chain(of_labels)
            .chain(comments);
        let is_there =
            |number: i64| usize::try_from(number).is_ok_and(|at| at < reader.texts.len().max(1));
        match { all }.find(|number| !is_there(*number)) {
            None => Ok(reader),
            Some(number) => Err(Error::Whole(format!(
                "it refers to text {number}, and has {}",
                reader.texts.len()
            ))),
        }
    }

    /// The text of a number that is there.
    fn text(&self, number: i64) -> &str {
        let at = usize::try_from(number).ok();
        at.and_then(|at| self.texts.get(at)).map_or("", |text| text)
    }

    /// The profile of a sample type, and what was dropped of it because the file asks for that.
    fn profile(&self, chosen: usize) -> Result<(Profile, Option<String>), Error> {
        let message = self.message;
        let (unit, factor) = self.unit(message.sample_type[chosen]);
        let duration = u64::try_from(message.duration_nanos).unwrap_or(0);
        let window = Window::until(Duration::from_nanos(duration));
        let mut made = Made {
            profile: Profile::new(unit, window),
            locations: HashMap::new(),
        };
        let origin = &mut made.profile.origin;
        let started = u64::try_from(message.time_nanos)
            .ok()
            .filter(|time| *time > 0);
        origin.started = started.map(|time| SystemTime::UNIX_EPOCH + Duration::from_nanos(time));
        origin.activity = match self.text(message.sample_type[chosen].kind) {
            "off_cpu" => Activity::Waiting,
            "wall" => Activity::Both,
            _ => Activity::Running,
        };
        let of_period = message.period_type.map(|of| self.unit(of));
        origin.period_ns = match of_period {
            Some((Unit::Nanoseconds, factor)) => u64::try_from(message.period)
                .ok()
                .and_then(|period| period.checked_mul(factor)),
            _ => None,
        };
        origin.period_ns = origin.period_ns.filter(|period| *period > 0);
        self.add_locations(&mut made)?;
        let mut dropping = Dropping::new(self, &mut made);
        let counts_of = |name: &str| {
            let mut types = message.sample_type.iter();
            types.position(|one| (self.text(one.kind), self.text(one.unit)) == (name, "count"))
        };
        let kind = self.text(message.sample_type[chosen].kind);
        let counts = counts_of(&format!("{kind}_samples")).or_else(|| counts_of("samples"));
        let mut total = 0_u64;
        for (number, sample) in (1..).zip(&message.sample) {
            let at = |problem: &str| Error::Whole(format!("sample {number}: {problem}"));
            if sample.value.len() != message.sample_type.len() {
                return Err(at(&format!(
                    "it has {} values, and there are {} sample types",
                    sample.value.len(),
                    message.sample_type.len()
                )));
            }
            let value = u64::try_from(sample.value[chosen]).map_err(|_| {
                at("its value is negative, as in the difference of two profiles; give one of these two")
            })?;
            let weight = value.checked_mul(factor);
            let sum = weight.and_then(|weight| total.checked_add(weight));
            let (Some(weight), Some(sum)) = (weight, sum) else {
                return Err(at("the values up to here are 2^64 or more"));
            };
            total = sum;
            let count = match counts {
                Some(counts) => u64::try_from(sample.value[counts]).unwrap_or(0),
                None if made.profile.unit == Unit::Samples => weight,
                None => weight.min(1),
            };
            if weight > 0 || count > 0 {
                self.add_sample(&mut made, sample, (weight, count), &mut dropping)
                    .map_err(|problem| at(&problem))?;
            }
        }
        let is_blocked = |sample: &Sample| sample.thread_state == ThreadState::Blocked;
        if made.profile.samples().iter().any(is_blocked) {
            // The reason of a wait is a frame already.
            made.profile.off_cpu = Some(OffCpuView::PLAIN);
        }
        let dropped = dropping.told(&made.profile.unit);
        Ok((made.profile, dropped))
    }

    /// Unit of a sample type, and the factor that its values are multiplied by.
    fn unit(&self, of: ValueType) -> (Unit, u64) {
        match (self.text(of.kind), self.text(of.unit)) {
            (_, "nanoseconds" | "ns") => (Unit::Nanoseconds, 1),
            (_, "microseconds" | "us") => (Unit::Nanoseconds, 1_000),
            (_, "milliseconds" | "ms") => (Unit::Nanoseconds, 1_000_000),
            (_, "seconds" | "s") => (Unit::Nanoseconds, 1_000_000_000),
            ("samples", _) => (Unit::Samples, 1),
            (kind, "count" | "") => (Unit::Events(kind.to_owned()), 1),
            (_, unit) => (Unit::Events(unit.to_owned()), 1),
        }
    }

    fn add_locations(&self, made: &mut Made) -> Result<(), Error> {
        let (message, profile) = (self.message, &mut made.profile);
        let mappings: HashMap<u64, (MappingIndex, &str)> = (message.mapping.iter())
            .map(|mapping| {
                let name = self.text(mapping.filename);
                let index = profile.mapping(self.mapping(mapping));
                (mapping.id, (index, name))
            })
            .collect();
        let functions: HashMap<u64, FunctionIndex> = (message.function.iter())
            .map(|function| {
                let index = profile.function(Function {
                    name: self.text(function.name).to_owned(),
                    system_name: self.text(function.system_name).to_owned(),
                    file: Arc::from(self.text(function.filename)),
                });
                (function.id, index)
            })
            .collect();
        for location in &message.location {
            let broken =
                |problem: String| Error::Whole(format!("location {}: {problem}", location.id));
            let mapping = match location.mapping_id {
                0 => None,
                id => Some(
                    mappings
                        .get(&id)
                        .ok_or_else(|| broken(format!("there is no mapping {id}")))?,
                ),
            };
            let mut lines = Vec::with_capacity(location.line.len());
            for line in &location.line {
                let id = line.function_id;
                let function = *(functions.get(&id))
                    .ok_or_else(|| broken(format!("there is no function {id}")))?;
                let line = u32::try_from(line.line).unwrap_or(0);
                lines.push(Line { function, line });
            }
            if lines.is_empty() {
                let name = self.unnamed(location);
                let function = profile.function(Function::named(name));
                lines.push(Line { function, line: 0 });
            }
            let name = lines
                .last()
                .map_or("", |line| &profile.function_at(line.function).name);
            let kind = match mapping {
                None if is_mark(name) && !kind::is_kernel_address(location.address) => {
                    FrameKind::Mark
                }
                _ => kind::of_code(mapping.map_or("", |(_, module)| module), location.address),
            };
            let lines = profile.lines(lines);
            let index = profile.location(Location::new(
                mapping.map(|(index, _)| *index),
                location.address,
                kind,
                lines,
            ));
            made.locations.insert(location.id, index);
        }
        Ok(())
    }

    fn mapping(&self, mapping: &pprof::Mapping) -> Mapping {
        let path = self.text(mapping.filename);
        let is_everything = mapping.memory_start == 0 && mapping.memory_limit == u64::MAX;
        Mapping {
            path: path.into(),
            module: file_name(path).to_owned(),
            build_id: kind::build_id(self.text(mapping.build_id)),
            range: match is_everything {
                true => 0..0,
                false => mapping.memory_start..mapping.memory_limit,
            },
            offset: mapping.file_offset,
            has_functions: mapping.has_functions,
        }
    }

    /// Name of a location without a function.
    fn unnamed(&self, location: &pprof::Location) -> String {
        let mapping = self
            .message
            .mapping
            .iter()
            .find(|mapping| mapping.id == location.mapping_id);
        match mapping.map(|mapping| file_name(self.text(mapping.filename))) {
            Some(module) if !module.is_empty() => {
                format!(
                    "[{}+{:#x}]",
                    module.trim_matches(['[', ']']),
                    location.address
                )
            }
            _ => format!("[{:#x}]", location.address),
        }
    }

    fn add_sample(
        &self,
        made: &mut Made,
        sample: &pprof::Sample,
        (weight, count): (u64, u64),
        dropping: &mut Dropping,
    ) -> Result<(), String> {
        let (labels, state) = labels::of(sample, |number| self.text(number));
        let profile = &mut made.profile;
        let mut locations = Vec::with_capacity(sample.location_id.len());
        for id in &sample.location_id {
            let location = made.locations.get(id);
            locations.push(*location.ok_or_else(|| format!("there is no location {id}"))?);
        }
        dropping.cut(&sample.location_id, &mut locations, weight);
        let thread_state = labels::take_state(profile, state, &mut locations);
        // From the leaf on, up to the last that is not the kernel's, which is of the program.
        let is_kernel = |at: &LocationIndex| profile.location_at(*at).kind == FrameKind::Kernel;
        let kernel = locations
            .iter()
            .rposition(is_kernel)
            .map_or(0, |last| last + 1);
        let user = locations.split_off(kernel);
        let mut stack = |locations: Vec<LocationIndex>| {
            (!locations.is_empty()).then(|| profile.stack(&NormalizedStack::whole(locations)))
        };
        let (user, kernel) = (stack(user), stack(locations));
        let labels = profile.labels(labels);
        profile.push(Sample {
            labels,
            user,
            kernel,
            thread_state,
            weight,
            count,
            ..Sample::default()
        });
        Ok(())
    }
}
