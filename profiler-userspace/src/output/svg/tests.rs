use super::*;
use crate::output::MinWidth;
use crate::output::Palette;
use crate::profile::FrameKind;
use crate::profile::fold::{FoldStyle, parse};
use crate::profile::{Frame, FrameProfile, Profile, Unit, Window};
use crate::text::number::counted;
use profiler_common::runtime::RuntimeKind;
use proptest::collection::vec;
use proptest::prelude::*;
use roxmltree::{Document, Node};
use std::io;

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
    Document::parse(svg).unwrap_or_else(|error| panic!("{error} in {svg}"))
}

fn elements<'a>(document: &'a Document<'_>, name: &'static str) -> Vec<Node<'a, 'a>> {
    let all = document.descendants();
    all.filter(|node| node.tag_name().name() == name).collect()
}

fn texts(svg: &str) -> Vec<String> {
    texts_of(&document(svg))
}

fn texts_of(document: &Document<'_>) -> Vec<String> {
    let text = |node: &Node<'_, '_>| node.text().unwrap_or_default().to_owned();
    elements(document, "text").iter().map(text).collect()
}

/// Texts that are shown when the pointer rests on a frame, with the frame's colour, from the left.
fn boxes(document: &Document<'_>) -> Vec<(String, String)> {
    let describe = |node: &Node<'_, '_>| {
        let title = node.first_element_child()?.text()?.to_owned();
        Some((title, node.attribute("fill")?.to_owned()))
    };
    let rects = elements(document, "rect");
    rects.iter().filter_map(describe).collect()
}

fn titles(svg: &str) -> Vec<String> {
    boxes(&document(svg))
        .into_iter()
        .map(|(title, _)| title)
        .collect()
}

#[track_caller]
fn assert_has(texts: &[String], wanted: &str) {
    assert!(texts.iter().any(|text| text == wanted), "{texts:?}");
}

const HOSTILE: &str =
    "a\"b'<script>alert(1)</script>&amp;]]>--><!--\u{0}\u{1b}[31m\n\t;\u{fffe}\u{ffff}\u{202e}é 7";
const SHOWN: &str = "a\"b'<script>alert(1)</script>&amp;]]>--><!--\\u{0}\\u{1b}[31m\\n\\t;\\u{fffe}\\u{ffff}\\u{202e}é 7";

#[test]
fn hostile_text_is_escaped() {
    let unit = Unit::Events(HOSTILE.to_owned());
    let mut profile = FrameProfile::new(Profile::new(unit, Window::default()));
    let stack = [
        Frame::new(HOSTILE, FrameKind::Process),
        Frame::new(HOSTILE, FrameKind::User),
        Frame::new(HOSTILE, FrameKind::Kernel),
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
    let texts = texts(&svg);
    assert_eq!(texts[..2], [SHOWN, SHOWN]);
    assert_eq!(document.root_element().attribute("aria-label"), Some(SHOWN));
    let description = elements(&document, "desc")[0].text();
    let (first, second) = SHOWN.split_once("\\n").unwrap();
    assert_eq!(
        description,
        Some(format!("one\n{first}\n{second}\n--flag -").as_str())
    );
    let titles = titles(&svg);
    assert_eq!(titles.len(), 4);
    assert!(
        titles[1..]
            .iter()
            .all(|title| *title == format!("{SHOWN} (10 {SHOWN}, 100.00%)")),
        "{titles:?}"
    );
    let scripts = elements(&document, "script");
    let script = scripts[0].text().expect("a script");
    assert!(scripts.len() == 1 && !script.contains("alert"));
}

#[test]
fn the_file_is_its_own_embed() {
    let svg = draw(&read("a;b 1\n"), &Style::default());
    assert!(svg.starts_with("<svg ") && svg.ends_with("</script></svg>\n"));
    assert_eq!(svg.lines().count(), 1);
    for forbidden in ["<!", "<?", " id=", "<style", "onload", "xlink", "]]>"] {
        assert!(!svg.contains(forbidden), "{forbidden}");
    }
    let document = document(&svg);
    let script = elements(&document, "script")[0];
    let text = script.text().expect("a script");
    assert!(!text.contains(['<', '>', '&', '\n']));
    assert!(document.root_element().last_element_child() == Some(script));
}

#[test]
fn pictures_of_different_profiles_have_different_classes() {
    let class = |text| {
        let svg = draw(&read(text), &Style::default());
        let document = document(&svg);
        document
            .root_element()
            .attribute("class")
            .map(str::to_owned)
    };
    assert_eq!(class("a;b 1\n"), class("a;b 1\n"));
    assert_ne!(class("a;b 1\n"), class("a;b 2\n"));
}

#[test]
fn the_balance_is_one_line_and_losses_are_red() {
    let drawn = |notes: &str| {
        let style = Style {
            notes: notes.to_owned(),
            ..Style::default()
        };
        draw(&read("a 1\n"), &style)
    };
    let kept = drawn("a title\nrecorded: 9 samples\nlost: nothing\nunnamed: 3%\nleft out: 2 idle");
    let line = "recorded 9 samples; lost nothing; left out 2 idle";
    assert_has(&texts(&kept), line);
    assert!(!kept.contains("#b00020\" style"));
    let lost = drawn("a title\nrecorded: 9 samples\nLOST: 5 samples: no room");
    let document = document(&lost);
    let red = elements(&document, "text")
        .into_iter()
        .find(|text| text.attribute("fill") == Some("#b00020"))
        .and_then(|text| text.text());
    assert_eq!(red, Some("recorded 9 samples; LOST 5 samples: no room"));
}

#[test]
fn the_legend_holds_the_kinds_that_occur() {
    const KINDS: [&str; 6] = [
        "process, thread",
        "program",
        "inlined",
        "JIT",
        "kernel",
        "mark",
    ];
    let legend = |text| {
        let all = texts(&draw(&read(text), &Style::default()));
        let mut kinds = KINDS.to_vec();
        kinds.retain(|kind| all.contains(&(*kind).to_owned()));
        kinds
    };
    assert_eq!(legend("a;u 1\n"), ["process, thread", "program"]);
    assert_eq!(
        legend("a;u;v_[i];k_[k] 1\na;j_[j] 1\na;[truncated] 1\n"),
        KINDS
    );
}

#[test]
fn names_of_all_kinds_are_drawn_without_suffixes() {
    let kinds = ["k", "j", "i"].into_iter();
    for short in kinds.chain(RuntimeKind::ALL.map(RuntimeKind::short)) {
        let svg = draw(&read(&format!("a;work_[{short}] 1\n")), &Style::default());
        let titles = titles(&svg);
        assert_eq!(titles[2], "work (1 sample, 100.00%)", "{short}");
    }
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
    assert_has(&titles, "main (6 samples, 66.67%)");
    assert_has(&titles, "main(int) (3 samples, 33.33%)");
}

#[test]
fn weights_are_right_when_names_end_in_numbers() {
    let mut profile = FrameProfile::new(Profile::new(Unit::Samples, Window::default()));
    for name in ["Worker 3", "# 4", " 5", ""] {
        let frame = Frame::new(name, FrameKind::Process);
        profile.push(&[frame], 10, 10);
    }
    let profile = profile.into_profile();
    let mut titles = titles(&draw(&profile, &Style::default()));
    titles.sort();
    assert_eq!(
        titles,
        [
            " 5 (10 samples, 25.00%)",
            "# 4 (10 samples, 25.00%)",
            "Worker 3 (10 samples, 25.00%)",
            "[unknown] (10 samples, 25.00%)",
            "all (40 samples, 100.00%)"
        ]
    );
}

#[test]
fn narrow_frames_are_joined_and_counted() {
    let profile = read("a;b;c 1\na;b;d 998\nz 1\n");
    let drawn = |minwidth| {
        draw(
            &profile,
            &Style {
                minwidth,
                width: Some(1020),
                ..Style::default()
            },
        )
    };
    let rects = |minwidth| elements(&document(&drawn(minwidth)), "rect").len();
    // The legend has two.
    assert_eq!(rects(MinWidth::Pixels(0.0)), 8);
    // 1000 pixels are 1000 samples.
    assert_eq!(rects(MinWidth::Pixels(1.0)), 8);
    let wide = [
        "all (1,000 samples, 100.00%)",
        "a (999 samples, 99.90%)",
        "b (999 samples, 99.90%)",
        "d (998 samples, 99.80%)",
    ];
    for minwidth in [MinWidth::Pixels(1.5), MinWidth::Percent(0.15)] {
        let svg = drawn(minwidth);
        assert_eq!(titles(&svg), wide);
        let note = "2 frames narrower than 1.5 px are joined: zoom in to see them";
        assert_has(&texts(&svg), note);
        assert_eq!(elements(&document(&svg), "path").len(), 1);
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
        [1..3, 3..5, 5..7].map(|part| i32::from_str_radix(&fill[part], 16).expect("a color"))
    };
    let ([user_red, _, user_blue], [kernel_red, _, kernel_blue]) = (rgb("u "), rgb("k "));
    assert!(
        user_red > user_blue + 50 && kernel_blue > kernel_red + 50,
        "{colors:?}"
    );
    let [red, green, blue] = rgb("[truncated]");
    assert!(red == green && green - blue < 8, "{colors:?}");
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
        let title = elements(&document, "title")
            .into_iter()
            .find(|node| node.text().is_some_and(|text| text.starts_with(name)));
        let rect = title.and_then(|title| title.parent()).expect("its box");
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
    assert_has(&titles, "f (3 samples, 100.00%)");
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
            let frames = names.into_iter().enumerate().map(|(depth, name)| Frame::new(name, kind(depth)));
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
        let all = boxes(&document).swap_remove(0).0;
        let whole = counted(profile.total_weight(), "sample");
        prop_assert!(all.starts_with(&format!("all ({whole}")), "{}", all);
    }
}

#[test]
fn the_classic_graph_is_infernos_with_our_titles_and_kinds() {
    let mut profile = FrameProfile::new(Profile::new(Unit::Samples, Window::default()));
    let main = Frame::new("main", FrameKind::User);
    let hostile = Frame::new("a<b>&\"c\"]]>;d", FrameKind::Jit);
    // In the order of names, `main` is between neither pair of lines that inferno wants side by side.
    let other = Frame::new("main(int)", FrameKind::User);
    profile.push(&[main.clone(), hostile], 3, 3);
    profile.push(&[main, Frame::new("read", FrameKind::Kernel)], 2, 2);
    profile.push(&[other], 5, 5);
    let profile = profile.into_profile();
    let style = Style {
        classic: true,
        title: "T <1>\u{1}".to_owned(),
        notes: "remedy: --minwidth 0, --- or\u{2} --><script>\n-".to_owned(),
        minwidth: MinWidth::Pixels(0.0),
        ..Style::default()
    };
    let svg = draw(&profile, &style);
    assert_eq!(svg, draw(&profile, &style));
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..roxmltree::ParsingOptions::default()
    };
    let document = Document::parse_with_options(&svg, options).expect("it is XML");
    let titles: Vec<&str> = elements(&document, "title")
        .iter()
        .filter_map(|node| node.text())
        .collect();
    for expected in [
        "all (10 samples, 100%)",
        "main (5 samples, 50.00%)",
        "read (2 samples, 20.00%)",
        "a<b>&\"c\"]]>:d (3 samples, 30.00%)",
        "main(int) (5 samples, 50.00%)",
    ] {
        assert!(titles.contains(&expected), "{expected} in {titles:?}");
    }
    assert_has(&texts_of(&document), "T <1>\\u{1}");
    let reversed = Style {
        reverse: true,
        ..style
    };
    let svg = draw(&profile, &reversed);
    assert!(
        svg.contains("main (2 samples, 20.00%)") && svg.contains("main (3 samples, 30.00%)"),
        "{svg}"
    );
}
