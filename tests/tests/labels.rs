//! Names that are cut to their room: the script of files and pages does as the program does.

use flame_bpf_tests::{Browser, require};

const SCRIPT: &str = include_str!("../../profiler-userspace/src/output/web/label.js");
/// Names, columns, and how they read.
const NAMES: &str = include_str!("../../profiler-userspace/src/text/labels.tsv");

/// Numbers, what they are of, and how they read.
const AMOUNTS: &str = include_str!("../../profiler-userspace/src/text/amounts.tsv");

#[test]
fn the_script_says_amounts_as_the_program_does() {
    let mut browser = require!(Browser::start());
    browser.ask(&format!(
        "{SCRIPT};globalThis.both = (n, noun) => [amount(n, noun), exactAmount(n, noun)]"
    ));
    for line in AMOUNTS.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [number, noun, short, exact] = columns[..] else {
            panic!("four columns: {line}");
        };
        let shown = browser.ask(&format!("both({number}, '{noun}')"));
        assert_eq!(shown, serde_json::json!([short, exact]), "{line}");
    }
}

#[test]
fn the_script_cuts_names_as_the_program_does() {
    let mut browser = require!(Browser::start());
    browser.ask(&format!("{SCRIPT};globalThis.fit = fit"));
    for line in NAMES.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [name, columns, label] = columns[..] else {
            panic!("three columns: {line}");
        };
        let name = serde_json::to_string(name).expect("text is JSON");
        let shown = browser.ask(&format!("fit({name}, {columns})"));
        assert_eq!(shown, label, "{line}");
    }
}
