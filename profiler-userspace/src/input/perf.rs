//! Output of `perf script`.
//!
//! In: events, each a line and then its stack from the leaf on. Out: a profile of one event, the first unless another is
//! asked for, whose weights are its periods; and what was left out.
//!
//! Read here and not by inferno, which leaves out without a word what it does not understand, all events but one, and
//! samples without a stack, and knows no process IDs apart from names.

use super::text::{Summed, excerpt, is_kernel_address, lines, no_such_type};
use super::{Error, Head, Reading, Wanted};
use crate::profile::fold::visible;
use crate::profile::{Frame, FrameKind, FrameProfile, Labels, Profile, Unit, Window};

/// Whether the first line that is no comment is an event, or what is left of one where fields were left out, which is
/// better explained than taken for folded text.
pub(super) fn looks_so(head: &Head<'_>) -> bool {
    let is_said = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    let mut lines = head.text.lines().filter(is_said);
    let (Some(first), second) = (lines.next(), lines.next()) else {
        return false;
    };
    let is_frame = |line: &str| {
        let mut words = line.split_whitespace();
        let is_far_in = line.starts_with('\t') || line.starts_with("        ");
        is_far_in && words.next().is_some_and(is_address) && words.next().is_some()
    };
    let is_less = || is_frame(first) || second.is_some_and(is_frame);
    !head.is_binary && (Header::parse(first).is_some() || is_less())
}

/// The first line of an event: `comm PID/TID [CPU] TIME: PERIOD EVENT: REST`.
#[derive(Clone, Copy)]
struct Header<'a> {
    comm: &'a str,
    /// None where only the thread's ID is told.
    pid: Option<u32>,
    period: Option<u64>,
    event: &'a str,
    rest: &'a str,
}

impl<'a> Header<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        // A name may hold numbers, too; the IDs are those behind which all is as it is behind IDs.
        ids(line.trim()).find_map(|(comm, pid, behind)| Self::behind_ids(comm, pid, behind))
    }

    fn behind_ids(comm: &'a str, pid: Option<u32>, behind: &'a str) -> Option<Self> {
        let mut words = Words(behind);
        let mut word = words.next()?;
        if word.starts_with('[') && word.ends_with(']') {
            word = words.next()?;
        }
        let time = word.strip_suffix(':')?;
        if !time
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
        {
            return None;
        }
        word = words.next()?;
        let period = word.parse().ok();
        if period.is_some() {
            word = words.next()?;
        }
        let event = word.strip_suffix(':').filter(|event| !event.is_empty())?;
        Some(Self {
            comm,
            pid,
            period,
            event,
            rest: words.0.trim(),
        })
    }

    /// The event without its modifiers: `cycles` of `cycles:ppp`.
    fn plain_event(&self) -> &'a str {
        match self.event.rsplit_once(':') {
            Some((name, modifiers))
                if modifiers
                    .bytes()
                    .all(|byte| b"ukhGHpPSDWeb".contains(&byte)) =>
            {
                name
            }
            _ => self.event,
        }
    }

    fn unit(&self) -> Unit {
        match (self.period, self.plain_event()) {
            (None, _) => Unit::Samples,
            (Some(_), "cpu-clock" | "task-clock") => Unit::Nanoseconds,
            (Some(_), name) => Unit::Events(name.to_owned()),
        }
    }
}

/// Each place where the IDs may be: the name before them, the process ID, and what is behind them.
fn ids(line: &str) -> impl Iterator<Item = (&str, Option<u32>, &str)> {
    let mut start = 0;
    line.split_inclusive(' ').filter_map(move |piece| {
        let (word, begin) = (piece.trim_end(), start);
        start += piece.len();
        let (pid, tid) = word.split_once('/').unwrap_or(("", word));
        // The idle task's thread has no ID that is its own; perf writes -1 where it knows none.
        let is_id = |id: &str| id.parse::<u32>().is_ok() || id == "-1";
        let is_ids = begin > 0 && is_id(tid) && (pid.is_empty() || is_id(pid));
        is_ids.then(|| (line[..begin].trim(), pid.parse().ok(), &line[start..]))
    })
}

/// Words, and what is behind those that were taken.
struct Words<'a>(&'a str);

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0.trim_start();
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.0 = rest;
        (!word.is_empty()).then_some(word)
    }
}

pub(super) fn read(bytes: &[u8], wanted: &Wanted<'_>) -> Result<Reading, Error> {
    let mut reader = Reader {
        wanted: wanted.sample_type,
        summed: None,
        others: Vec::new(),
        open: None,
        without_stack: 0,
        unread: 0,
    };
    let mut last = 0;
    for (line, text) in lines(bytes) {
        if !text.starts_with('#') {
            reader.line(line, text.trim_end())?;
        }
        last = line;
    }
    reader.close(last)?;
    let Reader {
        summed,
        others,
        without_stack,
        unread,
        ..
    } = reader;
    let known = || others.iter().map(String::as_str);
    let Some((shown, _, summed)) = summed else {
        return Err(match wanted.sample_type {
            Some(name) => no_such_type(name, known()),
            None => {
                Error::Whole("there is no event in it, such as `bash 42 3.5: 1 cycles:`".to_owned())
            }
        });
    };
    let mut reading = Reading::from(summed.frames.into_profile());
    let mut note = |label, text: String| reading.notes.push((label, text));
    if !others.is_empty() {
        let others: Vec<_> = known().map(visible).collect();
        let (others, shown) = (others.join(", "), visible(&shown));
        note(
            "not shown",
            format!("{others}: shown is {shown}; choose with --sample-type"),
        );
    }
    if without_stack > 0 {
        note(
            "note",
            format!("{without_stack} samples have no stack; perf record -g takes stacks"),
        );
    }
    if unread > 0 {
        note(
            "not shown",
            format!("{unread} lines behind events and frames, such as of sources"),
        );
    }
    Ok(reading)
}

/// A sample whose stack is not complete.
struct Open {
    /// Whether its event is the one that is shown.
    is_shown: bool,
    labels: Labels,
    weight: u64,
    /// From the leaf on.
    stack: Vec<Frame>,
}

struct Reader<'a> {
    wanted: Option<&'a str>,
    /// The event that is shown, whether it has periods, and what was counted for it.
    summed: Option<(String, bool, Summed)>,
    /// Names of all other events.
    others: Vec<String>,
    open: Option<Open>,
    /// How many samples have no stack.
    without_stack: u64,
    /// Lines that are no frames.
    unread: u64,
}

impl Reader<'_> {
    fn line(&mut self, line: usize, text: &str) -> Result<(), Error> {
        if text.is_empty() {
            return self.close(line);
        }
        let is_indented = text.starts_with([' ', '\t']);
        if is_indented
            && let Some(open) = &mut self.open
            && let Some(frame) = frame(text)
        {
            open.stack.extend(frame);
            return Ok(());
        }
        if let Some(header) = Header::parse(text) {
            self.close(line)?;
            return self.begin(line, &header);
        }
        if self.open.is_none() {
            let problem = format!(
                "{} should be an event such as `bash 42 3.5: 1 cycles:`, as perf script without -F prints it, or with \
                 -F comm,pid,tid,time,period,event,ip,sym,dso",
                excerpt(text)
            );
            return Err(Error::at(line, problem));
        }
        let first = text.split_whitespace().next().unwrap_or_default();
        if !is_indented || is_address(first) {
            let problem = format!(
                "{} should be a frame `ADDRESS NAME (MODULE)`, as perf script -F +ip,+sym,+dso prints it",
                excerpt(text)
            );
            return Err(Error::at(line, problem));
        }
        self.unread += 1;
        Ok(())
    }

    fn begin(&mut self, line: usize, header: &Header<'_>) -> Result<(), Error> {
        let is_wanted = |name: &str| header.event == name || header.plain_event() == name;
        if self.summed.is_none() && self.wanted.is_none_or(is_wanted) {
            let profile = Profile::new(header.unit(), Window::default());
            let summed = Summed::new(FrameProfile::new(profile));
            let name = header.event.to_owned();
            self.others.retain(|other| *other != name);
            self.summed = Some((name, header.period.is_some(), summed));
        }
        let shown = self
            .summed
            .as_ref()
            .filter(|(event, ..)| event == header.event);
        match shown {
            Some((event, has_periods, _)) if *has_periods != header.period.is_some() => {
                let problem = format!(
                    "some events {} have a period, and some have none",
                    visible(event)
                );
                return Err(Error::at(line, problem));
            }
            None if !self.others.iter().any(|other| other == header.event) => {
                self.others.push(header.event.to_owned());
            }
            _ => {}
        }
        // A stack of one frame is on the line of its event; other events have other things there.
        let alone = frame(header.rest);
        self.unread += u64::from(shown.is_some() && alone.is_none() && !header.rest.is_empty());
        self.open = Some(Open {
            is_shown: shown.is_some(),
            labels: Labels {
                comm: Some(header.comm.to_owned()),
                pid: header.pid,
                ..Labels::default()
            },
            weight: header.period.unwrap_or(1),
            stack: alone.flatten().into_iter().collect(),
        });
        Ok(())
    }

    fn close(&mut self, line: usize) -> Result<(), Error> {
        let (Some(mut open), Some((.., summed))) = (self.open.take(), &mut self.summed) else {
            return Ok(());
        };
        if open.is_shown {
            self.without_stack += u64::from(open.stack.is_empty());
            open.stack.reverse();
            summed.push_of(line, open.labels, &open.stack, (open.weight, 1))?;
        }
        Ok(())
    }
}

fn is_address(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The frame of a line `ADDRESS NAME+0xOFFSET (MODULE)`, or nothing where that stands for no function; none if the line
/// is not one of a frame.
fn frame(line: &str) -> Option<Option<Frame>> {
    let (address, rest) = line.trim().split_once(' ')?;
    let (name, module) = match rest.rsplit_once(" (") {
        Some((name, module)) => (name.trim(), module),
        None => ("", rest.strip_prefix('(')?),
    };
    let module = module.strip_suffix(')')?;
    if !is_address(address) {
        return None;
    }
    // A process's name and not a function's.
    if name.starts_with('(') && name.ends_with(')') {
        return Some(None);
    }
    let name = match name.rsplit_once("+0x") {
        Some((name, offset)) if is_address(offset) => name,
        _ => name,
    };
    let kind = match u64::from_str_radix(address, 16) {
        _ if module == "inlined" => FrameKind::Inlined,
        Ok(address) if is_kernel_address(address) => FrameKind::Kernel,
        _ if module.starts_with("[kernel") || module.ends_with(".ko") => FrameKind::Kernel,
        _ if module.starts_with("/tmp/perf-") || module.contains("/jitted-") => FrameKind::Jit,
        _ => FrameKind::User,
    };
    let name = match name {
        "" | "[unknown]" if module == "[unknown]" || module == "inlined" => "[unknown]".to_owned(),
        "" | "[unknown]" => {
            let file = module.rsplit('/').next().unwrap_or(module);
            format!("[{}]", file.trim_matches(['[', ']']))
        }
        name => name.to_owned(),
    };
    Some(Some(Frame { name, kind }))
}
