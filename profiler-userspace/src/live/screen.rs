//! The screen: a line on top, a view, a line below.
//!
//! In: the live view and a buffer of cells. Out: the cells. Every cell is drawn, whatever was there.

use super::accumulated::Keeping;
use super::canvas::Canvas;
use super::label::fit;
use super::numbers::{percent, weight};
use super::search;
use super::shape::{Grouping, ROOT, Time, owner_name};
use super::state::{Prompt, View};
use super::top::Top;
use super::{cells, help, tables};
use crate::text::number::grouped;
use ratatui::buffer::Buffer;
use ratatui::style::Style;
use std::time::Duration;
use unicode_width::UnicodeWidthStr as _;

/// Smaller screens show nothing but their first line.
const MIN_ROWS: u16 = 4;

/// Fewer columns of a title say nothing.
const MIN_TITLE: usize = 12;

/// Draws everything.
pub fn draw(top: &Top, buffer: &mut Buffer) {
    buffer.reset();
    let mut canvas = Canvas {
        buffer,
        theme: top.theme,
        columns: top.columns,
    };
    header(top, &mut canvas);
    if top.rows < MIN_ROWS {
        return;
    }
    if top.state.help {
        help::draw(top, &mut canvas);
    } else {
        body(top, &mut canvas);
    }
    footer(top, &mut canvas);
}

fn body(top: &Top, canvas: &mut Canvas<'_>) {
    match top.state.view {
        View::Flame => cells::draw(top, canvas),
        View::Functions => tables::functions(top, canvas),
        View::Tree => tables::tree(top, canvas),
        View::Processes => tables::processes(top, canvas),
    }
    if top.shape.total() <= 0.0 {
        let counted = top.status.counts.get(top.state.channel);
        let text = match counted.is_some_and(|[recorded, ..]| *recorded > 0) {
            true => "nothing is left of what is asked for; 0, c and R show more",
            false => "waiting for the first sample",
        };
        canvas.line(1 + (top.body_rows() / 2) as u16, text, Style::new());
    }
}

/// Header: the title, and how much was recorded and lost.
fn header(top: &Top, canvas: &mut Canvas<'_>) {
    let (style, columns) = (canvas.theme.bar(), usize::from(canvas.columns));
    let channel = &top.channels[top.state.channel];
    let [recorded, filtered, lost] = counts(top);
    let mut facts = vec![
        span(top),
        format!("{} recorded", grouped(recorded)),
        format!("{} lost", grouped(lost)),
        format!("own {:.1}%", top.status.cost * 100.0),
    ];
    if filtered > 0 && columns >= 120 {
        facts.insert(2, format!("{} filtered", grouped(filtered)));
    }
    let facts = facts.join("  ");
    let title_columns = columns.saturating_sub(facts.width() + 2);
    let mut title = filters(top).join(" ");
    if !title.is_empty() {
        title.push(' ');
    }
    if top.channels.len() > 1 {
        title.push_str(&format!("{}: ", channel.name));
    }
    title.push_str(&channel.title);
    canvas.line(0, "", style);
    if title_columns >= MIN_TITLE {
        let end = take_end(&title, title_columns, canvas.theme.cut());
        canvas.text(0, 0, &end, style);
    }
    let start = columns.saturating_sub(facts.width());
    canvas.text(start as u16, 0, &facts, style);
    if lost > 0
        && let Some(at) = facts.find(&format!("{} lost", grouped(lost)))
    {
        let before = facts[..at].width();
        let text = format!("{} lost", grouped(lost));
        canvas.text((start + before) as u16, 0, &text, canvas.theme.warning());
    }
}

/// The beginning of a text that is too long.
fn take_end(text: &str, columns: usize, cut: &str) -> String {
    match text.width() <= columns {
        true => text.to_owned(),
        false => {
            let room = columns.saturating_sub(cut.width());
            super::label::padded(text, room) + cut
        }
    }
}

/// Counts of the event that is shown: recorded, filtered, lost.
fn counts(top: &Top) -> [u64; 3] {
    let counts = top.status.counts.get(top.state.channel);
    counts.copied().unwrap_or_default()
}

/// Which windows count.
fn span(top: &Top) -> String {
    let length = seconds(top.status.elapsed);
    match top.state.keeping {
        _ if top.state.frozen => format!("FROZEN {length}"),
        Keeping::All => format!("all {length}"),
        Keeping::Fading => format!("fading {length}"),
        Keeping::Last => format!("last 1 s of {length}"),
    }
}

fn seconds(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    match (seconds / 3600, seconds / 60) {
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes}:{:02}", seconds % 60),
        (hours, minutes) => format!("{hours}:{:02}:{:02}", minutes % 60, seconds % 60),
    }
}

/// Filters and other settings that are not the usual ones.
fn filters(top: &Top) -> Vec<String> {
    let wanted = &top.state.wanted;
    let mut filters = Vec::new();
    match wanted.time {
        Time::All => {}
        Time::On => filters.push("[on-CPU]".to_owned()),
        Time::Off => filters.push("[off-CPU]".to_owned()),
    }
    if let Some(owner) = &wanted.only {
        let name = owner_name(owner, Grouping::Threads);
        filters.extend(name.map(|name| format!("[{}]", name.text)));
    }
    if wanted.reverse {
        filters.push("[callers]".to_owned());
    }
    if wanted.runtime_only {
        filters.push("[runtime only]".to_owned());
    }
    if !wanted.kernel {
        filters.push("[no kernel]".to_owned());
    }
    filters
}

/// The selected name, the text being typed, or the result of the last key.
fn footer(top: &Top, canvas: &mut Canvas<'_>) {
    let (row, style) = (top.rows - 1, canvas.theme.bar());
    let columns = usize::from(canvas.columns);
    canvas.line(row, "", style);
    let right = right_of_footer(top);
    let room = columns.saturating_sub(right.width() + 1);
    let left = match (&top.state.prompt, &top.state.message) {
        (Some(Prompt::Search(text)), _) => format!("/{text}_"),
        (Some(Prompt::Save(text)), _) => format!("save as: {text}_"),
        (None, Some(message)) => message.clone(),
        (None, None) => selected(top),
    };
    let left = fit(&left, room, canvas.theme.cut());
    canvas.text(0, row, &left, style);
    let start = columns.saturating_sub(right.width());
    canvas.text(start as u16, row, &right, style);
}

fn selected(top: &Top) -> String {
    match (top.state.view, top.state.selected) {
        (View::Flame | View::Tree, ROOT) => match &top.status.remark {
            Some(remark) => remark.clone(),
            None if top.status.naming > 0 => {
                format!("looking for names of {} files", top.status.naming)
            }
            None => format!("{}; ? for help, q to end", top.state.view.name()),
        },
        (View::Flame | View::Tree, node) => top.shape.name(node).text.to_string(),
        (View::Functions, _) => {
            let row = top.functions.get(top.state.row[0]);
            row.map(|row| row.name.text.to_string()).unwrap_or_default()
        }
        (View::Processes, _) => {
            let row = top.processes.get(top.state.row[1]);
            let name = row.and_then(|row| owner_name(&row.owner, Grouping::Threads));
            name.map(|name| name.text.to_string()).unwrap_or_default()
        }
    }
}

fn right_of_footer(top: &Top) -> String {
    let state = &top.state;
    if let (Some(Prompt::Search(_)), Some(error)) = (&state.prompt, &state.search_error) {
        return error.clone();
    }
    if matches!(state.prompt, Some(Prompt::Save(_))) {
        return "Enter saves, Esc does not".to_owned();
    }
    let unit = &top.channels[state.channel].unit;
    let all = top.shape.total();
    let matched =
        search::matched(top).map(|weight| format!("matched {}", percent(weight, all).trim_start()));
    let sums = match (state.view, state.selected) {
        (View::Flame | View::Tree, node) => {
            let sum = top.shape.node(node).weight();
            let zoomed = top.shape.node(state.zoom).weight();
            let mut parts = vec![weight(unit, sum)];
            if node != ROOT {
                parts.push(percent(sum, all).trim_start().to_owned());
            }
            if state.zoom != ROOT && node != ROOT {
                let share = percent(sum, zoomed);
                parts.push(format!("{} of zoomed", share.trim_start()));
            }
            parts.join(", ")
        }
        (View::Functions, _) => {
            let row = top.functions.get(state.row[0]);
            let own = row.map(|row| format!("self {}", weight(unit, row.own)));
            own.unwrap_or_default()
        }
        (View::Processes, _) => {
            let row = top.processes.get(state.row[1]);
            row.map(|row| weight(unit, row.weight()))
                .unwrap_or_default()
        }
    };
    let parts: Vec<String> = matched.into_iter().chain([sums]).collect();
    parts.join("  ")
}
