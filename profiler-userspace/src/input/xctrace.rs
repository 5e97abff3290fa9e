//! XML of Xcode's Instruments: `xctrace export`.
//!
//! In: rows, each a sample with a backtrace, whose frames stand from the leaf on. Out: a profile of one for each row. What
//! stood in the file before is referred to by its number. A broken tag costs no more than what it tells: a frame that cannot
//! be read is one without a name, a row without a backtrace is left out, and both are counted, with the first line's number.

use super::text::{Lines, Summed, one_type, rust_name};
use super::{Error, Head, ReadOptions, Reading};
use crate::profile::{AsFrame as _, Frame, FrameKind};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, BufRead};
use std::rc::Rc;

/// The longest tag that is read, in bytes. C++ names reach a few thousand.
const MAX_TAG: usize = 1 << 20;

/// Whether a file has the element that all of such a file is in.
pub(super) fn looks_so(head: &Head<'_>) -> bool {
    !head.is_binary && head.text.contains("<trace-query-result")
}

pub(super) fn read(from: &mut dyn BufRead, options: &ReadOptions<'_>) -> Result<Reading, Error> {
    one_type(options)?;
    let mut reader = Reader {
        summed: Summed::new(options.unit.clone()),
        frames: HashMap::new(),
        stacks: HashMap::new(),
        row: None,
        odd: Lines::default(),
        without_stack: 0,
    };
    let Some(weight) = options.unit.read(1) else {
        return Err(Error::whole("one is too large to be a weight"));
    };
    let counted = (weight, options.count(weight));
    let mut tags = Tags::new(from);
    while let Some((line, tag)) = tags.next()? {
        match tag {
            Ok(tag) => reader.tag(line, tag, counted)?,
            Err(text) => reader.broken(line, text),
        }
    }
    let cut = (reader.row.is_some()).then_some((tags.line, "the file ends within a row"));
    let what = "tags that cannot be read, or refer to nothing";
    let mut reading = reader.summed.into_reading().leave_out(
        &reader.odd,
        what,
        "a tag as xctrace writes it",
        cut,
    )?;
    if reader.without_stack > 0 {
        let told = format!("{} rows without a backtrace", reader.without_stack);
        reading.notes.push(("not shown", told));
    }
    Ok(reading)
}

/// A stack, from the leaf on.
type Stack = Rc<[Rc<Frame>]>;

/// A row that has not ended.
#[derive(Default)]
struct OpenRow {
    /// Frames of a backtrace that has not ended, from the leaf on.
    frames: Vec<Rc<Frame>>,
    /// Numbers by which others refer to that.
    ids: Vec<u64>,
    stack: Option<Stack>,
    /// Whether there is a backtrace, and frames may be that one's.
    has_backtrace: bool,
    /// Whether a tag in it is broken, and counted.
    is_broken: bool,
}

struct Reader {
    summed: Summed,
    frames: HashMap<u64, Rc<Frame>>,
    stacks: HashMap<u64, Stack>,
    row: Option<OpenRow>,
    odd: Lines,
    without_stack: u64,
}

impl Reader {
    fn tag(&mut self, line: usize, tag: &str, counted: (u64, u64)) -> Result<(), Error> {
        let name = match tag.strip_prefix('/') {
            Some(_) => tag.trim_end(),
            None => tag
                .split(|c: char| c.is_whitespace() || c == '/')
                .next()
                .unwrap_or_default(),
        };
        match name {
            "row" => {
                // The one before may have no end.
                self.end(line, counted)?;
                self.row = Some(OpenRow::default());
            }
            "/row" => self.end(line, counted)?,
            "backtrace" | "tagged-backtrace" => self.backtrace(line, tag),
            "/backtrace" | "/tagged-backtrace" => self.end_backtrace(),
            "frame" => self.frame(line, tag),
            _ => {}
        }
        Ok(())
    }

    /// Counts a tag that cannot be read. Within a backtrace it is taken for a frame's, as most tags are.
    fn broken(&mut self, line: usize, text: &str) {
        self.odd.add(line, text);
        if let Some(row) = &mut self.row {
            row.is_broken = true;
            if row.has_backtrace && text.trim_start_matches('<').starts_with("frame") {
                row.frames.push(unknown());
            }
        }
    }

    fn backtrace(&mut self, line: usize, tag: &str) {
        let Some(row) = &mut self.row else { return };
        row.has_backtrace = true;
        let known = number(tag, "ref").and_then(|id| self.stacks.get(&id));
        if let Some(id) = number(tag, "id") {
            row.ids.push(id);
        } else if let Some(known) = known {
            row.stack = Some(Rc::clone(known));
        } else {
            row.is_broken = true;
            self.odd.add(line, &format!("<{tag}>"));
        }
    }

    fn end_backtrace(&mut self) {
        let Some(row) = &mut self.row else { return };
        if !row.frames.is_empty() {
            row.stack = Some(std::mem::take(&mut row.frames).into());
        }
        for id in row.ids.drain(..) {
            let stack = row.stack.clone().unwrap_or_default();
            self.stacks.insert(id, stack);
        }
    }

    fn frame(&mut self, line: usize, tag: &str) {
        let Some(row) = self.row.as_mut().filter(|row| row.has_backtrace) else {
            return;
        };
        let known = number(tag, "ref").and_then(|id| self.frames.get(&id).cloned());
        let frame = known.or_else(|| {
            let name = unescaped(attribute(tag, "name")?)?;
            Some(Rc::new(Frame::new(
                rust_name(&name).into_owned(),
                FrameKind::User,
            )))
        });
        if frame.is_none() {
            self.odd.add(line, &format!("<{tag}>"));
        }
        let frame = frame.unwrap_or_else(unknown);
        if let Some(id) = number(tag, "id") {
            self.frames.insert(id, Rc::clone(&frame));
        }
        row.frames.push(frame);
    }

    /// Ends the row, if there is one.
    fn end(&mut self, line: usize, counted: (u64, u64)) -> Result<(), Error> {
        self.end_backtrace();
        let Some(row) = self.row.take() else {
            return Ok(());
        };
        match row.stack.filter(|stack| !stack.is_empty()) {
            Some(stack) => {
                let frames: Vec<_> = stack.iter().rev().map(|frame| frame.as_frame()).collect();
                self.summed.push(line, &frames, counted)?;
            }
            None => self.without_stack += u64::from(!row.is_broken),
        }
        Ok(())
    }
}

fn unknown() -> Rc<Frame> {
    Rc::new(Frame::new("[unknown]", FrameKind::User))
}

/// The number that an attribute is.
fn number(tag: &str, name: &str) -> Option<u64> {
    attribute(tag, name)?.parse().ok()
}

/// An attribute of a tag, as it is written.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = &tag[tag.find(char::is_whitespace)?..];
    loop {
        let (key, value) = rest.split_once('=')?;
        let value = value.trim_start();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, behind) = value[1..].split_once(quote)?;
        if key.trim() == name {
            return Some(value);
        }
        rest = behind;
    }
}

/// Text without the escapes of XML; none if one of these is no character.
fn unescaped(text: &str) -> Option<Cow<'_, str>> {
    let Some((before, mut rest)) = text.split_once('&') else {
        return Some(Cow::Borrowed(text));
    };
    let mut plain = before.to_owned();
    loop {
        let (escape, behind) = rest.split_once(';')?;
        plain.push(match escape {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            code => {
                let code = code.strip_prefix('#')?;
                let code = match code.strip_prefix('x') {
                    Some(hex) => u32::from_str_radix(hex, 16),
                    None => code.parse(),
                };
                char::from_u32(code.ok()?)?
            }
        });
        let Some((before, next)) = behind.split_once('&') else {
            plain.push_str(behind);
            return Some(Cow::Owned(plain));
        };
        plain.push_str(before);
        rest = next;
    }
}

/// Tags of a text.
struct Tags<'a> {
    from: &'a mut dyn BufRead,
    /// The line up to which was read.
    line: usize,
    text: String,
    /// Whether the `<` of the next tag was read.
    has_begun: bool,
}

impl<'a> Tags<'a> {
    fn new(from: &'a mut dyn BufRead) -> Self {
        Self {
            from,
            line: 1,
            text: String::new(),
            has_begun: false,
        }
    }

    /// The next tag and its line: what is between its brackets, or how it begins if it has no end.
    ///
    /// # Errors
    /// When the text cannot be read.
    fn next(&mut self) -> io::Result<Option<(usize, Result<&str, &str>)>> {
        if !self.has_begun && self.until(b"<", None)?.is_none() {
            return Ok(None);
        }
        let (line, mut quote) = (self.line, None);
        let mut bytes = vec![b'<'];
        let is_whole = loop {
            // No attribute holds `<` as it is, but any may hold `>`.
            let end = match quote {
                Some(quote) => self.until(&[b'<', quote], Some(&mut bytes))?,
                None => self.until(b"<>\"'", Some(&mut bytes))?,
            };
            self.has_begun = end == Some(b'<');
            match end {
                Some(b'>') if quote.is_none() => break true,
                Some(b'<') | None => break false,
                end if quote.is_some() => {
                    quote = None;
                    bytes.extend(end);
                }
                end => {
                    quote = end;
                    bytes.extend(end);
                }
            }
        };
        let is_whole = is_whole && bytes.len() <= MAX_TAG;
        self.text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Some((
            line,
            match is_whole {
                true => Ok(&self.text[1..]),
                false => Err(&self.text),
            },
        )))
    }

    /// Reads up to one of these bytes, and returns that; none at the end of the text. Keeps no more of what is in front than
    /// a byte too much for a tag.
    fn until(&mut self, ends: &[u8], mut to: Option<&mut Vec<u8>>) -> io::Result<Option<u8>> {
        loop {
            let bytes = self.from.fill_buf()?;
            if bytes.is_empty() {
                return Ok(None);
            }
            let end = bytes.iter().position(|byte| ends.contains(byte));
            let before = &bytes[..end.unwrap_or(bytes.len())];
            if let Some(to) = &mut to {
                let room = (MAX_TAG + 1).saturating_sub(to.len());
                to.extend(&before[..before.len().min(room)]);
            }
            self.line += before.iter().filter(|byte| **byte == b'\n').count();
            let found = end.map(|end| bytes[end]);
            let read = before.len() + usize::from(found.is_some());
            self.from.consume(read);
            if found.is_some() {
                return Ok(found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{kind_and_text, notes, refused};

    const XCTRACE: &str = r#"<?xml version="1.0"?>
<trace-query-result>
<node xpath='//trace-toc[1]/run[1]/data[1]/table[11]'>
<row><sample-time id="1">7</sample-time><backtrace id="10">
<frame id="11" name="leaf" addr="0x1"><binary id="12" name="app"/></frame>
<frame id="13" name="start" addr="0x2"></frame>
</backtrace></row>
<row><tagged-backtrace id="14"><backtrace id="15">
<frame id="16" name="f(A&amp;, B>)" addr="0x3"></frame>
<frame ref="13"/>
</backtrace></tagged-backtrace></row>
<row><backtrace ref="10"/></row>
<row><tagged-backtrace ref="14"/></row>
<row><sentinel/></row>
<row><backtrace id="20"><frame id="21" name="app::_$LT$a..B$GT$::f::h30ecedc997ad7e32" addr="0x4"/><frame ref="13"/></backtrace></row>
</node>
</trace-query-result>
"#;

    const FOLDED: &str = "start;app::<a::B>::f 1\nstart;f(A&, B>) 2\nstart;leaf 2\n";

    #[test]
    fn backtraces_of_xctrace_are_told_once_and_referred_to() {
        assert_eq!(kind_and_text(XCTRACE), ("xctrace XML", FOLDED.to_owned()));
        assert_eq!(notes(XCTRACE), ["not shown: 1 rows without a backtrace"]);
    }

    #[test]
    fn odd_lines_of_xctrace_are_told_wherever_they_are() {
        let count = XCTRACE.lines().count();
        for odd in [
            "<row broken",
            "Export failed: a < b",
            "<frame ref=\"99\"",
            "<x y='",
        ] {
            for at in [0, 3, 6, 7, 13, count] {
                let mut lines: Vec<_> = XCTRACE.lines().collect();
                lines.insert(at, odd);
                let text = lines.join("\n");
                let folded = kind_and_text(&text)
                    .1
                    .replace("start;[unknown];leaf", "start;leaf");
                let total = |folded: &str| -> u64 {
                    let weights = folded.lines().map(|line| line.rsplit_once(' ').unwrap().1);
                    weights.map(|weight| weight.parse::<u64>().unwrap()).sum()
                };
                assert_eq!(total(&folded), 5, "{text}\n{folded}");
                let told = notes(&text).concat();
                assert!(
                    told.contains(&format!("first is line {}: `", at + 1)),
                    "{told}"
                );
            }
        }
    }

    #[test]
    fn a_frame_of_xctrace_that_cannot_be_read_has_no_name() {
        for (good, bad) in [
            ("name=\"leaf\"", "nam=\"leaf\""),
            ("name=\"leaf\"", "name=\"&leaf;\""),
        ] {
            let text = XCTRACE.replacen(good, bad, 1);
            let folded = kind_and_text(&text).1;
            assert!(folded.contains("start;[unknown] 2\n"), "{folded}");
            assert!(folded.contains("start;f(A&, B>) 2\n"), "{folded}");
            let told = notes(&text).concat();
            assert!(told.contains("1 tags that cannot be read"), "{told}");
            assert!(told.contains("the first is line 5: `<frame id"), "{told}");
        }
        // A stack without a number is lost to those that refer to it, and not to its own row.
        let text = XCTRACE.replacen("id=\"10\"", "id=\"ten\"", 1);
        assert_eq!(kind_and_text(&text).1, FOLDED.replace("leaf 2", "leaf 1"));
        let told = notes(&text).concat();
        assert!(told.contains("2 tags that cannot be read"), "{told}");
        assert!(told.contains("the first is line 4"), "{told}");
    }

    #[test]
    fn xctrace_of_which_nothing_can_be_read_is_refused_by_line() {
        let refusal = refused(
            "<?xml version=\"1.0\"?>\n<trace-query-result>\n<row><backtrace ref=\"1\"/></row>\n",
        );
        assert!(refusal.starts_with("line 3: `<backtrace ref"), "{refusal}");
    }
}
