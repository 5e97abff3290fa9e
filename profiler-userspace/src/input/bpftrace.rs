//! Maps as bpftrace prints them at its end.
//!
//! In: `@name[key, key]: value`, where a key may be a stack on lines of its own, from the leaf on. Out: a profile of one
//! map, the heaviest of those with stacks unless another is asked for, and how much the others are.
//!
//! The first key that is a word is the process; stacks of the kernel stand behind those of the program, whatever the
//! order of keys. A frame is `main+12`, with debug information `main+12@/src/main.c:14` and `[inlined] part@FILE:LINE`:
//! offsets are left out, so that places in one function are one frame. `count()`, `sum()` and plain numbers are weights;
//! of `stats()` the total is. What is no entry is told, and an entry that is broken, with the first line's number.

mod frame;

use super::text::{Summed, TOO_MANY, excerpt, no_such_type};
use super::{Error, Head, MAX_BYTES, ReadOptions, Reading, kind};
use crate::profile::fold::visible;
use crate::profile::{FrameKind, FrameRef, SourceFrame};
use crate::text::lines::LineReader;
use std::collections::HashSet;
use std::io::BufRead;

/// Whether a map comes first, but for what bpftrace says at its beginning.
pub(super) fn looks_so(head: &Head<'_>) -> bool {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let is_entry = |line: &str| {
        let rest = line
            .strip_prefix('@')
            .map(|name| name.trim_start_matches(is_name));
        rest.is_some_and(|rest| rest.starts_with('[') || rest.starts_with(": "))
    };
    !head.is_binary && head.text.lines().any(is_entry)
}

/// A part of a map's key.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Word(String),
    /// Lines, from the leaf on.
    Stack(Vec<String>),
}

/// An entry of a map.
struct Entry {
    /// Where it ends, counted from one.
    line: usize,
    map: String,
    keys: Vec<Key>,
    value: Value,
}

enum Value {
    /// Its weight, and how many firings that is, if that is told.
    Number(u64, Option<u64>),
    /// Lines of buckets.
    Histogram,
    /// Something else: what it is.
    Other(String),
}

pub(super) fn read(from: &mut dyn BufRead, options: &ReadOptions<'_>) -> Result<Reading, Error> {
    let mut reader = Reader::default();
    let (mut lines, mut bytes) = (LineReader::new(from), 0);
    while let Some((line, text)) = lines.next()? {
        // Which map is shown is known at the end.
        bytes += text.len() as u64;
        if bytes > MAX_BYTES {
            return Err(Error::at(line, TOO_MANY));
        }
        reader.line(line, &text);
    }
    reader.abandon();
    let maps = maps(&reader.entries);
    let known = || maps.iter().map(|map| map.name);
    let chosen = match options.sample_type {
        Some(name) => known()
            .find(|map| *map == name || map[1..] == *name)
            .ok_or_else(|| no_such_type(name, known()))?,
        None => {
            // Of equals, the first.
            let with_stacks = maps.iter().rev().filter(|map| map.has_stacks);
            match with_stacks.max_by_key(|map| map.weight) {
                Some(map) => map.name,
                None => {
                    return Err(reader.broken.first.unwrap_or_else(|| {
                        Error::whole("no map in it has a stack as a key, and a number as a value")
                    }));
                }
            }
        }
    };
    let mut summed = Summed::new(options.unit.clone());
    let (mut keys, mut again) = (HashSet::new(), None);
    for entry in reader.entries.iter().filter(|entry| entry.map == chosen) {
        match entry.weight(options) {
            Ok(weight) => entry.add(weight, &mut summed)?,
            Err(error) => reader.broken.add(error),
        }
        if !keys.insert(&entry.keys) {
            again = again.or(Some(entry.line));
        }
    }
    if summed.frames.is_empty() {
        return Err(reader
            .broken
            .first
            .unwrap_or_else(|| Error::whole("there is no stack in it")));
    }
    let mut reading = summed.into_reading();
    let others: Vec<_> = { maps.iter().filter(|map| map.name != chosen) }
        .map(Map::told)
        .collect();
    reading.note_others(&others, &visible(chosen));
    if let Some(line) = again {
        let map = visible(chosen);
        let text = format!(
            "{map} is printed again in line {line}, and all is added up; without clear({map}) behind print({map}) one \
             firing counts several times"
        );
        reading.notes.push(("note", text));
    }
    if let Some(error) = &reader.broken.first {
        let text = format!("{} entries; the first is in {error}", reader.broken.count);
        reading.notes.push(("not shown", text));
    }
    for remark in reader.remarks {
        reading.notes.push(("bpftrace", remark));
    }
    Ok(reading)
}

/// A map that is printed.
struct Map<'a> {
    name: &'a str,
    /// The sum of its numbers.
    weight: u64,
    /// Whether a number of it has a stack.
    has_stacks: bool,
}

impl Map<'_> {
    /// Its name, and how much it is.
    fn told(&self) -> String {
        match self.weight {
            0 => visible(self.name).into_owned(),
            weight => format!("{weight} {}", visible(self.name)),
        }
    }
}

/// All maps, in the order in which they come.
fn maps(entries: &[Entry]) -> Vec<Map<'_>> {
    let mut maps: Vec<Map<'_>> = Vec::new();
    for entry in entries {
        let known = maps.iter().rposition(|map| map.name == entry.map);
        let at = known.unwrap_or_else(|| {
            maps.push(Map {
                name: &entry.map,
                weight: 0,
                has_stacks: false,
            });
            maps.len() - 1
        });
        if let Value::Number(weight, _) = entry.value {
            maps[at].weight = maps[at].weight.saturating_add(weight);
            maps[at].has_stacks |= entry.has_stack();
        }
    }
    maps
}

impl Entry {
    fn has_stack(&self) -> bool {
        self.keys.iter().any(|key| matches!(key, Key::Stack(_)))
    }

    fn add(&self, weight: (u64, u64), summed: &mut Summed) -> Result<(), Error> {
        let (mut stack, kernel) = self.stack();
        stack.extend(kernel);
        summed.push(self.line, &stack, weight)
    }

    /// Its weight, and how many firings that is.
    fn weight(&self, options: &ReadOptions<'_>) -> Result<(u64, u64), Error> {
        let (shown, count) = match &self.value {
            Value::Number(shown, count) => (*shown, *count),
            Value::Histogram => {
                let problem = format!(
                    "{} holds histograms, and stacks need a number each",
                    self.map
                );
                return Err(Error::at(self.line, problem));
            }
            Value::Other(text) => {
                let problem = format!(
                    "{} is no weight: a whole number should be here",
                    excerpt(text)
                );
                return Err(Error::at(self.line, problem));
            }
        };
        let weight = options
            .unit
            .read(shown)
            .ok_or_else(|| Error::at(self.line, format!("{shown} is too large to be a weight")))?;
        Ok((weight, count.unwrap_or_else(|| options.count(weight))))
    }

    /// Labels and the program's part, and the kernel's.
    fn stack(&self) -> (Vec<SourceFrame<'_>>, Vec<SourceFrame<'_>>) {
        let (mut labels, mut user, mut kernel) = (Vec::new(), Vec::new(), Vec::new());
        let mut has_process = false;
        for key in &self.keys {
            match key {
                // An empty stack, or an empty word.
                Key::Word(word) if word.is_empty() => {}
                Key::Word(word) => {
                    let is_process = !has_process && word.parse::<u64>().is_err();
                    let (kind, at) = match is_process {
                        true => (FrameKind::Process, 0),
                        false => (FrameKind::Label, labels.len()),
                    };
                    has_process |= is_process;
                    let label = FrameRef { name: word, kind };
                    labels.insert(at, SourceFrame::nowhere(label));
                }
                Key::Stack(lines) => {
                    let mut frames: Vec<_> =
                        lines.iter().rev().map(|line| frame::parse(line)).collect();
                    let root = { frames.iter().map(|at| at.frame) }
                        .find(|root| root.kind != FrameKind::Mark);
                    let is_kernel = root.is_some_and(|root| {
                        root.kind == FrameKind::Kernel || kind::is_kernel_root(root.name)
                    });
                    let part = if is_kernel { &mut kernel } else { &mut user };
                    for at in &mut frames {
                        if is_kernel && at.frame.kind == FrameKind::User {
                            at.frame.kind = FrameKind::Kernel;
                        }
                    }
                    part.append(&mut frames);
                }
            }
        }
        labels.append(&mut user);
        (labels, kernel)
    }
}

/// An entry that has not ended.
struct Open {
    began: usize,
    map: String,
    keys: Vec<Key>,
    stack: Vec<String>,
}

#[derive(Default)]
struct Reader {
    entries: Vec<Entry>,
    open: Option<Open>,
    /// Lines that are no entries and say something.
    remarks: Vec<String>,
    /// Whether the last entry's value is the lines that follow.
    in_histogram: bool,
    broken: Broken,
}

/// Entries that are not read.
#[derive(Default)]
struct Broken {
    count: u64,
    first: Option<Error>,
}

impl Broken {
    fn add(&mut self, error: Error) {
        self.count += 1;
        self.first.get_or_insert(error);
    }
}

impl Reader {
    /// Ends an entry that does not end as it should.
    fn abandon(&mut self) {
        if let Some(open) = self.open.take() {
            let problem = "this entry does not end; it should end in `]: NUMBER`";
            self.broken.add(Error::at(open.began, problem));
        }
    }

    fn line(&mut self, line: usize, text: &str) {
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.starts_with('@') {
            self.abandon();
            self.in_histogram = false;
            return self.begin(line, text);
        }
        if let Some(open) = self.open.take() {
            return self.within(line, text, open);
        }
        if text.trim().is_empty() {
            self.in_histogram = false;
        } else if !self.in_histogram
            && !text.starts_with("Attaching ")
            && !text.starts_with("Attached ")
        {
            self.remark(line, text);
        }
    }

    fn remark(&mut self, line: usize, text: &str) {
        self.remarks.push(format!("line {line}: {}", excerpt(text)));
    }

    /// A line that begins an entry, and perhaps ends it.
    fn begin(&mut self, line: usize, text: &str) {
        let name_end = text.find(['[', ':']).unwrap_or(text.len());
        let map = text[..name_end].to_owned();
        let rest = &text[name_end..];
        if let Some(value) = rest.strip_prefix(':') {
            return self.end(line, map, Vec::new(), value);
        }
        let Some(keys) = rest.strip_prefix('[') else {
            let problem = format!(
                "{} should be an entry such as `@[comm, ustack]: 7`",
                excerpt(text)
            );
            return self.broken.add(Error::at(line, problem));
        };
        let open = Open {
            began: line,
            map,
            keys: Vec::new(),
            stack: Vec::new(),
        };
        self.keys(line, keys, open);
    }

    /// A line of an entry that began before.
    fn within(&mut self, line: usize, text: &str, mut open: Open) {
        if let Some(name) = text.strip_prefix([' ', '\t']) {
            open.stack.push(name.trim().to_owned());
            self.open = Some(open);
            return;
        }
        if !text.starts_with([',', ']', ')']) {
            // Other output to the terminal may come in between.
            self.remark(line, text);
            self.open = Some(open);
            return;
        }
        let stack = std::mem::take(&mut open.stack);
        open.keys.push(Key::Stack(stack));
        let rest = text.strip_prefix([',', ')']).unwrap_or(text);
        self.keys(line, rest, open);
    }

    /// Keys on one line, up to the end of the entry or to the stack that begins on the next line.
    fn keys(&mut self, line: usize, text: &str, mut open: Open) {
        // A word may hold a bracket, so the last one counts.
        let end = text.rfind("]:").filter(|end| is_value(&text[end + 2..]));
        let keys = end.map_or(text, |end| &text[..end]);
        // Of a tuple, the parts are keys.
        let tuple = keys.strip_prefix('(');
        let words = tuple.unwrap_or(keys).split(',').map(str::trim);
        let mut words: Vec<&str> = words
            .map(|word| match tuple {
                Some(_) if !word.contains('(') => word.trim_end_matches(')'),
                _ => word,
            })
            .collect();
        // Behind the last comma, or the bracket, is the stack, or nothing.
        if words.last().is_some_and(|word| word.is_empty()) {
            words.pop();
        }
        let words = words.iter().map(|word| Key::Word((*word).to_owned()));
        open.keys.extend(words);
        match end {
            Some(end) => self.end(line, open.map, open.keys, &text[end + 2..]),
            None => self.open = Some(open),
        }
    }

    fn end(&mut self, line: usize, map: String, keys: Vec<Key>, value: &str) {
        let value = match value.trim() {
            "" => Value::Histogram,
            text => number(text).unwrap_or_else(|| Value::Other(text.to_owned())),
        };
        self.in_histogram = matches!(value, Value::Histogram);
        self.entries.push(Entry {
            line,
            map,
            keys,
            value,
        });
    }
}

/// Whether this stands behind the bracket of an entry, and not within a word.
fn is_value(text: &str) -> bool {
    text.is_empty() || text.starts_with(' ')
}

/// `7`, or `count 5, average 3, total 15`.
fn number(text: &str) -> Option<Value> {
    if let Ok(number) = text.parse() {
        return Some(Value::Number(number, None));
    }
    let mut parts = text.strip_prefix("count ")?.split(", ");
    let count = parts.next()?.parse().ok()?;
    let total = parts.find_map(|part| part.strip_prefix("total "))?;
    Some(Value::Number(total.parse().ok()?, Some(count)))
}
