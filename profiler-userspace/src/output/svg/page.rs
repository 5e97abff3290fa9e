//! The file around the picture, with the script that makes it answer.
//!
//! In: a drawing and packed frames. Out: one `<svg>` without prolog, IDs or global names, whose script holds no
//! character that XML, HTML or a publishing system would change: no `<`, `>`, `&`, and no line break.

use super::draw::Drawing;
use super::pack::Packed;
use crate::output::web::escape;
use std::fmt::Write as _;
use std::io::{self, Write};

/// The parts of the script, which share one scope.
const SCRIPT: [&str; 12] = [
    include_str!("../web/numbers.js"),
    include_str!("script/unpack.js"),
    include_str!("../web/label.js"),
    include_str!("../web/order.js"),
    include_str!("../web/copy.js"),
    include_str!("script/draw.js"),
    include_str!("script/axis.js"),
    include_str!("script/bars.js"),
    include_str!("script/tip.js"),
    include_str!("../web/expression.js"),
    include_str!("script/search.js"),
    include_str!("script/main.js"),
];
/// The looks of what the script makes. `.graph` stands for this file's own class.
const RULES: &str = include_str!("script/graph.css");

/// Writes the file.
pub(super) fn write(drawing: &Drawing, packed: &Packed, out: &mut dyn Write) -> io::Result<()> {
    let class = class(drawing, packed);
    let mut head = String::new();
    let Drawing { width, height, .. } = drawing;
    let shown_width = match drawing.is_fixed {
        true => format!("width:{width}px;max-width:none"),
        false => "width:100%".to_owned(),
    };
    let _ = write!(
        head,
        r#"<svg xmlns="http://www.w3.org/2000/svg" class="{class}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" style="display:block;{shown_width};height:auto;color-scheme:light dark;background:#fff;background:light-dark(#fff,#16181b)" role="group" aria-label="{}">"#,
        escape(&drawing.title),
    );
    out.write_all(head.as_bytes())?;
    out.write_all(drawing.body.as_bytes())?;
    let rules = one_line(RULES).replace(".graph", &format!(".{class}"));
    write!(
        out,
        r#"<script>{}(document.currentScript,"{}",{});</script></svg>"#,
        script(),
        packed.text,
        literal(&rules),
    )?;
    out.write_all(b"\n")
}

/// All parts of the script as one function.
fn script() -> String {
    let parts = SCRIPT.map(one_line).join(" ");
    format!("(function(script,packed,rules){{'use strict';{parts}}})")
}

/// Lines without comments, indents and breaks. Each ends in what ends a statement, so nothing is joined that should not.
fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim);
    let kept: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !line.starts_with("//") && !line.starts_with("/*"))
        .collect();
    kept.join(" ")
}

/// A name for this picture's rules that no other picture has.
fn class(drawing: &Drawing, packed: &Packed) -> String {
    let mut hash = crc32fast::Hasher::new();
    hash.update(drawing.body.as_bytes());
    hash.update(&packed.checksum.to_le_bytes());
    format!("flame-{:08x}", hash.finalize())
}

/// Text as a string of the script.
fn literal(text: &str) -> String {
    let mut literal = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => literal.extend(['\\', c]),
            '<' | '>' | '&' => {
                let _ = write!(literal, "\\x{:02x}", u32::from(c));
            }
            _ => literal.push(c),
        }
    }
    literal.push('"');
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_holds_nothing_that_a_page_would_change() {
        for text in [script(), literal(&one_line(RULES))] {
            let forbidden = ['<', '>', '&', '\n', '\r'];
            let found = text
                .find(forbidden)
                .map(|at| &text[at.saturating_sub(40)..=at]);
            assert_eq!(found, None);
            assert!(text.is_ascii());
        }
    }

    #[test]
    fn no_statement_of_the_script_ends_with_its_line_alone() {
        for part in SCRIPT {
            let lines = part.lines().map(str::trim);
            let code: Vec<&str> = lines
                .filter(|line| !line.is_empty() && !line.starts_with("//"))
                .collect();
            for (line, next) in code.iter().zip(code.iter().skip(1).chain(["}"].iter())) {
                let ends = line.ends_with([';', '{', '}', ',', '(', '[', '+', '=']);
                assert!(ends || next.starts_with(['?', ':', '}']), "{line}");
                assert!(!line.contains(" // "), "a comment behind code: {line}");
            }
        }
    }

    #[test]
    fn literals_hold_any_text() {
        assert_eq!(literal(r#"a"b\c"#), r#""a\"b\\c""#);
        assert_eq!(literal("</script>&"), r#""\x3c/script\x3e\x26""#);
    }
}
