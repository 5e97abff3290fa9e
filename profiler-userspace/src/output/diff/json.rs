//! The comparison for programs: one JSON document, described in `docs/diff.md`.

use super::Report;
use crate::diff::stats::estimate::Clusters;
use crate::diff::{Change, Class, Comparison, Function, Node, Quantity};
use crate::output::json_stream::Json;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// The format's name and version.
const FORMAT: &str = "flame-bpf diff 1";

/// Writes the document; one function or node of it is in memory at a time.
pub(super) fn write(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let comparison = report.comparison;
    let mut document = head(report);
    // Names are in order; these have their places among them.
    document.insert("functions".to_owned(), Value::Null);
    document.insert("nodes".to_owned(), Value::Null);
    let mut json = Json::new(out);
    let mut table = json.columns()?;
    for (name, value) in document {
        match &*name {
            "functions" => table.column(&name, comparison.functions.iter().map(function))?,
            "nodes" => table.column(&name, comparison.nodes.iter().map(|one| node(&one)))?,
            _ => table.value(&name, value)?,
        }
    }
    table.end()?;
    json.text("\n")?;
    json.end()
}

fn function(function: &Function) -> Value {
    json!({
        "name": function.name,
        "kind": kind(function.class),
        "self": change(&function.itself),
        "total": change(&function.total),
    })
}

fn node(node: &Node) -> Value {
    let mut value = change(&node.change);
    value["name"] = json!(&*node.name);
    value["kind"] = json!(kind(node.class));
    value["depth"] = json!(node.depth);
    value["own_weight"] = json!(node.own_weights);
    value
}

fn head(report: &Report<'_>) -> Map<String, Value> {
    let comparison: &Comparison = report.comparison;
    let clusters = match comparison.clusters {
        Clusters::Windows => "windows",
        Clusters::Recordings => "recordings",
        Clusters::Samples => "samples",
    };
    let sides = comparison
        .sides
        .iter()
        .zip(report.titles)
        .map(|(side, title)| {
            json!({
                "title": title,
                "recordings": side.recordings,
                "windows": side.windows,
                "seconds": side.seconds,
                "samples": side.samples,
                "weight": side.weight,
                "value": side.total,
                "matched_loosely": side.loose,
            })
        });
    let answers = report.answers.iter().map(|(condition, answer)| {
        json!({
            "condition": condition,
            "outcome": answer.outcome.word(),
            "exit_code": answer.outcome.exit_code(),
            "reason": answer.reason,
        })
    });
    let families = ["self", "total", "nodes"].into_iter().zip(comparison.tests);
    let tests: Map<String, Value> = families
        .map(|(name, tests)| {
            (
                name.to_owned(),
                json!({ "tests": tests.tests, "found": tests.found }),
            )
        })
        .collect();
    let sight = comparison
        .sight
        .map(|sight| json!({ "of": sight.tenth, "least": sight.least }));
    let whole = comparison.whole.map(|whole| {
        json!({
            "quantity": quantity_name(whole.quantity),
            "before": whole.estimate.values[0],
            "after": whole.estimate.values[1],
            "relative": whole.relative(),
            "verdict": whole.verdict.word(),
        })
    });
    let document = json!({
        "whole": whole,
        "format": FORMAT,
        "unit": comparison.unit.name(),
        "quantity": quantity_name(comparison.quantity),
        "clusters": clusters,
        "claims": comparison.claims,
        "sides": sides.collect::<Vec<_>>(),
        "programs": comparison.programs,
        "tests": tests,
        "smallest_visible": sight,
        "conditions": answers.collect::<Vec<_>>(),
    });
    match document {
        Value::Object(document) => document,
        _ => Map::new(),
    }
}

fn quantity_name(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Share => "share",
        Quantity::Time => "nanoseconds per second",
        Quantity::Rate => "per second",
    }
}

fn kind(class: Class) -> &'static str {
    match class {
        Class::Owner => "process",
        Class::User => "user",
        Class::Kernel => "kernel",
        Class::Mark => "mark",
    }
}

fn change(change: &Change) -> Value {
    let mut value = json!({
        "before": change.estimate.values[0],
        "after": change.estimate.values[1],
        "change": change.estimate.change(),
        "interval": change.interval(),
        "smallest_visible": change.visible(),
        "p": change.interval().map(|_| change.p()),
        "verdict": change.verdict.word(),
        "samples": change.estimate.samples,
        "weight": change.weights,
    });
    if let Some(partner) = &change.partner {
        value["moved"] = json!(&**partner);
    }
    if let Some(wait) = change.lone {
        value["one_wait"] = json!(wait);
    }
    value
}
