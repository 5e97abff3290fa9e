//! Screens of the live view, cell by cell, compared with files that a person has checked.
//!
//! In: profiles written by hand, and keys. Out: a difference, if any. `cargo xtask bless` accepts what is drawn now.

use flame_bpf::live::{self, Channel, Colors, Event, Status, Theme, Top, Update};
use flame_bpf::output::Palette;
use flame_bpf::profile::fold::parse;
use flame_bpf::profile::{FrameKind, FrameProfile, FrameRef, Profile, SourceFrame, Unit, Window};
use flame_bpf_tests::golden;
use profiler_common::runtime::RuntimeKind;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{
    KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::style::Color;
use ratatui::text::Span;
use std::time::Duration;

/// A second of a machine, with names that fit and names that do not, wide frames and many narrow ones.
fn window() -> Profile {
    let mut text = String::new();
    for (stack, weight) in [
        (
            "postgres;main;PostgresMain;exec_simple_query;PortalRun;ExecutorRun;ExecSeqScan",
            3000,
        ),
        (
            "postgres;main;PostgresMain;exec_simple_query;PortalRun;ExecutorRun;ExecHashJoin",
            1700,
        ),
        (
            "postgres;main;PostgresMain;exec_simple_query;parse_analyze_varparams",
            900,
        ),
        (
            "postgres;main;PostgresMain;secure_read;__libc_recv;entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k];tcp_recvmsg_[k]",
            1100,
        ),
        ("postgres;main;PostgresMain", 77),
        (
            "rust-server;std::sys::thread::unix::Thread::new::thread_start;core::ops::function::FnOnce::call_once{{vtable.shim}};<server::Handler<alloc::sync::Arc<tokio::runtime::Runtime>> as server::Handle>::handle",
            1400,
        ),
        (
            "node;[truncated];LazyCompile:~render /app/page.js:12_[j]",
            600,
        ),
        ("größe-日本語;main;日本語の関数名はとても長い;計算", 500),
        ("kworker/0:1;worker_thread_[k];process_one_work_[k]", 23),
    ] {
        text.push_str(&format!("{stack} {weight}\n"));
    }
    for narrow in 0..40 {
        let weight = 5 + narrow % 7;
        text.push_str(&format!(
            "cc1;main;toplev_main;compile_file;pass_{narrow:02};deeper {weight}\n"
        ));
    }
    parse(text.as_bytes(), Unit::Samples).expect("the text is folded")
}

fn view(colors: Colors, unicode: bool, columns: u16, rows: u16) -> Top {
    let channel = Channel {
        name: "cpu-clock".to_owned(),
        title: "on-CPU: whole machine, cpu-clock 99 Hz, host db1".to_owned(),
        unit: Unit::Samples,
        palette: Palette::LAND,
        has_both: false,
    };
    let theme = Theme { colors, unicode };
    let mut top = Top::new(vec![channel], false, theme, (columns, rows));
    top.note(Status {
        elapsed: Duration::from_secs(95),
        counts: vec![[9_592, 12_345, 0]],
        cost: 0.0123,
        ..Status::default()
    });
    top.take(Update {
        number: 1,
        is_final: true,
        profiles: vec![window()],
    });
    top
}

fn key(code: KeyCode) -> Event {
    Event::Key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn press(top: &mut Top, keys: &str) {
    for c in keys.chars() {
        let code = match c {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            c => KeyCode::Char(c),
        };
        live::obey(top, &key(code), 0);
    }
}

fn screen(top: &Top, columns: u16, rows: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal
        .draw(|frame| live::draw(top, frame.buffer_mut()))
        .unwrap();
    terminal.backend().buffer().clone()
}

/// The rows of a screen as a terminal would show them.
fn text(buffer: &Buffer) -> String {
    let rows = buffer.content.chunks(usize::from(buffer.area.width));
    let row = |cells: &[ratatui::buffer::Cell]| -> String {
        let mut row = String::new();
        let mut covered = 0;
        for cell in cells {
            if covered == 0 {
                row.push_str(cell.symbol());
                covered = Span::raw(cell.symbol()).width();
            }
            covered = covered.saturating_sub(1);
        }
        row + "|\n"
    };
    rows.map(row).collect()
}

fn color(color: Color) -> String {
    match color {
        Color::Reset => "-".to_owned(),
        Color::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
        other => other.to_string().to_lowercase(),
    }
}

/// The rows of a screen, each with its runs of one style below.
fn text_and_styles(buffer: &Buffer) -> String {
    let mut all = String::new();
    let rows = buffer.content.chunks(usize::from(buffer.area.width));
    for (row, cells) in text(buffer).lines().zip(rows) {
        all.push_str(&format!("{row}\n"));
        let style = |cell: &ratatui::buffer::Cell| (cell.fg, cell.bg, cell.modifier);
        for run in cells.chunk_by(|a, b| style(a) == style(b)) {
            let (fg, bg, modifier) = style(&run[0]);
            let modifier = match modifier.is_empty() {
                true => String::new(),
                false => format!(" {modifier:?}"),
            };
            let (fg, bg) = (color(fg), color(bg));
            all.push_str(&format!(" {}x{fg}/{bg}{modifier}", run.len()));
        }
        all.push('\n');
    }
    all
}

#[test]
fn every_terminal_has_its_screen() {
    for (name, colors, unicode) in [
        ("true-color", Colors::True, true),
        ("256-colors", Colors::Palette, true),
        ("16-colors-ascii", Colors::Sixteen, false),
        ("no-color", Colors::None, true),
        ("no-color-ascii", Colors::None, false),
    ] {
        let top = view(colors, unicode, 80, 24);
        let drawn = text_and_styles(&screen(&top, 80, 24));
        golden::compare(&format!("screens/{name}.txt"), &drawn);
    }
}

#[test]
fn large_screens_show_more() {
    let top = view(Colors::True, true, 200, 60);
    golden::compare("screens/large.txt", &text(&screen(&top, 200, 60)));
}

#[test]
fn each_view_has_its_screen() {
    for (name, keys) in [
        ("functions", "2jj"),
        ("tree", "3jjj"),
        ("processes", "4j"),
        ("help", "?"),
        ("icicle", "i"),
        ("callers", "r"),
        ("by-weight", "o"),
        ("runtime-only", "I"),
        ("no-kernel", "K"),
        ("by-nothing", "p p".trim()),
        ("zoomed", "/SeqScan\n\n"),
        ("searched", "/exec"),
        ("one-process", "4j\n"),
        ("saving", "sout.svg"),
    ] {
        let mut top = view(Colors::None, true, 80, 24);
        press(&mut top, keys);
        let drawn = screen(&top, 80, 24);
        golden::compare(&format!("screens/view-{name}.txt"), &text(&drawn));
    }
}

#[test]
fn modules_are_cut_in_the_middle() {
    let frame = SourceFrame {
        file: "/srv/generated.parser_of_the_grammar.d41d8cd9.py",
        line: 1,
        ..SourceFrame::nowhere(FrameRef {
            name: "parse",
            kind: FrameKind::Interpreted(RuntimeKind::CPython),
        })
    };
    let mut profile = FrameProfile::new(Profile::new(Unit::Samples, Window::default()));
    profile.push(&[frame], 1, 1);
    let mut top = empty();
    top.take(Update {
        number: 2,
        is_final: true,
        profiles: vec![profile.into_profile()],
    });
    press(&mut top, "2");
    let drawn = screen_text(&top);
    assert!(drawn.contains("  genera…r.d41d8cd9.py|"), "{drawn}");
}

/// Where a row of frames ends, as the last cell that is not blank.
fn end_of(buffer: &Buffer, row: u16) -> u16 {
    let blank = |column: &u16| {
        let cell = &buffer[(*column, row)];
        cell.symbol() == " " && cell.bg == Color::Reset
    };
    let columns = 0..buffer.area.width;
    columns
        .rev()
        .find(|column| !blank(column))
        .map_or(0, |last| last + 1)
}

#[test]
fn the_first_rows_are_full_on_every_terminal() {
    for colors in [Colors::True, Colors::Palette, Colors::Sixteen, Colors::None] {
        for unicode in [true, false] {
            for columns in [40, 79, 80, 133, 200] {
                let top = view(colors, unicode, columns, 24);
                let buffer = screen(&top, columns, 24);
                for row in [22, 21] {
                    assert_eq!(
                        end_of(&buffer, row),
                        columns,
                        "{colors:?} {unicode} {columns}\n{}",
                        text(&buffer)
                    );
                }
            }
        }
    }
}

#[test]
fn no_screen_is_too_small() {
    for (columns, rows) in [(0, 0), (1, 1), (2, 3), (5, 4), (10, 5), (300, 2)] {
        for keys in ["", "2", "3", "4", "?", "/a", "s"] {
            let mut top = view(Colors::True, true, columns, rows);
            press(&mut top, keys);
            live::draw(
                &top,
                &mut Buffer::empty(ratatui::layout::Rect::new(0, 0, columns, rows)),
            );
        }
    }
}

#[test]
fn a_double_click_zooms_and_escape_goes_back_by_levels() {
    let mut top = view(Colors::True, true, 80, 24);
    let before = text(&screen(&top, 80, 24));
    let click = |row| {
        Event::Mouse(MouseEvent {
            kind: MouseEventKind::Down(MouseButton::Left),
            column: 60,
            row,
            modifiers: KeyModifiers::NONE,
        })
    };
    live::obey(&mut top, &click(20), 1000);
    live::obey(&mut top, &click(20), 1900);
    assert_eq!(
        text(&screen(&top, 80, 24)).lines().nth(20),
        before.lines().nth(20),
        "two slow clicks are no double click"
    );
    live::obey(&mut top, &click(20), 2000);
    let zoomed = text(&screen(&top, 80, 24));
    let row = zoomed.lines().nth(20).unwrap();
    assert!(
        row.starts_with("main") && row.trim_end_matches('|').trim_end().len() < 10,
        "{zoomed}"
    );
    for _ in 0..2 {
        live::obey(&mut top, &key(KeyCode::Esc), 0);
    }
    let after = text(&screen(&top, 80, 24));
    assert_eq!(after.lines().nth(18), before.lines().nth(18));
}

#[test]
fn what_is_seen_is_what_is_saved() {
    let folded = |top: &Top| {
        let profile = top.profile();
        let mut text = Vec::new();
        flame_bpf::profile::fold::fold(&profile, Default::default(), &mut text).unwrap();
        (profile.total_weight(), String::from_utf8(text).unwrap())
    };
    let mut top = view(Colors::True, true, 80, 24);
    let (all, text) = folded(&top);
    let mut expected = Vec::new();
    flame_bpf::profile::fold::fold(&window(), Default::default(), &mut expected).unwrap();
    assert_eq!(text, String::from_utf8(expected).unwrap());
    press(&mut top, "K");
    let (without, text) = folded(&top);
    assert_eq!(without, all);
    assert!(!text.contains("tcp_recvmsg") && text.contains("__libc_recv"));
    press(&mut top, "K/SeqScan\n\n");
    let (zoomed, text) = folded(&top);
    assert_eq!((zoomed, text.lines().count()), (3000, 1));
    assert!(screen_text(&top).contains("3,000 samples"));
}

fn screen_text(top: &Top) -> String {
    text(&screen(top, 80, 24))
}

fn second(number: u64, is_final: bool, text: &str) -> Update {
    Update {
        number,
        is_final,
        profiles: vec![parse(text.as_bytes(), Unit::Samples).expect("the text is folded")],
    }
}

/// The weight of all that is seen, by process.
fn seen(top: &Top) -> Vec<(String, u64)> {
    let profile = top.profile();
    let view = flame_bpf::profile::View::new(&profile);
    let tree = view.tree();
    let of = |sample: &flame_bpf::profile::TreeSample| {
        let stack = tree.stack(sample.node).into_iter();
        let names = stack.map(|frame| frame.name.clone());
        (names.collect::<Vec<_>>().join(";"), sample.weight)
    };
    let mut all: Vec<_> = tree.samples().iter().map(of).collect();
    all.sort();
    all
}

fn empty() -> Top {
    let mut top = view(Colors::True, true, 80, 24);
    press(&mut top, "R");
    top
}

#[test]
fn names_that_come_late_replace_what_stood_for_them() {
    let mut top = empty();
    top.take(second(2, false, "a;[lib+0x12] 5\n"));
    assert_eq!(seen(&top), [("a;[lib+0x12]".to_owned(), 5)]);
    top.take(second(3, true, "a;main 2\n"));
    top.take(second(2, true, "a;work 5\n"));
    assert_eq!(
        seen(&top),
        [("a;main".to_owned(), 2), ("a;work".to_owned(), 5)]
    );
}

#[test]
fn windows_are_kept_or_fade_or_go() {
    let of = |keys: &str| {
        let mut top = empty();
        press(&mut top, keys);
        for number in 2..=4 {
            top.take(second(number, true, "a;main 512\n"));
        }
        seen(&top)[0].1
    };
    assert_eq!(of(""), 3 * 512);
    assert_eq!(of("m"), 512 + 448 + 392);
    assert_eq!(of("mm"), 512);
}

#[test]
fn a_frozen_view_counts_and_does_not_show() {
    let mut top = empty();
    top.take(second(2, true, "a;main 5\n"));
    press(&mut top, " ");
    top.take(second(3, true, "a;main 6\n"));
    assert_eq!(seen(&top)[0].1, 5);
    assert!(screen_text(&top).contains("FROZEN"));
    press(&mut top, " ");
    assert_eq!(seen(&top)[0].1, 11);
}

#[test]
fn windows_from_before_a_reset_do_not_come_back() {
    let mut top = empty();
    top.take(second(2, false, "a;[lib+0x12] 5\n"));
    press(&mut top, "R");
    top.take(second(2, true, "a;work 5\n"));
    assert_eq!(seen(&top), []);
    top.take(second(3, true, "b;work 1\n"));
    assert_eq!(seen(&top).len(), 1);
}

#[test]
fn a_storm_of_processes_takes_bounded_room_and_loses_nothing() {
    let mut top = empty();
    let mut weight = 0;
    for number in 2..60 {
        let mut text = String::from("server;main;serve;work 100\n");
        weight += 100;
        for process in 0..400 {
            let stacks = number * 400 + process;
            let shell = process % 7;
            text.push_str(&format!("sh{shell};main;run_{stacks};deep_{stacks} 1\n"));
            weight += 1;
        }
        top.take(second(number, true, &text));
    }
    let profile = top.profile();
    assert_eq!(profile.total_weight(), weight);
    assert!(
        profile.samples().len() < 24_000,
        "{}",
        profile.samples().len()
    );
    let kept = seen(&top);
    let server = kept
        .iter()
        .find(|(stack, _)| stack == "server;main;serve;work");
    assert_eq!(server.map(|(_, weight)| *weight), Some(5800));
}
