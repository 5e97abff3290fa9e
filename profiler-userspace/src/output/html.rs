//! One HTML file: flame graph, icicle, sandwich, functions, timeline, filters, search and export, in any browser.
//!
//! In: a profile and its style. Out: one page without requests, the same bytes for the same profile.
//! Never: a name as markup. All text that is not ours is in a compressed stream, which is base64 in the page, and is
//! shown as text.
//!
//! [`calls`] and [`owners`] make columns of a profile, [`packed`] bytes of columns, [`page`] a page of bytes. The
//! viewer's own files are in `html/viewer`; `viewer/unpack.js` reads what is written here.

mod calls;
mod owners;
mod packed;
mod page;
#[cfg(test)]
mod tests;

use super::bound::{Bound, HOW_TO_KEEP};
use super::{CalleeOrder, Error, SourceFile, SourceText, Style, timed};
use crate::profile::fold::visible;
use crate::profile::{CallTree, Narrowed, Profile, TreeSample, Window, WindowTotals};
use crate::text::number::grouped;
use calls::Calls;
use owners::Owners;
use packed::{Columns, Names};
use profiler_common::abi::ThreadState;
use profiler_common::runtime::RuntimeKind;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

/// Kind of the data, as it says itself; the number rises when the viewer has to change.
const FORMAT: &str = "flame-bpf page 4";

/// One of the profiles that a page holds.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its name beside others on the page.
    pub name: String,
    /// The profile.
    pub profile: Profile,
}

/// Writes the page of a profile. Fails on one without weight, and on a style that cannot be drawn.
pub(super) fn write(profile: &Profile, style: &Style, out: &mut dyn Write) -> Result<(), Error> {
    page_of(&[("", profile, style)], out)
}

/// Writes a page of several profiles, each with its title and notes; how it looks, the first says. Fails where one has no
/// weight, or no style that can be drawn.
///
/// # Errors
/// As said, or when the bytes are refused.
pub fn write_page(sections: &[(Section, Style)], out: &mut dyn Write) -> Result<(), Error> {
    let all: Vec<(&str, &Profile, &Style)> = sections
        .iter()
        .map(|(section, style)| (&*section.name, &section.profile, style))
        .collect();
    page_of(&all, out)
}

fn page_of(sections: &[(&str, &Profile, &Style)], out: &mut dyn Write) -> Result<(), Error> {
    for (_, profile, style) in sections {
        style.check()?;
        if profile.total_weight() == 0 {
            return Err(Error::Empty);
        }
        if style.chart && profile.windows.is_empty() {
            return Err(Error::NoWindows);
        }
    }
    let (_, first, style) = sections.first().ok_or(Error::Empty)?;
    let trees: Vec<CallTree> = sections
        .iter()
        .map(|(_, profile, style)| match style.source {
            Some(_) => CallTree::by_line(profile),
            None => CallTree::new(profile),
        })
        .collect();
    let nodes = trees.iter().map(|tree| tree.nodes().len()).max();
    let data = BOUND.fit(style, |most| {
        let data = data(sections, &trees, most)?;
        let bytes = data.len();
        Ok((data, bytes, nodes.unwrap_or_default()))
    })?;
    Ok(page::write(&title(first, style), &data, out)?)
}

/// The bound of the data, beside the viewer; nodes of each profile.
const BOUND: Bound = Bound {
    bytes: 4_800_000,
    parts: 250_000,
};

/// The title of a profile: of a chart, with how long its windows are.
fn title(profile: &Profile, style: &Style) -> String {
    let resolution = WindowTotals::resolution(&profile.windows);
    let title = match style.chart {
        true => timed(&style.title, resolution),
        false => style.title.clone(),
    };
    visible(&title).into_owned()
}

/// Everything that the viewer shows, packed.
fn data(
    profiles: &[(&str, &Profile, &Style)],
    trees: &[CallTree],
    most: usize,
) -> std::io::Result<String> {
    let looks = profiles[0].2;
    let mut names = Names::default();
    let mut columns = Columns::default();
    let sections: Vec<Value> = profiles
        .iter()
        .zip(trees)
        .map(|(section, tree)| self::section(section, tree, most, &mut names, &mut columns))
        .collect();
    let header = json!({
        "format": FORMAT,
        "inverted": looks.inverted,
        "reversed": looks.reverse,
        "order": looks.order.map_or("", CalleeOrder::name),
        "chart": looks.chart,
        "height": looks.height,
        "runtimes": RuntimeKind::ALL.map(RuntimeKind::short),
        "names": names.all(),
        "profiles": sections,
    });
    packed::pack(&header, &columns)
}

/// Header of a profile, whose columns follow those that are there.
fn section(
    &(name, profile, style): &(&str, &Profile, &Style),
    tree: &CallTree,
    most: usize,
    names: &mut Names,
    columns: &mut Columns,
) -> Value {
    let narrowed = (most < tree.nodes().len()).then(|| tree.narrowed(most));
    let tree = narrowed.as_ref().map_or(tree, |narrowed| &narrowed.tree);
    let hidden = narrowed.as_ref().map(|narrowed| &*narrowed.hidden);
    let begin = columns.len();
    let calls = Calls::new(profile, tree, style.source.is_some());
    calls.push(hidden.unwrap_or_default(), names, columns);
    let owners = Owners::new(profile, tree);
    owners.push(names, columns);
    push_samples(tree, &calls, &owners, columns);
    let window = profile.window;
    let notes: Vec<String> = style
        .notes
        .lines()
        .map(|line| visible(line).into_owned())
        .chain(narrowed.as_ref().map(note))
        .collect();
    let mut header = json!({
        "name": visible(name),
        "title": title(profile, style),
        "subtitle": style.subtitle.as_deref().map(visible),
        "notes": notes,
        "unit": profile.unit.name(),
        "activity": profile.origin.activity.word(),
        "period_ns": profile.origin.period_ns,
        "duration_ns": window.length().as_nanos() as u64,
        "windows": windows(profile),
        "columns": columns.shapes(begin),
    });
    if let Some(text) = &style.source {
        header["lines"] = profile.line_frames.into();
        header["source"] = source(text);
    }
    header
}

/// A sentence about rests.
fn note(narrowed: &Narrowed) -> String {
    let mut note = format!(
        "narrow frames: {} are hatched rests: {HOW_TO_KEEP}",
        grouped(narrowed.nodes)
    );
    if narrowed.unknown > 0 {
        let unknown = grouped(narrowed.unknown);
        let _ = write!(note, "; search does not know {unknown} functions of these");
    }
    note
}

/// The source that the page shows, by the paths that frames have.
fn source(text: &SourceText) -> Value {
    let file = |(path, file): (&str, &SourceFile)| {
        let runs = file.runs.iter().map(|run| json!([run.first, run.lines]));
        json!({
            "path": path,
            "found_at": file.found_at,
            "newer": file.is_newer,
            "runs": runs.collect::<Vec<Value>>(),
        })
    };
    text.files().map(file).collect()
}

/// The windows: begin, end, firings, how many of them were filtered and lost, and how long CPUs were busy.
fn windows(profile: &Profile) -> Value {
    let ns = |time: Duration| time.as_nanos() as u64;
    let row = |totals: &WindowTotals| {
        let Window { start, end } = totals.window;
        json!([
            ns(start),
            ns(end),
            totals.firings,
            totals.filtered,
            totals.lost,
            totals.busy_ns
        ])
    };
    profile.windows.iter().map(row).collect()
}

/// The samples, by node, so that the viewer meets callers before what they called.
fn push_samples(tree: &CallTree, calls: &Calls, owners: &Owners, columns: &mut Columns) {
    let place = |sample: &TreeSample| {
        let node = calls.place(sample.node);
        let owner = owners.place(sample.labels);
        let window = sample.window.0;
        (node, owner, state(sample.thread_state), window)
    };
    let mut samples: Vec<_> = tree
        .samples()
        .iter()
        .map(|sample| (place(sample), sample))
        .collect();
    samples.sort_by_key(|(place, _)| *place);
    let mut before = 0;
    columns.push(
        "sample_node",
        samples.iter().map(|((node, ..), _)| {
            let step = node - std::mem::replace(&mut before, *node);
            u64::from(step)
        }),
    );
    let owner = samples.iter().map(|((_, owner, ..), _)| u64::from(*owner));
    columns.push("sample_owner", owner);
    let state = samples
        .iter()
        .map(|((_, _, state, _), _)| u64::from(*state));
    columns.push("sample_state", state);
    let window = samples.iter().map(|((.., window), _)| u64::from(*window));
    columns.push("sample_window", window);
    let count = samples.iter().map(|(_, sample)| sample.count);
    columns.push("sample_count", count);
    let weight = samples.iter().map(|(_, sample)| sample.weight);
    columns.push("sample_weight", weight);
}

/// A state's number in the viewer.
fn state(state: ThreadState) -> u32 {
    match state {
        ThreadState::Running | ThreadState::Ran => 0,
        ThreadState::Runnable => 1,
        ThreadState::Blocked | ThreadState::Woken => 2,
    }
}
