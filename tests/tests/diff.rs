//! `flame-bpf diff`: its exit codes and its outputs.
//!
//! In: folded text, and a golden raw recording. Out: a code that CI would misread, an output that says other than the
//! inputs, a page that does not work.

use std::fs;
use std::path::Path;

use flame_bpf_tests::{Browser, Invocation, Run, golden, require};
use tempfile::{TempDir, tempdir};

const BEFORE: &str = "p;main;parse 1000\np;main;copy 9000\np;main;old 2000\n";
const AFTER: &str = "p;main;parse 2000\np;main;copy 8000\np;main;<b>new 2000\n";

/// A folder with both sides as folded text.
fn sides() -> TempDir {
    let folder = tempdir().expect("a temporary folder can be made");
    for (name, text) in [("before.folded", BEFORE), ("after.folded", AFTER)] {
        fs::write(folder.path().join(name), text).expect("the file can be written");
    }
    folder
}

fn diff(folder: &Path, arguments: &[&str]) -> Run {
    let diff = Invocation::new("diff")
        .arg("before.folded")
        .arg("after.folded");
    let diff = arguments
        .iter()
        .fold(diff, |diff, argument| diff.arg(argument));
    diff.within(folder).run().expect_no_panic()
}

#[test]
fn the_exit_code_says_met_not_met_or_cannot_tell() {
    let folder = sides();
    let condition = |condition: &str, more: &[&str]| {
        let arguments = [&["--fail-if", condition][..], more].concat();
        diff(folder.path(), &arguments)
    };
    // Text has no windows, so that nothing is known of noise.
    condition("any > +1 point", &[]).expect_code(4);
    let assumed = &["--assume-independent"];
    condition("self(parse) > +5 points", assumed).expect_code(3);
    condition("self(copy) > +5 points", assumed).expect_code(0);
    condition("self(prase) > +5 points", assumed).expect_code(4);
    condition("any > 0%", assumed).expect_code(2);
    diff(folder.path(), &[]).expect_code(0);
    Invocation::new("diff")
        .args("before.folded -- after.folded -o d.svg")
        .within(folder.path())
        .run()
        .expect_code(2)
        .expect_stderr("-o behind -- is taken for a recording");
    diff(folder.path(), &["--absolute"])
        .expect_code(1)
        .expect_stderr("--absolute cannot be had");
}

#[test]
fn both_sides_are_in_every_format() {
    let folder = sides();
    let outputs = [
        "-o", "d.json", "-o", "d.folded", "-o", "d.txt", "-o", "d.svg", "-o", "d.html",
    ];
    diff(folder.path(), &outputs)
        .expect_code(0)
        .expect_stderr("No intervals");
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect("it is written");
    assert_eq!(
        read("d.folded"),
        "p;main;<b>new 0 2000\np;main;copy 9000 8000\np;main;old 2000 0\np;main;parse 1000 2000\n"
    );
    let json: serde_json::Value = serde_json::from_str(&read("d.json")).expect("it is JSON");
    assert_eq!(json["format"], "flame-bpf diff 1");
    assert_eq!(json["claims"], false);
    let functions = json["functions"].as_array().expect("functions");
    assert_eq!(functions.len(), 5);
    assert!(
        functions
            .iter()
            .all(|function| function["self"]["verdict"] == "no claim")
    );
    assert!(read("d.txt").lines().all(|line| line.chars().count() <= 80));
    roxmltree::Document::parse(&read("d.svg")).expect("it is XML");
    assert!(!read("d.html").contains("<b>"));
}

#[test]
fn names_are_cut_where_it_is_known_how_wide_lines_may_be() {
    let folder = tempdir().expect("a temporary folder can be made");
    let name = format!("{}parse", "module::".repeat(20));
    for (file, weight) in [("before.folded", 10), ("after.folded", 20)] {
        fs::write(folder.path().join(file), format!("p;{name} {weight}\n")).expect("a file");
    }
    let written = |wrapper: &str| {
        let run = Invocation::new("diff before.folded after.folded")
            .within(folder.path())
            .wrapped(wrapper)
            .run()
            .expect_code(0);
        String::from_utf8(run.stdout).expect("text")
    };
    let whole = written("env -u COLUMNS");
    assert!(whole.contains(&format!(" {name}\n")), "{whole}");
    let cut = written("env COLUMNS=70");
    assert!(cut.contains("…") && !cut.contains(&name), "{cut}");
    assert!(cut.lines().all(|line| line.chars().count() <= 80), "{cut}");
}

#[test]
fn a_recording_does_not_differ_from_itself() {
    let folder = tempdir().expect("a temporary folder can be made");
    let (recording, file) = (golden("raw-windows.fbpf"), folder.path().join("d.json"));
    Invocation::new("diff")
        .arg(recording.display())
        .arg(recording.display())
        .path("-o", &file)
        .run()
        .expect_code(0);
    let text = fs::read_to_string(&file).expect("it is written");
    let json: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let nodes = json["nodes"].as_array().expect("nodes");
    assert!(!nodes.is_empty());
    for node in nodes {
        assert_eq!(node["change"], 0.0, "{node}");
        let verdict = node["verdict"].as_str().expect("a word");
        assert!(
            ["noise", "few samples", "no claim"].contains(&verdict),
            "{node}"
        );
    }
}

#[test]
fn graphs_of_both_sides_are_drawn_and_switched() {
    let folder = sides();
    diff(folder.path(), &["-o", "d.svg", "-o", "d.html"]).expect_code(0);
    let mut browser = require!(Browser::start());
    browser.open(&folder.path().join("d.svg"));
    let drawn = "document.querySelectorAll('.fg-frame').length > 4 && document.querySelectorAll('.fg-hatch').length > 4";
    browser.wait_for(drawn);
    assert!(browser.errors().is_empty(), "{:?}", browser.errors());
    browser.open(&folder.path().join("d.html"));
    let shown = "[...document.querySelectorAll('.graphs > div')].filter(graph => graph.offsetHeight > 0).length";
    browser.wait_for(&format!("{shown} === 1"));
    let first = browser.ask("document.querySelector('h1').nextElementSibling.textContent");
    assert_eq!(
        first,
        "How much it costs altogether is not known: an input does not say how long it took."
    );
    browser.ask("document.querySelector('#before').click()");
    let names =
        "[...document.querySelectorAll('.graph-before text')].map(text => text.textContent)";
    browser.wait_for(&format!(
        "{names}.includes('old') && !{names}.includes('<b>new')"
    ));
    assert!(browser.errors().is_empty(), "{:?}", browser.errors());
    assert_eq!(
        browser
            .requests()
            .iter()
            .filter(|request| !request.starts_with("file:"))
            .count(),
        0
    );
}
