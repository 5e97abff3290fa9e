//! Rows of a profile, in their order.
//!
//! In: a profile. Out: what was counted for one owner on one stack in one window, sorted by cgroup, process, thread, stack and
//! time, so that neighbours have much in common; and before these the firings of each window that are in no sample.

use super::super::sender::Sender;
use super::super::value_types::{self, nanoseconds, signed};
use crate::parquet_schema::outcome;
use crate::profile::cgroup::Cgroup;
use crate::profile::preorder::Preorder;
use crate::profile::{
    CallTree, FrameId, FrameKind, Labels, LabelsIndex, Mapping, NodeIndex, Profile, WindowTotals,
};
use parquet::data_type::ByteArray;
use std::collections::BTreeMap;

/// The name of a profile's event.
pub(super) fn event(profile: &Profile) -> &str {
    let known = profile.origin.event.as_deref();
    known.unwrap_or_else(|| profile.unit.name())
}

/// A row.
pub(super) enum StoreRow {
    /// By the tree's number of the sample.
    Sample(usize),
    /// Firings of a window that are in no sample.
    Rest {
        window: usize,
        outcome: &'static str,
        count: u64,
    },
}

/// Labels as columns have them.
pub(super) struct Owner {
    pub(super) cgroup: Option<ByteArray>,
    pub(super) systemd_unit: Option<ByteArray>,
    pub(super) container: Option<ByteArray>,
    pub(super) container_id: Option<ByteArray>,
    pub(super) pod: Option<ByteArray>,
    pub(super) pod_uid: Option<ByteArray>,
    pub(super) service: Option<ByteArray>,
    pub(super) source: Option<ByteArray>,
    pub(super) process: Option<ByteArray>,
    pub(super) thread: Option<ByteArray>,
    pub(super) pid: Option<i64>,
    pub(super) tid: Option<i64>,
    pub(super) cpu: Option<i64>,
}

/// A frame as columns have it.
pub(super) struct FrameCells {
    pub(super) function: ByteArray,
    pub(super) module: Option<ByteArray>,
    pub(super) build_id: Option<ByteArray>,
    pub(super) kind: ByteArray,
    pub(super) file: Option<ByteArray>,
    pub(super) line: Option<i64>,
}

/// All rows of a profile.
pub(super) struct Rows {
    tree: CallTree,
    rows: Vec<StoreRow>,
    /// How many frames the stack of each node has.
    depths: Vec<u32>,
    owners: Vec<Owner>,
    frames: Vec<FrameCells>,
    /// When each window began, and how long it was.
    windows: Vec<(Option<i64>, i64)>,
    pub(super) host: Option<ByteArray>,
    pub(super) event: ByteArray,
    pub(super) unit: ByteArray,
}

impl Rows {
    pub(super) fn new(profile: &Profile, service: Option<&str>) -> Self {
        let tree = CallTree::new(profile);
        let sender = Sender {
            service: service.map(str::to_owned),
            ..Sender::default()
        };
        let owners = profile.all_labels().map(|labels| owner(labels, &sender));
        let frames = tree.frame_ids().map(|id| cells(profile, &tree, id));
        let mut depths: Vec<u32> = Vec::with_capacity(tree.nodes().len());
        for node in tree.nodes() {
            let above = node.parent.map_or(0, |parent| depths[parent.index()]);
            depths.push(above + 1);
        }
        let machine = profile.origin.machine.as_ref();
        let mut rows = rests(profile);
        rows.extend(sorted(profile, &tree).into_iter().map(StoreRow::Sample));
        Self {
            rows,
            depths,
            owners: owners.collect(),
            frames: frames.collect(),
            windows: windows(profile),
            host: machine.and_then(|machine| known(&machine.host)),
            event: event(profile).into(),
            unit: profile.unit.name().into(),
            tree,
        }
    }

    pub(super) fn all(&self) -> &[StoreRow] {
        &self.rows
    }

    fn node(&self, row: &StoreRow) -> Option<NodeIndex> {
        match row {
            StoreRow::Sample(sample) => self.tree.samples()[*sample].node,
            StoreRow::Rest { .. } => None,
        }
    }

    /// How many frames a row has.
    pub(super) fn depth(&self, row: &StoreRow) -> usize {
        let node = self.node(row);
        node.map_or(0, |node| self.depths[node.index()] as usize)
    }

    /// The frames of a row, from the leaf on.
    pub(super) fn stack(&self, row: &StoreRow) -> impl Iterator<Item = &FrameCells> {
        let ids = self.tree.callers(self.node(row));
        ids.map(|id| &self.frames[id.index()])
    }

    pub(super) fn owner(&self, row: &StoreRow) -> Option<&Owner> {
        match row {
            StoreRow::Sample(sample) => {
                let LabelsIndex(labels) = self.tree.samples()[*sample].labels;
                Some(&self.owners[labels as usize])
            }
            StoreRow::Rest { .. } => None,
        }
    }

    pub(super) fn state(&self, row: &StoreRow) -> Option<&'static str> {
        match row {
            StoreRow::Sample(sample) => {
                let state = self.tree.samples()[*sample].thread_state;
                Some(value_types::state(state))
            }
            StoreRow::Rest { .. } => None,
        }
    }

    fn window(&self, row: &StoreRow) -> (Option<i64>, i64) {
        let window = match row {
            StoreRow::Sample(sample) => self.tree.samples()[*sample].window.0 as usize,
            StoreRow::Rest { window, .. } => *window,
        };
        self.windows[window.min(self.windows.len() - 1)]
    }

    pub(super) fn time(&self, row: &StoreRow) -> Option<i64> {
        self.window(row).0
    }

    pub(super) fn duration(&self, row: &StoreRow) -> i64 {
        self.window(row).1
    }

    pub(super) fn outcome(&self, row: &StoreRow) -> &'static str {
        match row {
            StoreRow::Sample(_) => outcome::RECORDED,
            StoreRow::Rest { outcome, .. } => outcome,
        }
    }

    pub(super) fn count(&self, row: &StoreRow) -> i64 {
        signed(match row {
            StoreRow::Sample(sample) => self.tree.samples()[*sample].count,
            StoreRow::Rest { count, .. } => *count,
        })
    }

    pub(super) fn value(&self, row: &StoreRow) -> i64 {
        signed(match row {
            StoreRow::Sample(sample) => self.tree.samples()[*sample].weight,
            StoreRow::Rest { .. } => 0,
        })
    }
}

/// Numbers of a tree's samples in the order of rows.
fn sorted(profile: &Profile, tree: &CallTree) -> Vec<usize> {
    let labels: Vec<&Labels> = profile.all_labels().collect();
    let mut by_owner: Vec<usize> = (0..labels.len()).collect();
    by_owner.sort_by_key(|at| {
        let labels = labels[*at];
        let path = labels.cgroup.as_ref().map(|cgroup| &cgroup.path);
        (path, labels)
    });
    let mut owner_ranks = vec![0; labels.len()];
    for (rank, at) in by_owner.into_iter().enumerate() {
        owner_ranks[at] = rank;
    }
    let stack_ranks = Preorder::as_they_came(tree.nodes()).places;
    let mut order: Vec<usize> = (0..tree.samples().len()).collect();
    order.sort_by_key(|at| {
        let sample = &tree.samples()[*at];
        let stack = sample.node.map(|node| stack_ranks[node.index()]);
        let owner = owner_ranks[sample.labels.0 as usize];
        (owner, stack, sample.thread_state as u8, sample.window)
    });
    order
}

/// Firings of each window that are in no sample, and why.
fn rests(profile: &Profile) -> Vec<StoreRow> {
    let mut recorded: BTreeMap<usize, u64> = BTreeMap::new();
    for sample in profile.samples() {
        let sum = recorded.entry(sample.window.0 as usize).or_default();
        *sum = sum.saturating_add(sample.count);
    }
    let of_window = |(window, totals): (usize, &WindowTotals)| {
        let recorded = recorded.get(&window).copied().unwrap_or(0);
        let told = [totals.filtered, totals.lost, recorded];
        let told = told.into_iter().fold(0, u64::saturating_add);
        [
            (outcome::FILTERED, totals.filtered),
            (outcome::LOST, totals.lost),
            (outcome::LEFT_OUT, totals.firings.saturating_sub(told)),
        ]
        .map(|(outcome, count)| StoreRow::Rest {
            window,
            outcome,
            count,
        })
    };
    let all = profile.windows.iter().enumerate().flat_map(of_window);
    all.filter(|row| !matches!(row, StoreRow::Rest { count: 0, .. }))
        .collect()
}

/// Begin and length of each window; of all of the profile where it is not divided. Never empty.
fn windows(profile: &Profile) -> Vec<(Option<i64>, i64)> {
    let started = profile.origin.since_1970();
    let begin = profile.window.start;
    let one = |window: &crate::profile::Window| {
        let time = started.map(|started| nanoseconds(started + window.start.saturating_sub(begin)));
        (time, nanoseconds(window.length()))
    };
    match &*profile.windows {
        [] => vec![one(&profile.window)],
        windows => windows.iter().map(|of| one(&of.window)).collect(),
    }
}

fn owner(labels: &Labels, sender: &Sender) -> Owner {
    let cgroup = labels.cgroup.as_deref();
    let container = cgroup.and_then(|cgroup| cgroup.container.as_ref());
    let pod = cgroup.and_then(|cgroup| cgroup.pod.as_ref());
    let text = |text: Option<String>| text.and_then(|text| known(&text));
    Owner {
        cgroup: cgroup.and_then(|cgroup| known(&cgroup.path)),
        systemd_unit: text(cgroup.and_then(Cgroup::unit_name)),
        container: text(cgroup.and_then(Cgroup::container_name)),
        container_id: container.and_then(|of| known(&of.id)),
        pod: text(cgroup.and_then(Cgroup::pod_name)),
        pod_uid: pod.and_then(|of| known(&of.uid)),
        service: known(&sender.service_of(labels)),
        // An empty name is a name.
        source: labels.source.as_deref().map(ByteArray::from),
        process: labels.process.as_deref().map(ByteArray::from),
        thread: labels.comm.as_deref().map(ByteArray::from),
        pid: labels.pid.map(i64::from),
        tid: labels.tid.map(i64::from),
        cpu: labels.cpu.map(i64::from),
    }
}

fn cells(profile: &Profile, tree: &CallTree, id: FrameId) -> FrameCells {
    let frame = tree.frame(id);
    let kind = match frame.kind {
        FrameKind::Interpreted(runtime) => runtime.short(),
        kind => kind.word(),
    };
    let Some(code) = tree.code(id) else {
        return FrameCells {
            function: frame.name.as_str().into(),
            module: None,
            build_id: None,
            kind: kind.into(),
            file: None,
            line: None,
        };
    };
    let function = profile.function_at(code.function);
    let mapping = code
        .mapping
        .map(|mapping| &profile.mappings()[mapping.0 as usize]);
    let build_id = mapping.map_or_else(String::new, Mapping::build_id_hex);
    FrameCells {
        function: function.name.as_str().into(),
        module: known(profile.module(frame.kind, code.mapping, code.function)),
        build_id: known(&build_id),
        kind: kind.into(),
        file: known(&function.file),
        line: Some(i64::from(code.line)).filter(|line| *line > 0),
    }
}

/// A text, unless it is empty because it is not known.
fn known(text: &str) -> Option<ByteArray> {
    (!text.is_empty()).then(|| text.into())
}
