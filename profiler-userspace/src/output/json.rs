//! Our own JSON: the whole profile as columns, for programs.
//!
//! In: a profile and its style. Out: one document, the same bytes for the same profile, as `docs/outputs.md` describes it.
//! Lists of the same table have the same length; an index is a place in another table, from 0.

use super::json_stream::{Columns, Json};
use super::{Error, Style, value_types};
use crate::profile::cgroup::Cgroup;
use crate::profile::{CallTree, Labels, Node, NodeIndex, Profile, TreeSample};
use indexmap::IndexSet;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::time::Duration;

/// Kind of the document, as it says itself; the number rises when a reader has to change.
const FORMAT: &str = "flame-bpf profile 1";

/// Writes the profile.
pub(super) fn write(profile: &Profile, style: &Style, out: &mut dyn Write) -> Result<(), Error> {
    let tree = CallTree::new(profile);
    let mut document = Document {
        profile,
        tree: &tree,
        names: IndexSet::new(),
        json: Json::new(out),
    };
    document.write(style)?;
    Ok(document.json.end()?)
}

struct Document<'a, 'o> {
    profile: &'a Profile,
    tree: &'a CallTree,
    /// All texts that are referred to by number.
    names: IndexSet<String>,
    json: Json<'o>,
}

impl<'o> Document<'_, 'o> {
    fn write(&mut self, style: &Style) -> io::Result<()> {
        let profile = self.profile;
        let started = profile.origin.since_1970();
        let window = profile.window;
        self.json.text("{\"format\":")?;
        self.json.value(&FORMAT.into())?;
        let nanoseconds = |time: Duration| time.as_nanos() as u64;
        let duration = window.length();
        for (key, value) in [
            ("title", json!(style.title)),
            ("unit", json!(profile.unit.name())),
            ("threads", json!(profile.origin.activity.word())),
            ("started_ns", json!(started.map(nanoseconds))),
            ("duration_ns", json!(nanoseconds(duration))),
            ("period_ns", json!(profile.origin.period_ns)),
            ("balance", json!(style.notes.lines().collect::<Vec<_>>())),
        ] {
            self.json.text(&format!(",\"{key}\":"))?;
            self.json.value(&value)?;
        }
        self.windows()?;
        self.mappings()?;
        self.frames()?;
        let parent = |node: &Node| node.parent.map(NodeIndex::number);
        let nodes = self.tree.nodes();
        let mut table = self.table("nodes")?;
        table.column("parent", nodes.iter().map(parent))?;
        table.column("frame", nodes.iter().map(|node| node.frame.index()))?;
        table.end()?;
        self.owners()?;
        let samples = self.tree.samples();
        let node = |sample: &TreeSample| sample.node.map(NodeIndex::number);
        let state = |sample: &TreeSample| value_types::state(sample.thread_state);
        let mut table = self.table("samples")?;
        table.column("node", samples.iter().map(node))?;
        table.column("owner", samples.iter().map(|sample| sample.labels.0))?;
        table.column("state", samples.iter().map(state))?;
        table.column("window", samples.iter().map(|sample| sample.window.0))?;
        table.column("count", samples.iter().map(|sample| sample.count))?;
        table.column("weight", samples.iter().map(|sample| sample.weight))?;
        table.end()?;
        // Behind all that refer to them, since these are collected on the way.
        self.json.text(",\n\"names\":")?;
        self.json.list(std::mem::take(&mut self.names))?;
        self.json.text("}\n")
    }

    /// Opens a table of this name.
    fn table(&mut self, name: &str) -> io::Result<Columns<'_, 'o>> {
        self.json.text(&format!(",\n\"{name}\":"))?;
        self.json.columns()
    }

    fn name(&mut self, name: &str) -> usize {
        match self.names.get_index_of(name) {
            Some(index) => index,
            None => self.names.insert_full(name.to_owned()).0,
        }
    }

    fn windows(&mut self) -> io::Result<()> {
        let all = &self.profile.windows;
        let ns = |time: Duration| time.as_nanos() as u64;
        let mut table = self.table("windows")?;
        table.column("start_ns", all.iter().map(|of| ns(of.window.start)))?;
        table.column("end_ns", all.iter().map(|of| ns(of.window.end)))?;
        table.column("firings", all.iter().map(|of| of.firings))?;
        table.column("filtered", all.iter().map(|of| of.filtered))?;
        table.column("lost", all.iter().map(|of| of.lost))?;
        table.column("busy_ns", all.iter().map(|of| of.busy_ns))?;
        table.end()
    }

    fn mappings(&mut self) -> io::Result<()> {
        let profile = self.profile;
        let all = profile.mappings();
        let modules: Vec<usize> = all
            .iter()
            .map(|mapping| self.name(&mapping.module))
            .collect();
        let mut table = self.table("mappings")?;
        table.column("module", modules)?;
        let paths = all.iter().map(|mapping| mapping.path.to_string_lossy());
        table.column("path", paths)?;
        table.column("build_id", all.iter().map(|mapping| mapping.build_id_hex()))?;
        table.end()
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
        let mut table = self.table("frames")?;
        for (name, column) in ["name", "kind", "mapping", "file", "line"]
            .iter()
            .zip(columns)
        {
            table.column(name, column)?;
        }
        table.end()
    }

    fn owners(&mut self) -> io::Result<()> {
        let profile = self.profile;
        let all = || profile.all_labels();
        fn of_cgroup(labels: &Labels, of: impl Fn(&Cgroup) -> Option<String>) -> Option<String> {
            labels.cgroup.as_deref().and_then(of)
        }
        let cgroup =
            |of: fn(&Cgroup) -> Option<String>| all().map(move |labels| of_cgroup(labels, of));
        let start = |labels: &Labels| Some(labels.start).filter(|start| *start > 0);
        let mut table = self.table("owners")?;
        table.column("process", all().map(|labels| labels.process.clone()))?;
        table.column("comm", all().map(|labels| labels.comm.clone()))?;
        table.column("pid", all().map(|labels| labels.pid))?;
        table.column("tid", all().map(|labels| labels.tid))?;
        table.column("cpu", all().map(|labels| labels.cpu))?;
        table.column("cgroup", cgroup(|cgroup| Some(cgroup.path.to_string())))?;
        table.column("container", cgroup(Cgroup::container_name))?;
        table.column("pod", cgroup(Cgroup::pod_name))?;
        table.column("unit", cgroup(Cgroup::unit_name))?;
        table.column("source", all().map(|labels| labels.source.clone()))?;
        table.column("process_start_ns", all().map(start))?;
        table.end()
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
