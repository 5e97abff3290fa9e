//! The page around the data.
//!
//! In: a title and packed data. Out: one document with its style sheet, its script and its data inside.
//! Never: text that is not ours as markup, but for the title, which is escaped.

use crate::output::web::escape;
use std::io::{self, Write};

/// The document. Lines that hold nothing but a marker are replaced.
const FRAME: &str = include_str!("viewer/viewer.html");
const STYLE: &str = include_str!("viewer/viewer.css");
/// The parts of the script, which share one scope.
pub(super) const SCRIPT: [(&str, &str); 26] = [
    ("numbers.js", include_str!("../web/numbers.js")),
    ("unpack.js", include_str!("viewer/unpack.js")),
    ("owners.js", include_str!("viewer/owners.js")),
    ("filter.js", include_str!("viewer/filter.js")),
    ("tree.js", include_str!("viewer/tree.js")),
    ("chart.js", include_str!("viewer/chart.js")),
    ("runtime.js", include_str!("viewer/runtime.js")),
    ("lines.js", include_str!("viewer/lines.js")),
    ("label.js", include_str!("../web/label.js")),
    ("order.js", include_str!("../web/order.js")),
    ("copy.js", include_str!("../web/copy.js")),
    ("text.js", include_str!("viewer/text.js")),
    ("colors.js", include_str!("viewer/colors.js")),
    ("tip.js", include_str!("viewer/tip.js")),
    ("graph.js", include_str!("viewer/graph.js")),
    ("expression.js", include_str!("../web/expression.js")),
    ("search.js", include_str!("viewer/search.js")),
    ("table.js", include_str!("viewer/table.js")),
    ("source.js", include_str!("viewer/source.js")),
    ("time.js", include_str!("viewer/time.js")),
    ("save.js", include_str!("viewer/save.js")),
    ("address.js", include_str!("viewer/address.js")),
    ("compare.js", include_str!("viewer/compare.js")),
    ("compared.js", include_str!("viewer/compared.js")),
    ("controls.js", include_str!("viewer/controls.js")),
    ("viewer.js", include_str!("viewer/viewer.js")),
];

/// Writes the page.
pub(super) fn write(title: &str, data: &str, out: &mut dyn Write) -> io::Result<()> {
    for line in FRAME.lines() {
        match line.trim() {
            "@title" => writeln!(out, "<title>{}</title>", escape(title))?,
            "@style" => writeln!(out, "<style>\n{}</style>", short(STYLE))?,
            "@data" => writeln!(
                out,
                r#"<script type="application/octet-stream;base64" id="data">{data}</script>"#
            )?,
            "@script" => writeln!(out, "<script>\n{}</script>", script())?,
            line => writeln!(out, "{line}")?,
        }
    }
    Ok(())
}

fn script() -> String {
    let parts = SCRIPT.map(|(_, text)| short(text));
    format!("(function () {{\n'use strict';\n{}}})();\n", parts.concat())
}

/// Lines without indents and without those that are comments.
fn short(text: &str) -> String {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with("//") && !line.starts_with("/*"))
        .flat_map(|line| [line, "\n"])
        .collect()
}
