//! Views of one profile: colours, order, source, runtimes alone.

use super::*;

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
