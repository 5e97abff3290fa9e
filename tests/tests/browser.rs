//! Graphs in a real browser: what a person sees of them, in which windows and pages.
//!
//! In: profiles made here, drawn, and pages around them. Out: failures.

use std::collections::HashSet;

use flame_bpf::output::{CalleeOrder, Style};
use flame_bpf_tests::{GraphPage, draw_graph, require, titled};
use serde_json::{Value, json};

/// The windows that everything must work in: a laptop's, and a phone's.
const WINDOWS: [(u32, u32, bool); 3] = [(1400, 700, false), (390, 844, false), (390, 844, true)];

/// As many levels as a recording can have, and at each seventh a sibling.
fn deep() -> String {
    let path = |levels: usize| -> String {
        let names: Vec<String> = (0..levels).map(|level| format!("level_{level}")).collect();
        names.join(";")
    };
    let mut text = format!("{} 500\n", path(127));
    for level in (1..127).step_by(7) {
        text.push_str(&format!("{};side_{level} 3\n", path(level)));
    }
    text
}

/// A call tree of about so many frames, most of which are one sample, as in recordings of whole machines.
fn large(frames: usize) -> String {
    let mut random = fastrand::Rng::with_seed(7);
    let mut text = String::new();
    let mut known = HashSet::new();
    while known.len() < frames {
        let mut stack = format!("process_{}", random.usize(..9));
        for level in 0..8 + random.usize(..24) {
            // Few callees near the root, many far from it.
            let callee = random.usize(..2 + level * level / 6);
            stack.push_str(&format!(
                ";crate_{level}::module::Type<Vec<u8>>::function_{callee}"
            ));
            known.insert(stack.clone());
        }
        let weight = if random.u8(..) < 16 {
            1 + random.u32(..200)
        } else {
            1
        };
        text.push_str(&format!("{stack} {weight}\n"));
    }
    text
}

#[test]
fn large_graphs_stay_small() {
    let mut page = require!(GraphPage::new());
    page.browser.resize(1400, 700, false);
    for (frames, most_bytes) in [(14_000, 700_000), (100_000, 2_000_000)] {
        let text = large(frames);
        let drawn = draw_graph(&text, &Style::default());
        assert!(drawn.len() <= most_bytes, "{} bytes", drawn.len());
        let path = page.file("large.svg", &drawn);
        page.open(&path);
        let elements = page.browser.ask("document.querySelectorAll('*').length");
        let elements = elements.as_u64().expect("a number");
        assert!((500..25_000).contains(&elements), "{elements} elements");
        let note = page.text(".fg-note");
        assert!(note.contains(" px joined: zoom in or search"), "{note}");
    }
    page.no_errors();
}

const IN_VIEW: &str = "(() => {
    const find = (selector, label) => [...document.querySelectorAll(selector)].find(e => e.textContent === label);
    const parts = { title: document.querySelector('.fg-title'), search: document.querySelector('.fg-search'),
        reset: find('button', 'Reset zoom'), root: find('text', 'all') };
    const wrong = [];
    for (const [name, part] of Object.entries(parts)) {
        const box = part.getBoundingClientRect();
        const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
        const isIn = box.width > 0 && box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight;
        const top = document.elementFromPoint(x, y);
        const isFree = top === part || part.contains(top) || (name === 'root' && top.localName === 'rect');
        if (!isIn || !isFree) wrong.push(`${name} ${box.left} ${box.top} ${box.right} ${box.bottom} under ${top && top.outerHTML}`);
    }
    return wrong;
})()";

#[test]
fn what_leads_on_stays_in_view() {
    let mut page = require!(GraphPage::new());
    for inverted in [false, true] {
        let style = Style {
            inverted,
            ..titled(
                "A title that is rather long, as those of whole machines are: on-CPU, 997 Hz, 20 s",
            )
        };
        let bare = page.file("bare.svg", &draw_graph(&deep(), &style));
        let inline = format!(
            "<!DOCTYPE html><meta name=viewport content='width=device-width'><body style='margin:0'>{}",
            draw_graph(&deep(), &style)
        );
        let inline = page.file("inline.html", &inline);
        for (width, height, is_phone) in WINDOWS {
            for path in [&bare, &inline] {
                let place = format!("{} {width}x{height} {inverted}", path.display());
                page.browser.resize(width, height, is_phone);
                page.open(path);
                let check = |page: &mut GraphPage, when: &str| {
                    // Two frames, so that what scrolling causes has been drawn.
                    page.browser.ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
                    assert_eq!(page.browser.ask(IN_VIEW), json!([]), "{place} {when}");
                };
                check(&mut page, "after load");
                page.browser.ask("scrollTo(0, 700)");
                check(&mut page, "scrolled");
                page.browser
                    .click(f64::from(width) / 2.0, f64::from(height) / 2.0);
                check(&mut page, "after a click");
                let numbers = page.text(".fg-numbers");
                assert!(numbers.contains("of zoomed"), "{place}: {numbers}");
                page.browser.ask("scrollTo(0, 1e6)");
                check(&mut page, "at the end");
                page.browser.ask("scrollTo(0, 0)");
                check(&mut page, "at the beginning");
            }
        }
    }
    page.no_errors();
}

/// Changes of publishing systems to posts: entities for the end of a CDATA section, and paragraphs
/// at blank lines.
fn mangled(html: &str) -> String {
    let lines: Vec<String> = html
        .replace("]]>", "]]&gt;")
        .split("\n\n")
        .map(|paragraph| format!("<p>{}</p>", paragraph.trim().replace('\n', "<br />\n")))
        .collect();
    lines.join("\n")
}

#[test]
fn one_file_works_inline_twice_behind_an_icon_and_mangled() {
    let mut page = require!(GraphPage::new());
    page.browser.resize(1400, 700, false);
    let graph = draw_graph("one;two;three 60\none;two;four 40\n", &titled("Twice"));
    let icon = "<svg class='icon' width='16' height='16' viewBox='0 0 16 16'><path d='M0 0h16v16z'/></svg>";
    let body = format!("{icon}<div class='a'>{graph}</div>\n<div class='b'>{graph}</div>");
    for (name, body) in [("plain", body.clone()), ("mangled", mangled(&body))] {
        let empty = page.file("empty.html", "<!DOCTYPE html><title>x</title><body>");
        page.browser.open(&empty);
        let globals = page.browser.ask("Object.keys(window).sort().join()");
        let html = format!("<!DOCTYPE html><title>x</title><body style='margin:8px'>{body}");
        let path = page.file("page.html", &html);
        page.open(&path);
        assert_eq!(
            page.browser.ask("Object.keys(window).sort().join()"),
            globals,
            "{name}"
        );
        assert_eq!(
            page.browser.ask("document.querySelectorAll('[id]').length"),
            json!(0),
            "{name}"
        );
        let widths = "[...document.querySelectorAll('svg')].map(svg => Math.round(svg.getBoundingClientRect().width))";
        let widths = page.browser.ask(widths);
        assert_eq!(widths[0], json!(16), "{name}");
        for index in [1, 2] {
            let width = widths[index].as_u64().expect("a width");
            assert!((1350..=1384).contains(&width), "{name}: {widths}");
        }
        // One is zoomed and searched, and the other does not mind.
        page.click("three");
        page.search("four|two");
        let ask = |page: &mut GraphPage, selector: &str| -> Value {
            let query =
                format!("[...document.querySelectorAll('{selector}')].map(e => e.textContent)");
            page.browser.ask(&query)
        };
        let numbers = ask(&mut page, ".fg-numbers");
        assert!(
            numbers[0].as_str().is_some_and(
                |text| text.starts_with("60 samples, 60.00% of all, 100.00% of zoomed")
            ),
            "{name}: {numbers}"
        );
        assert!(
            numbers[1]
                .as_str()
                .is_some_and(|text| text.starts_with("100 samples, 100.00% of all.")),
            "{name}: {numbers}"
        );
        page.expect(
            ".fg-found",
            "Matched 100.00% of all, 0.00% of zoomed, 2 frames",
        );
        assert_eq!(
            ask(&mut page, ".fg-found"),
            json!(["Matched 100.00% of all, 0.00% of zoomed, 2 frames", ""]),
            "{name}"
        );
        page.no_errors();
    }
}

/// The least contrast of a label with what is behind it, in the way of the Web Content Accessibility Guidelines, and
/// the least size of a text in pixels of the window.
const LEGIBLE: &str = "(() => {
    const linear = c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const numbers = color => color.match(/[0-9.]+/g).map(Number);
    const luminance = rgb => 0.2126 * linear(rgb[0] / 255) + 0.7152 * linear(rgb[1] / 255) + 0.0722 * linear(rgb[2] / 255);
    const contrast = (a, b) => { const [x, y] = [luminance(a), luminance(b)]; return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); };
    const svg = document.querySelector('svg') || document.documentElement;
    const paper = numbers(getComputedStyle(svg).backgroundColor);
    let least = 100, size = 100, labels = 0;
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    for (const text of svg.querySelectorAll('text')) {
        const frame = text.previousElementSibling;
        const style = getComputedStyle(frame);
        const [fill, part] = [numbers(style.fill), Number(style.fillOpacity)];
        const behind = fill.map((c, i) => c * part + paper[i] * (1 - part));
        least = Math.min(least, contrast(behind, numbers(getComputedStyle(text).fill)));
        size = Math.min(size, parseFloat(getComputedStyle(text).fontSize) * scale);
        labels += 1;
    }
    for (const part of svg.querySelectorAll('.fg-bar *')) {
        if (![...part.childNodes].some(node => node.nodeType === 3 && node.data)) continue;
        const style = getComputedStyle(part);
        const back = numbers(getComputedStyle(part.closest('.fg-bar')).backgroundColor);
        least = Math.min(least, contrast(back, numbers(style.color)));
        size = Math.min(size, parseFloat(style.fontSize) * scale);
    }
    return { least, size, labels, paper };
})()";

#[test]
fn labels_are_legible_by_day_and_night_and_on_phones() {
    let mut page = require!(GraphPage::new());
    let text = format!(
        "{}level_0;fréquent_[k];j_[j];v_[i];[truncated] 900\n",
        deep()
    );
    let palettes = ["land", "hot", "red", "blue", "purple"];
    for (colors, (width, height, is_phone)) in palettes.into_iter().zip(WINDOWS.into_iter().cycle())
    {
        let style = Style {
            colors: colors.parse().expect("a palette"),
            ..titled("Colours")
        };
        page.browser.resize(width, height, is_phone);
        let mut papers = Vec::new();
        for is_dark in [false, true] {
            page.browser.prefer_dark(is_dark);
            page.show(&text, &style);
            page.click("level_5");
            let legible = page.browser.ask(LEGIBLE);
            let number = |name: &str| legible[name].as_f64().expect("a number");
            assert!(number("labels") > 10.0, "{legible}");
            assert!(number("least") >= 4.5, "{colors} {is_dark}: {legible}");
            assert!(number("size") >= 11.0, "{width}: {legible}");
            papers.push(legible["paper"].clone());
        }
        assert_ne!(papers[0], papers[1]);
    }
    page.no_errors();
}

#[test]
fn without_scripts_the_picture_is_right() {
    let mut page = require!(GraphPage::new());
    page.browser.resize(1400, 700, false);
    page.browser.allow_scripts(false);
    let path = page.file(
        "still.svg",
        &draw_graph("a;b;c 60\na;b;d 30\na;e 10\n", &titled("Still")),
    );
    page.browser.open(&path);
    let texts = page
        .browser
        .ask("[...document.querySelectorAll('text')].map(t => t.textContent)");
    for text in [
        "Still",
        "all",
        "a",
        "b",
        "c",
        "d",
        "e",
        "recorded 9 samples; LOST 1 sample: no room",
    ] {
        assert!(
            texts.as_array().expect("texts").contains(&json!(text)),
            "{text} in {texts}"
        );
    }
    let width = page
        .browser
        .ask("Math.round(document.documentElement.getBoundingClientRect().width)");
    assert_eq!(width, json!(1400));
    assert_eq!(
        page.browser
            .ask("document.querySelectorAll('.fg-bar').length"),
        json!(0)
    );
}

#[test]
fn the_heaviest_callee_comes_first_where_it_is_asked_for_and_where_graphs_begin_with_leaves() {
    const LABELS: &str = "Array.from(document.querySelectorAll('text')).filter(t => ['a', 'b', 'c'].includes(t.textContent))\
        .sort((s, t) => s.getBoundingClientRect().x - t.getBoundingClientRect().x).map(t => t.textContent).join()";
    const FOLDED: &str = "sh;main;a 10\nsh;main;b 60\nsh;main;c 30\n";
    let mut page = require!(GraphPage::new());
    page.browser.resize(1200, 700, false);
    page.show(FOLDED, &Style::default());
    assert_eq!(page.browser.ask(LABELS), "a,b,c");
    page.click("b");
    page.expect(
        ".fg-numbers",
        "60 samples, 60.00% of all, 100.00% of zoomed, program",
    );
    page.browser.press("o");
    page.expect(".fg-name", "b");
    assert_eq!(page.browser.ask("location.hash"), "#zoom=4&order=weight");
    page.browser.press("Escape");
    assert_eq!(page.browser.ask(LABELS), "b,c,a");
    page.browser
        .ask("document.querySelector('[aria-pressed=true]').click()");
    assert_eq!(page.browser.ask(LABELS), "a,b,c");
    // Turned over, until the reader has chosen.
    page.show(FOLDED, &Style::default());
    page.browser.press("i");
    assert_eq!(page.browser.ask(LABELS), "b,c,a");
    for style in [
        Style {
            reverse: true,
            ..Style::default()
        },
        Style {
            order: Some(CalleeOrder::Weight),
            ..Style::default()
        },
    ] {
        // The same with and without scripts.
        for has_scripts in [true, false] {
            page.browser.allow_scripts(has_scripts);
            let path = page.file("order.svg", &draw_graph(FOLDED, &style));
            page.browser.open(&path);
            if has_scripts {
                page.open(&path);
            }
            assert_eq!(page.browser.ask(LABELS), "b,c,a", "{style:?} {has_scripts}");
        }
        page.browser.allow_scripts(true);
    }
    page.no_errors();
}

#[test]
fn beside_the_pointer_stands_all_about_a_frame_and_back_leads_out_of_a_zoom() {
    let mut page = require!(GraphPage::new());
    page.browser.resize(1200, 700, false);
    page.show(
        "sh;main;work 40\nsh;main;work;read_[k] 20\nsh;main 40\n",
        &Style::default(),
    );
    let [x, y] = page.place_of("work");
    page.browser.point(x, y);
    let lines = "Array.from(document.querySelector('.fg-tip').children).map(line => line.textContent).join('|')";
    page.browser.wait_for(&format!("{lines} !== ''"));
    assert_eq!(
        page.browser.ask(lines),
        "work|self: 40 samples, 40.00% of all|total: 60 samples, 60.00% of all|kind: program"
    );
    page.browser.press("c");
    page.expect(".fg-found", "Copied: work");
    page.click("work");
    page.expect(
        ".fg-numbers",
        "60 samples, 60.00% of all, 100.00% of zoomed, program",
    );
    page.browser.ask("history.back()");
    page.browser
        .wait_for("document.querySelector('.fg-numbers').textContent.includes('100 samples')");
    page.browser.ask("history.forward()");
    page.browser
        .wait_for("document.querySelector('.fg-numbers').textContent.includes('of zoomed')");
    page.no_errors();
}
