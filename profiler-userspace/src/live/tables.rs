//! Tables: functions, calls as a tree, processes.
//!
//! In: rows. Out: cells, a heading first, the selected row marked.

use super::canvas::Canvas;
use super::label::{fit, padded, without_middle};
use super::numbers::percent;
use super::shape::{Grouping, owner_name};
use super::state::View;
use super::top::Top;
use ratatui::style::{Modifier, Style};

/// Columns of two shares, and of what is between them and names.
const SHARES: usize = 15;

/// Draws the table of functions.
pub(super) fn functions(top: &Top, canvas: &mut Canvas<'_>) {
    let columns = usize::from(top.columns);
    let modules = (columns / 4).min(24);
    let names = columns.saturating_sub(SHARES + modules + 2);
    let heading = format!("  self   total  {}  module", padded("function", names));
    heading_line(canvas, &heading);
    let all = top.shape.total();
    for (line, row, is_selected) in in_sight(top, &top.functions) {
        let name = fit(
            &row.name.kind.annotate(&row.name.text),
            names,
            top.theme.cut(),
        );
        let text = format!(
            "{} {}  {}  {}",
            percent(row.own, all),
            percent(row.total, all),
            padded(&name, names),
            without_middle(&row.module, modules, top.theme.cut())
        );
        let is_met = is_met(top, &row.name.text);
        table_line(canvas, line, &text, style(top, is_selected, is_met));
    }
}

/// Draws the tree of calls.
pub(super) fn tree(top: &Top, canvas: &mut Canvas<'_>) {
    let columns = usize::from(top.columns);
    let what = match top.state.wanted.reverse {
        true => "callers, from where time was spent",
        false => "calls, from the root",
    };
    heading_line(canvas, &format!(" total    self  {what}"));
    let all = top.shape.total();
    let view = View::Tree as usize;
    let room = top.body_rows().saturating_sub(1);
    let lines = top.lines.iter().skip(top.state.scrolled[view]).take(room);
    for (place, line) in lines.enumerate() {
        let node = top.shape.node(line.node);
        let name = top.shape.name(line.node);
        // However deep it is, half of the line is left for its name.
        let indent = (usize::from(line.indent) * 2).min(columns / 2 - SHARES.min(columns / 2));
        let sign = match (line.is_open, top.theme.unicode) {
            (None, _) => ' ',
            (Some(true), true) => '▾',
            (Some(false), true) => '▸',
            (Some(true), false) => '-',
            (Some(false), false) => '+',
        };
        let own = percent(node.own, all);
        let used = SHARES + indent + 2;
        let text = format!(
            "{} {own}  {}{sign} {}",
            percent(node.weight(), all),
            " ".repeat(indent),
            fit(
                &name.kind.annotate(&name.text),
                columns.saturating_sub(used),
                top.theme.cut()
            )
        );
        let is_selected = line.node == top.state.selected;
        let style = style(top, is_selected, is_met(top, &name.text));
        table_line(canvas, place, &text, style);
    }
}

/// Draws the table of processes.
pub(super) fn processes(top: &Top, canvas: &mut Canvas<'_>) {
    let columns = usize::from(top.columns);
    let both = top.channels[top.state.channel].has_both;
    let times = if both { " on-CPU off-CPU" } else { "" };
    let what = if top.has_threads { "thread" } else { "process" };
    heading_line(canvas, &format!(" share{times}      PID  {what}"));
    let all: f64 = top.processes.iter().map(|row| row.weight()).sum();
    for (line, row, is_selected) in in_sight(top, &top.processes) {
        let times = match both {
            true => format!(
                " {}  {}",
                percent(row.time[0], all),
                percent(row.time[1], all)
            ),
            false => String::new(),
        };
        let pid = match (row.owner.pid, row.owner.tid) {
            (_, Some(tid)) => tid.to_string(),
            (Some(pid), None) => pid.to_string(),
            // Those that are told apart by name alone.
            (None, None) => "others".to_owned(),
        };
        let name = owner_name(&row.owner, Grouping::Names).map(|name| name.text);
        let name = name.unwrap_or_default();
        let used = 6 + times.len() + 1 + 8 + 2;
        let text = format!(
            "{}{times} {pid:>8}  {}",
            percent(row.weight(), all),
            fit(&name, columns.saturating_sub(used), top.theme.cut())
        );
        table_line(
            canvas,
            line,
            &text,
            style(top, is_selected, is_met(top, &name)),
        );
    }
}

fn heading_line(canvas: &mut Canvas<'_>, text: &str) {
    let style = canvas.theme.heading();
    canvas.line(1, text, style);
}

/// Draws a row of a table, the first of which is 0.
fn table_line(canvas: &mut Canvas<'_>, place: usize, text: &str, style: Style) {
    canvas.line(place as u16 + 2, text, style);
}

/// The rows of a table that are in sight, and whether each is selected.
fn in_sight<'a, T>(top: &'a Top, all: &'a [T]) -> impl Iterator<Item = (usize, &'a T, bool)> {
    let scrolled = top.state.scrolled[top.state.view as usize];
    let selected = top.state.row[usize::from(top.state.view == View::Processes)];
    let selected = selected.min(all.len().saturating_sub(1));
    let rows = all.iter().enumerate().skip(scrolled);
    let rows = rows.take(top.body_rows().saturating_sub(1)).enumerate();
    rows.map(move |(line, (place, row))| (line, row, place == selected))
}

fn is_met(top: &Top, name: &str) -> bool {
    let pattern = top.state.search.as_ref();
    pattern.is_some_and(|pattern| pattern.is_met_by(name))
}

fn style(top: &Top, is_selected: bool, is_met: bool) -> Style {
    match (is_selected, is_met) {
        (true, _) => Style::new().add_modifier(Modifier::REVERSED),
        (_, true) => top.theme.matching(),
        _ => Style::new(),
    }
}
