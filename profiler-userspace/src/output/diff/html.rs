//! The comparison as a page: what it comes to, flame graphs of three widths, and all functions that were tested.
//!
//! In: a report. Out: one document that asks for nothing. Never: text that is not ours as markup.

use super::numbers::{change, unit, value};
use super::svg::graph;
use super::{Report, text};
use crate::diff::{Change, Class, Verdict};
use crate::output::bound::Bound;
use crate::output::svg::Widths;
use crate::output::web::escape;
use crate::output::{Error, Style};
use std::fmt::Write as _;
use std::io::Write;

const STYLE: &str = include_str!("page.css");

/// Each graph, its name and what it is called.
const GRAPHS: [(Widths, &str, &str); 3] = [
    (Widths::Both, "both", "Mean of both"),
    (Widths::Before, "before", "As before"),
    (Widths::After, "after", "As after"),
];

/// The bound of each graph: all of them are one file.
const BOUND: Bound = Bound {
    bytes: 1_500_000,
    ..super::BOUND
};

/// Writes the page.
pub(super) fn write(report: &Report<'_>, style: &Style, out: &mut dyn Write) -> Result<(), Error> {
    let title = escape(&style.title);
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; \
         style-src 'unsafe-inline'\">\n<title>{title}</title>\n<style>\n{STYLE}</style></head><body>\n<h1>{title}</h1>\n"
    )?;
    let verdict = escape(&text::verdict(report.comparison));
    writeln!(out, "<p class=\"verdict\">{verdict}</p>")?;
    for line in text::summary_lines(report) {
        writeln!(out, "<p>{}</p>", escape(&line))?;
    }
    out.write_all(b"<div class=\"graphs\">\n")?;
    for (place, (_, name, label)) in GRAPHS.iter().enumerate() {
        let checked = if place == 0 { " checked" } else { "" };
        writeln!(
            out,
            "<input type=\"radio\" name=\"widths\" id=\"{name}\"{checked}><label for=\"{name}\">{label}</label>"
        )?;
    }
    // Roots on top: the page is not scrolled to its end when it opens.
    let downward = Style {
        inverted: true,
        ..style.clone()
    };
    for (widths, name, _) in GRAPHS {
        write!(out, "<div class=\"graph-{name}\">")?;
        graph(report, widths, (&downward, BOUND), out)?;
        out.write_all(b"</div>\n")?;
    }
    out.write_all(b"</div>\n")?;
    out.write_all(table(report).as_bytes())?;
    out.write_all(b"</body></html>\n")?;
    Ok(())
}

fn table(report: &Report<'_>) -> String {
    let comparison = report.comparison;
    let mut html = format!(
        "<table><thead><tr><th colspan=\"5\">self</th><th colspan=\"5\">total</th><th></th></tr>\n<tr>{0}{0}\
         <th>function</th></tr></thead><tbody>\n",
        format_args!(
            "<th>before</th><th>after</th><th>{0}</th><th>between</th><th></th>",
            escape(&unit(comparison))
        )
    );
    let mut rest = 0;
    for function in &comparison.functions {
        if function.total.verdict == Verdict::Few {
            rest += 1;
            continue;
        }
        html.push_str("<tr>");
        for part in [&function.itself, &function.total] {
            cells(report, part, &mut html);
        }
        let kernel = if function.class == Class::Kernel {
            " [k]"
        } else {
            ""
        };
        let _ = writeln!(
            html,
            "<td class=\"name\">{}{kernel}</td></tr>",
            escape(&function.name)
        );
    }
    let _ = writeln!(
        html,
        "</tbody></table>\n<p>{rest} functions have too few samples to be here.</p>"
    );
    html
}

fn cells(report: &Report<'_>, part: &Change, html: &mut String) {
    let quantity = report.comparison.quantity;
    let between = part.interval().map_or_else(String::new, |[low, high]| {
        format!("{} to {}", change(quantity, low), change(quantity, high))
    });
    let class = match part.verdict {
        Verdict::More | Verdict::New => " class=\"more\"",
        Verdict::Less | Verdict::Gone => " class=\"less\"",
        _ => "",
    };
    let [before, after] = part
        .estimate
        .values
        .map(|value_of| value(quantity, value_of));
    let moved = part
        .partner
        .as_ref()
        .map_or_else(String::new, |partner| format!(": {}", escape(partner)));
    let _ = write!(
        html,
        "<td>{before}</td><td>{after}</td><td{class}>{}</td><td>{between}</td><td>{}{moved}</td>",
        change(quantity, part.estimate.change()),
        part.verdict.word()
    );
}
