//! Searching by name.
//!
//! In: what was typed, and the live view. Out: a pattern, and the view moved to what meets it, the most first.

use super::flame;
use super::shape::ROOT;
use super::state::{Prompt, View};
use super::top::Top;
use crate::profile::select::Pattern;

/// Takes over what is being typed. Case counts if there is a capital letter.
pub(super) fn typed(top: &mut Top) {
    let Some(Prompt::Search(text)) = &top.state.prompt else {
        return;
    };
    top.state.search_error = None;
    if text.is_empty() {
        top.state.search = None;
        return;
    }
    let prefix = match text.chars().any(char::is_uppercase) {
        true => "",
        false => "(?i)",
    };
    match Pattern::parse(&format!("{prefix}{text}")) {
        Ok(pattern) => top.state.search = Some(pattern),
        Err(error) => {
            let first = error.lines().last().unwrap_or_default();
            top.state.search_error = Some(first.to_owned());
        }
    }
}

/// Searches for exactly this name.
pub(super) fn for_name(top: &mut Top, name: &str) {
    top.state.search = Pattern::parse(&format!("^{}$", escaped(name))).ok();
}

/// Searches for what is selected.
pub(super) fn of_selected(top: &mut Top) {
    let state = &top.state;
    let name = match state.view {
        View::Flame | View::Tree if state.selected != ROOT => {
            Some(top.shape.name(state.selected).text.to_string())
        }
        View::Functions => (top.functions.get(state.row[0])).map(|row| row.name.text.to_string()),
        _ => None,
    };
    if let Some(name) = name {
        for_name(top, &name);
    }
}

/// A pattern that this text meets, and no other.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if c.is_ascii_punctuation() {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// How much of what is zoomed to is below something that meets the pattern, or in it.
pub(super) fn matched(top: &Top) -> Option<f64> {
    let pattern = top.state.search.as_ref()?;
    let meets: Vec<bool> = (top.shape.names.iter())
        .map(|name| pattern.is_met_by(&name.text))
        .collect();
    let mut sum = 0.0;
    let mut todo = vec![top.state.zoom];
    while let Some(index) = todo.pop() {
        let node = top.shape.node(index);
        if index != ROOT && meets[node.name as usize] {
            sum += node.weight();
        } else {
            todo.extend(&node.children);
        }
    }
    Some(sum)
}

/// Selects the next of what meets the pattern, or the one before.
pub(super) fn go(top: &mut Top, back: bool) {
    let Some(pattern) = &top.state.search else {
        top.say("nothing to search for; type / and a name".to_owned());
        return;
    };
    let next = match top.state.view {
        View::Flame | View::Tree => {
            let mut found: Vec<u32> = (1..top.shape.nodes.len() as u32)
                .filter(|node| pattern.is_met_by(&top.shape.name(*node).text))
                .filter(|node| top.shape.node(*node).weight() > 0.0)
                .collect();
            let weight = |node: u32| top.shape.node(node).weight();
            found.sort_by(|a, b| weight(*b).total_cmp(&weight(*a)).then_with(|| a.cmp(b)));
            let at = found.iter().position(|node| *node == top.state.selected);
            after(at, found.len(), back).map(|place| found[place] as usize)
        }
        View::Functions => {
            let names = top.functions.iter().map(|row| &*row.name.text);
            in_table(names, pattern, top.state.row[0], back)
        }
        View::Processes => {
            let names = top.processes.iter().map(|row| &*row.owner.name);
            in_table(names, pattern, top.state.row[1], back)
        }
    };
    match (next, top.state.view) {
        (None, _) => top.say("nothing has such a name".to_owned()),
        (Some(node), View::Flame | View::Tree) => select(top, node as u32),
        (Some(row), _) => *top.state.table_row() = row,
    }
    follow(top);
}

fn in_table<'a>(
    names: impl Iterator<Item = &'a str>,
    pattern: &Pattern,
    row: usize,
    back: bool,
) -> Option<usize> {
    let found = names
        .enumerate()
        .filter(|(_, name)| pattern.is_met_by(name));
    let found: Vec<usize> = found.map(|(row, _)| row).collect();
    let next = match back {
        true => found.iter().rev().find(|found| **found < row),
        false => found.iter().find(|found| **found > row),
    };
    let wrapped = match back {
        true => found.last(),
        false => found.first(),
    };
    next.or(wrapped).copied()
}

/// The place behind or before another, around the end.
fn after(at: Option<usize>, count: usize, back: bool) -> Option<usize> {
    match (at, back) {
        _ if count == 0 => None,
        (None, false) => Some(0),
        (None, true) => Some(count - 1),
        (Some(at), false) => Some((at + 1) % count),
        (Some(at), true) => Some((at + count - 1) % count),
    }
}

/// Selects a node, zooming out as far as it takes to see it.
pub(super) fn select(top: &mut Top, node: u32) {
    while !top.shape.is_above(node, top.state.zoom) {
        top.state.zoom = top.shape.node(top.state.zoom).parent;
    }
    top.state.selected = node;
    if top.state.view == View::Tree {
        let mut below = top.shape.node(node).parent;
        while below != ROOT {
            let path = top.shape.path(below);
            if !super::tree::is_open(&top.shape, below, &top.state.turned)
                && !top.state.turned.remove(&path)
            {
                top.state.turned.insert(path);
            }
            below = top.shape.node(below).parent;
        }
        top.relist();
    }
}

/// Moves what is out of sight so that what is selected is in sight.
pub(super) fn follow(top: &mut Top) {
    let view = top.state.view;
    let (row, room) = match view {
        View::Flame => {
            let (room, units) = (top.body_rows(), top.theme.units());
            let rows = flame::rows(&top.shape, top.state.zoom, top.columns, units, room);
            let level = top.shape.node(top.state.selected).depth as usize;
            (rows.of_level(level), room)
        }
        View::Tree => {
            let at = (top.lines.iter()).position(|line| line.node == top.state.selected);
            (at.unwrap_or(0), top.body_rows().saturating_sub(1))
        }
        View::Functions => (top.state.row[0], top.body_rows().saturating_sub(1)),
        View::Processes => (top.state.row[1], top.body_rows().saturating_sub(1)),
    };
    let scrolled = &mut top.state.scrolled[view as usize];
    *scrolled = (*scrolled).clamp((row + 1).saturating_sub(room.max(1)), row);
}
