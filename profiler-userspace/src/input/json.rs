//! Profiles in JSON: Chrome's and node's `.cpuprofile`, and speedscope's file format.
//!
//! In: JSON. Out: a profile, with the file and line of each function.

use super::text::{Summed, no_such_type, one_type};
use super::{Error, Head, ReadOptions, Reading, other};
use crate::profile::fold::visible;
use crate::profile::{FrameKind, FrameRef, SourceFrame, Unit};
use serde_json::Value;
use std::collections::HashMap;
use std::io::BufRead;

/// The most that is read of such a file, in bytes: values take many times as much memory.
const MAX_BYTES: u64 = 256 << 20;

pub(super) fn is_cpuprofile(head: &Head<'_>) -> bool {
    let has = |key: &str| head.text.contains(key);
    is_json(head)
        && (has("\"callFrame\"") || has("\"callUID\""))
        && !has("\"selfSize\"")
        && !has("\"traceEvents\"")
        && !has("\"ph\"")
}

pub(super) fn is_speedscope(head: &Head<'_>) -> bool {
    let has = |key: &str| head.text.contains(key);
    is_json(head)
        && (has("speedscope.app/file-format-schema.json")
            || (has("\"shared\"") && has("\"frames\"")))
}

fn is_json(head: &Head<'_>) -> bool {
    !head.is_binary && other::is_json(&head.text)
}

fn parse(from: &mut dyn BufRead) -> Result<Value, Error> {
    let problem = "it is JSON of more than 256 MiB; record a shorter time";
    let bytes = super::whole(from, MAX_BYTES, problem)?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Error::Whole(format!("it is broken JSON: {error}")))
}

fn lacks(what: &str) -> Error {
    Error::Whole(format!("there is no {what} in it"))
}

/// A function, by the number of a node or a frame.
fn frame<'a>(value: &'a Value, [name, file, line]: [&str; 3], first_line: i64) -> SourceFrame<'a> {
    let text = |key: &str| value[key].as_str().unwrap_or_default();
    let line = value[line]
        .as_i64()
        .map_or(0, |line| line.saturating_add(1 - first_line));
    let name = match text(name) {
        "" => "(anonymous)",
        name => name,
    };
    SourceFrame {
        frame: FrameRef {
            name,
            kind: FrameKind::User,
        },
        file: text(file),
        line: u32::try_from(line).unwrap_or(0),
    }
}

/// A node of a `.cpuprofile`: its function, and who called it.
struct Node<'a> {
    frame: SourceFrame<'a>,
    parent: Option<i64>,
    hits: u64,
}

/// All nodes by their IDs, of today's flat list or of the tree that there was before.
fn nodes(file: &Value) -> HashMap<i64, Node<'_>> {
    const KEYS: [&str; 3] = ["functionName", "url", "lineNumber"];
    let mut nodes = HashMap::new();
    let mut parents = HashMap::new();
    let mut open: Vec<(&Value, Option<i64>)> = file["nodes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|node| (node, None))
        .collect();
    open.extend(file.get("head").map(|head| (head, None)));
    while let Some((node, parent)) = open.pop() {
        let Some(id) = node["id"].as_i64() else {
            continue;
        };
        for child in node["children"].as_array().into_iter().flatten() {
            match child.as_i64() {
                Some(child) => drop(parents.insert(child, id)),
                None => open.push((child, Some(id))),
            }
        }
        let frame = match node.get("callFrame") {
            Some(at) => frame(at, KEYS, 0),
            None => frame(node, KEYS, 1),
        };
        let parent = parent.or_else(|| node["parent"].as_i64());
        let hits = node["hitCount"].as_u64().unwrap_or(0);
        nodes.insert(
            id,
            Node {
                frame,
                parent,
                hits,
            },
        );
    }
    for (child, parent) in parents {
        if let Some(node) = nodes.get_mut(&child) {
            node.parent = Some(parent);
        }
    }
    nodes
}

/// Reads a `.cpuprofile`. A sample lasts up to the next; without times, hits are counted.
pub(super) fn cpuprofile(
    from: &mut dyn BufRead,
    options: &ReadOptions<'_>,
) -> Result<Reading, Error> {
    one_type(options)?;
    let file = parse(from)?;
    let nodes = nodes(&file);
    let list = |key: &str| file[key].as_array().map_or(&[][..], Vec::as_slice);
    let samples: Vec<Option<i64>> = list("samples").iter().map(Value::as_i64).collect();
    let mut times: Vec<f64> = list("timestamps")
        .iter()
        .filter_map(Value::as_f64)
        .collect();
    if times.is_empty() {
        let mut now = file["startTime"].as_f64().unwrap_or(0.0);
        times = (list("timeDeltas").iter())
            .map(|delta| {
                now += delta.as_f64().unwrap_or(0.0);
                now
            })
            .collect();
    }
    let has_times = !samples.is_empty() && times.len() >= samples.len();
    let mut weights: HashMap<i64, (u64, u64)> = HashMap::new();
    if has_times {
        // Samples of two threads of the engine may come out of order.
        let mut ordered: Vec<_> = times.iter().copied().zip(samples).collect();
        ordered.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        // Before 2018, the ends of a profile were seconds and its times were not.
        let last = ordered.last().map_or(0.0, |(time, _)| *time);
        let end = file["endTime"]
            .as_f64()
            .filter(|end| *end >= last)
            .unwrap_or(last);
        let ends: Vec<f64> = ordered
            .iter()
            .skip(1)
            .map(|(time, _)| *time)
            .chain([end])
            .collect();
        for ((begin, id), end) in ordered.into_iter().zip(ends) {
            let Some(id) = id else { continue };
            let (weight, count) = weights.entry(id).or_default();
            *weight = weight.saturating_add(((end - begin) * 1000.0).round() as u64);
            *count += 1;
        }
    } else {
        weights = nodes
            .iter()
            .map(|(id, node)| (*id, (node.hits, node.hits)))
            .collect();
    }
    let unit = if has_times {
        Unit::Nanoseconds
    } else {
        Unit::Samples
    };
    let mut summed = Summed::new(unit);
    let mut ordered: Vec<_> = weights.into_iter().collect();
    ordered.sort_unstable();
    for (id, (weight, count)) in ordered {
        let mut stack = Vec::new();
        let mut next = nodes.get(&id);
        while let Some(node) = next {
            // A chain that is longer goes round in a circle.
            if stack.len() > nodes.len() {
                return Err(Error::Whole(format!("node {id} calls itself")));
            }
            stack.push(node.frame);
            next = node.parent.and_then(|parent| nodes.get(&parent));
        }
        stack.reverse();
        let is_root = stack
            .first()
            .is_some_and(|root| root.frame.name == "(root)");
        let stack = &stack[usize::from(is_root && stack.len() > 1)..];
        summed.push_whole(stack, (weight, count))?;
    }
    Ok(summed.into_reading())
}

/// Reads speedscope's format: of several profiles the one that it shows first, unless another is asked for by its name.
pub(super) fn speedscope(
    from: &mut dyn BufRead,
    options: &ReadOptions<'_>,
) -> Result<Reading, Error> {
    let file = parse(from)?;
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let profiles = list(&file["profiles"]);
    let frames = file["shared"]["frames"]
        .as_array()
        .ok_or_else(|| lacks("list of frames"))?;
    let frames: Vec<_> = frames
        .iter()
        .map(|one| frame(one, ["name", "file", "line"], 1))
        .collect();
    let names: Vec<&str> = profiles
        .iter()
        .map(|one| one["name"].as_str().unwrap_or_default())
        .collect();
    let active = file["activeProfileIndex"]
        .as_u64()
        .map_or(0, |index| index as usize);
    let chosen = match options.sample_type {
        Some(name) => (names.iter().position(|known| *known == name))
            .ok_or_else(|| no_such_type(name, names.iter().copied()))?,
        None if active < profiles.len() => active,
        None => 0,
    };
    let profile = profiles.get(chosen).ok_or_else(|| lacks("profile"))?;
    let (unit, factor) = match profile["unit"].as_str() {
        Some("nanoseconds") => (Unit::Nanoseconds, 1.0),
        Some("microseconds") => (Unit::Nanoseconds, 1e3),
        Some("milliseconds") => (Unit::Nanoseconds, 1e6),
        Some("seconds") => (Unit::Nanoseconds, 1e9),
        Some("none") | None => (options.unit.clone(), 1.0),
        Some(unit) => (Unit::Events(unit.to_owned()), 1.0),
    };
    let mut summed = Summed::new(unit.clone());
    let mut add = |stack: &[SourceFrame<'_>], weight: f64| {
        let weight = (weight * factor).round() as u64;
        let count = if unit == Unit::Samples { weight } else { 1 };
        summed.push_whole(stack, (weight, count))
    };
    let of = |index: &Value| -> Result<SourceFrame<'_>, Error> {
        let frame = index.as_u64().and_then(|index| frames.get(index as usize));
        frame
            .copied()
            .ok_or_else(|| lacks(&format!("frame {index}")))
    };
    if let Some(samples) = profile["samples"].as_array() {
        let weights = list(&profile["weights"]);
        for (number, sample) in samples.iter().enumerate() {
            let stack: Vec<_> = list(sample).iter().map(of).collect::<Result<_, _>>()?;
            let weight = weights.get(number).and_then(Value::as_f64);
            add(
                &stack,
                weight.ok_or_else(|| lacks(&format!("weight of sample {number}")))?,
            )?;
        }
    } else {
        let (mut stack, mut now) = (Vec::new(), profile["startValue"].as_f64().unwrap_or(0.0));
        for event in &list(&profile["events"]) {
            let at = event["at"].as_f64().unwrap_or(now);
            if !stack.is_empty() {
                add(&stack, at - now)?;
            }
            now = at;
            match event["type"].as_str() {
                Some("O") => stack.push(of(&event["frame"])?),
                _ => drop(stack.pop()),
            }
        }
    }
    let mut reading = summed.into_reading();
    let others = (0..).zip(&names).filter(|(number, _)| *number != chosen);
    let others: Vec<_> = others.map(|(_, name)| visible(name)).collect();
    reading.note_others(&others, &visible(names[chosen]));
    Ok(reading)
}
