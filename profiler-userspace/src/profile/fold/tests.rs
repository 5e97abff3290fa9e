use super::name::frame as sanitised;
use super::*;
use crate::profile::FrameKind::{Inlined, Jit, Kernel, Mark, Process, User};
use crate::profile::frames::FrameProfile;
use crate::profile::{Frame, LabelFrames, TreeSample, Unit, Window};

pub(super) const STYLES: [FoldStyle; 4] = [
    style(false, false),
    style(false, true),
    style(true, false),
    style(true, true),
];

const fn style(delimited: bool, annotate: bool) -> FoldStyle {
    FoldStyle {
        delimited,
        annotate,
    }
}

fn profile(samples: &[(&[(&str, FrameKind)], u64)]) -> Profile {
    let mut profile = FrameProfile::new(Profile::new(Unit::Samples, Window::default()));
    for &(stack, weight) in samples {
        let frame = |&(name, kind): &(&str, FrameKind)| Frame::new(name, kind);
        let stack: Vec<Frame> = stack.iter().map(frame).collect();
        profile.push(&stack, weight, weight);
    }
    profile.into_profile()
}

pub(super) fn read(text: &str) -> Profile {
    parse(text.as_bytes(), Unit::Samples).unwrap_or_else(|error| panic!("{error} in {text:?}"))
}

/// Each stack's names with a letter for the kind.
fn labels_of(profile: &Profile) -> Vec<String> {
    let view = View::new(profile);
    let tree = view.tree();
    let level = |Frame { name, kind }: &Frame| {
        format!("{:?}", kind).chars().take(1).collect::<String>() + ":" + name
    };
    let stack = |sample: &TreeSample| {
        let levels = tree.stack(sample.node).into_iter().map(level);
        levels.collect::<Vec<String>>().join(" ")
    };
    tree.samples().iter().map(stack).collect()
}

#[test]
fn equal_stacks_are_summed_and_lines_sorted() {
    let profile = profile(&[
        (&[("sh", Process), ("main", User), ("work", User)], 3),
        (&[("sh", Process), ("main(int)", User)], 1),
        (&[("sh", Process), ("main", User)], 2),
        (&[("ash", Process)], 9),
        (&[("sh", Process), ("main", User), ("work", User)], 4),
    ]);
    assert_eq!(
        text(&profile, STYLES[0]),
        "ash 9\nsh;main 2\nsh;main;work 7\nsh;main(int) 1\n"
    );
}

#[test]
fn frames_with_the_same_text_are_equal() {
    let profile = profile(&[
        (&[("a;b", User)], 1),
        (&[("a:b", User)], 2),
        (&[("", User)], 3),
        (&[], 4),
    ]);
    assert_eq!(text(&profile, STYLES[0]), "[unknown] 7\na:b 3\n");
}

#[test]
fn styles_mark_kernel_frames() {
    let profile = profile(&[
        (
            &[
                ("sh", Process),
                ("main", User),
                ("read", User),
                ("entry", Kernel),
                ("vfs_read", Kernel),
            ],
            1,
        ),
        (&[("sh", Process), ("main", User)], 2),
        (&[("kworker", Process), ("work", Kernel)], 3),
        (
            &[
                ("sh", Process),
                ("main", User),
                ("[truncated]", Mark),
                ("vfs_read", Kernel),
            ],
            4,
        ),
    ]);
    let lines = |style| text(&profile, style);
    assert_eq!(
        lines(style(true, false)),
        "kworker;work 3\nsh;main 2\nsh;main;-;[truncated];vfs_read 4\nsh;main;read;-;entry;vfs_read 1\n",
    );
    assert_eq!(
        lines(style(false, true)),
        "kworker;work_[k] 3\nsh;main 2\nsh;main;[truncated];vfs_read_[k] 4\nsh;main;read;entry_[k];vfs_read_[k] 1\n",
    );
    assert_eq!(
        lines(style(true, true)).lines().last(),
        Some("sh;main;read;-;entry_[k];vfs_read_[k] 1"),
    );
}

#[test]
fn jit_and_inlined_frames_have_their_own_marks() {
    let profile = profile(&[(
        &[
            ("java", Process),
            ("Thread::run", Jit),
            ("Main::work", Inlined),
            ("read", Kernel),
        ],
        1,
    )]);
    for (style, wanted) in [
        (STYLES[0], "java;Thread::run;Main::work_[i];read 1\n"),
        (
            STYLES[1],
            "java;Thread::run_[j];Main::work_[i];read_[k] 1\n",
        ),
        (STYLES[2], "java;Thread::run;Main::work_[i];-;read 1\n"),
        (
            STYLES[3],
            "java;Thread::run_[j];Main::work_[i];-;read_[k] 1\n",
        ),
    ] {
        assert_eq!(text(&profile, style), wanted);
        assert_eq!(text(&read(wanted), style), wanted);
    }
    assert_eq!(
        labels_of(&read("java;Thread::run_[j];Main::work_[i];-;read_[k] 1\n")),
        ["P:java J:Thread::run I:Main::work K:read"]
    );
}

#[test]
fn hostile_names_stay_one_frame_of_one_line() {
    let cases = [
        ("a\nb", r"a\nb"),
        ("a\tb\r", r"a\tb\r"),
        ("\u{1b}[31mred", r"\u{1b}[31mred"),
        ("\u{0}", r"\u{0}"),
        ("a\u{2028}b", r"a\u{2028}b"),
        ("\u{202e}cba", r"\u{202e}cba"),
        ("\u{fffe}", r"\u{fffe}"),
        ("std::vec<int>; x", "std::vec<int>: x"),
        ("", "[unknown]"),
        ("-", "[-]"),
        ("--", "--"),
        ("Worker 12", "Worker_12"),
        ("1.5 0.5", "1.5_0.5"),
        (" x ", "_x_"),
        ("   ", "___"),
        ("# x", "#_x"),
        ("#", "[#]"),
        ("# ", "#_"),
        (" [k]", "_(k)"),
        ("sneaky_[k]", "sneaky_(k)"),
        ("sneaky_[j]", "sneaky_(j)"),
        ("sneaky_[i]", "sneaky_(i)"),
        ("operator new(unsigned long)", "operator new(unsigned long)"),
        ("größe\u{200d}", "größe\u{200d}"),
    ];
    for (given, wanted) in cases {
        assert_eq!(sanitised(given), wanted);
        assert_eq!(sanitised(wanted), wanted, "sanitising twice");
    }
}

#[test]
fn frame_kinds_are_read_from_their_marks() {
    let cases = [
        ("sh;main;read 1", "P:sh U:main U:read"),
        (
            "sh;main;-;entry;[truncated];read 1",
            "P:sh U:main K:entry M:[truncated] K:read",
        ),
        ("sh;main;-;[unknown] 1", "P:sh U:main K:[unknown]"),
        (
            "sh;[tid 4];[cpu 0];main 1",
            "P:sh L:[tid 4] L:[cpu 0] U:main",
        ),
        (
            "[cpu 12];sh;[truncated];[libc.so.6+0x12] 1",
            "L:[cpu 12] P:sh M:[truncated] U:[libc.so.6+0x12]",
        ),
        ("sh;main;entry_[k];read_[k] 1", "P:sh U:main K:entry K:read"),
        (
            "sh;main;-;entry_[k];[nf+0x1]_[k] 1",
            "P:sh U:main K:entry K:[nf+0x1]",
        ),
        ("swapper;idle_[k] 1", "P:swapper K:idle"),
        // A border needs two sides.
        ("sh;- 1", "P:sh U:-"),
        ("java;A:.run_[j];B:.run_[i] 1", "P:java J:A:.run I:B:.run"),
    ];
    for (line, wanted) in cases {
        assert_eq!(labels_of(&read(line)), [wanted], "{line}");
    }
}

#[test]
fn folded_text_of_other_tools_is_read() {
    let profile = read("# from another tool\r\n\n  sh;main\t 7  \r\n#\nfirefox;Web Content 3\n");
    assert_eq!(
        labels_of(&profile),
        ["P:sh U:main", "P:firefox U:Web Content"]
    );
    assert_eq!(profile.total_weight(), 10);
    assert_eq!(profile.total_count(), 10);
    assert_eq!(
        labels_of(&parse(b"a\xff;b 1", Unit::Samples).unwrap()),
        ["P:a\u{fffd} U:b"]
    );
}

#[test]
fn weights_and_firings_are_counted_separately() {
    let profile = parse(b"a;b 1000\na 2000\n", Unit::Events("cycles".to_owned())).unwrap();
    assert_eq!((profile.total_weight(), profile.total_count()), (3000, 2));
}

#[test]
fn a_parse_error_names_the_line_and_the_reason() {
    let cases = [
        (
            "a 1\nmain\n",
            "line 2 has no weight: `main` should end in a space and a number",
        ),
        (
            "a;b 1.5x",
            "line 1 ends in `1.5x`, which is no weight: it should be a number below 2^64",
        ),
        (
            "a;b -1",
            "line 1 ends in `-1`, which is no weight: it should be a number below 2^64",
        ),
        (
            "a;b 18446744073709551616",
            "line 1 ends in `18446744073709551616`, which is no weight: it should be a number below 2^64",
        ),
        (
            "a 18446744073709551615\n\na 1",
            "the weights up to line 3 add up to 2^64 or more; divide them all by the same number first",
        ),
        (
            "a;b 3 4",
            "line 1 has two weights, as the difference of two profiles has; give one of these two profiles instead",
        ),
        (
            "a \u{1b}[2J",
            r"line 1 ends in `\u{1b}[2J`, which is no weight: it should be a number below 2^64",
        ),
    ];
    for (text, wanted) in cases {
        assert_eq!(
            parse(text.as_bytes(), Unit::Samples)
                .unwrap_err()
                .to_string(),
            wanted
        );
    }
    let long = parse("x".repeat(1000).as_bytes(), Unit::Samples)
        .unwrap_err()
        .to_string();
    assert!(long.len() < 200, "{long}");
}

#[test]
fn threads_that_nobody_asked_for_share_a_line() {
    let lines = b"[cpu 1];a;[tid 7];main 2\n[cpu 2];a;[tid 8];main 3\n";
    let mut profile = parse(lines, Unit::Samples).unwrap();
    assert_eq!(text(&profile, FoldStyle::default()).as_bytes(), lines);
    profile.label_frames = LabelFrames {
        threads: true,
        cpus: false,
    };
    assert_eq!(
        text(&profile, FoldStyle::default()),
        "a;[tid 7];main 2\na;[tid 8];main 3\n"
    );
    profile.label_frames.threads = false;
    assert_eq!(text(&profile, FoldStyle::default()), "a;main 5\n");
}
