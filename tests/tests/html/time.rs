//! Time: ranges, two of them compared, lanes of charts.

use super::*;

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
    page.ask("history.back()");
    page.wait_for("document.getElementById('range').textContent.startsWith('0.20 s')");
    assert_eq!(saved(page, "save-folded").lines().count(), 3);
    page.ask("history.back()");
    page.wait_for("document.getElementById('range').textContent.startsWith('20 windows')");
    page.ask("document.getElementById('timeline').focus()");
    page.press("ArrowRight");
    page.press("ArrowRight");
    assert_eq!(saved(page, "save-folded"), "sh;main;f1 2\n");
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
    assert!(first.starts_with("web / writer [tid 8],main,"), "{first}");
    let second = column(page, 0.75);
    assert!(
        second.ends_with("web / reader [tid 7],main,read"),
        "{second}"
    );
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
