//! Actions of the keys.
//!
//! In: a key and the live view. Out: the view as it is then, and what is left to be done outside of it.

use super::accumulated::Keeping;
use super::shape::{Grouping, ROOT, Time};
use super::state::{Prompt, View};
use super::top::{Action, Top};
use super::{search, tree};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::path::PathBuf;

/// Obeys a key.
pub(super) fn press(top: &mut Top, key: KeyEvent) -> Action {
    top.state.message = None;
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    if is_control {
        return match key.code {
            KeyCode::Char('c') if top.state.prompt.take().is_some() => Action::Draw,
            KeyCode::Char('c') => Action::Quit,
            KeyCode::Char('z') => Action::Suspend,
            KeyCode::Char('l') => Action::Redraw,
            _ => Action::Draw,
        };
    }
    if top.state.prompt.is_some() {
        return type_in(top, key.code);
    }
    if std::mem::take(&mut top.state.help) {
        return Action::Draw;
    }
    match key.code {
        KeyCode::Char('q') => return Action::Quit,
        KeyCode::Char('?') | KeyCode::F(1) => top.state.help = true,
        KeyCode::Tab => show(top, top.state.view.next(false)),
        KeyCode::BackTab => show(top, top.state.view.next(true)),
        KeyCode::Char(digit @ '1'..='4') => {
            show(top, View::ALL[digit as usize - '1' as usize]);
        }
        KeyCode::Char(' ' | 'z') => top.set_frozen(!top.state.frozen),
        KeyCode::Char('/') => top.state.prompt = Some(Prompt::Search(String::new())),
        KeyCode::Char('s') => top.state.prompt = Some(Prompt::Save(String::new())),
        KeyCode::Char('n') => search::go(top, false),
        KeyCode::Char('N') => search::go(top, true),
        KeyCode::Char('#') => search::of_selected(top),
        code => change(top, code),
    }
    Action::Draw
}

/// Keys that change what is seen, or where.
fn change(top: &mut Top, code: KeyCode) {
    let state = &mut top.state;
    match code {
        KeyCode::Char('i') => {
            state.icicle = !state.icicle;
            state.order();
            top.refresh();
        }
        KeyCode::Char('o') => {
            state.by_weight = Some(!state.wanted.by_weight);
            state.order();
            top.refresh();
        }
        KeyCode::Char('r') => {
            state.wanted.reverse = !state.wanted.reverse;
            state.order();
            (state.zoom, state.selected) = (ROOT, ROOT);
            top.refresh();
        }
        KeyCode::Char('K') => {
            state.wanted.kernel = !state.wanted.kernel;
            top.refresh();
        }
        KeyCode::Char('I') => {
            state.wanted.runtime_only = !state.wanted.runtime_only;
            top.refresh();
        }
        KeyCode::Char('p') => {
            state.wanted.grouping = match state.wanted.grouping {
                Grouping::Names => Grouping::Processes,
                Grouping::Processes => Grouping::Nothing,
                Grouping::Nothing | Grouping::Threads => Grouping::Names,
            };
            top.refresh();
        }
        KeyCode::Char('t') if top.has_threads => {
            state.wanted.grouping = match state.wanted.grouping {
                Grouping::Threads => Grouping::Names,
                _ => Grouping::Threads,
            };
            top.refresh();
        }
        KeyCode::Char('t') => {
            top.say("threads are not told apart; begin with --per-thread".to_owned());
        }
        KeyCode::Char('c') => next_time(top),
        KeyCode::Char('m') => {
            state.keeping = match state.keeping {
                Keeping::All => Keeping::Fading,
                Keeping::Fading => Keeping::Last,
                Keeping::Last => Keeping::All,
            };
        }
        KeyCode::Char('R') => {
            top.reset();
            top.say("forgot what was counted before".to_owned());
        }
        code => travel(top, code),
    }
}

/// The next event, or the other part of this one's time.
fn next_time(top: &mut Top) {
    let state = &mut top.state;
    let both = top.channels[state.channel].has_both;
    match state.wanted.time {
        Time::All if both => state.wanted.time = Time::On,
        Time::On => state.wanted.time = Time::Off,
        Time::All | Time::Off if top.channels.len() > 1 => {
            state.wanted.time = Time::All;
            state.channel = (state.channel + 1) % top.channels.len();
            state.frozen = false;
            top.set_frozen(false);
        }
        Time::Off => state.wanted.time = Time::All,
        Time::All => top.say(
            "there is one event; begin with --wall for all of the time, or with two -e".to_owned(),
        ),
    }
    top.refresh();
}

/// Shows another view.
pub(super) fn show(top: &mut Top, view: View) {
    top.state.view = view;
    top.refresh();
    search::follow(top);
}

/// Keys that lead from one place to another.
fn travel(top: &mut Top, code: KeyCode) {
    let page = top.body_rows().saturating_sub(2).max(1) as isize;
    match code {
        KeyCode::Char('0') => {
            (top.state.zoom, top.state.wanted.only) = (ROOT, None);
            top.refresh();
        }
        KeyCode::Enter => enter(top),
        KeyCode::Esc | KeyCode::Backspace => leave(top),
        KeyCode::Up | KeyCode::Char('k') => step(top, -1),
        KeyCode::Down | KeyCode::Char('j') => step(top, 1),
        KeyCode::PageUp => step(top, -page),
        KeyCode::PageDown => step(top, page),
        KeyCode::Left | KeyCode::Char('h') => sideways(top, true),
        KeyCode::Right | KeyCode::Char('l') => sideways(top, false),
        KeyCode::Home => end(top, false),
        KeyCode::End => end(top, true),
        _ => {}
    }
    search::follow(top);
}

/// Into what is selected.
pub(super) fn enter(top: &mut Top) {
    let state = &mut top.state;
    match state.view {
        View::Flame | View::Tree => {
            state.zoom = state.selected;
            top.relist();
        }
        View::Functions => {
            if let Some(row) = top.functions.get(state.row[0]) {
                let name = row.name.text.to_string();
                search::for_name(top, &name);
                show(top, View::Flame);
                search::go(top, false);
            }
        }
        View::Processes => {
            if let Some(row) = top.processes.get(state.row[1]) {
                state.wanted.only = Some(row.owner.clone());
                (state.zoom, state.selected) = (ROOT, ROOT);
                show(top, View::Flame);
            }
        }
    }
}

/// Out of it, one level.
fn leave(top: &mut Top) {
    let state = &mut top.state;
    if state.zoom != ROOT {
        state.zoom = top.shape.node(state.zoom).parent;
        top.relist();
    } else if state.wanted.only.take().is_some() {
        top.refresh();
    } else {
        state.search = None;
    }
}

/// Up or down by rows, down being positive.
pub(super) fn step(top: &mut Top, rows: isize) {
    match top.state.view {
        View::Flame => {
            let is_up = rows < 0;
            for _ in 0..rows.unsigned_abs() {
                // Callees are above their callers, unless the graph is turned over.
                step_flame(top, is_up != top.state.icicle);
            }
        }
        View::Tree => {
            let at = (top.lines.iter()).position(|line| line.node == top.state.selected);
            let to = at.map_or(0, |at| at.saturating_add_signed(rows));
            let to = to.min(top.lines.len().saturating_sub(1));
            if let Some(line) = top.lines.get(to) {
                top.state.selected = line.node;
            }
        }
        View::Functions | View::Processes => {
            let most = top.functions.len().max(top.processes.len());
            let row = top.state.table_row();
            *row = row.saturating_add_signed(rows).min(most.saturating_sub(1));
        }
    }
}

fn step_flame(top: &mut Top, to_callee: bool) {
    let state = &mut top.state;
    let next = match to_callee {
        true => top.shape.heaviest(state.selected),
        false => Some(top.shape.node(state.selected).parent),
    };
    state.selected = next.unwrap_or(state.selected);
}

/// To a neighbour in the graph; closes and opens in the tree.
fn sideways(top: &mut Top, is_left: bool) {
    match top.state.view {
        View::Flame => {
            let selected = top.state.selected;
            let parent = top.shape.node(selected).parent;
            let siblings = &top.shape.node(parent).children;
            let Some(at) = siblings.iter().position(|node| *node == selected) else {
                return;
            };
            let next = match is_left {
                true => at.checked_sub(1),
                false => Some(at + 1),
            };
            if let Some(node) = next.and_then(|next| siblings.get(next)) {
                top.state.selected = *node;
            }
        }
        View::Tree => {
            let state = &mut top.state;
            let selected = state.selected;
            let node = top.shape.node(selected);
            let is_open = tree::is_open(&top.shape, selected, &state.turned);
            let has_callees = !node.children.is_empty();
            if has_callees && is_open == is_left && selected != ROOT {
                let path = top.shape.path(selected);
                if !state.turned.remove(&path) {
                    state.turned.insert(path);
                }
                top.relist();
            } else if is_left && node.parent != ROOT {
                state.selected = node.parent;
            } else if !is_left && has_callees {
                step(top, 1);
            }
        }
        View::Functions | View::Processes => {}
    }
}

/// To the first row, or the last.
fn end(top: &mut Top, is_last: bool) {
    match top.state.view {
        View::Flame if is_last != top.state.icicle => top.state.selected = top.state.zoom,
        View::Flame => {
            while let Some(next) = top.shape.heaviest(top.state.selected) {
                top.state.selected = next;
            }
        }
        _ => step(top, if is_last { isize::MAX } else { -isize::MAX }),
    }
}

/// Takes over a pasted text while something is typed.
pub(super) fn paste(top: &mut Top, pasted: &str) -> Action {
    if let Some(Prompt::Search(text) | Prompt::Save(text)) = &mut top.state.prompt {
        text.extend(pasted.chars().filter(|c| !c.is_control()));
        search::typed(top);
    }
    Action::Draw
}

/// A key while something is typed.
fn type_in(top: &mut Top, code: KeyCode) -> Action {
    let Some(prompt) = &mut top.state.prompt else {
        return Action::Draw;
    };
    let (Prompt::Search(text) | Prompt::Save(text)) = prompt;
    match code {
        KeyCode::Esc => {
            let is_search = matches!(prompt, Prompt::Search(_));
            top.state.prompt = None;
            if is_search {
                top.state.search = None;
            }
            return Action::Draw;
        }
        KeyCode::Enter => {
            let prompt = top.state.prompt.take();
            return match prompt {
                Some(Prompt::Save(path)) if !path.is_empty() => Action::Save(PathBuf::from(path)),
                Some(Prompt::Search(_)) => {
                    search::go(top, false);
                    Action::Draw
                }
                _ => Action::Draw,
            };
        }
        KeyCode::Backspace => {
            text.pop();
        }
        KeyCode::Char(c) => text.push(c),
        _ => {}
    }
    search::typed(top);
    Action::Draw
}
