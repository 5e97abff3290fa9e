//! Laws of every profile, whatever its names.

use super::tests::{STYLES, read};
use super::*;
use crate::profile::FrameKind::{Inlined, Jit, Kernel, Mark, Process, User};
use crate::profile::frames::FrameProfile;
use crate::profile::{Frame, Unit, Window};
use proptest::collection::vec;
use proptest::prelude::*;

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "a",
            "b",
            "main",
            "main(int)",
            "a b",
            "",
            "-",
            "--",
            "x 3",
            "x 3.",
            ".",
            "7",
            "# a",
            "#",
            " ",
            " a ",
            "a;b",
            "\n",
            "\t",
            "_[k]",
            "a_[k]",
            "a_[k]_[k]",
            "a_[j]",
            "a_[i]",
            "a_[j]_[k]",
            "a_[i]_[j]",
            "[unknown]",
            "[x]",
            "[x+0x1]",
            "[tid 3]",
            "[tid 3 x]",
            "[cpu 1]",
            "\u{fffe}",
            "\u{a0}",
            "é",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ]
}

fn frames(kind: FrameKind, most: usize) -> impl Strategy<Value = Vec<Frame>> {
    vec(
        name().prop_map(move |name| Frame::new(name, kind)),
        0..=most,
    )
}

fn user_frames() -> impl Strategy<Value = Vec<Frame>> {
    let kind = prop::sample::select(vec![User, User, Jit, Inlined]);
    vec(
        (name(), kind).prop_map(|(name, kind)| Frame::new(name, kind)),
        0..=3,
    )
}

fn marks() -> impl Strategy<Value = Vec<Frame>> {
    let mark = prop::sample::select(vec!["[truncated]", "[no user stack]"]);
    vec(mark.prop_map(|name| Frame::new(name, Mark)), 0..=1)
}

fn labels() -> impl Strategy<Value = Vec<Frame>> {
    vec(
        prop_oneof![
            ((0..3_u32), proptest::option::of(name()))
                .prop_map(|(tid, name)| Frame::thread(tid, name.as_deref())),
            (0..3_u32).prop_map(Frame::cpu)
        ],
        0..=2,
    )
}

/// Stacks as symbolizing makes them, apart from the names, which are as bad as they can be.
fn any_profile() -> impl Strategy<Value = Profile> {
    let process = name().prop_map(|name| vec![Frame::new(name, Process)]);
    let stack = (
        labels(),
        process,
        labels(),
        marks(),
        user_frames(),
        marks(),
        frames(Kernel, 3),
    );
    vec((stack, 0..1000_u64, 0..1000_u64), 0..12).prop_map(|samples| {
        let mut profile = FrameProfile::new(Profile::new(Unit::Samples, Window::default()));
        for (parts, weight, count) in samples {
            let parts = [
                parts.0, parts.1, parts.2, parts.3, parts.4, parts.5, parts.6,
            ];
            let stack: Vec<Frame> = parts.into_iter().flatten().collect();
            profile.push(&stack, weight, count);
        }
        profile.into_profile()
    })
}

proptest! {
    #[test]
    fn folding_conserves_the_total_weight(profile in any_profile()) {
        for style in STYLES {
            let text = text(&profile, style);
            let weights = text.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
            prop_assert_eq!(weights.sum::<u64>(), profile.total_weight());
        }
    }

    #[test]
    fn reading_folded_text_conserves_the_total_weight(profile in any_profile()) {
        for style in STYLES {
            prop_assert_eq!(read(&text(&profile, style)).total_weight(), profile.total_weight());
        }
    }

    #[test]
    fn folded_text_is_unchanged_by_reading_and_writing(profile in any_profile()) {
        for style in STYLES {
            let text = text(&profile, style);
            prop_assert_eq!(&super::text(&read(&text), style), &text);
        }
    }

    #[test]
    fn foreign_folded_text_is_stable_after_one_pass(lines in vec(("[ab_k;\\-\\[\\] #]{1,12}", 0..9_u64), 0..8)) {
        let foreign: String = lines.iter().map(|(stack, weight)| format!("{stack} {weight}\n")).collect();
        // Some of these lines are comments, or hold a weight only.
        let Ok(profile) = parse(foreign.as_bytes(), Unit::Samples) else { return Ok(()) };
        for style in STYLES {
            let once = text(&profile, style);
            prop_assert_eq!(&text(&read(&once), style), &once);
        }
    }

    #[test]
    fn a_line_holds_no_character_that_could_break_it(profile in any_profile()) {
        for line in text(&profile, STYLES[0]).lines() {
            prop_assert!(!line.contains(|c: char| c.is_control() || (c.is_whitespace() && c != ' ')), "{:?}", line);
            prop_assert_eq!(line.trim(), line);
            prop_assert!(!line.starts_with("# "));
            let stack = line.rsplit_once(' ').unwrap().0;
            prop_assert!(!stack.is_empty() && !stack.split(';').any(str::is_empty), "{:?}", line);
            let second_number = stack.rsplit_once(' ').is_some_and(|(_, word)| word.bytes().all(|b| b"0123456789.".contains(&b)));
            prop_assert!(!second_number, "{:?}", line);
        }
    }

    #[test]
    fn leaf_first_lines_are_the_same_stacks_reversed(profile in any_profile()) {
        let view = View::delimited(&profile, true);
        let lines = |order| {
            let all = Lines::new(&view, order, |frame| frame_name(frame, true));
            let mut path = Vec::new();
            let mut lines = Vec::new();
            for (node, weight) in all.nodes() {
                path.truncate(node.depth as usize);
                path.push(all.names()[node.rank as usize].clone().into_owned());
                let mut stack = path.clone();
                if order == Order::LeafFirst {
                    stack.reverse();
                }
                lines.extend(weight.map(|weight| (stack, weight)));
            }
            lines.sort();
            lines
        };
        prop_assert_eq!(lines(Order::RootFirst), lines(Order::LeafFirst));
    }

    #[test]
    fn reading_folded_text_never_panics(text in any::<Vec<u8>>()) {
        let _either = parse(&text, Unit::Samples);
    }

    #[test]
    fn a_line_reads_the_same_whatever_stands_before_it(
        stacks in vec(vec(prop::sample::select(PIECES.to_vec()), 1..6), 1..12),
    ) {
        let lines: Vec<String> = stacks.iter().map(|stack| format!("{} 1\n", stack.join(";"))).collect();
        let annotated = |lines: &str| {
            let style = FoldStyle { delimited: true, annotate: true };
            text(&read(lines), style)
        };
        let mut alone: Vec<String> = lines.iter().map(|line| annotated(line)).collect();
        let mut together: Vec<String> = Vec::new();
        for line in annotated(&lines.concat()).lines() {
            let (stack, weight) = line.rsplit_once(' ').unwrap();
            let weight: usize = weight.parse().unwrap();
            together.extend(std::iter::repeat_n(format!("{stack} 1\n"), weight));
        }
        alone.sort();
        together.sort();
        prop_assert_eq!(together, alone);
    }
}

/// Frames that mean something by what stands around them.
const PIECES: [&str; 12] = [
    "p", "a", "a", "b", "-", "a_[i]", "b_[i]", "a_[k]", "b_[j]", "[tid 1]", "[cpu 2]", "[x]",
];
