//! HTML pages in a browser: what is seen, what is found, how long it takes, and that nothing is asked for.
//!
//! In: profiles of synthetic stacks, as pages. Out: what a page says after clicks and keys.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flame_bpf::output::{self, Format, Section, SourceFile, SourceRun, SourceText, Style};
use flame_bpf::profile::{
    Activity, Frame, FrameKind, FrameProfile, FrameRef, Profile, SourceFrame, Unit, Window,
};
use flame_bpf_tests::{Browser, PageData, in_windows, measures_time, require};
use tempfile::tempdir;

const HOSTILE: &str = "</script><img src=x onerror=\"document.title='harm'\">";
const NOTHING: [&str; 0] = [];

type Stacks = Vec<(Vec<Frame>, u64)>;

/// Screen that a page is looked at on.
#[derive(Clone, Copy, Debug)]
struct Screen {
    size: (u32, u32),
    is_phone: bool,
    is_dark: bool,
}

impl Screen {
    const LARGE: Self = Self {
        size: (1400, 700),
        is_phone: false,
        is_dark: false,
    };
    const PHONE: Self = Self {
        size: (390, 844),
        is_phone: true,
        is_dark: false,
    };

    const fn dark(self) -> Self {
        Self {
            is_dark: true,
            ..self
        }
    }
}

fn frame(name: &str, kind: FrameKind) -> Frame {
    Frame {
        name: name.to_owned(),
        kind,
    }
}

/// A stack as in folded text, of which the first is the process.
fn stack(text: &str) -> Vec<Frame> {
    let kind = |(place, name): (usize, &str)| match (place, name.strip_suffix("_[k]")) {
        (0, _) => frame(name, FrameKind::Process),
        (_, Some(name)) => frame(name, FrameKind::Kernel),
        _ => frame(name, FrameKind::User),
    };
    text.split(';').enumerate().map(kind).collect()
}

fn profile(unit: Unit, stacks: &Stacks) -> Profile {
    let mut profile = FrameProfile::new(Profile::new(unit, Window::default()));
    for (group, (stack, weight)) in (0..).zip(stacks) {
        profile.group(group);
        profile.push(stack, *weight, 1);
    }
    profile.into_profile()
}

fn html(profile: &Profile) -> Vec<u8> {
    let style = Style {
        title: format!("title {HOSTILE}"),
        notes: format!("recorded: all there was\nLOST: 3 of 100 {HOSTILE}"),
        ..Style::default()
    };
    let format = Format::from_path(Path::new("x.html")).expect("it is a format");
    let mut bytes = Vec::new();
    output::write(profile, format, &style, &mut bytes).expect("a vector takes everything");
    bytes
}

/// Writes the page of a profile into a folder.
fn write(folder: &Path, profile: &Profile) -> PathBuf {
    let path = folder.join("x.html");
    std::fs::write(&path, html(profile)).expect("it can be written");
    path
}

/// As many frames as asked for, 48 levels deep at most, of 6,000 names.
fn large(frames: usize) -> Stacks {
    const WORDS: [&str; 8] = [
        "alloc", "insert", "serde", "visit", "poll", "drop", "BTreeMap", "hash",
    ];
    let mut random = fastrand::Rng::with_seed(14);
    let names: Vec<Frame> = (0..6_000)
        .map(|i| {
            let mut word = || WORDS[random.usize(..WORDS.len())];
            let name = format!("{}::{}::<{}>::{}_{i}", word(), word(), word(), word());
            frame(&name, FrameKind::User)
        })
        .collect();
    let mut stacks = Vec::new();
    let mut stack = vec![frame("demo", FrameKind::Process)];
    let mut made = 1;
    while made < frames {
        let depth = random.usize(1..=stack.len().min(47));
        stack.truncate(depth);
        let deeper = random.usize(1..8).min(48 - depth);
        stack.extend((0..deeper).map(|_| names[random.usize(..names.len())].clone()));
        made += deeper;
        stacks.push((stack.clone(), random.u64(1..50)));
    }
    stacks
}

/// Opens a page, and waits until it is drawn.
#[track_caller]
fn open<'b>(browser: &'b mut Browser, path: &Path, screen: Screen) -> &'b mut Browser {
    browser.resize(screen.size.0, screen.size.1, screen.is_phone);
    browser.prefer_dark(screen.is_dark);
    browser.open(path);
    browser.wait_for("'drawn' in document.documentElement.dataset");
    browser
}

/// Text of an element.
#[track_caller]
fn text(page: &mut Browser, id: &str) -> String {
    let text = page.ask(&format!("document.getElementById('{id}').textContent"));
    text.as_str().unwrap_or_default().to_owned()
}

#[track_caller]
fn click(page: &mut Browser, id: &str) {
    page.ask(&format!("document.getElementById('{id}').click()"));
}

#[track_caller]
fn search(page: &mut Browser, expression: &str) -> String {
    page.ask(&format!(
        "{{ const field = document.getElementById('search'); field.value = {expression:?}; \
         field.dispatchEvent(new Event('input')); new Promise((done) => setTimeout(done, 200)); }}"
    ));
    text(page, "found")
}

/// The file that a button saves.
#[track_caller]
fn saved(page: &mut Browser, button: &str) -> String {
    page.ask("URL.createObjectURL = (blob) => { window.saved = blob; return 'data:,'; }");
    click(page, button);
    let text = page.ask("window.saved.text()");
    text.as_str().expect("a text").to_owned()
}

#[test]
fn weight_in_is_weight_out() {
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let names = ["sh", "main", "work", "read_[k]", "", "a b", HOSTILE];
        let stacks: Stacks = (0..random.usize(1..60))
            .map(|_| {
                let depth = random.usize(1..9);
                let names: Vec<&str> = (0..depth)
                    .map(|_| names[random.usize(..names.len())])
                    .collect();
                (stack(&names.join(";")), random.u64(..) >> random.u32(8..64))
            })
            .collect();
        let profile = profile(Unit::Nanoseconds, &stacks);
        if profile.total_weight() == 0 {
            continue;
        }
        let page = html(&profile);
        assert_eq!(page, html(&profile), "the same profile is the same page");
        let data = PageData::read(&String::from_utf8(page).expect("it is text"));
        let columns = &data.columns[0];
        let sum = |name: &str| columns[name].iter().copied().fold(0, u64::saturating_add);
        assert_eq!(sum("sample_weight"), profile.total_weight());
        assert_eq!(sum("sample_count"), profile.total_count());
        assert!(sum("sample_node") <= columns["node_up"].len() as u64);
    }
}

#[test]
fn a_hundred_thousand_frames_are_small_and_quick() {
    measures_time!();
    let mut browser = require!(Browser::start());
    let folder = tempdir().expect("a temporary folder can be made");
    let path = write(folder.path(), &profile(Unit::Samples, &large(100_000)));
    let size = std::fs::metadata(&path).expect("it is there").len();
    assert!(size <= 1_000_000, "{size} bytes");
    let page = open(&mut browser, &path, Screen::LARGE);
    let drawn = page.ask("Number(document.documentElement.dataset.drawn)");
    assert!(
        drawn.as_f64().is_some_and(|ms| ms < 1000.0),
        "drawn after {drawn} ms"
    );
    // From the key or the letter to what is drawn, without waiting for whether more is typed.
    let took = page.ask(
        "(async () => {
            const took = (action) => { const begun = performance.now(); action(); return performance.now() - begun; };
            const press = (key) => document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
            const field = document.getElementById('search');
            const wait = window.setTimeout;
            const best = { zoom: Infinity, search: Infinity };
            for (const text of ['visit.*alloc', 'hash', 'drop::.*_7']) {
                press('ArrowUp'); press('ArrowUp');
                const zoom = took(() => press('Enter'));
                const out = took(() => press('Escape'));
                best.zoom = Math.min(best.zoom, Math.max(zoom, out));
                field.value = text;
                window.setTimeout = (action) => { best.search = Math.min(best.search, took(action)); };
                field.dispatchEvent(new Event('input'));
                window.setTimeout = wait;
            }
            return best;
        })()",
    );
    assert!(took["zoom"].as_f64().is_some_and(|ms| ms < 50.0), "{took}");
    assert!(
        took["search"]
            .as_f64()
            .is_some_and(|ms| 0.0 < ms && ms < 100.0),
        "{took}"
    );
    assert!(text(page, "found").starts_with("Matched "));
    assert_eq!(page.requests(), NOTHING);
    assert_eq!(page.errors(), NOTHING);
}

#[test]
fn five_thousand_levels_are_all_there() {
    let mut browser = require!(Browser::start());
    let folder = tempdir().expect("a temporary folder can be made");
    let mut deep = vec![frame("deep", FrameKind::Process)];
    deep.extend((0..5_000).map(|i| frame(&format!("level_{i}"), FrameKind::User)));
    let path = write(folder.path(), &profile(Unit::Samples, &vec![(deep, 7)]));
    let page = open(&mut browser, &path, Screen::LARGE);
    assert_eq!(
        search(page, "level_4999"),
        "Matched 100.00% of all, 1 frame"
    );
    page.press("n");
    assert_eq!(text(page, "name"), "level_4999");
    page.press("Enter");
    for view in ["icicle", "callers", "sandwich", "functions"] {
        click(page, &format!("view-{view}"));
    }
    assert_eq!(text(page, "note").split(' ').next(), Some("1"));
    assert_eq!(page.errors(), NOTHING);
}

#[test]
fn hostile_names_are_text() {
    let mut browser = require!(Browser::start());
    let folder = tempdir().expect("a temporary folder can be made");
    let stacks = vec![
        (
            vec![
                frame(HOSTILE, FrameKind::Process),
                frame(HOSTILE, FrameKind::User),
            ],
            3,
        ),
        (
            vec![
                frame("__proto__", FrameKind::Process),
                frame("constructor", FrameKind::User),
            ],
            3,
        ),
    ];
    let path = write(
        folder.path(),
        &profile(Unit::Events(HOSTILE.to_owned()), &stacks),
    );
    let page = open(&mut browser, &path, Screen::LARGE);
    for view in ["icicle", "callers", "sandwich", "functions", "flame"] {
        click(page, &format!("view-{view}"));
    }
    let folded = saved(page, "save-folded");
    assert!(
        folded.contains(HOSTILE) && folded.contains("__proto__;constructor 3"),
        "{folded}"
    );
    let picture = saved(page, "save-svg");
    assert!(
        picture.starts_with("<svg ") && !picture.contains("<img"),
        "{picture}"
    );
    assert_eq!(page.ask("document.title"), format!("title {HOSTILE}"));
    assert_eq!(page.ask("document.images.length"), 0);
    assert!(text(page, "balance").contains(HOSTILE));
    assert_eq!(page.requests(), NOTHING);
    assert_eq!(page.errors(), NOTHING);
}

#[test]
fn numbers_are_those_of_the_stacks() {
    let mut browser = require!(Browser::start());
    let folder = tempdir().expect("a temporary folder can be made");
    let stacks = vec![
        (stack("sh;main;work"), 40),
        (stack("sh;main;work;read_[k]"), 20),
        (stack("sh;main;again;again"), 30),
        (stack("cat;main;read_[k]"), 10),
    ];
    let path = write(folder.path(), &profile(Unit::Samples, &stacks));
    let page = open(&mut browser, &path, Screen::LARGE);
    assert_eq!(
        text(page, "numbers"),
        "100 samples, 100.00% of all. Click a frame to zoom in"
    );
    // Up to the widest of each level.
    for (name, numbers) in [
        ("sh", "90 samples, 90.00% of all, process, thread"),
        ("main", "90 samples, 90.00% of all, program"),
        ("work", "60 samples, 60.00% of all, 40.00% self, program"),
        ("read", "20 samples, 20.00% of all, kernel"),
    ] {
        page.press("ArrowUp");
        assert_eq!(text(page, "name"), name);
        assert_eq!(text(page, "numbers"), numbers);
    }
    page.press("ArrowDown");
    page.press("Enter");
    assert_eq!(
        text(page, "numbers"),
        "60 samples, 60.00% of all, 100.00% of zoomed, 40.00% self, program"
    );
    assert_eq!(
        search(page, "^read$"),
        "Matched 30.00% of all, 33.33% of zoomed, 2 frames"
    );
    assert!(search(page, "(").starts_with("Not a regular expression: "));
    assert_eq!(search(page, "Nothing"), "No frame matches");
    search(page, "");

    assert_eq!(
        saved(page, "save-folded"),
        "sh;main;work 40\nsh;main;work;read_[k] 20\n"
    );
    click(page, "reset");
    assert_eq!(
        saved(page, "save-folded"),
        "cat;main;read_[k] 10\nsh;main;again;again 30\nsh;main;work 40\nsh;main;work;read_[k] 20\n"
    );

    click(page, "view-functions");
    let rows = page.ask(
        "Array.from(document.querySelectorAll('#functions-body .row'), (row) => \
         ['name', 'self', 'total'].map((cell) => row.querySelector('.' + cell + ' button, .' + cell + ' .share').textContent).join(' ')).join()",
    );
    assert_eq!(
        rows,
        "work 40.00% 60.00%,again 30.00% 30.00%,read 30.00% 30.00%,main 0.00% 100.00%"
    );
    page.ask("document.querySelectorAll('#functions-body button')[2].click()");
    assert_eq!(text(page, "name"), "read");
    assert_eq!(
        text(page, "numbers"),
        "30 samples, 30.00% of all, kernel. Click a frame to zoom in"
    );
    page.ask("document.activeElement.blur()");
    page.press("ArrowUp");
    assert_eq!(text(page, "name"), "work");
    assert_eq!(text(page, "numbers"), "20 samples, 20.00% of all, program");
    assert_eq!(page.errors(), NOTHING);
}

#[test]
fn choices_are_offered_where_the_data_has_them() {
    let mut browser = require!(Browser::start());
    let folder = tempdir().expect("a temporary folder can be made");
    let offered = "Array.from(document.querySelectorAll('#choices select'), (select) => select.id.slice(7)).join()";
    let one = write(
        folder.path(),
        &profile(Unit::Samples, &vec![(stack("sh;main"), 1)]),
    );
    let page = open(&mut browser, &one, Screen::LARGE);
    assert_eq!(page.ask(offered), "group,order");
    assert_eq!(page.ask("document.getElementById('time').hidden"), true);

    let thread = |cpu, tid, name: &str| {
        vec![
            Frame::cpu(cpu),
            frame("sh", FrameKind::Process),
            Frame::thread(tid, None),
            frame(name, FrameKind::User),
        ]
    };
    let stacks = vec![
        (thread(0, 5, "a"), 60),
        (thread(1, 6, "b"), 30),
        (thread(1, 5, "c"), 10),
    ];
    let two = write(folder.path(), &profile(Unit::Samples, &stacks));
    let page = open(&mut browser, &two, Screen::LARGE);
    assert_eq!(page.ask(offered), "thread,cpu,group,order");
    let choose = |id: &str, place: usize| {
        format!(
            "{{ const select = document.getElementById('choose-{id}'); select.selectedIndex = {place}; \
             select.dispatchEvent(new Event('change')); select.selectedOptions[0].textContent }}"
        )
    };
    assert_eq!(page.ask(&choose("thread", 1)), "sh [tid 5] · 70.00%");
    assert!(text(page, "numbers").starts_with("70 samples, 100.00% of all"));
    assert_eq!(page.ask(&choose("cpu", 2)), "CPU 1 · 40.00%");
    assert!(text(page, "numbers").starts_with("10 samples, 100.00% of all"));
    assert_eq!(saved(page, "save-folded"), "sh;c 10\n");
    page.ask(&choose("thread", 0));
    page.ask(&choose("group", 2));
    assert_eq!(
        saved(page, "save-folded"),
        "sh [tid 5];c 10\nsh [tid 6];b 30\n"
    );
}

#[test]
fn one_page_switches_between_events() {
    let mut browser = require!(Browser::start());
    let folder = tempdir().expect("a temporary folder can be made");
    let section = |name: &str, unit, activity, text: &str, lost: &str| {
        let mut profile = profile(unit, &vec![(stack(text), 2_000_000)]);
        profile.origin.activity = activity;
        let style = Style {
            title: format!("title of {name}"),
            notes: format!("recorded: {name}\n{lost}"),
            ..Style::default()
        };
        let name = name.to_owned();
        (Section { name, profile }, style)
    };
    let sections = [
        section(
            "cpu-clock",
            Unit::Samples,
            Activity::Running,
            "sh;main;spin",
            "lost: nothing",
        ),
        section(
            "off-CPU",
            Unit::Nanoseconds,
            Activity::Waiting,
            "sh;main;sleep",
            "LOST: 3",
        ),
    ];
    let mut bytes = Vec::new();
    output::write_page(&sections, &mut bytes).expect("a vector takes everything");
    let path = folder.path().join("x.html");
    std::fs::write(&path, bytes).expect("it can be written");
    let page = open(&mut browser, &path, Screen::LARGE);
    let seen = |page: &mut Browser| {
        page.press("ArrowUp");
        page.press("ArrowUp");
        page.press("ArrowUp");
        ["title", "name", "numbers", "balance"].map(|id| text(page, id))
    };
    let numbers = "2,000,000 samples, 100.00% of all, program";
    let balance = "recorded cpu-clock; lost nothing";
    assert_eq!(seen(page), ["title of cpu-clock", "spin", numbers, balance]);
    let options = "Array.from(document.querySelectorAll('#choose-profile option'), (option) => option.textContent).join()";
    assert_eq!(page.ask(options), "cpu-clock,off-CPU");
    page.ask(
        "{ const select = document.getElementById('choose-profile'); select.selectedIndex = 1; \
         select.dispatchEvent(new Event('change')); select.blur(); }",
    );
    let numbers = "2.00 ms (2,000 µs), 100.00% of all, program";
    let balance = "recorded off-CPU; LOST 3";
    assert_eq!(seen(page), ["title of off-CPU", "sleep", numbers, balance]);
    assert_eq!(page.ask("document.title"), "title of off-CPU");
    assert!(
        page.ask("location.hash")
            .as_str()
            .is_some_and(|hash| hash.contains("event=1"))
    );
    assert_eq!(page.errors(), NOTHING);
}

#[test]
fn samples_without_a_stack_are_a_frame_of_their_own() {
    let mut browser = require!(Browser::start());
    let folder = tempdir().expect("a temporary folder can be made");
    let stacks = vec![(stack("sh"), 3), (stack("sh;main"), 1)];
    let path = write(folder.path(), &profile(Unit::Samples, &stacks));
    let page = open(&mut browser, &path, Screen::LARGE);
    page.press("ArrowUp");
    page.press("ArrowUp");
    assert_eq!(text(page, "name"), "[no stack]");
    assert_eq!(text(page, "numbers"), "3 samples, 75.00% of all, mark");
    // Other tools know no such frame.
    assert_eq!(saved(page, "save-folded"), "sh 3\nsh;main 1\n");
    assert_eq!(page.errors(), NOTHING);
}

#[test]
fn a_range_of_time_can_be_selected() {
    let mut browser = require!(Browser::start());
    let folder = tempdir().expect("a temporary folder can be made");
    let stacks = (0..20)
        .map(|i| (stack(&format!("sh;main;f{i}")), i + 1))
        .collect();
    let profile = profile(Unit::Samples, &stacks);
    let mut profile = in_windows(profile, 20, Duration::from_millis(100), |place| {
        place as u32
    });
    profile.windows[3].lost = 1;
    let path = write(folder.path(), &profile);
    let page = open(&mut browser, &path, Screen::LARGE);
    assert_eq!(
        text(page, "range"),
        "20 windows in 2.00 s: drag to select a range"
    );
    let place = page.ask(
        "{ const box = document.getElementById('timeline').getBoundingClientRect(); [box.left, box.top, box.width] }",
    );
    let [left, top, width] = [0, 1, 2].map(|i| place[i].as_f64().expect("a number"));
    let window = |i: f64| left + (i + 0.5) / 20.0 * width;
    page.drag((window(2.0), top + 20.0), (window(4.0), top + 20.0));
    assert_eq!(text(page, "range"), "0.20 s to 0.50 s of 2.00 s");
    assert_eq!(text(page, "name"), "0.40 s to 0.50 s: 5 samples");
    assert_eq!(
        saved(page, "save-folded"),
        "sh;main;f2 3\nsh;main;f3 4\nsh;main;f4 5\n"
    );
    click(page, "all-time");
    assert_eq!(saved(page, "save-folded").lines().count(), 20);
    page.ask("document.getElementById('timeline').focus()");
    page.press("ArrowRight");
    page.press("ArrowRight");
    assert_eq!(saved(page, "save-folded"), "sh;main;f1 2\n");
    assert_eq!(page.errors(), NOTHING);
}

#[test]
fn labels_are_readable_by_day_and_by_night_and_on_a_phone() {
    let mut browser = require!(Browser::start());
    let folder = tempdir().expect("a temporary folder can be made");
    let mut kinds = stack("sh;main;work;read_[k]");
    kinds.insert(3, frame("inlined", FrameKind::Inlined));
    kinds.insert(3, frame("jit", FrameKind::Jit));
    kinds.push(frame("[truncated]", FrameKind::Mark));
    let path = write(folder.path(), &profile(Unit::Samples, &vec![(kinds, 1)]));
    for screen in [
        Screen::LARGE,
        Screen::LARGE.dark(),
        Screen::PHONE,
        Screen::PHONE.dark(),
    ] {
        let page = open(&mut browser, &path, screen);
        // The darkest pixel at the right end of each row, where there are no letters.
        let contrast = page.ask(
            "(() => {
                const canvas = document.getElementById('canvas');
                const ratio = window.devicePixelRatio;
                const luminance = (rgb) => {
                    const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
                    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
                };
                let least = 21;
                for (let row = 0; row < 8; row += 1) {
                    const y = canvas.height - (row * 16 + 8) * ratio;
                    const [r, g, b] = canvas.getContext('2d').getImageData(canvas.width - 6 * ratio, y, 1, 1).data;
                    least = Math.min(least, (luminance([r, g, b]) + 0.05) / 0.05);
                }
                return least;
            })()",
        );
        assert!(
            contrast.as_f64().is_some_and(|contrast| contrast >= 4.5),
            "{contrast} {screen:?}"
        );
        let paper = page.ask("getComputedStyle(document.body).backgroundColor");
        let expected = if screen.is_dark {
            "rgb(22, 24, 27)"
        } else {
            "rgb(255, 255, 255)"
        };
        assert_eq!(paper, expected);
        let out = page.ask(
            "['title', 'search', 'reset', 'canvas', 'numbers', 'balance'].filter((id) => {
                const box = document.getElementById(id).getBoundingClientRect();
                return box.width === 0 || box.left < 0 || box.right > innerWidth || box.top < 0 || box.bottom > innerHeight;
            }).join()",
        );
        assert_eq!(out, "", "{screen:?}");
    }
}

/// Names on the row that a graph grows from, from left to right.
const NAMES: &str = "(() => { const seen = []; for (let x = 2; x < canvas.clientWidth; x += 4) { \
    const box = canvas.getBoundingClientRect(); const y = ROW; \
    canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: box.left + x, clientY: y(box), pointerType: 'mouse' })); \
    const name = document.getElementById('name').textContent; if (seen[seen.length - 1] !== name) { seen.push(name); } } \
    return seen.join(); })()";

fn names_of_row(page: &mut Browser, y: &str) -> String {
    let row = format!("(box) => {y}");
    let names = page.ask(&NAMES.replace("ROW", &row));
    names.as_str().expect("it is a text").to_owned()
}

#[test]
fn callers_begin_with_the_heaviest_and_the_flame_graph_with_the_first_by_name() {
    let mut browser = require!(Browser::start());
    let folder = tempdir().expect("a temporary folder can be made");
    let stacks = vec![
        (stack("sh;main;a"), 10),
        (stack("sh;main;b"), 60),
        (stack("sh;main;c"), 30),
    ];
    let path = write(folder.path(), &profile(Unit::Samples, &stacks));
    let page = open(&mut browser, &path, Screen::LARGE);
    let third_from_below = "box.bottom - 3.5 * 16";
    assert_eq!(names_of_row(page, third_from_below), "a,b,c");
    page.press("o");
    assert_eq!(names_of_row(page, third_from_below), "b,c,a");
    assert_eq!(
        page.ask("document.getElementById('choose-order').value"),
        "weight"
    );
    assert_eq!(page.ask("location.hash"), "#order=weight");
    // A zoom stays where the order changes, and is saved as what it is.
    page.ask("canvas.dispatchEvent(new PointerEvent('pointerleave', { pointerType: 'mouse' }))");
    for key in ["ArrowUp", "ArrowUp", "ArrowUp", "Enter"] {
        page.press(key);
    }
    assert_eq!(text(page, "name"), "b");
    page.press("o");
    assert_eq!(text(page, "name"), "b");
    assert_eq!(saved(page, "save-folded"), "sh;main;b 60\n");
    page.press("o");
    assert_eq!(saved(page, "save-folded"), "sh;main;b 60\n");
    let page = open(&mut browser, &path, Screen::LARGE);
    for view in ["view-callers", "view-icicle"] {
        click(page, view);
        let row = if view == "view-callers" { 1.5 } else { 3.5 };
        let names = names_of_row(page, &format!("box.top + {row} * 16"));
        assert_eq!(names, "b,c,a", "{view}");
    }
    page.press("o");
    assert_eq!(names_of_row(page, "box.top + 3.5 * 16"), "a,b,c");
    assert_eq!(page.errors(), NOTHING);
}

#[test]
fn source_stands_beside_what_its_lines_took() {
    let mut browser = require!(Browser::start());
    let folder = tempdir().expect("a temporary folder can be made");
    let at = |name, file, line| SourceFrame {
        frame: FrameRef {
            name,
            kind: FrameKind::User,
        },
        file,
        line,
    };
    let process = SourceFrame {
        frame: FrameRef {
            name: "sh",
            kind: FrameKind::Process,
        },
        file: "",
        line: 0,
    };
    let (main, work) = ("/src/a.c", "/src/b.c");
    let mut profile = FrameProfile::new(Profile::new(Unit::Samples, Window::default()));
    for (stack, weight) in [
        (vec![process, at("main", main, 3), at("work", work, 7)], 60),
        (vec![process, at("main", main, 3), at("work", work, 9)], 25),
        // Recursion counts a line once.
        (
            vec![
                process,
                at("main", main, 3),
                at("work", work, 9),
                at("work", work, 9),
            ],
            5,
        ),
        (vec![process, at("main", main, 4)], 10),
    ] {
        profile.push(&stack, weight, weight);
    }
    let mut profile = profile.into_profile();
    profile.line_frames = false;
    let mut source = SourceText::default();
    for (path, first, lines) in [
        (main, 3, vec!["work();", "other();"]),
        (work, 6, vec!["six", HOSTILE, "eight", "nine"]),
    ] {
        let run = SourceRun {
            first,
            lines: lines.into_iter().map(str::to_owned).collect(),
        };
        let file = SourceFile {
            found_at: format!("here{path}"),
            is_newer: false,
            runs: vec![run],
        };
        source.insert(path.to_owned(), file);
    }
    let style = Style {
        source: Some(Arc::new(source)),
        ..Style::default()
    };
    let mut bytes = Vec::new();
    let format = Format::from_path(Path::new("x.html")).expect("it is a format");
    output::write(&profile, format, &style, &mut bytes).expect("a vector takes everything");
    let path = folder.path().join("x.html");
    std::fs::write(&path, bytes).expect("it can be written");
    let page = open(&mut browser, &path, Screen::LARGE);
    // Lines of one function are one frame.
    assert_eq!(
        saved(page, "save-folded"),
        "sh;main 10\nsh;main;work 85\nsh;main;work;work 5\n"
    );
    page.press("8");
    let rows = "[...document.querySelectorAll('#source-body .row')].map(row => \
        (row.classList.contains('own') ? '*' : '') + [...row.children].map(cell => cell.textContent).join('|')).join('\\n')";
    assert_eq!(
        page.ask(rows),
        format!("||⋯\n||6|six\n*60.00%|60.00%|7|{HOSTILE}\n||8|eight\n*30.00%|30.00%|9|nine")
            .replacen("||⋯", "⋯", 1)
    );
    let chosen = "document.querySelector('#source-function').selectedOptions[0].textContent";
    assert_eq!(page.ask(chosen), "work · 90.00%");
    assert_eq!(text(page, "source-path"), "here/src/b.c, for /src/b.c");
    page.ask(
        "{ const select = document.getElementById('source-function'); select.selectedIndex = 1; \
         select.dispatchEvent(new Event('change')); }",
    );
    assert_eq!(
        page.ask(rows),
        "⋯\n*|90.00%|3|work();\n*10.00%|10.00%|4|other();"
    );
    // The address keeps it, and lines can be frames.
    let address = page.ask("location.hash");
    let address = address.as_str().expect("a text");
    assert!(address.contains("view=source&function="), "{address}");
    page.ask(
        "{ const select = document.getElementById('choose-frames'); select.value = 'lines'; \
         select.dispatchEvent(new Event('change')); }",
    );
    click(page, "view-flame");
    assert_eq!(
        saved(page, "save-folded"),
        "sh;main (a.c:3);work (b.c:7) 60\nsh;main (a.c:3);work (b.c:9) 25\n\
         sh;main (a.c:3);work (b.c:9);work (b.c:9) 5\nsh;main (a.c:4) 10\n"
    );
    assert_eq!(page.errors(), NOTHING);
    let without = write(folder.path(), &profile);
    let page = open(&mut browser, &without, Screen::LARGE);
    assert_eq!(
        page.ask("document.getElementById('view-source').hidden"),
        true
    );
    page.press("8");
    assert_eq!(page.ask("document.getElementById('graph').hidden"), false);
    assert_eq!(page.errors(), NOTHING);
}

#[test]
fn what_runtimes_run_can_be_shown_alone() {
    let mut browser = require!(Browser::start());
    let folder = tempdir().expect("a temporary folder can be made");
    let text_of = "py;main;eval;handle_[py];match 30\npy;main;eval;handle_[py];match;read_[k] 20\n\
        py;main;eval;handle_[py];eval;parse_[py] 5\npy;main;eval;eval;handle_[py];parse_[py] 2\n\
        py;main;init 7\nnode;start;tick_[j];add_[i];memcpy 3\n";
    let profile = flame_bpf::profile::fold::parse(text_of.as_bytes(), Unit::Samples);
    let path = write(folder.path(), &profile.expect("it is folded text"));
    let page = open(&mut browser, &path, Screen::LARGE);
    page.press("I");
    assert_eq!(
        saved(page, "save-folded"),
        "node;tick_[j];add_[i] 3\npy;handle_[py] 50\npy;handle_[py];parse_[py] 7\n"
    );
    assert!(text(page, "numbers").starts_with("60 samples, 100.00% of all"));
    page.press("I");
    assert!(text(page, "numbers").starts_with("67 samples, 100.00% of all"));
    // Nothing to choose where nothing is of a runtime.
    let native = write(
        folder.path(),
        &self::profile(Unit::Samples, &vec![(stack("sh;main"), 1)]),
    );
    let page = open(&mut browser, &native, Screen::LARGE);
    assert_eq!(
        page.ask("document.getElementById('choose-frames')"),
        serde_json::Value::Null
    );
    assert_eq!(page.errors(), NOTHING);
}

#[test]
fn beside_the_pointer_stands_all_about_a_frame_and_its_name_can_be_copied() {
    let mut browser = require!(Browser::start());
    let folder = tempdir().expect("a temporary folder can be made");
    let stacks = vec![
        (stack("sh;main;work"), 40),
        (stack("sh;main;work;read_[k]"), 20),
        (stack("sh;main"), 40),
    ];
    let path = write(folder.path(), &profile(Unit::Samples, &stacks));
    let page = open(&mut browser, &path, Screen::LARGE);
    let below = "(() => { const box = canvas.getBoundingClientRect(); return [box.left + 40, box.bottom - 3.5 * 16]; })()";
    let place = page.ask(below);
    let at = |index: usize| place[index].as_f64().expect("it is a number");
    page.point(at(0), at(1));
    let tip =
        "Array.from(document.getElementById('tip').children, (line) => line.textContent).join('|')";
    page.wait_for("!document.getElementById('tip').hidden");
    assert_eq!(
        page.ask(tip),
        "work|self 40 samples, 40.00% of all|total 60 samples, 60.00% of all|kind program"
    );
    let inside = "(() => { const box = document.getElementById('tip').getBoundingClientRect(); \
        return box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight; })()";
    assert_eq!(page.ask(inside), true);
    page.press("c");
    page.wait_for("document.getElementById('found').textContent === 'Copied: work'");
    page.point(at(0), 5.0);
    page.wait_for("document.getElementById('tip').hidden");
    assert_eq!(page.errors(), NOTHING);
}

#[test]
fn back_leads_out_of_a_zoom_and_not_off_the_page() {
    let mut browser = require!(Browser::start());
    let folder = tempdir().expect("a temporary folder can be made");
    let stacks = vec![(stack("sh;main;work"), 60), (stack("sh;idle"), 40)];
    let path = write(folder.path(), &profile(Unit::Samples, &stacks));
    let page = open(&mut browser, &path, Screen::LARGE);
    for key in ["ArrowUp", "ArrowUp", "Enter"] {
        page.press(key);
    }
    assert_eq!(text(page, "name"), "main");
    click(page, "view-callers");
    page.ask("history.back()");
    page.wait_for("document.getElementById('view-flame').getAttribute('aria-pressed') === 'true'");
    page.wait_for("document.getElementById('name').textContent === 'main'");
    page.ask("history.back()");
    page.wait_for("document.getElementById('reset').disabled");
    page.ask("history.forward()");
    page.wait_for("!document.getElementById('reset').disabled");
    assert_eq!(page.errors(), NOTHING);
}

#[test]
fn the_whole_row_of_a_table_leads_to_the_function() {
    let mut browser = require!(Browser::start());
    let folder = tempdir().expect("a temporary folder can be made");
    let stacks = vec![(stack("sh;main;work"), 60), (stack("sh;idle"), 40)];
    let path = write(folder.path(), &profile(Unit::Samples, &stacks));
    let page = open(&mut browser, &path, Screen::LARGE);
    click(page, "view-functions");
    let place = page.ask("(() => { const box = document.querySelector('#functions-body .cell.self').getBoundingClientRect(); \
        return [box.x + 5, box.y + 5]; })()");
    page.click(place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
    page.wait_for(
        "document.getElementById('view-sandwich').getAttribute('aria-pressed') === 'true'",
    );
    assert_eq!(text(page, "name"), "work");
    assert_eq!(page.errors(), NOTHING);
}

#[test]
fn two_ranges_are_compared_as_two_recordings_are() {
    const HALF: u32 = 15;
    let mut random = fastrand::Rng::with_seed(3);
    let mut stacks: [Vec<(Vec<Frame>, u64, u32)>; 2] = [Vec::new(), Vec::new()];
    for (stacks, parse) in stacks.iter_mut().zip([20, 45]) {
        for window in 0..HALF {
            for (name, usual) in [("parse", parse), ("send", 60), ("sort", 30), ("rare", 0)] {
                let weight = usual + random.u64(..6);
                stacks.push((stack(&format!("sh;main;{name}")), weight, window));
            }
        }
    }
    let of = |parts: &[(Vec<Frame>, u64, u32)], count: u32| {
        let all: Stacks = (parts.iter())
            .map(|(stack, weight, _)| (stack.clone(), *weight))
            .collect();
        let mut made = FrameProfile::new(Profile::new(Unit::Samples, Window::default()));
        for (group, (stack, weight)) in (0..).zip(&all) {
            made.group(group);
            made.push(stack, *weight, *weight);
        }
        let profile = made.into_profile();
        in_windows(profile, count, Duration::from_millis(100), |place| {
            parts[place].2
        })
    };
    let behind = stacks[1]
        .iter()
        .map(|(stack, weight, window)| (stack.clone(), *weight, window + HALF));
    let whole: Vec<_> = stacks[0].iter().cloned().chain(behind).collect();
    let sides = [0, 1].map(|side| vec![of(&stacks[side], HALF)]);
    let expected = flame_bpf::diff::compare(sides, Default::default()).expect("both have samples");

    let mut browser = require!(Browser::start());
    let folder = tempdir().expect("a temporary folder can be made");
    let path = write(folder.path(), &of(&whole, 2 * HALF));
    let page = open(&mut browser, &path, Screen::LARGE);
    let place = page.ask(
        "{ const box = document.getElementById('timeline').getBoundingClientRect(); [box.left, box.top, box.width] }",
    );
    let [left, top, width] = [0, 1, 2].map(|i| place[i].as_f64().expect("a number"));
    let window = |i: u32| left + (f64::from(i) + 0.5) / f64::from(2 * HALF) * width;
    page.drag((window(0), top + 20.0), (window(HALF - 1), top + 20.0));
    click(page, "compare");
    assert!(text(page, "range").starts_with("Now drag"));
    page.drag(
        (window(HALF), top + 20.0),
        (window(2 * HALF - 1), top + 20.0),
    );
    let rows = "Array.from(document.querySelectorAll('.compared.total tbody tr'), (row) => \
        Array.from(row.children, (cell) => cell.textContent).join(' | ')).sort().join('\\n')";
    let points = |value: f64| {
        let text = format!("{:+.1}", value * 100.0);
        match &text[1..] == "0.0" {
            true => text[1..].to_owned(),
            false => text,
        }
    };
    let mut lines: Vec<String> = (expected.functions.iter())
        .map(|function| {
            let total = &function.total;
            let [before, after] = total
                .estimate
                .values
                .map(|value| format!("{:.1}%", value * 100.0));
            let [low, high] = total.interval().expect("windows tell");
            format!(
                "{before} | {after} | {} | {} to {} | {} | {}",
                points(total.estimate.change()),
                points(low),
                points(high),
                total.verdict.word(),
                function.name
            )
        })
        .collect();
    lines.sort();
    assert!(
        lines.iter().any(|line| line.contains("more | parse")),
        "{lines:?}"
    );
    assert_eq!(page.ask(rows), lines.join("\n"));
    let whole = expected.whole.expect("there are times");
    let verdict = page.ask("document.querySelector('.verdict').textContent");
    let verdict = verdict.as_str().expect("a text");
    let grown = points(whole.relative().expect("there was something")[0]);
    assert!(
        verdict.contains(&format!(": {grown}% (")) && verdict.ends_with("beyond noise."),
        "{verdict}"
    );
    // The row leads to the function, and the comparison can be ended.
    page.ask("document.querySelector('.compared.total tbody tr td').click()");
    page.wait_for(
        "document.getElementById('view-sandwich').getAttribute('aria-pressed') === 'true'",
    );
    click(page, "compare");
    assert_eq!(
        page.ask("document.getElementById('view-compare').hidden"),
        true
    );
    assert_eq!(page.errors(), NOTHING);
}

#[test]
fn a_chart_has_a_lane_for_each_thread_and_zooms_to_whole_windows() {
    let mut browser = require!(Browser::start());
    let folder = tempdir().expect("a temporary folder can be made");
    let threads = "web;[tid 7 reader];main;read 30\nweb;[tid 8 writer];main;sync 50\nweb;[tid 8 writer];main;write 40\n";
    let profile = flame_bpf::profile::fold::parse(threads.as_bytes(), Unit::Samples);
    let profile = in_windows(
        profile.expect("it is folded text"),
        2,
        Duration::from_millis(100),
        |place| u32::from(place == 0),
    );
    let path = write(folder.path(), &profile);
    let page = open(&mut browser, &path, Screen::LARGE);
    click(page, "view-chart");
    let lanes = "document.getElementById('choose-lanes').value";
    assert_eq!(page.ask(lanes), "thread");
    let column = |page: &mut Browser, x: f64| {
        let names = "(() => { const seen = []; const box = canvas.getBoundingClientRect(); \
            for (let y = 8; y < box.height; y += 16) { canvas.dispatchEvent(new PointerEvent('pointermove', { \
            clientX: box.left + AT * box.width, clientY: box.top + y, pointerType: 'mouse' })); \
            seen.push(document.getElementById('tip').hidden ? '-' : document.getElementById('name').textContent); } \
            return seen.filter((name) => name !== '-').join(); })()";
        page.ask(&names.replace("AT", &x.to_string()))
            .as_str()
            .expect("a text")
            .to_owned()
    };
    // Downward, the busiest thread on top.
    let first = column(page, 0.01);
    assert!(first.starts_with("writer [tid 8],main,"), "{first}");
    let second = column(page, 0.75);
    assert!(second.ends_with("reader [tid 7],main,read"), "{second}");
    // Zoomed into half of a window, all of it is there.
    page.ask(
        "(() => { const box = canvas.getBoundingClientRect(); \
        const at = { clientX: box.left + 3, clientY: box.top + 40, bubbles: true, pointerType: 'mouse' }; \
        for (const name of ['pointermove', 'pointerdown', 'click']) { canvas.dispatchEvent(new PointerEvent(name, at)); } })()",
    );
    let both = [column(page, 0.1), column(page, 0.9)].concat();
    assert!(
        both.contains("sync") && both.contains("write") && !both.contains("main,read"),
        "{both}"
    );
    assert_eq!(page.errors(), NOTHING);
}
