//! Help: the keys, and the meaning of the colours.

use super::calls::Name;
use super::canvas::Canvas;
use super::top::Top;
use crate::profile::FrameKind;
use profiler_common::abi::RuntimeKind;
use ratatui::style::Style;

/// Keys, two columns of what is pressed and what that does.
const KEYS: &[(&str, &str)] = &[
    ("Tab, 1 to 4", "flame graph, functions, tree, processes"),
    ("arrows, hjkl, PgUp, PgDn, Home, End", "move"),
    (
        "Enter, double click",
        "zoom in; of a process, show it alone",
    ),
    ("Esc, Backspace / 0", "one level out / show all"),
    ("/ n N #", "search; next, previous; what is selected"),
    ("space, z", "freeze: what comes is counted and not shown"),
    ("m", "keep all windows, let them fade, or the last only"),
    ("R", "forget what was counted, and begin anew"),
    ("c", "next event; on-CPU, off-CPU, both"),
    ("p t", "group by name or process; threads"),
    ("K I", "kernel frames on, off; only what runtimes run"),
    ("i r o", "turn over; callers; heaviest first or by name"),
    ("s", "save what is seen: x.svg, x.pb.gz, x.txt ..."),
    ("q, Ctrl-C / Ctrl-Z", "end / suspend"),
];

/// Columns of what is pressed.
const KEY_COLUMNS: usize = 28;

/// Draws the help.
pub(super) fn draw(top: &Top, canvas: &mut Canvas<'_>) {
    let last = top.body_rows() as u16;
    canvas.line(1, "Keys; any of them closes this", canvas.theme.heading());
    for (row, (keys, what)) in (2..=last).zip(KEYS) {
        canvas.line(row, &format!("{keys:<KEY_COLUMNS$} {what}"), Style::new());
    }
    let row = KEYS.len() as u16 + 3;
    if row > last {
        return;
    }
    let palette = top.channels[top.state.channel].palette;
    let kinds = [
        ("process", FrameKind::Process),
        ("program", FrameKind::User),
        ("inlined", FrameKind::Inlined),
        ("JIT", FrameKind::Jit),
        ("runtime", FrameKind::Interpreted(RuntimeKind::CPython)),
        ("kernel", FrameKind::Kernel),
        ("mark", FrameKind::Mark),
    ];
    let mut column = 0;
    for (text, kind) in kinds {
        let name = Name {
            text: text.into(),
            kind,
        };
        let style = canvas.theme.frame(palette, &name, [1.0, 0.0], true);
        canvas.text(column, row, &format!(" {text} "), style);
        column += text.len() as u16 + 3;
    }
    let joined = canvas.theme.joined();
    let sign = if canvas.theme.unicode { "░" } else { ":" };
    canvas.text(column, row, sign, joined);
    canvas.text(column + 2, row, "too narrow", Style::new());
}
