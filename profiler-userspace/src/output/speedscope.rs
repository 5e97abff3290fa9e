//! speedscope: profiles for <https://www.speedscope.app>.
//!
//! In: a profile and its style. Out: its JSON (file format schema of speedscope 1.25), the same bytes for the same profile:
//! all samples as one profile, which is shown first, and one for each process or thread, the busiest first.
//! Never: a weight that is rounded; they are whole numbers of the unit.

use super::{Error, Style, owner};
use crate::profile::{CallTree, FrameId, Profile, TreeSample, Unit};
use indexmap::IndexMap;
use serde_json::{Value, json};
use std::io::{self, BufWriter, Write};

/// Kind of the file, as it says itself.
const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// Writes the profile. Fails on one without samples, of which there is nothing to show.
pub(super) fn write(profile: &Profile, style: &Style, out: &mut dyn Write) -> Result<(), Error> {
    if profile.samples().is_empty() {
        return Err(Error::Empty);
    }
    let tree = CallTree::new(profile);
    let mut file = File {
        profile,
        tree: &tree,
        numbers: Vec::with_capacity(tree.frame_count()),
        out: BufWriter::new(out),
    };
    file.write(style)?;
    Ok(file.out.flush()?)
}

struct File<'a, 'o> {
    profile: &'a Profile,
    tree: &'a CallTree,
    /// For each of the tree's frames its number in the file: frames that read alike are one row of its tables.
    numbers: Vec<usize>,
    out: BufWriter<&'o mut dyn Write>,
}

impl File<'_, '_> {
    fn write(&mut self, style: &Style) -> io::Result<()> {
        self.out.write_all(b"{")?;
        let exporter = concat!("flame-bpf ", env!("CARGO_PKG_VERSION"));
        for (key, value) in [
            ("$schema", SCHEMA),
            ("exporter", exporter),
            ("name", &style.title),
        ] {
            self.value(key, &value.into())?;
            self.out.write_all(b",")?;
        }
        self.out
            .write_all(b"\"activeProfileIndex\":0,\"shared\":{\"frames\":[")?;
        self.frames()?;
        self.out.write_all(b"]},\"profiles\":[")?;
        let all: Vec<usize> = (0..self.tree.samples().len()).collect();
        self.samples("all", &all)?;
        let owners = owner::samples(self.profile, self.tree);
        // One process alone is all.
        for (labels, samples) in owners.iter().filter(|_| owners.len() > 1) {
            self.out.write_all(b",")?;
            let name = owner::name(self.profile.labels_at(*labels));
            self.samples(&name, samples)?;
        }
        self.out.write_all(b"]}\n")
    }

    fn value(&mut self, key: &str, value: &Value) -> io::Result<()> {
        write!(self.out, "\"{key}\":{value}")
    }

    fn frames(&mut self) -> io::Result<()> {
        let mut known: IndexMap<(String, String), ()> = IndexMap::new();
        for (frame, code) in self.tree.frames() {
            let (name, file) = match code {
                None => (frame.name.clone(), String::new()),
                Some(code) => {
                    let function = self.profile.function_at(code.function);
                    let mapping = code.mapping.map(|mapping| mapping.0 as usize);
                    let module = mapping.map(|index| &*self.profile.mappings()[index].module);
                    let file = match &*function.file {
                        "" => module.unwrap_or_default(),
                        file => file,
                    };
                    (frame.kind.annotate(&function.name), file.to_owned())
                }
            };
            let (number, _) = known.insert_full((name, file), ());
            self.numbers.push(number);
        }
        for (number, (name, file)) in known.keys().enumerate() {
            if number > 0 {
                self.out.write_all(b",")?;
            }
            let frame = match file.is_empty() {
                true => json!({ "name": name }),
                false => json!({ "name": name, "file": file }),
            };
            write!(self.out, "{frame}")?;
        }
        Ok(())
    }

    /// Writes a profile of these samples, those at the same place as one.
    fn samples(&mut self, name: &str, samples: &[usize]) -> io::Result<()> {
        let mut places: IndexMap<_, u64> = IndexMap::new();
        for index in samples {
            let TreeSample { node, weight, .. } = self.tree.samples()[*index];
            let sum = places.entry(node).or_default();
            *sum = u64::saturating_add(*sum, weight);
        }
        let end = places.values().sum::<u64>();
        let unit = match &self.profile.unit {
            Unit::Nanoseconds => "nanoseconds",
            Unit::Events(name) if name == "bytes" => "bytes",
            Unit::Samples | Unit::Events(_) => "none",
        };
        write!(
            self.out,
            "{{\"type\":\"sampled\",\"name\":{},\"unit\":\"{unit}\",\"startValue\":0,\"endValue\":{end},\"samples\":[",
            Value::from(name)
        )?;
        for (place, node) in places.keys().enumerate() {
            let callers = self.tree.callers(*node);
            let mut stack: Vec<usize> = callers.map(|frame| self.number(frame)).collect();
            stack.reverse();
            self.list(place, &stack)?;
        }
        self.out.write_all(b"],\"weights\":[")?;
        for (place, weight) in places.values().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(self.out, "{comma}{weight}")?;
        }
        self.out.write_all(b"]}")
    }

    fn number(&self, frame: FrameId) -> usize {
        self.numbers[frame.index()]
    }

    fn list(&mut self, place: usize, numbers: &[usize]) -> io::Result<()> {
        self.out.write_all(if place > 0 { b",[" } else { b"[" })?;
        for (at, number) in numbers.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(self.out, "{comma}{number}")?;
        }
        self.out.write_all(b"]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::fold;

    #[test]
    fn every_profile_has_the_weight_of_its_owner() {
        let text = b"a;main;\"q\"</script> 3\na;main;read_[k] 2\nb;main 4\n";
        let profile = fold::parse(text, Unit::Samples).unwrap();
        let mut out = Vec::new();
        write(&profile, &Style::default(), &mut out).unwrap();
        let file: Value = serde_json::from_slice(&out).unwrap();
        let sums: Vec<(String, u64, u64)> = (file["profiles"].as_array().unwrap().iter())
            .map(|profile| {
                let weights = profile["weights"].as_array().unwrap();
                let sum = weights.iter().map(|weight| weight.as_u64().unwrap()).sum();
                let name = profile["name"].as_str().unwrap().to_owned();
                assert_eq!(weights.len(), profile["samples"].as_array().unwrap().len());
                (name, sum, profile["endValue"].as_u64().unwrap())
            })
            .collect();
        let expected = [("all", 9), ("a", 5), ("b", 4)];
        assert_eq!(
            sums,
            expected.map(|(name, sum)| (name.to_owned(), sum, sum))
        );
        let names: Vec<_> = (file["shared"]["frames"].as_array().unwrap().iter())
            .map(|frame| frame["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["main", "\"q\"</script>", "read [k]"]);
    }
}
