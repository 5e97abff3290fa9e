use super::*;
use crate::profile::{Unit, Window};

#[test]
fn the_file_name_decides_the_format() {
    let cases = [
        ("a.svg", Format::SVG),
        ("A.SVG", Format::SVG),
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
