//! Actions of the mouse.
//!
//! In: where it was clicked or turned, and the live view. Out: the view as it is then.

use super::flame::{self, Filling};
use super::keys;
use super::state::{Click, View};
use super::top::{Action, Top};
use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

/// A second click within so many milliseconds is part of a double click.
const DOUBLE_MS: u64 = 400;

/// Rows that a turn of the wheel moves.
const WHEEL_ROWS: isize = 3;

/// Obeys the mouse, at a time in milliseconds.
pub(super) fn point(top: &mut Top, event: MouseEvent, now: u64) -> Action {
    let (column, row) = (event.column, event.row);
    match event.kind {
        MouseEventKind::ScrollUp => turn(top, -WHEEL_ROWS),
        MouseEventKind::ScrollDown => turn(top, WHEEL_ROWS),
        MouseEventKind::Down(MouseButton::Left) => {
            top.state.message = None;
            let click = Click {
                column,
                row,
                at: now,
            };
            let before = top.state.click.replace(click);
            let is_second = before.is_some_and(|before| {
                (before.column, before.row) == (column, row)
                    && now.saturating_sub(before.at) < DOUBLE_MS
            });
            if is_second {
                top.state.click = None;
                keys::enter(top);
            } else {
                select(top, column, row);
            }
        }
        _ => {}
    }
    Action::Draw
}

/// Moves what is out of sight.
fn turn(top: &mut Top, rows: isize) {
    let is_flame = top.state.view == View::Flame;
    // The root of a flame graph is at the bottom, and rows are counted from it.
    let rows = if is_flame && !top.state.icicle {
        -rows
    } else {
        rows
    };
    let count = match top.state.view {
        View::Flame => top.shape.nodes.iter().map(|node| node.depth as usize).max(),
        View::Tree => Some(top.lines.len()),
        View::Functions => Some(top.functions.len()),
        View::Processes => Some(top.processes.len()),
    };
    let most = (count.unwrap_or(0) + 2).saturating_sub(top.body_rows());
    let scrolled = &mut top.state.scrolled[top.state.view as usize];
    *scrolled = scrolled.saturating_add_signed(rows).min(most);
}

fn select(top: &mut Top, column: u16, row: u16) {
    let Some(line) = usize::from(row)
        .checked_sub(1)
        .filter(|l| *l < top.body_rows())
    else {
        return;
    };
    let scrolled = top.state.scrolled[top.state.view as usize];
    match top.state.view {
        View::Flame => {
            let level = scrolled
                + match top.state.icicle {
                    true => line,
                    false => top.body_rows() - 1 - line,
                };
            let units = top.theme.units();
            let room = top.body_rows();
            let rows = flame::rows(&top.shape, top.state.zoom, top.columns, units, room);
            let at = u32::from(column) * units + units / 2;
            let spans = rows.all.get(level).map_or(&[][..], |row| row);
            if let Some(span) = spans.iter().find(|span| span.range.contains(&at))
                && let Filling::Node(node) | Filling::Trunk(node) = span.filling
            {
                top.state.selected = node;
            }
        }
        View::Tree => {
            let line = line
                .checked_sub(1)
                .and_then(|l| top.lines.get(scrolled + l));
            if let Some(line) = line {
                top.state.selected = line.node;
            }
        }
        View::Functions | View::Processes => {
            let most = top.functions.len().max(top.processes.len());
            if let Some(line) = line.checked_sub(1)
                && scrolled + line < most
            {
                *top.state.table_row() = scrolled + line;
            }
        }
    }
}
