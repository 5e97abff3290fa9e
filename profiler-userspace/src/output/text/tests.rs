use super::*;
use crate::profile::Unit;
use crate::profile::fold;

const FOLDED: &[u8] =
    b"web;main;serve;parse 60\nweb;main;serve;send;write_[k] 25\nweb;main;serve;serve 5\n\
    db;main;scan<int, long> 9\ndb;main;[truncated] 1\n";

fn report(text: TextStyle) -> String {
    let profile = fold::parse(FOLDED, Unit::Samples).unwrap();
    let style = Style {
        title: "a machine".to_owned(),
        notes: "a machine\nrecorded: 100 samples\nlost: nothing".to_owned(),
        text,
        ..Style::default()
    };
    let mut out = Vec::new();
    write(&profile, &style, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_report_has_the_balance_functions_owners_and_both_trees() {
    let text = report(TextStyle::default());
    assert!(
        text.starts_with("a machine\nrecorded: 100 samples\nlost: nothing\n100 samples: user"),
        "{text}"
    );
}

#[test]
fn what_a_table_leaves_out_is_counted() {
    let text = report(TextStyle {
        min_percent: Some(30.0),
        ..TextStyle::default()
    });
    assert!(text.contains("3 of 6 functions"), "{text}");
    assert!(text.contains("… 1 more"), "{text}");
}

#[test]
fn a_function_is_shown_between_its_callers_and_callees() {
    let peek = |expression: &str| {
        report(TextStyle {
            peek: Some(expression.parse().unwrap()),
            ..TextStyle::default()
        })
    };
    let text = peek("^serve$");
    let rows: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.contains("of it"))
        .collect();
    // What it calls itself is no callee.
    let expected = [
        "   all   of it  callers, function, callees",
        " 90.0%  100.0%    main",
        " 90.0%  100.0%  serve",
        " 60.0%   66.7%    parse",
        " 25.0%   27.8%    send",
        "  5.0%    5.6%    (self)",
    ];
    assert_eq!(rows, expected);
    assert!(peek("nowhere").contains("no function matches `nowhere`"));
}
