//! The tables that all threads share: texts, files, functions, frames and stacks.
//!
//! In: a profile and its calls. Out: the file's `libs` and `shared`. A node of the tree is a row of the stack table, of the
//! same number.

use super::Json;
use super::meta::{MARKERS, category};
use crate::profile::{CallTree, FrameKind, NodeIndex, Profile};
use indexmap::IndexSet;
use serde_json::{Value, json};
use std::io;

/// The type of a resource that is a library.
const LIBRARY: u32 = 1;

/// A row of the function table: its name, library, and source file.
type Function = (usize, Option<u32>, Option<usize>);

/// Writes `libs` and `shared`.
pub(super) fn write(profile: &Profile, tree: &CallTree, json: &mut Json<'_>) -> io::Result<()> {
    let mut texts: IndexSet<String> = IndexSet::new();
    for marker in MARKERS {
        texts.insert(marker.to_owned());
    }
    let mut text = |text: &str| match texts.get_index_of(text) {
        Some(known) => known,
        None => texts.insert_full(text.to_owned()).0,
    };
    let mut sources: IndexSet<usize> = IndexSet::new();
    let mut functions: IndexSet<Function> = IndexSet::new();
    // For each frame its function, and its line.
    let mut frames = Vec::with_capacity(tree.frame_count());
    for (frame, code) in tree.frames() {
        let function = code.map(|code| profile.function_at(code.function));
        let name = text(function.map_or(&frame.name, |function| &function.name));
        let file = function
            .map(|function| &*function.file)
            .filter(|file| !file.is_empty());
        let source = file.map(|file| sources.insert_full(text(file)).0);
        let library = code.and_then(|code| code.mapping).map(|mapping| mapping.0);
        let (function, _) = functions.insert_full((name, library, source));
        let line = code.map(|code| code.line).filter(|line| *line > 0);
        frames.push((function, line, frame.kind));
    }
    let libraries = profile.mappings();
    let modules: Vec<usize> = libraries
        .iter()
        .map(|library| text(&library.module))
        .collect();

    json.text(",\"libs\":")?;
    json.list(libraries.iter().map(|library| {
        let path = library.path.to_string_lossy();
        let id: String = library
            .build_id
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        json!({
            "arch": std::env::consts::ARCH, "name": library.module, "path": path,
            "debugName": library.module, "debugPath": path, "breakpadId": "",
            "codeId": (!id.is_empty()).then_some(id),
        })
    }))?;
    let nulls = |length: usize| std::iter::repeat_n(Value::Null, length);
    json.text(",\"shared\":{\"stackTable\":")?;
    let nodes = tree.nodes();
    json.table(
        nodes.len(),
        &mut [
            (
                "frame",
                &mut nodes.iter().map(|node| json!(node.frame.index())),
            ),
            (
                "prefix",
                &mut nodes
                    .iter()
                    .map(|node| json!(node.parent.map(NodeIndex::number))),
            ),
        ],
    )?;
    json.text(",\"frameTable\":")?;
    let all = frames.len();
    json.table(
        all,
        &mut [
            ("address", &mut std::iter::repeat_n(json!(-1), all)),
            (
                "inlineDepth",
                &mut frames
                    .iter()
                    .map(|(_, _, kind)| json!(u32::from(*kind == FrameKind::Inlined))),
            ),
            (
                "category",
                &mut frames.iter().map(|(_, _, kind)| json!(category(*kind))),
            ),
            ("subcategory", &mut std::iter::repeat_n(json!(0), all)),
            (
                "func",
                &mut frames.iter().map(|(function, ..)| json!(function)),
            ),
            ("nativeSymbol", &mut nulls(all)),
            ("innerWindowID", &mut nulls(all)),
            ("line", &mut frames.iter().map(|(_, line, _)| json!(line))),
            ("column", &mut nulls(all)),
        ],
    )?;
    json.text(",\"funcTable\":")?;
    let all = functions.len();
    let resource = |library: Option<u32>| library.map_or(json!(-1), |library| json!(library));
    json.table(
        all,
        &mut [
            ("name", &mut functions.iter().map(|(name, ..)| json!(name))),
            ("isJS", &mut std::iter::repeat_n(json!(false), all)),
            ("relevantForJS", &mut std::iter::repeat_n(json!(false), all)),
            (
                "resource",
                &mut functions.iter().map(|(_, library, _)| resource(*library)),
            ),
            (
                "source",
                &mut functions.iter().map(|(_, _, source)| json!(source)),
            ),
            ("lineNumber", &mut nulls(all)),
            ("columnNumber", &mut nulls(all)),
        ],
    )?;
    json.text(",\"resourceTable\":")?;
    let all = libraries.len();
    json.table(
        all,
        &mut [
            ("lib", &mut (0..all).map(|library| json!(library))),
            ("name", &mut modules.iter().map(|module| json!(module))),
            ("host", &mut nulls(all)),
            ("type", &mut std::iter::repeat_n(json!(LIBRARY), all)),
        ],
    )?;
    json.text(",\"nativeSymbols\":")?;
    let none = || std::iter::empty::<Value>();
    json.table(
        0,
        &mut [
            ("libIndex", &mut none()),
            ("address", &mut none()),
            ("name", &mut none()),
            ("functionSize", &mut none()),
        ],
    )?;
    json.text(",\"sources\":")?;
    json.table(
        sources.len(),
        &mut [
            ("uuid", &mut nulls(sources.len())),
            ("filename", &mut sources.iter().map(|file| json!(file))),
        ],
    )?;
    // Behind all that refer to them.
    json.text(",\"stringArray\":")?;
    json.list(texts.iter().map(|text| json!(text)))?;
    json.text("}")
}
