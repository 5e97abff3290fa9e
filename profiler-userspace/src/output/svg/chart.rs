//! Flame charts: frames where they were in time.
//!
//! In: a profile that is divided into windows. Out: a [`Tree`] whose frames are measured in nanoseconds, and what was
//! counted where. Each window is as wide as it lasted; within it stacks share the width by weight, in an order of ours.
//! Where a frame goes on from one window to the next, it is one frame.
//! Never: a weight that is left out. Where there would be too many frames, windows are put together in pairs.
//!
//! [`stacks`] tells what was counted in each window, [`joins`] which frames go on. `viewer/chart.js` of the HTML page
//! does the same.

mod joins;
mod lanes;
mod stacks;

use super::tree::{Node, Rests, Tree};
use crate::output::{Error, Style};
use crate::profile::{Profile, WindowTotals};
use joins::Item;
use stacks::{Stacks, WindowRow};
use std::time::Duration;

/// More frames than this make files large. A megabyte of a file holds about as many.
const MAX_FRAMES: usize = 250_000;

/// When what was counted.
#[derive(Debug)]
pub(super) struct Chart {
    /// For each frame of the tree what was counted in the stacks that end in it.
    pub(super) own: Vec<u64>,
    /// For each frame of the tree what was counted in all stacks that lead through it.
    pub(super) weights: Vec<u64>,
    /// All windows, in order and without overlaps.
    pub(super) windows: Vec<Span>,
    /// How long they usually are.
    pub(super) resolution: Duration,
    /// For each lane the place of its first frame, and how many rows are below its own; none where there is but one chart.
    pub(super) lanes: Vec<(usize, u32)>,
}

/// A window, and what was counted in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Nanoseconds since the first window began.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) weight: u64,
}

/// The chart of a profile as a tree of frames. Fails where nobody knows when samples were taken.
pub(super) fn tree(profile: &Profile, style: &Style) -> Result<(Tree, Chart), Error> {
    within(profile, style, MAX_FRAMES)
}

fn within(profile: &Profile, style: &Style, most: usize) -> Result<(Tree, Chart), Error> {
    if profile.windows.is_empty() {
        return Err(Error::NoWindows);
    }
    let mut stacks = Stacks::new(profile, style.fold);
    loop {
        let lanes = stacks.lanes_of_rows();
        let (tree, chart) = together(&stacks, &lanes);
        if tree.nodes.len() <= most || lanes[0].len() == 1 {
            return Ok((tree, chart));
        }
        stacks.halve();
    }
}

/// All lanes, one above the other, on one root.
fn together(stacks: &Stacks, lanes: &[Vec<WindowRow>]) -> (Tree, Chart) {
    let mut all = Arranged::default();
    let mut shifts = Vec::new();
    if stacks.lanes.is_empty() {
        all = Arranging::new(stacks, &lanes[0]).arranged();
    } else {
        let (first, last) = (&lanes[0][0], &lanes[0][lanes[0].len() - 1]);
        let length = last.end - first.start;
        all.nodes.push(Node {
            name: 0,
            depth: 0,
            own: length,
            weight: length,
            left: first.start,
        });
        all.own.push(0);
        all.weights.push(0);
        let mut below = 0;
        for (rows, name) in lanes.iter().zip(&stacks.lanes) {
            let mut lane = Arranging::new(stacks, rows).arranged();
            shifts.push((all.nodes.len(), below));
            lane.nodes[0].name = *name;
            lane.nodes.iter_mut().for_each(|node| node.depth += 1);
            below += lane.nodes.iter().map(|node| node.depth).max().unwrap_or(0);
            all.weights[0] = all.weights[0].saturating_add(lane.weights[0]);
            all.nodes.append(&mut lane.nodes);
            all.own.append(&mut lane.own);
            all.weights.append(&mut lane.weights);
        }
    }
    let span = |row: usize| {
        let weights = lanes.iter().map(|rows| rows[row].places[0].total);
        Span {
            start: lanes[0][row].start,
            end: lanes[0][row].end,
            weight: weights.fold(0, u64::saturating_add),
        }
    };
    let chart = Chart {
        own: all.own,
        weights: all.weights,
        windows: (0..lanes[0].len()).map(span).collect(),
        resolution: stacks.resolution(),
        lanes: shifts,
    };
    (in_use(&stacks.names, all.nodes), chart)
}

impl Chart {
    /// The row of a frame, from the root's: lanes stand above one another.
    pub(super) fn row(&self, place: usize, depth: u32) -> u32 {
        let behind = self.lanes.partition_point(|(first, _)| *first <= place);
        let lane = self.lanes[..behind].last();
        depth + lane.map_or(0, |(_, below)| *below)
    }

    /// The windows that have part in a stretch of time: from when to when they are, and what was counted in them.
    pub(super) fn around(&self, left: u64, right: u64) -> Span {
        let first = self.windows.partition_point(|span| span.end <= left);
        let behind = self.windows.partition_point(|span| span.start < right);
        let touched = &self.windows[first..behind.max(first)];
        let weights = touched.iter().map(|span| span.weight);
        Span {
            start: touched.first().map_or(left, |span| span.start),
            end: touched.last().map_or(right, |span| span.end),
            weight: weights.fold(0, u64::saturating_add),
        }
    }
}

/// Windows of a profile as spans: what a file says of them may overlap, or take no time.
fn spans(windows: &[WindowTotals]) -> Vec<(u64, u64)> {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 2);
    let first = windows.first().map_or(0, |totals| ns(totals.window.start));
    let mut behind = 0;
    windows
        .iter()
        .map(|totals| {
            let start = ns(totals.window.start).saturating_sub(first).max(behind);
            let end = ns(totals.window.end).saturating_sub(first).max(start + 1);
            behind = end;
            (start, end)
        })
        .collect()
}

/// Part of a frame: where it is in one window.
#[derive(Clone, Copy)]
struct FramePart {
    /// Of the rows.
    row: usize,
    /// Of the row's places.
    place: usize,
    /// Weight in the window to the left of it.
    offset: u64,
}

/// A frame to be: its pieces in windows that follow each other.
struct Frame {
    depth: u32,
    pieces: Vec<FramePart>,
}

/// Frames of a lane, with what was counted in each.
#[derive(Default)]
struct Arranged {
    nodes: Vec<Node>,
    own: Vec<u64>,
    weights: Vec<u64>,
}

/// Puts rows side by side.
struct Arranging<'a> {
    stacks: &'a Stacks,
    rows: &'a [WindowRow],
    nodes: Vec<Node>,
    own: Vec<u64>,
    weights: Vec<u64>,
}

impl<'a> Arranging<'a> {
    fn new(stacks: &'a Stacks, rows: &'a [WindowRow]) -> Self {
        Self {
            stacks,
            rows,
            nodes: Vec::new(),
            own: Vec::new(),
            weights: Vec::new(),
        }
    }

    fn arranged(mut self) -> Arranged {
        let root = FramePart {
            row: 0,
            place: 0,
            offset: 0,
        };
        let all = (0..self.rows.len()).map(|row| FramePart { row, ..root });
        // The next one is the last; stacks may be deep, so that this is no recursion.
        let mut waiting = vec![Frame {
            depth: 0,
            pieces: all.collect(),
        }];
        while let Some(frame) = waiting.pop() {
            let node = self.nodes.len();
            self.push(&frame);
            let called = self.called(&frame);
            for callee in &called {
                let (left, right) = self.extent(callee);
                let (time, weight) = (right - left, self.weight(callee));
                self.nodes[node].own = self.nodes[node].own.saturating_sub(time);
                self.own[node] = self.own[node].saturating_sub(weight);
            }
            waiting.extend(called.into_iter().rev());
        }
        Arranged {
            nodes: self.nodes,
            own: self.own,
            weights: self.weights,
        }
    }

    /// Adds a frame as if it had called nothing.
    fn push(&mut self, frame: &Frame) {
        let (left, right) = self.extent(frame);
        let first = &frame.pieces[0];
        let node = self.rows[first.row].places[first.place].node;
        let weight = self.weight(frame);
        self.nodes.push(Node {
            name: self.stacks.name_of(node),
            depth: frame.depth,
            own: right - left,
            weight: right - left,
            left,
        });
        self.own.push(weight);
        self.weights.push(weight);
    }

    fn weight(&self, frame: &Frame) -> u64 {
        let weights = frame.pieces.iter().map(|piece| self.total(piece));
        weights.fold(0, u64::saturating_add)
    }

    fn total(&self, piece: &FramePart) -> u64 {
        self.rows[piece.row].places[piece.place].total
    }

    /// From when to when a frame is. The root is as long as everything.
    fn extent(&self, frame: &Frame) -> (u64, u64) {
        let (first, last) = match frame.pieces.as_slice() {
            [one] => (one, one),
            [first, .., last] => (first, last),
            [] => unreachable!("a frame is somewhere"),
        };
        if frame.depth == 0 {
            return (self.rows[first.row].start, self.rows[last.row].end);
        }
        let left = self.rows[first.row].time(first.offset);
        let right = self.rows[last.row].time(last.offset.saturating_add(self.total(last)));
        (left, right)
    }

    /// The frames that a frame called, from the left.
    fn called(&self, frame: &Frame) -> Vec<Frame> {
        let items: Vec<Vec<Item>> = frame.pieces.iter().map(|piece| self.items(piece)).collect();
        let goes_on = |at: usize| {
            let (one, next) = (frame.pieces[at].row, frame.pieces[at + 1].row);
            self.rows[one].end == self.rows[next].start
        };
        let orders = joins::order(&items, goes_on);
        let mut called: Vec<Frame> = Vec::new();
        // The frame at the right end of the window before, if it goes on in this one.
        let mut open: Option<usize> = None;
        for ((piece, items), order) in frame.pieces.iter().zip(&items).zip(&orders) {
            let mut offset = piece.offset;
            let going_on = open.take();
            for (position, &item) in order.items.iter().enumerate() {
                let item = &items[item];
                let part = FramePart {
                    row: piece.row,
                    place: item.place,
                    offset,
                };
                offset = offset.saturating_add(item.weight);
                if item.node.is_none() {
                    continue;
                }
                let number = match going_on.filter(|_| position == 0) {
                    Some(number) => {
                        called[number].pieces.push(part);
                        number
                    }
                    None => {
                        called.push(Frame {
                            depth: frame.depth + 1,
                            pieces: vec![part],
                        });
                        called.len() - 1
                    }
                };
                let is_last = position + 1 == order.items.len();
                if is_last && order.goes_on {
                    open = Some(number);
                }
            }
        }
        called
    }

    /// Parts of a piece: callees by name, and what it did itself.
    fn items(&self, piece: &FramePart) -> Vec<Item> {
        let row = &self.rows[piece.row];
        let width = |weight: u64| row.time(weight) - row.time(0);
        let places = &row.places;
        let this = &places[piece.place];
        let mut items = Vec::new();
        let mut at = piece.place + 1;
        while at < this.behind as usize {
            let place = &places[at];
            items.push(Item {
                node: Some(place.node),
                place: at,
                weight: place.total,
                width: width(place.total),
            });
            at = place.behind as usize;
        }
        if this.own > 0 {
            items.push(Item {
                node: None,
                place: piece.place,
                weight: this.own,
                width: width(this.own),
            });
        }
        items
    }
}

/// The tree of these nodes, with names in the order in which these first have them.
fn in_use(names: &[crate::profile::Frame], mut nodes: Vec<Node>) -> Tree {
    let mut kept = Vec::new();
    let mut places: Vec<Option<u32>> = vec![None; names.len()];
    for node in &mut nodes {
        let name = node.name as usize;
        node.name = *places[name].get_or_insert_with(|| {
            kept.push(names[name].clone());
            kept.len() as u32 - 1
        });
    }
    Tree {
        names: kept,
        nodes,
        profilers: Vec::new(),
        rests: Rests::default(),
    }
}

#[cfg(test)]
mod tests;
