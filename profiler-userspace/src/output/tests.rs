use super::*;
use crate::profile::{Unit, Window};

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
