use super::*;
use crate::profile::{Frame, FrameKind, FrameProfile, Unit, Window};
use proptest::collection::vec;
use proptest::prelude::*;

#[test]
fn the_file_name_decides_the_format() {
    let cases = [
        ("a.svg", Format::SVG),
        ("A.SVG", Format::SVG),
        ("a.txt", Format::TEXT),
        ("a.html", Format::HTML),
        ("/tmp/x.y/a.b.folded", Format::FOLDED),
        ("/dev/null", Format::FOLDED),
        ("/dev/fd/63", Format::FOLDED),
        ("/dev/shm/a.svg", Format::SVG),
    ];
    for (path, wanted) in cases {
        assert_eq!(
            Format::from_path(Path::new(path)).unwrap(),
            wanted,
            "{path}"
        );
    }
}

#[test]
fn an_unknown_format_is_answered_with_the_known_ones() {
    for path in ["a.png", "svg", ".svg", "a.svg.gz", "a."] {
        let error = Format::from_path(Path::new(path)).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "cannot tell a format from the name `{path}`; let it end in {}, or in .fbpf for a raw recording",
                Format::known_extensions("or")
            )
        );
    }
}

#[test]
fn an_empty_profile_is_empty_folded_text_but_no_graph() {
    let empty = Profile::new(Unit::Samples, Window::default());
    let mut out = Vec::new();
    write(&empty, Format::FOLDED, &Style::default(), &mut out).unwrap();
    assert!(matches!(
        write(&empty, Format::SVG, &Style::default(), &mut out),
        Err(Error::Empty)
    ));
    assert!(out.is_empty());
}

#[test]
fn an_impossible_width_is_refused_with_the_limit() {
    let error = |style: Style| style.check().unwrap_err().to_string();
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
                "the least width `{text}` cannot be drawn; give pixels, such as 0.5, or a share, such as 0.5%"
            )
        );
    }
    let error = "octarine".parse::<Palette>().unwrap_err().to_string();
    assert!(
        error.starts_with("there is no palette `octarine`; choose one of land, cold, wall, hot, "),
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

/// Share of a function, as outputs say it, in a profile of short times.
fn shares_of(big: u64, small: &[u64]) -> [f64; 3] {
    use crate::profile::fold;
    let mut profile = FrameProfile::new(Profile::new(Unit::Nanoseconds, Window::default()));
    let stack = |name: String| {
        let kind = FrameKind::User;
        ["main".to_owned(), name].map(|name| Frame::new(name, kind))
    };
    profile.push(&stack("big".to_owned()), big, 1);
    for (number, weight) in small.iter().enumerate() {
        profile.push(&stack(format!("small_{number}")), *weight, 1);
    }
    let profile = profile.into_profile();
    let written = |name: &str| {
        let mut out = Vec::new();
        let format = Format::from_path(Path::new(name)).unwrap();
        write(&profile, format, &Style::default(), &mut out).unwrap();
        out
    };
    let again = fold::parse(&written("x.folded"), Unit::Nanoseconds).unwrap();
    let of_big = again.samples().iter().find(|sample| {
        let stack = again.stack_at(sample.user.unwrap());
        again.name_at(stack.locations().next().unwrap()) == "big"
    });
    let folded = of_big.unwrap().weight as f64 / again.total_weight() as f64;
    let svg = String::from_utf8(written("x.svg")).unwrap();
    let percent = svg
        .split_once("big (")
        .unwrap()
        .1
        .split_once("%)")
        .unwrap()
        .0;
    let svg: f64 = percent.rsplit(' ').next().unwrap().parse().unwrap();
    let exact = big as f64 / profile.total_weight() as f64;
    [exact, folded, svg / 100.0]
}

#[test]
fn times_below_a_microsecond_keep_their_shares() {
    let [exact, folded, svg] = shares_of(1000, &[2; 500]);
    assert!(
        (exact - 0.5).abs() < 1e-9 && (folded - 0.5).abs() < 1e-9 && (svg - 0.5).abs() < 1e-3,
        "{folded} {svg}"
    );
}

proptest! {
    #[test]
    fn all_outputs_agree_on_shares(big in 1..5_000_000_u64, small in vec(1..5_000_u64, 0..40)) {
        let [exact, folded, svg] = shares_of(big, &small);
        prop_assert!((exact - folded).abs() < 2e-3, "{exact} {folded}");
        prop_assert!((exact - svg).abs() < 2e-3, "{exact} {svg}");
    }
}
