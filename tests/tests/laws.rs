//! Laws of every format, whatever a profile is of and however it is called.
//!
//! In: profiles that were made up from seeds. Out: a difference between what went into a format and what a reader of the
//! tests' own finds in it.

use std::collections::BTreeMap;

use flame_bpf::output::{self, Format, Style, TextStyle};
use flame_bpf::profile::{FrameKind, Unit};
use flame_bpf_tests::{MadeUp, MadeUpFrame, Stacks, WORST, stacks};

/// How many profiles of each unit are made up.
const SEEDS: u64 = 8;

/// A format, and how it is read.
struct Reader {
    extension: &'static str,
    names: Names,
    /// Whether weights are as people read them: microseconds, for one.
    is_shown: bool,
    read: fn(&[u8]) -> Stacks,
}

/// How names stand in a format.
enum Names {
    /// As they are.
    Exact,
    /// As they are; the end of those of more than [`LONGEST`] bytes is cut.
    Cut,
    /// As they are, with a suffix that says what they are of.
    WithKind,
    /// Escaped, so that different names may read alike.
    Escaped,
    /// Escaped, behind those of the thread.
    BehindLabels,
}

/// The most bytes of a name that Pyroscope takes in a pprof.
const LONGEST: usize = 65_535;

const READERS: &[Reader] = &[
    Reader {
        extension: "folded",
        names: Names::BehindLabels,
        is_shown: true,
        read: stacks::of_folded,
    },
    Reader {
        extension: "svg",
        names: Names::BehindLabels,
        is_shown: true,
        read: stacks::of_svg,
    },
    Reader {
        extension: "html",
        names: Names::Escaped,
        is_shown: false,
        read: stacks::of_html,
    },
    Reader {
        extension: "pb.gz",
        names: Names::Cut,
        is_shown: false,
        read: stacks::of_pprof,
    },
    Reader {
        extension: "otlp",
        names: Names::Exact,
        is_shown: false,
        read: stacks::of_otlp,
    },
    Reader {
        extension: "speedscope.json",
        names: Names::WithKind,
        is_shown: false,
        read: stacks::of_speedscope,
    },
    Reader {
        extension: "json.gz",
        names: Names::Exact,
        is_shown: false,
        read: stacks::of_firefox,
    },
    Reader {
        extension: "json",
        names: Names::Exact,
        is_shown: false,
        read: stacks::of_json,
    },
    Reader {
        extension: "parquet",
        names: Names::Exact,
        is_shown: false,
        read: stacks::of_parquet,
    },
];

fn units() -> [Unit; 3] {
    let bytes = Unit::Events("bytes".to_owned());
    [Unit::Samples, Unit::Nanoseconds, bytes]
}

/// Every profile that is made up.
fn all() -> impl Iterator<Item = MadeUp> {
    units()
        .into_iter()
        .flat_map(|unit| (0..SEEDS).map(move |seed| MadeUp::new(seed, unit.clone())))
}

/// A title and a balance that are as bad as names.
fn worst_style() -> Style {
    Style {
        title: WORST.concat(),
        subtitle: Some(WORST.concat()),
        notes: format!("recorded: {0}\nLOST: {0}\n", WORST.concat()),
        ..Style::default()
    }
}

fn written(made_up: &MadeUp, extension: &str, style: &Style) -> Vec<u8> {
    let format = Format::all().find(|format| format.extension() == extension);
    let mut bytes = Vec::new();
    let written = output::write(
        &made_up.profile,
        format.expect("a format"),
        style,
        &mut bytes,
    );
    written.expect("a vector takes everything");
    bytes
}

fn shown((name, kind): &MadeUpFrame, names: &Names) -> String {
    if matches!(names, Names::Cut) && name.len() > LONGEST {
        let end = name.floor_char_boundary(LONGEST - '…'.len_utf8());
        return format!("{}…", &name[..end]);
    }
    let suffix = match (names, kind) {
        (Names::WithKind, FrameKind::Kernel) => " [k]",
        (Names::WithKind, FrameKind::Jit) => " [j]",
        (Names::WithKind, FrameKind::Inlined) => " [i]",
        _ => "",
    };
    format!("{name}{suffix}")
}

/// Weights by the number of frames.
fn by_depth(stacks: impl IntoIterator<Item = (usize, u64)>) -> BTreeMap<usize, u64> {
    let mut sums = BTreeMap::new();
    for (depth, weight) in stacks {
        *sums.entry(depth).or_default() += weight;
    }
    sums
}

#[test]
fn every_format_has_a_reader() {
    for format in Format::all().filter(|format| *format != Format::TEXT) {
        let extension = format.extension();
        let is_read = READERS.iter().any(|reader| reader.extension == extension);
        assert!(is_read, "nobody reads .{extension}");
    }
}

#[test]
fn every_format_holds_every_stack_and_all_of_its_weight() {
    for made_up in all() {
        for Reader {
            extension,
            names,
            is_shown,
            read,
        } in READERS
        {
            let is_microseconds = *is_shown && made_up.profile.unit == Unit::Nanoseconds;
            let per_weight = if is_microseconds { 1_000 } else { 1 };
            let stacks = read(&written(&made_up, extension, &worst_style()));
            let sum: u64 = stacks.values().sum();
            assert_eq!(sum * per_weight, made_up.total(), ".{extension}");
            let samples = made_up.samples.iter();
            if let Names::Escaped | Names::BehindLabels = names {
                let labels = usize::from(matches!(names, Names::BehindLabels));
                // A stack without frames is shown as one frame.
                let depth = |frames: usize| if labels == 1 { frames.max(1) } else { frames };
                let expected = by_depth(samples.map(|sample| {
                    let depth = depth(sample.frames.len() + labels * sample.labels);
                    (depth, sample.weight)
                }));
                let found = stacks
                    .iter()
                    .map(|(stack, weight)| (stack.len(), weight * per_weight));
                assert_eq!(by_depth(found), expected, ".{extension}");
            } else {
                let mut expected = Stacks::new();
                for sample in samples {
                    let stack = sample.frames.iter().map(|frame| shown(frame, names));
                    *expected.entry(stack.collect()).or_default() += sample.weight;
                }
                assert!(
                    stacks == expected,
                    ".{extension}: {}",
                    difference(&stacks, &expected)
                );
            }
        }
    }
}

/// The first stack that is not the same, without the tail of long names.
fn difference(found: &Stacks, expected: &Stacks) -> String {
    let only = |one: &Stacks, other: &Stacks| {
        let stack = one
            .iter()
            .find(|(stack, weight)| other.get(*stack) != Some(*weight));
        let text = format!("{stack:?}");
        text.chars().take(2_000).collect::<String>()
    };
    format!(
        "found {}, expected {}",
        only(found, expected),
        only(expected, found)
    )
}

#[test]
fn every_format_is_the_same_bytes_twice() {
    for made_up in all().step_by(7) {
        for format in Format::all() {
            let extension = format.extension();
            let [one, other] = [(); 2].map(|()| written(&made_up, extension, &worst_style()));
            assert!(one == other, ".{extension}");
        }
    }
}

#[test]
fn no_name_adds_markup_to_a_page() {
    let tame = MadeUp::new(0, Unit::Samples);
    let tame_style = Style::default();
    for made_up in all() {
        let page = String::from_utf8(written(&made_up, "html", &worst_style())).expect("UTF-8");
        let tame = String::from_utf8(written(&tame, "html", &tame_style)).expect("UTF-8");
        for markup in ["<script", "</script", "<img", "<!--", "-->"] {
            let count = |page: &str| page.matches(markup).count();
            assert_eq!(count(&page), count(&tame), "{markup}");
        }
        let graph = String::from_utf8(written(&made_up, "svg", &worst_style())).expect("UTF-8");
        for markup in ["<script", "</script"] {
            assert_eq!(graph.matches(markup).count(), 1, "{markup}");
        }
        for markup in ["<img", "<!--", "]]>", "<foreignObject"] {
            assert!(!graph.contains(markup), "{markup}");
        }
    }
}

#[test]
fn a_report_is_lines_of_80_columns_that_no_terminal_obeys() {
    let styled = |peek: Option<&str>| Style {
        text: TextStyle {
            min_percent: Some(0.0),
            peek: peek.map(|peek| peek.parse().expect("an expression")),
            ..TextStyle::default()
        },
        ..worst_style()
    };
    for made_up in all() {
        let written = |peek| written(&made_up, "txt", &styled(peek));
        let report = String::from_utf8(written(None)).expect("UTF-8");
        let peek = String::from_utf8(written(Some("[a-e]"))).expect("UTF-8");
        for line in report.lines().chain(peek.lines()) {
            assert!(line.chars().count() <= 80, "{line}");
            let is_obeyed = |c: char| {
                c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            };
            assert!(!line.contains(is_obeyed), "{line:?}");
        }
        let (total, unit) = (made_up.total(), made_up.profile.unit.noun());
        // Times and bytes are in units that suit them, all else is whole, with commas.
        let has_any = |units: &[&str]| units.iter().any(|unit| report.contains(unit));
        let is_said = match &made_up.profile.unit {
            Unit::Nanoseconds => has_any(&[" s: ", " ms: ", " µs: "]),
            Unit::Events(name) if name == "bytes" => has_any(&[
                " B: ", " bytes: ", " kB: ", " MB: ", " GB: ", " TB: ", " PB: ", " EB: ",
            ]),
            _ => {
                let whole = format!("\n{total} {unit}: ").replace(',', "");
                report.replace(',', "").contains(&whole)
            }
        };
        assert!(is_said, "{total} {unit}: {report}");
    }
}
