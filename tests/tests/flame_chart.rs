//! Flame charts in a real browser: what a person sees of them, and asks them.
//!
//! In: profiles that are divided into windows. Out: failures.

use std::time::Duration;

use flame_bpf::output::{self, Format, Style};
use flame_bpf::profile::{Frame, FrameKind, FrameProfile, Labels, Profile, Sample, Unit, Window};
use flame_bpf_tests::{GraphPage, in_windows, require, titled};
use serde_json::json;

/// A program that reads for 100 ms, is away for 50 ms, and computes for 100 ms, with others beside it: windows, stacks,
/// weights.
const PHASES: [(u32, &str, u64); 6] = [
    (0, "demo;main;load;read_[k]", 4),
    (0, "demo;main;load", 1),
    (1, "demo;main;load;read_[k]", 5),
    (3, "demo;main;compute", 5),
    (3, "other;main;assist", 5),
    (4, "demo;main;compute", 10),
];

fn phases() -> Profile {
    let mut profile = FrameProfile::new(Profile::new(Unit::Samples, Window::default()));
    for (group, (_, stack, weight)) in (0..).zip(PHASES) {
        let frame = |(level, name): (usize, &str)| {
            let (name, kind) = match (level, name.strip_suffix("_[k]")) {
                (0, _) => (name, FrameKind::Process),
                (_, Some(name)) => (name, FrameKind::Kernel),
                _ => (name, FrameKind::User),
            };
            let name = name.to_owned();
            Frame { name, kind }
        };
        let stack: Vec<Frame> = stack.split(';').enumerate().map(frame).collect();
        profile.group(group);
        profile.push(&stack, weight, weight);
    }
    let profile = profile.into_profile();
    in_windows(profile, 5, Duration::from_millis(50), |place| {
        PHASES[place].0
    })
}

fn drawn(profile: &Profile, format: Format, inverted: bool) -> String {
    let style = Style {
        chart: true,
        inverted,
        ..titled("Phases")
    };
    let mut bytes = Vec::new();
    output::write(profile, format, &style, &mut bytes).expect("a vector takes everything");
    String::from_utf8(bytes).expect("it is text")
}

#[test]
fn an_svg_shows_when_frames_were_there_and_zooms_into_time() {
    let mut page = require!(GraphPage::new());
    for (width, inverted) in [(1020, false), (1020, true), (390, false)] {
        page.browser.resize(width, 600, false);
        let path = page.file("chart.svg", &drawn(&phases(), Format::SVG, inverted));
        page.open(&path);
        assert_eq!(page.text(".fg-title"), "Phases, windows of 50 ms");
        let [loaded, computed] = ["load", "compute"].map(|name| page.place_of(name)[0]);
        assert!(loaded < computed);
        let [x, y] = page.place_of("load");
        page.browser.point(x, y);
        page.expect(
            ".fg-numbers",
            "0.000 s to 0.100 s, 10 samples, 100.00% of what was counted then, 33.33% of all, program",
        );
        // The middle of everything is empty.
        page.browser.point(f64::from(width) / 2.0, y);
        page.expect(
            ".fg-numbers",
            "0.000 s to 0.250 s, 30 samples, 100.00% of all. Click a frame to zoom in",
        );
        page.click("compute");
        page.expect(
            ".fg-numbers",
            "0.150 s to 0.250 s, 15 samples, 75.00% of what was counted then, 50.00% of all, 100.00% of zoomed, program",
        );
        // As high as the highest bar, which the window of two programs is.
        let bars = "document.querySelector('.fg-activity').getBoundingClientRect().height";
        assert_eq!(page.browser.ask(bars), json!(20));
        let times =
            "[...document.querySelectorAll('.fg-time')].map(t => parseFloat(t.textContent))";
        let times = page.browser.ask(times);
        let times: Vec<f64> = serde_json::from_value(times).expect("numbers");
        assert!(
            !times.is_empty() && times.iter().all(|time| [0.15, 0.2, 0.25].contains(time)),
            "{times:?}"
        );
        page.browser.press("Escape");
        page.search("compute");
        page.expect(".fg-found", "Matched 50.00% of all, 1 frame");
        page.browser.press("Escape");
        page.no_errors();
    }
}

#[test]
fn an_svg_has_a_lane_for_each_process() {
    let mut page = require!(GraphPage::new());
    let mut profile = phases();
    let labels = [("demo", 1), ("other", 2)].map(|(name, pid)| {
        profile.labels(Labels {
            process: Some(name.to_owned()),
            pid: Some(pid),
            ..Labels::default()
        })
    });
    profile.change_samples(|place, sample| {
        let lane = usize::from(PHASES[place].1.starts_with("other"));
        Some(Sample {
            labels: labels[lane],
            ..sample
        })
    });
    for inverted in [false, true] {
        page.browser.resize(1020, 600, false);
        let path = page.file("lanes.svg", &drawn(&profile, Format::SVG, inverted));
        page.open(&path);
        let [[busy, first], [_, second]] =
            ["demo (1)", "other (2)"].map(|name| page.place_of(name));
        assert_eq!(first < second, inverted);
        // All of the time, whatever there was.
        page.browser.point(busy, first);
        page.expect(
            ".fg-numbers",
            "0.000 s to 0.250 s, 25 samples, 83.33% of what was counted then, 83.33% of all, process, thread",
        );
        let [x, y] = page.place_of("assist");
        page.browser.point(x, y);
        page.expect(
            ".fg-numbers",
            "0.150 s to 0.200 s, 5 samples, 50.00% of what was counted then, 16.67% of all, program",
        );
        // The same time, and nothing between it and the root.
        page.click("other (2)");
        let [zoomed, _] = page.place_of("assist");
        assert!((zoomed - x).abs() < 1.0, "{x} {zoomed}");
        let others = "[...document.querySelectorAll('text')].filter(t => t.textContent === 'demo (1)').length";
        assert_eq!(page.browser.ask(others), json!(0));
        page.browser.press("Escape");
        page.search("assist");
        page.expect(".fg-found", "Matched 16.67% of all, 1 frame");
        page.browser.press("Escape");
        page.no_errors();
    }
}

#[test]
fn without_scripts_a_chart_has_times_and_bars() {
    let mut page = require!(GraphPage::new());
    page.browser.resize(1400, 700, false);
    page.browser.allow_scripts(false);
    let path = page.file("still.svg", &drawn(&phases(), Format::SVG, false));
    page.browser.open(&path);
    let texts = "[...document.querySelectorAll('text')].map(t => t.textContent)";
    let texts = page.browser.ask(texts);
    for text in [
        "Phases, windows of 50 ms",
        "load",
        "compute",
        "0.00 s",
        "0.20 s",
    ] {
        assert!(
            texts.as_array().expect("texts").contains(&json!(text)),
            "{text} in {texts}"
        );
    }
    let title = "[...document.querySelectorAll('title')].map(t => t.textContent).filter(t => t.startsWith('load '))";
    assert_eq!(
        page.browser.ask(title),
        json!(["load (0.000 s to 0.100 s, 10 samples, 100.00% of what was counted then)"])
    );
}

#[test]
fn a_page_shows_the_same_chart() {
    let mut page = require!(GraphPage::new());
    page.browser.resize(1020, 700, false);
    let path = page.file("chart.html", &drawn(&phases(), Format::HTML, false));
    page.browser.open(&path);
    page.browser
        .wait_for("'drawn' in document.documentElement.dataset");
    assert_eq!(page.text("#title"), "Phases, windows of 50 ms");
    let pressed = "document.querySelector('[aria-pressed=true]').id";
    assert_eq!(page.browser.ask(pressed), "view-chart");
    let lanes = "(() => { const lanes = document.getElementById('choose-lanes'); const usual = lanes.value; \
        lanes.value = 'none'; lanes.dispatchEvent(new Event('change')); return usual; })()";
    assert_eq!(page.browser.ask(lanes), "name");
    let walk = |page: &mut GraphPage, key: &str, name: &str, numbers: &str| {
        page.browser.press(key);
        assert_eq!(page.text("#name"), name);
        assert_eq!(page.text("#numbers"), numbers, "{name}");
    };
    walk(
        &mut page,
        "ArrowUp",
        "demo",
        "0.00 s to 0.10 s, 10 samples, 100.00% of what was counted then, 33.33% of all, process, thread",
    );
    walk(
        &mut page,
        "ArrowRight",
        "other",
        "0.15 s to 0.20 s, 5 samples, 50.00% of what was counted then, 16.67% of all, process, thread",
    );
    walk(
        &mut page,
        "ArrowRight",
        "demo",
        "0.15 s to 0.25 s, 15 samples, 75.00% of what was counted then, 50.00% of all, process, thread",
    );
    page.browser.press("Enter");
    walk(
        &mut page,
        "ArrowUp",
        "main",
        "0.15 s to 0.25 s, 15 samples, 75.00% of what was counted then, 50.00% of all, 100.00% of zoomed, program",
    );
    let end = "(() => { const s = document.getElementById('graph'); return s.scrollHeight - s.scrollTop - s.clientHeight; })()";
    assert_eq!(page.browser.ask(end), json!(0), "the root's row is in view");
    // A flame graph is a key away, and so is the chart.
    page.browser.press("1");
    assert_eq!(page.text("#name"), "all");
    page.browser.press("6");
    assert_eq!(page.browser.ask(pressed), "view-chart");
    page.no_errors();
}
