//! The tables that all threads share: texts, files, functions, frames and stacks.
//!
//! In: a profile and its calls. Out: the file's `libs` and `shared`. A node of the tree is a row of the stack table, of the
//! same number.

use super::meta::{MARKERS, category};
use crate::output::json_stream::{Columns, Json};
use crate::profile::{CallTree, FrameKind, Node, NodeIndex, Profile};
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
        let id = library.build_id_hex();
        json!({
            "arch": std::env::consts::ARCH, "name": library.module, "path": path,
            "debugName": library.module, "debugPath": path, "breakpadId": "",
            "codeId": (!id.is_empty()).then_some(id),
        })
    }))?;
    json.text(",\"shared\":{\"stackTable\":")?;
    let nodes = tree.nodes();
    let mut stacks = table(json, nodes.len())?;
    stacks.column("frame", nodes.iter().map(|node| node.frame.index()))?;
    let prefix = |node: &Node| node.parent.map(NodeIndex::number);
    stacks.column("prefix", nodes.iter().map(prefix))?;
    stacks.end()?;
    json.text(",\"frameTable\":")?;
    let all = frames.len();
    let nulls = |length: usize| std::iter::repeat_n(Value::Null, length);
    let mut table_of_frames = table(json, all)?;
    table_of_frames.column("address", std::iter::repeat_n(-1, all))?;
    let depths = frames
        .iter()
        .map(|(_, _, kind)| u32::from(*kind == FrameKind::Inlined));
    table_of_frames.column("inlineDepth", depths)?;
    table_of_frames.column(
        "category",
        frames.iter().map(|(_, _, kind)| category(*kind)),
    )?;
    table_of_frames.column("subcategory", std::iter::repeat_n(0, all))?;
    table_of_frames.column("func", frames.iter().map(|(function, ..)| *function))?;
    table_of_frames.column("nativeSymbol", nulls(all))?;
    table_of_frames.column("innerWindowID", nulls(all))?;
    table_of_frames.column("line", frames.iter().map(|(_, line, _)| *line))?;
    table_of_frames.column("column", nulls(all))?;
    table_of_frames.end()?;
    json.text(",\"funcTable\":")?;
    let all = functions.len();
    let mut table_of_functions = table(json, all)?;
    table_of_functions.column("name", functions.iter().map(|(name, ..)| *name))?;
    table_of_functions.column("isJS", std::iter::repeat_n(false, all))?;
    table_of_functions.column("relevantForJS", std::iter::repeat_n(false, all))?;
    let resource = |library: &Option<u32>| library.map_or(-1, i64::from);
    let resources = functions.iter().map(|(_, library, _)| resource(library));
    table_of_functions.column("resource", resources)?;
    table_of_functions.column("source", functions.iter().map(|(_, _, source)| *source))?;
    table_of_functions.column("lineNumber", nulls(all))?;
    table_of_functions.column("columnNumber", nulls(all))?;
    table_of_functions.end()?;
    json.text(",\"resourceTable\":")?;
    let all = libraries.len();
    let mut resources = table(json, all)?;
    resources.column("lib", 0..all)?;
    resources.column("name", modules)?;
    resources.column("host", nulls(all))?;
    resources.column("type", std::iter::repeat_n(LIBRARY, all))?;
    resources.end()?;
    json.text(",\"nativeSymbols\":")?;
    let mut symbols = table(json, 0)?;
    for name in ["libIndex", "address", "name", "functionSize"] {
        symbols.column(name, nulls(0))?;
    }
    symbols.end()?;
    json.text(",\"sources\":")?;
    let mut files = table(json, sources.len())?;
    files.column("uuid", nulls(sources.len()))?;
    files.column("filename", sources)?;
    files.end()?;
    json.text(",\"stringArray\":")?;
    json.list(texts)?;
    json.text("}")
}

/// Opens a table of so many rows.
pub(super) fn table<'j, 'o>(json: &'j mut Json<'o>, rows: usize) -> io::Result<Columns<'j, 'o>> {
    let mut columns = json.columns()?;
    columns.value("length", rows)?;
    Ok(columns)
}
