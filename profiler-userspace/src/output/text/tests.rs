use super::*;
use crate::profile::fold;
use crate::profile::{FrameKind, Unit};

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
    // A call of itself is no callee.
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

#[test]
fn of_an_interpreted_program_the_hottest_functions_have_native_time_and_native_ones_beside_them() {
    let text = b"py;main;eval;handle_[py];parse_[py] 10\npy;main;eval;handle_[py];parse_[py];match 30\n\
        py;main;eval;handle_[py];match;read_[k] 20\npy;main;eval;handle_[py];handle_[py] 5\npy;main 35\n";
    let table = |text: &[u8]| {
        let profile = fold::parse(text, Unit::Samples).unwrap();
        hottest(&profile, &TextStyle::default(), 10)
    };
    let table_of = table(text);
    let rows: Vec<&str> = table_of.lines().skip(1).take(4).collect();
    let expected = [
        "  self  total  interpreted or JIT-compiled    self  native function",
        " 40.0%  40.0%  parse [py]                    35.0%  main",
        " 25.0%  65.0%  handle [py]                   30.0%  match",
        "                                             20.0%  read [k]",
    ];
    assert_eq!(rows, expected, "{table_of}");
    assert!(
        table_of.lines().all(|line| line.chars().count() <= 80),
        "{table_of}"
    );
    // Mostly native.
    assert!(table(b"py;main;run_[py] 4\npy;main;work 6\n").contains("module"));
}

#[test]
fn paths_are_cut_where_names_are_and_else_whole() {
    let file = format!("/build/{}/app.c", "deep/".repeat(30));
    let written = |cuts_names| {
        let mut profile = crate::profile::FrameProfile::new(crate::profile::Profile::new(
            Unit::Samples,
            crate::profile::Window::default(),
        ));
        let frame = crate::profile::SourceFrame {
            frame: crate::profile::FrameRef {
                name: "work",
                kind: FrameKind::User,
            },
            file: &file,
            line: 12,
        };
        profile.push(&[frame], 1, 1);
        let style = Style {
            text: TextStyle {
                lines: true,
                cuts_names,
                ..TextStyle::default()
            },
            ..Style::default()
        };
        let mut out = Vec::new();
        write(&profile.into_profile(), &style, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert!(written(false).contains(&format!("{file}:12  work\n")));
    let cut = written(true);
    assert!(
        cut.contains("/app.c:12  work\n") && !cut.contains(&file),
        "{cut}"
    );
}

#[test]
fn the_hottest_lines_have_their_functions_and_what_has_no_line_is_counted() {
    let mut profile = crate::profile::FrameProfile::new(crate::profile::Profile::new(
        Unit::Samples,
        crate::profile::Window::default(),
    ));
    let at = |name, line| crate::profile::SourceFrame {
        frame: crate::profile::FrameRef {
            name,
            kind: FrameKind::User,
        },
        file: if line > 0 { "/src/app.c" } else { "" },
        line,
    };
    let stacks = [
        (vec![at("main", 3), at("work", 12)], 60),
        (vec![at("main", 3), at("work", 14)], 25),
        (vec![at("main", 3), at("work", 12), at("work", 12)], 5),
        (vec![at("main", 4), at("memcpy", 0)], 10),
    ];
    for (stack, weight) in &stacks {
        profile.push(stack, *weight, 1);
    }
    let style = Style {
        text: TextStyle {
            lines: true,
            ..TextStyle::default()
        },
        ..Style::default()
    };
    let mut out = Vec::new();
    write(&profile.into_profile(), &style, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let rows: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.contains("sum"))
        .collect();
    let expected = [
        "  self    sum  total  line           function",
        " 65.0%  65.0%  65.0%  /src/app.c:12  work",
        " 25.0%  90.0%  25.0%  /src/app.c:14  work",
        "  0.0%  90.0%  90.0%  /src/app.c:3   main",
        "  0.0%  90.0%  10.0%  /src/app.c:4   main",
        "4 of 4 lines; 10.0% in code whose lines are not known",
    ];
    assert_eq!(rows, expected, "{text}");
}
