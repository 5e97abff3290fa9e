//! Graphs in a real browser: what clicking, typing and keys do.
//!
//! In: profiles made here, drawn. Out: failures. Sums are those of the folded text.

use flame_bpf::output::Style;
use flame_bpf_tests::{GraphPage, draw_graph, require, titled};
use serde_json::json;

#[test]
fn shares_are_those_of_the_folded_text() {
    let mut page = require!(GraphPage::new());
    page.browser.resize(1400, 700, false);
    page.show(
        "a;main;work;free 30\na;main;work 20\na;main;free 10\na;idle 25\nb;free;free 15\n",
        &titled("Shares"),
    );
    let [x, y] = page.place_of("work");
    page.browser.point(x, y);
    page.expect(".fg-name", "work");
    page.expect(".fg-numbers", "50 samples, 50.00% of all, program");
    page.search("^free$");
    page.expect(".fg-found", "Matched 55.00% of all, 4 frames");
    page.browser.press("Escape");
    page.expect(".fg-found", "");
    page.click("main");
    page.search("FREE");
    page.expect(".fg-found", "No frame matches");
    page.search("free");
    page.expect(
        ".fg-found",
        "Matched 55.00% of all, 66.67% of zoomed, 4 frames",
    );
    // The widest match first; the last one is elsewhere, so that it zooms out.
    page.browser.press("Enter");
    page.expect(
        ".fg-numbers",
        "30 samples, 30.00% of all, 50.00% of zoomed, program",
    );
    page.expect(
        ".fg-found",
        "Matched 55.00% of all, 66.67% of zoomed, 1 of 4 frames",
    );
    page.browser.press("Enter");
    page.expect(".fg-numbers", "15 samples, 15.00% of all, program");
    page.expect(".fg-found", "Matched 55.00% of all, 2 of 4 frames");
    page.search("fr(ee");
    page.expect(".fg-found", "Not a regular expression: Unterminated group");
    page.browser.press("Escape");
    page.browser.press("Escape");
    page.expect(
        ".fg-numbers",
        "100 samples, 100.00% of all. Click a frame to zoom in",
    );
    page.no_errors();
}

#[test]
fn narrow_frames_are_found_and_drawn_by_zooming() {
    let mut page = require!(GraphPage::new());
    page.browser.resize(1400, 700, false);
    let mut text = String::from("a;wide 1000000\n");
    for number in 0..100 {
        text.push_str(&format!("a;narrow;child_{number};grandchild_{number} 1\n"));
    }
    page.show(&text, &Style::default());
    assert_eq!(
        page.browser.ask(
            "[...document.querySelectorAll('text')].some(t => t.textContent.startsWith('child_'))"
        ),
        json!(false)
    );
    assert!(
        page.text(".fg-note")
            .starts_with("201 frames narrower than 0.5 px joined")
    );
    page.search("^grandchild_7$");
    page.expect(".fg-found", "Matched 0.00% of all, 1 frame");
    page.search("child_");
    page.expect(".fg-found", "Matched 0.01% of all, 200 frames");
    page.search("^narrow$");
    page.browser.press("Enter");
    page.expect(
        ".fg-numbers",
        "100 samples, 0.01% of all, 100.00% of zoomed, program",
    );
    let drawn = "document.querySelectorAll('.fg-frame').length";
    assert_eq!(page.browser.ask(drawn), json!(201));
    assert!(page.text(".fg-note").starts_with("Every frame is drawn."));
    page.no_errors();
}

#[test]
fn keys_walk_zoom_and_turn_the_graph_over() {
    let mut page = require!(GraphPage::new());
    page.browser.resize(1400, 700, false);
    page.show("a;b;c 60\na;b;d 30\na;e 10\n", &Style::default());
    for (key, name) in [
        ("ArrowUp", "a"),
        ("ArrowUp", "b"),
        ("ArrowRight", "e"),
        ("ArrowLeft", "b"),
        ("ArrowUp", "c"),
        ("ArrowDown", "b"),
    ] {
        page.browser.press(key);
        assert_eq!(page.text(".fg-name"), name, "{key}");
    }
    page.browser.press("Enter");
    assert!(
        page.text(".fg-numbers")
            .contains("90.00% of all, 100.00% of zoomed")
    );
    assert_eq!(page.browser.ask("location.hash"), json!("#zoom=2"));
    let [_, before] = page.place_of("c");
    page.browser.press("i");
    let [_, after] = page.place_of("c");
    assert!(after > before && after > page.place_of("all")[1]);
    page.browser.press("Escape");
    assert_eq!(page.browser.ask("location.hash"), json!(""));
    page.browser.press("/");
    page.browser.write("d");
    page.browser.wait_for(
        "document.querySelector('.fg-found').textContent === 'Matched 30.00% of all, 1 frame'",
    );
    page.no_errors();
}

#[test]
fn names_and_titles_stay_text() {
    let mut page = require!(GraphPage::new());
    page.browser.resize(1400, 700, false);
    let evil =
        "</script><img src=x onerror=document.title='owned'>\"'`${document.title='owned'}\\x3c]]>";
    let text = format!("a;{evil};b 10\n");
    let graph = draw_graph(&text, &titled(evil));
    let html = format!("<!DOCTYPE html><title>kept</title><body>{graph}");
    let path = page.file("evil.html", &html);
    page.open(&path);
    page.search("owned");
    page.expect(".fg-found", "Matched 100.00% of all, 1 frame");
    page.browser.press("Enter");
    assert_eq!(page.text(".fg-name"), evil);
    assert_eq!(page.text(".fg-title"), evil);
    assert_eq!(page.browser.ask("document.title"), json!("kept"));
    assert_eq!(page.browser.ask("document.images.length"), json!(0));
    page.no_errors();
}
