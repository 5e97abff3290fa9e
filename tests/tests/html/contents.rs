//! All that a profile holds is on its page, and nothing else is: weights, names, numbers.

use super::*;

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

/// Counts how often the page fills a rectangle and asks whether a name matches, from now on; `counted` is what an action costs
/// until it is drawn.
const COUNTING: &str = "{
    const counts = { filled: 0, matched: 0 };
    const { fillRect } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.fillRect = function (...box) { counts.filled += 1; return fillRect.apply(this, box); };
    const { test } = RegExp.prototype;
    RegExp.prototype.test = function (text) { counts.matched += 1; return test.call(this, text); };
    const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    window.counted = async (action) => {
        await drawn();
        Object.assign(counts, { filled: 0, matched: 0 });
        action();
        await drawn();
        return { ...counts };
    };
    window.press = (key) => document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    window.sought = (text) => {
        const field = document.getElementById('search');
        // Without waiting for whether more is typed.
        const wait = window.setTimeout;
        window.setTimeout = (action) => action();
        field.value = text;
        field.dispatchEvent(new Event('input'));
        window.setTimeout = wait;
    };
}";

#[test]
fn a_hundred_thousand_frames_are_small_and_cost_what_is_seen_of_them() {
    const FRAMES: usize = 100_000;
    let mut browser = require!(Browser::start());
    let folder = tempdir().expect("a temporary folder can be made");
    let path = write(folder.path(), &profile(Unit::Samples, &large(FRAMES)));
    let size = std::fs::metadata(&path).expect("it is there").len();
    assert!(size <= 1_000_000, "{size} bytes");
    let page = open(&mut browser, &path, Screen::LARGE);
    let elements = page.ask("document.querySelectorAll('*').length");
    assert!(
        elements.as_u64().is_some_and(|count| count < 1_000),
        "{elements} elements"
    );
    page.ask(COUNTING);
    let mut count = |action: &str, what: &str| {
        let counts = page.ask(&format!("counted(() => {action})"));
        let count = counts[what].as_u64();
        count.unwrap_or_else(|| panic!("{action}: {counts}"))
    };
    for text in ["visit.*alloc", "hash", "drop::.*_7"] {
        count("press('ArrowUp')", "filled");
        count("press('ArrowUp')", "filled");
        for key in ["Enter", "Escape"] {
            // Those that are narrower than half a pixel are joined.
            let filled = count(&format!("press('{key}')"), "filled");
            assert!(
                (10..FRAMES as u64).contains(&filled),
                "{key}: {filled} are filled"
            );
        }
        // Each name once, not each frame.
        let matched = count(&format!("sought('{text}')"), "matched");
        assert!(
            (6_000..6_100).contains(&matched),
            "{text}: {matched} are matched"
        );
    }
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
