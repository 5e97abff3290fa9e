//! HTML pages in a browser: what is seen, what is found, how long it takes, and that nothing is asked for.
//!
//! In: profiles of synthetic stacks, as pages. Out: what a page says after clicks and keys.

mod contents;
mod pointing;
mod time;
mod views;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flame_bpf::output::{self, Format, Section, SourceFile, SourceRun, SourceText, Style};
use flame_bpf::profile::{
    Activity, Frame, FrameKind, FrameProfile, FrameRef, Profile, SourceFrame, Unit, Window,
};
use flame_bpf_tests::{Browser, PageData, in_windows, require};
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
