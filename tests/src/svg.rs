//! Flame-graph SVGs, read with a strict XML parser.

use std::path::Path;

use roxmltree::{Document, ParsingOptions};

/// Panics unless `path` holds one whole, well-formed SVG of at least one frame.
#[track_caller]
pub fn assert_whole_svg(path: &Path) {
    assert!(
        !svg_titles(path).is_empty(),
        "{} shows no frame",
        path.display()
    );
}

/// What each frame's tooltip says, in the order of the file.
///
/// # Panics
///
/// When the file cannot be read or is not well-formed XML with an `svg` root.
#[track_caller]
pub fn svg_titles(path: &Path) -> Vec<String> {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    parse_titles(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn parse_titles(text: &str) -> Result<Vec<String>, String> {
    // Flame graphs open with a document type that names the SVG standard and declares nothing.
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    let document =
        Document::parse_with_options(text, options).map_err(|error| error.to_string())?;
    let root = document.root_element();
    if root.tag_name().name() != "svg" {
        return Err(format!("the root is {}, not svg", root.tag_name().name()));
    }
    Ok(root
        .descendants()
        .filter(|node| node.tag_name().name() == "title")
        .map(|node| node.text().unwrap_or_default().to_owned())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn svg_titles_are_unescaped() {
        let svg = r#"<?xml version="1.0" standalone="no"?>
            <!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
            <svg xmlns="http://www.w3.org/2000/svg"><g><title>a&lt;b&gt; (3)</title></g></svg>"#;
        assert_eq!(parse_titles(svg), Ok(vec!["a<b> (3)".to_owned()]));
    }

    #[test]
    fn an_svg_that_a_browser_would_refuse_is_refused() {
        for wrong in [
            "<svg><title>a<b></title></svg>",
            "<svg><title>a</title>",
            "<svg><title>\u{1}</title></svg>",
            "<svg a='1' a='2'/>",
            "<html/>",
            "",
        ] {
            assert!(parse_titles(wrong).is_err(), "{wrong:?} was accepted");
        }
    }
}
