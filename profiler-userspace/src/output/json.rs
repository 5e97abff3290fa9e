//! Our own JSON: the whole profile as columns, for programs.
//!
//! In: a profile and its style. Out: one document, the same bytes for the same profile, as `docs/outputs.md` describes it.
//! Lists of the same table have the same length; an index is a place in another table, from 0.

use super::{Error, Style, value_types};
use crate::profile::cgroup::Cgroup;
use crate::profile::{Activity, CallTree, Labels, Node, NodeIndex, Profile};
use indexmap::IndexSet;
use serde_json::{Value, json};
use std::io::{self, BufWriter, Write};
use std::time::{Duration, SystemTime};

/// Kind of the document, as it says itself; the number rises when a reader has to change.
const FORMAT: &str = "flame-bpf profile 1";

/// Writes the profile.
pub(super) fn write(profile: &Profile, style: &Style, out: &mut dyn Write) -> Result<(), Error> {
    let tree = CallTree::new(profile);
    let mut document = Document {
        profile,
        tree: &tree,
        names: IndexSet::new(),
        out: BufWriter::new(out),
    };
    document.write(style)?;
    Ok(document.out.flush()?)
}

struct Document<'a, 'o> {
    profile: &'a Profile,
    tree: &'a CallTree,
    /// All texts that are referred to by number.
    names: IndexSet<String>,
    out: BufWriter<&'o mut dyn Write>,
}

impl Document<'_, '_> {
    fn write(&mut self, style: &Style) -> io::Result<()> {
        let profile = self.profile;
        let since_1970 = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).ok();
        let started = profile.origin.started.and_then(since_1970);
        let window = profile.window;
        write!(self.out, "{{\"format\":{}", Value::from(FORMAT))?;
        for (key, value) in [
            ("title", json!(style.title)),
            ("unit", json!(profile.unit.name())),
            ("threads", json!(activity(profile.origin.activity))),
            (
                "started_ns",
                json!(started.map(|time| time.as_nanos() as u64)),
            ),
            (
                "duration_ns",
                json!(window.end.saturating_sub(window.start).as_nanos() as u64),
            ),
            ("period_ns", json!(profile.origin.period_ns)),
            ("balance", json!(style.notes.lines().collect::<Vec<_>>())),
        ] {
            write!(self.out, ",\"{key}\":{value}")?;
        }
        self.windows()?;
        self.mappings()?;
        self.frames()?;
        let parent = |node: &Node| node.parent.map(NodeIndex::number);
        let nodes = self.tree.nodes();
        self.table(
            "nodes",
            &mut [
                ("parent", &mut nodes.iter().map(|node| json!(parent(node)))),
                (
                    "frame",
                    &mut nodes.iter().map(|node| json!(node.frame.index())),
                ),
            ],
        )?;
        self.owners()?;
        let samples = self.tree.samples();
        self.table(
            "samples",
            &mut [
                (
                    "node",
                    &mut samples
                        .iter()
                        .map(|sample| json!(sample.node.map(NodeIndex::number))),
                ),
                (
                    "owner",
                    &mut samples.iter().map(|sample| json!(sample.labels.0)),
                ),
                (
                    "state",
                    &mut samples
                        .iter()
                        .map(|sample| json!(value_types::state(sample.thread_state))),
                ),
                (
                    "window",
                    &mut samples.iter().map(|sample| json!(sample.window.0)),
                ),
                (
                    "count",
                    &mut samples.iter().map(|sample| json!(sample.count)),
                ),
                (
                    "weight",
                    &mut samples.iter().map(|sample| json!(sample.weight)),
                ),
            ],
        )?;
        // Behind all that refer to them, since these are collected on the way.
        let names = std::mem::take(&mut self.names);
        self.list("names", &mut names.iter().map(|name| json!(name)))?;
        self.out.write_all(b"}\n")
    }

    fn name(&mut self, name: &str) -> usize {
        match self.names.get_index_of(name) {
            Some(index) => index,
            None => self.names.insert_full(name.to_owned()).0,
        }
    }

    fn windows(&mut self) -> io::Result<()> {
        let all = &self.profile.windows;
        let ns = |time: Duration| json!(time.as_nanos() as u64);
        self.table(
            "windows",
            &mut [
                ("start_ns", &mut all.iter().map(|of| ns(of.window.start))),
                ("end_ns", &mut all.iter().map(|of| ns(of.window.end))),
                ("firings", &mut all.iter().map(|of| json!(of.firings))),
                ("filtered", &mut all.iter().map(|of| json!(of.filtered))),
                ("lost", &mut all.iter().map(|of| json!(of.lost))),
                ("busy_ns", &mut all.iter().map(|of| json!(of.busy_ns))),
            ],
        )
    }

    fn mappings(&mut self) -> io::Result<()> {
        let profile = self.profile;
        let all = profile.mappings();
        let modules: Vec<usize> = all
            .iter()
            .map(|mapping| self.name(&mapping.module))
            .collect();
        let hex =
            |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
        self.table(
            "mappings",
            &mut [
                ("module", &mut modules.iter().map(|module| json!(module))),
                (
                    "path",
                    &mut all
                        .iter()
                        .map(|mapping| json!(mapping.path.to_string_lossy())),
                ),
                (
                    "build_id",
                    &mut all.iter().map(|mapping| json!(hex(&mapping.build_id))),
                ),
            ],
        )
    }

    fn frames(&mut self) -> io::Result<()> {
        let (profile, tree) = (self.profile, self.tree);
        let mut columns: [Vec<Value>; 5] = Default::default();
        for (frame, code) in tree.frames() {
            let function = code.map(|code| profile.function_at(code.function));
            let name = self.name(function.map_or(&frame.name, |function| &function.name));
            let file = function
                .map(|function| &*function.file)
                .filter(|file| !file.is_empty());
            let file = file.map(|file| self.name(file));
            let line = code.map(|code| code.line).filter(|line| *line > 0);
            let mapping = code.and_then(|code| code.mapping).map(|mapping| mapping.0);
            let values = [
                json!(name),
                json!(frame.kind.word()),
                json!(mapping),
                json!(file),
                json!(line),
            ];
            for (column, value) in columns.iter_mut().zip(values) {
                column.push(value);
            }
        }
        let [names, kinds, mappings, files, lines] = columns;
        self.table(
            "frames",
            &mut [
                ("name", &mut names.into_iter()),
                ("kind", &mut kinds.into_iter()),
                ("mapping", &mut mappings.into_iter()),
                ("file", &mut files.into_iter()),
                ("line", &mut lines.into_iter()),
            ],
        )
    }

    fn owners(&mut self) -> io::Result<()> {
        let profile = self.profile;
        let all = || profile.all_labels();
        fn column<'a, T: Into<Value>>(
            all: impl Iterator<Item = &'a Labels>,
            of: impl Fn(&'a Labels) -> Option<T>,
        ) -> impl Iterator<Item = Value> {
            all.map(move |labels| of(labels).map_or(Value::Null, Into::into))
        }
        fn of_cgroup(labels: &Labels, of: impl Fn(&Cgroup) -> Option<String>) -> Option<String> {
            labels.cgroup.as_deref().and_then(of)
        }
        self.table(
            "owners",
            &mut [
                (
                    "process",
                    &mut column(all(), |labels| labels.process.clone()),
                ),
                ("comm", &mut column(all(), |labels| labels.comm.clone())),
                ("pid", &mut column(all(), |labels| labels.pid)),
                ("tid", &mut column(all(), |labels| labels.tid)),
                ("cpu", &mut column(all(), |labels| labels.cpu)),
                (
                    "cgroup",
                    &mut column(all(), |labels| {
                        of_cgroup(labels, |it| Some(it.path.to_string()))
                    }),
                ),
                (
                    "container",
                    &mut column(all(), |labels| of_cgroup(labels, Cgroup::container_name)),
                ),
                (
                    "pod",
                    &mut column(all(), |labels| of_cgroup(labels, Cgroup::pod_name)),
                ),
                (
                    "unit",
                    &mut column(all(), |labels| of_cgroup(labels, Cgroup::unit_name)),
                ),
                ("source", &mut column(all(), |labels| labels.source.clone())),
                (
                    "process_start_ns",
                    &mut column(all(), |labels| {
                        Some(labels.start).filter(|start| *start > 0)
                    }),
                ),
            ],
        )
    }

    /// Writes a table, column by column.
    fn table(
        &mut self,
        name: &str,
        columns: &mut [(&str, &mut dyn Iterator<Item = Value>)],
    ) -> io::Result<()> {
        write!(self.out, ",\n\"{name}\":{{")?;
        for (place, (column, values)) in columns.iter_mut().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(self.out, "{comma}\"{column}\":")?;
            self.values(values)?;
        }
        self.out.write_all(b"}")
    }

    fn list(&mut self, name: &str, values: &mut dyn Iterator<Item = Value>) -> io::Result<()> {
        write!(self.out, ",\n\"{name}\":")?;
        self.values(values)
    }

    fn values(&mut self, values: &mut dyn Iterator<Item = Value>) -> io::Result<()> {
        self.out.write_all(b"[")?;
        for (place, value) in values.enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(self.out, "{comma}{value}")?;
        }
        self.out.write_all(b"]")
    }
}

/// States of threads.
const fn activity(activity: Activity) -> &'static str {
    match activity {
        Activity::Running => "running",
        Activity::Waiting => "waiting",
        Activity::Both => "both",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Unit, fold};

    #[test]
    fn the_columns_of_a_table_are_as_long_as_each_other_and_hold_all_weight() {
        let text = b"a;main;work 3\na;main;read_[k] 2\nb;[unknown] 4\n";
        let profile = fold::parse(text, Unit::Samples).unwrap();
        let mut out = Vec::new();
        write(&profile, &Style::default(), &mut out).unwrap();
        let document: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(document["format"], FORMAT);
        for table in ["mappings", "frames", "nodes", "owners", "samples"] {
            let columns = document[table].as_object().unwrap();
            let lengths: Vec<_> = columns
                .values()
                .map(|column| column.as_array().unwrap().len())
                .collect();
            assert!(
                lengths.iter().all(|length| *length == lengths[0]),
                "{table}: {lengths:?}"
            );
        }
        let weights = document["samples"]["weight"].as_array().unwrap();
        let sum: u64 = weights.iter().map(|weight| weight.as_u64().unwrap()).sum();
        assert_eq!(sum, 9);
    }
}
