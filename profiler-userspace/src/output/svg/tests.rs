use super::*;
use crate::output::MinWidth;
use crate::output::Palette;
use crate::profile::FrameKind;
use crate::profile::fold::parse;
use crate::profile::{Frame, FrameProfile, Profile, Unit, Window};
use proptest::collection::vec;
use proptest::prelude::*;
use roxmltree::{Document, Node, ParsingOptions};

fn draw(profile: &Profile, style: &Style) -> String {
    let mut out = Vec::new();
    write(&View::new(profile), style, &mut out).unwrap_or_else(|error| panic!("{error}"));
    String::from_utf8(out).expect("SVG is UTF-8")
}

fn read(text: &str) -> Profile {
    parse(text.as_bytes(), Unit::Samples).expect("folded text")
}

/// Parses strictly: roxmltree refuses characters and comments that XML forbids.
fn document(svg: &str) -> Document<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(svg, options).unwrap_or_else(|error| panic!("{error} in {svg}"))
}

fn element<'a>(document: &'a Document<'_>, id: &str) -> Option<Node<'a, 'a>> {
    document
        .descendants()
        .find(|node| node.attribute("id") == Some(id))
}

fn text_of(document: &Document<'_>, id: &str) -> String {
    element(document, id)
        .and_then(|node| node.text())
        .unwrap_or_default()
        .to_owned()
}

/// What is shown when the pointer rests on a frame, with the frame's colour, from the left.
fn boxes(document: &Document<'_>) -> Vec<(String, String)> {
    fn child<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
        node.children()
            .find(|child| child.tag_name().name() == name)
    }
    let frames = element(document, "frames").expect("the frames").children();
    let describe = |node| {
        let title = child(node, "title")?.text()?.to_owned();
        Some((title, child(node, "rect")?.attribute("fill")?.to_owned()))
    };
    frames.filter_map(describe).collect()
}

fn titles(svg: &str) -> Vec<String> {
    boxes(&document(svg))
        .into_iter()
        .map(|(title, _)| title)
        .collect()
}

const HOSTILE: &str =
    "a\"b'<script>alert(1)</script>&amp;]]>--><!--\u{0}\u{1b}[31m\n\t;\u{fffe}\u{ffff}\u{202e}é 7";
const SHOWN: &str = "a\"b'<script>alert(1)</script>&amp;]]>--><!--\\u{0}\\u{1b}[31m\\n\\t;\\u{fffe}\\u{ffff}\\u{202e}é 7";

#[test]
fn hostile_text_is_escaped() {
    let unit = Unit::Events(HOSTILE.to_owned());
    let mut profile = FrameProfile::new(Profile::new(unit, Window::default()));
    let frame = |name: &str, kind| Frame {
        name: name.to_owned(),
        kind,
    };
    let stack = [
        frame(HOSTILE, FrameKind::Process),
        frame(HOSTILE, FrameKind::User),
        frame(HOSTILE, FrameKind::Kernel),
    ];
    profile.push(&stack, 10, 1);
    let profile = profile.into_profile();
    let style = Style {
        title: HOSTILE.to_owned(),
        subtitle: Some(HOSTILE.to_owned()),
        notes: format!("one\n{HOSTILE}\n--flag -"),
        ..Style::default()
    };
    let svg = draw(&profile, &style);
    let document = document(&svg);
    assert_eq!(text_of(&document, "title"), SHOWN);
    assert_eq!(text_of(&document, "subtitle"), SHOWN);
    let description = document
        .descendants()
        .find(|node| node.tag_name().name() == "desc")
        .and_then(|node| node.text());
    let (first, second) = SHOWN.split_once("\\n").unwrap();
    assert_eq!(
        description,
        Some(format!("one\n{first}\n{second}\n--flag -").as_str())
    );
    let name = SHOWN.replace(';', ":").replace(" 7", "_7");
    let titles: Vec<String> = boxes(&document)
        .into_iter()
        .map(|(title, _)| title)
        .collect();
    assert_eq!(titles.len(), 4);
    assert!(
        titles[1..]
            .iter()
            .all(|title| *title == format!("{name} (10 {SHOWN}, 100.00%)")),
        "{titles:?}"
    );
    let mut scripts = document
        .descendants()
        .filter(|node| node.tag_name().name() == "script");
    assert!(scripts.all(|script| script.text().is_none_or(|text| !text.contains("alert"))));
}

#[test]
fn the_graph_can_be_zoomed_and_searched() {
    let svg = draw(&read("a;b 1\n"), &Style::default());
    let document = document(&svg);
    for id in ["details", "unzoom", "search", "matched", "frames"] {
        assert!(element(&document, id).is_some(), "{id}");
    }
    for function in ["function zoom(", "function search(", "function unzoom("] {
        assert!(svg.contains(function), "{function}");
    }
}

#[test]
fn flame_graphs_and_icicles_show_their_root() {
    let draw = |inverted| {
        draw(
            &read("a;b 1\n"),
            &Style {
                inverted,
                ..Style::default()
            },
        )
    };
    assert!(draw(false).contains(SHOW_ROOT));
    assert!(!draw(true).contains("scrollTo"));
}

#[test]
fn without_notes_there_is_no_description() {
    assert!(!draw(&read("a 1\n"), &Style::default()).contains("<desc>"));
}

#[test]
fn callees_of_one_function_are_adjacent() {
    let titles = titles(&draw(
        &read("a;main 5\na;main;x 1\na;main(int) 3\n"),
        &Style::default(),
    ));
    assert!(
        titles.contains(&"main (6 samples, 66.67%)".to_owned()),
        "{titles:?}"
    );
    assert!(
        titles.contains(&"main(int) (3 samples, 33.33%)".to_owned()),
        "{titles:?}"
    );
}

#[test]
fn weights_are_right_when_names_end_in_numbers() {
    let mut profile = FrameProfile::new(Profile::new(Unit::Samples, Window::default()));
    for name in ["Worker 3", "# 4", " 5"] {
        let frame = Frame {
            name: name.to_owned(),
            kind: FrameKind::Process,
        };
        profile.push(&[frame], 10, 10);
    }
    let profile = profile.into_profile();
    let mut titles = titles(&draw(&profile, &Style::default()));
    titles.sort();
    assert_eq!(
        titles,
        [
            "#_4 (10 samples, 33.33%)",
            "Worker_3 (10 samples, 33.33%)",
            "_5 (10 samples, 33.33%)",
            "all (30 samples, 100%)"
        ]
    );
}

#[test]
fn narrow_frames_are_hidden_but_counted() {
    let profile = read("a;b;c 1\na;b;d 998\nz 1\n");
    let titles = |minwidth| {
        titles(&draw(
            &profile,
            &Style {
                minwidth,
                width: Some(1020),
                ..Style::default()
            },
        ))
    };
    assert_eq!(titles(MinWidth::Pixels(0.0)).len(), 6);
    // 1000 pixels are 1000 samples.
    assert_eq!(titles(MinWidth::Pixels(1.0)).len(), 6);
    let wide = [
        "all (1,000 samples, 100%)",
        "a (999 samples, 99.90%)",
        "b (999 samples, 99.90%)",
        "d (998 samples, 99.80%)",
    ];
    for minwidth in [MinWidth::Pixels(1.5), MinWidth::Percent(0.15)] {
        let mut titles = titles(minwidth);
        titles.sort_by_key(|title| wide.iter().position(|wide| wide == title));
        assert_eq!(titles, wide);
    }
}

#[test]
fn kernel_frames_have_their_own_colors() {
    let profile = read("a;[truncated];u;-;k 1\n");
    let svg = draw(&profile, &Style::default());
    let colors = boxes(&document(&svg));
    let rgb = |name: &str| -> [i32; 3] {
        let (_, fill) = colors
            .iter()
            .find(|(title, _)| title.starts_with(name))
            .expect("the frame");
        let parts = fill
            .trim_start_matches("rgb(")
            .trim_end_matches(')')
            .split(',');
        parts
            .map(|part| part.parse().unwrap())
            .collect::<Vec<_>>()
            .try_into()
            .unwrap()
    };
    let ([user_red, _, user_blue], [kernel_red, _, kernel_blue]) = (rgb("u "), rgb("k "));
    assert!(
        user_red > user_blue + 50 && kernel_blue > kernel_red + 50,
        "{colors:?}"
    );
    let [red, green, blue] = rgb("[truncated]");
    assert!(red == green && green == blue, "{colors:?}");
}

#[test]
fn every_palette_draws_the_same_bytes_each_time() {
    let profile = read("a;std::b;java/lang.C 3\na;k_[k] 4\n");
    for name in Palette::names() {
        let style = Style {
            colors: name.parse().unwrap(),
            ..Style::default()
        };
        assert_eq!(style.colors.name(), name);
        assert_eq!(draw(&profile, &style), draw(&profile, &style), "{name}");
    }
}

#[test]
fn an_icicle_hangs_from_its_root() {
    let profile = read("a;b 1\n");
    let height_of = |inverted, name: &str| -> f64 {
        let svg = draw(
            &profile,
            &Style {
                inverted,
                ..Style::default()
            },
        );
        let document = document(&svg);
        let node = document.descendants().find(|node| {
            node.text().is_some_and(|text| text.starts_with(name))
                && node.tag_name().name() == "title"
        });
        let rect = node
            .and_then(|node| node.next_sibling_element())
            .expect("its box");
        rect.attribute("y").unwrap().parse().unwrap()
    };
    assert!(height_of(false, "a (") > height_of(false, "b ("));
    assert!(height_of(true, "a (") < height_of(true, "b ("));
}

#[test]
fn reversed_stacks_are_merged_from_the_leaf() {
    let titles = titles(&draw(
        &read("a;x;f 1\nb;f 2\n"),
        &Style {
            reverse: true,
            ..Style::default()
        },
    ));
    assert!(
        titles.contains(&"f (3 samples, 100.00%)".to_owned()),
        "{titles:?}"
    );
}

#[test]
fn height_and_width_options_are_applied() {
    let svg = draw(
        &read("a;b 1\n"),
        &Style {
            height: 30,
            width: Some(640),
            ..Style::default()
        },
    );
    let document = document(&svg);
    assert_eq!(document.root_element().attribute("width"), Some("640"));
    assert!(
        document
            .descendants()
            .any(|node| node.tag_name().name() == "rect" && node.attribute("height") == Some("29"))
    );
}

#[test]
fn an_impossible_width_is_refused_with_the_limit() {
    let error = |style: Style| {
        write(&View::new(&read("a 1\n")), &style, &mut Vec::new())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        error(Style {
            height: 1,
            ..Style::default()
        }),
        "the frame height `1` cannot be drawn; give 2 to 1000 pixels"
    );
    assert_eq!(
        error(Style {
            width: Some(20),
            ..Style::default()
        }),
        "the width `20` cannot be drawn; give 100 to 100000 pixels"
    );
    for text in ["-1", "nan", "101%", "inf", "", "%", "wide"] {
        let error = text.parse::<MinWidth>().unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "the least width `{text}` cannot be drawn; give pixels, such as 0.1, or a share, such as 0.5%"
            )
        );
    }
    let error = "octarine".parse::<Palette>().unwrap_err().to_string();
    assert!(
        error.starts_with("there is no palette `octarine`; choose one of land, cold, wall, aqua, "),
        "{error}"
    );
}

#[test]
fn the_minimum_width_is_written_as_in_flamegraph_pl() {
    for (text, wanted) in [
        ("0.1", MinWidth::Pixels(0.1)),
        ("2px", MinWidth::Pixels(2.0)),
        ("0.5%", MinWidth::Percent(0.5)),
    ] {
        assert_eq!(text.parse::<MinWidth>().unwrap(), wanted);
    }
    assert_eq!(MinWidth::Percent(0.5).to_string(), "0.5%");
}

#[test]
fn profiles_without_weight_are_refused() {
    for text in ["", "a;b 0\n"] {
        let mut out = Vec::new();
        assert!(matches!(
            write(&View::new(&read(text)), &Style::default(), &mut out),
            Err(Error::Empty)
        ));
        assert!(out.is_empty());
    }
}

#[test]
fn a_write_error_is_reported() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self
                .0
                .checked_sub(bytes.len())
                .ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let style = Style {
        notes: "n".to_owned(),
        ..Style::default()
    };
    let size = draw(&read("a;b 1\n"), &style).len();
    for room in [0, 1000, size - 1] {
        let error = write(&View::new(&read("a;b 1\n")), &style, &mut Full(room)).unwrap_err();
        assert!(
            matches!(&error, Error::Write(reason) if reason.kind() == io::ErrorKind::StorageFull),
            "{error:?}"
        );
    }
    write(&View::new(&read("a;b 1\n")), &style, &mut Full(size)).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_names_make_well_formed_svg_of_the_whole_weight(
        samples in vec((vec(any::<String>(), 0..4), 1..100_u64), 1..8),
        texts in any::<[String; 3]>(),
        flags in any::<[bool; 4]>(),
    ) {
        let [title, subtitle, notes] = texts;
        let [inverted, reverse, delimited, annotate] = flags;
        let mut profile = FrameProfile::new(Profile::new(Unit::Samples, Window::default()));
        for (names, weight) in samples {
            let kind = |depth| [FrameKind::Process, FrameKind::User, FrameKind::Kernel, FrameKind::Mark][depth % 4];
            let frames = names.into_iter().enumerate().map(|(depth, name)| Frame { name, kind: kind(depth) });
            profile.push(&frames.collect::<Vec<_>>(), weight, 1);
        }
        let profile = profile.into_profile();
        let style = Style {
            title, subtitle: Some(subtitle), notes, inverted, reverse,
            fold: FoldStyle { delimited, annotate },
            minwidth: MinWidth::Pixels(0.0),
            ..Style::default()
        };
        let svg = draw(&profile, &style);
        let document = document(&svg);
        prop_assert_eq!(element(&document, "frames").unwrap().attribute("total_samples").unwrap().parse(), Ok(profile.total_weight()));
    }
}
