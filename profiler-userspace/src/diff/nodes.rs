//! Nodes of a comparison, each made when it is asked for.
//!
//! In: rows, and what became of the tests of all nodes. Out: nodes by their places in preorder, callees by name. There may be many
//! more of them than there is memory for all they tell.

use super::family::{Family, Judged};
use super::model::{Node, Tests, Verdict};
use super::rows::{DiffRow, Rows};
use foldhash::HashMap;
use std::cell::RefCell;
use std::sync::Arc;

/// The tree of calls of both sides.
#[derive(Debug)]
pub struct Nodes {
    rows: Rows,
    judged: Judged,
    /// By the tree's names.
    names: Vec<Arc<str>>,
    /// Where what moved came from, or went.
    moved: HashMap<u32, Arc<str>>,
    /// Room for the row of a node.
    row: RefCell<DiffRow>,
}

impl Nodes {
    /// The nodes of these rows.
    pub(super) fn new(rows: Rows) -> Self {
        let mut row = rows.row();
        let mut family = Family::new(&rows);
        for node in 0..rows.tree.nodes.len() {
            rows.fill(node, &mut row);
            family.add(&row);
        }
        let judged = family.judged();
        let names = rows.tree.names.iter();
        Self {
            names: names.map(|name| Arc::from(name.shown())).collect(),
            moved: HashMap::default(),
            row: RefCell::new(row),
            judged,
            rows,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.tree.nodes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Node> {
        (0..self.len()).map(|place| self.at(place))
    }

    /// The node at a place.
    pub fn at(&self, place: usize) -> Node {
        let mut row = self.row.borrow_mut();
        self.rows.fill(place, &mut row);
        let mut change = self.judged.change(place, &row, &self.rows);
        if let Some(partner) = self.moved.get(&(place as u32)) {
            change.verdict = Verdict::Shift;
            change.partner = Some(Arc::clone(partner));
        }
        let own = self.rows.tree.at(place).iter();
        let mut own_weights = [0_u64; 2];
        for entry in own {
            let weight = &mut own_weights[entry.side()];
            *weight = weight.saturating_add(entry.weight);
        }
        let node = &self.rows.tree.nodes[place];
        Node {
            name: Arc::clone(&self.names[node.name.index()]),
            class: self.rows.tree.names[node.name.index()].class,
            depth: self.depth(place),
            own: self.own(place),
            own_weights,
            change,
        }
    }

    /// How many frames are below a node.
    pub fn depth(&self, place: usize) -> usize {
        self.rows.tree.nodes[place].depth as usize
    }

    /// Own values of both sides of a node, without callees, in the comparison's quantity.
    pub fn own(&self, place: usize) -> [f64; 2] {
        let mut own = [0.0; 2];
        for entry in self.rows.tree.at(place) {
            let side = entry.side();
            let factor = self.rows.factors[side][entry.window as usize];
            own[side] += entry.weight as f64 * factor / self.rows.sides.series[side].total();
        }
        own
    }

    /// Both sides, by whose windows rows are.
    pub(super) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// How many were tested.
    pub(super) fn tests(&self) -> Tests {
        self.judged.tests()
    }

    /// The first node behind one that it did not call.
    pub(super) fn end(&self, place: usize) -> usize {
        self.rows.tree.nodes[place].end as usize
    }

    /// The verdict on a node, without regard to what moved, and its difference.
    pub(super) fn verdict(&self, place: usize) -> (Verdict, f64) {
        let mut row = self.row.borrow_mut();
        self.rows.fill(place, &mut row);
        let change = self.rows.estimate(&row).change();
        (self.judged.verdict(place, row.samples, change), change)
    }

    /// The place of its name among all.
    pub fn name(&self, place: usize) -> u32 {
        self.rows.tree.nodes[place].name.0
    }

    /// All names, each as it reads after, or before if it is not there any more.
    pub fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    /// Its name.
    pub(super) fn reads(&self, place: usize) -> &Arc<str> {
        &self.names[self.name(place) as usize]
    }

    /// Says of a node that it moved.
    pub(super) fn set_moved(&mut self, place: usize, partner: &Arc<str>) {
        self.moved.insert(place as u32, Arc::clone(partner));
    }
}
