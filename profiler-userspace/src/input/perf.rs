//! Output of `perf script`.
//!
//! In: events, each a line and then its stack from the leaf on. Out: a profile of one event, the heaviest unless another
//! is asked for, whose weights are its periods; and what was left out. What perf prints beside events and their frames,
//! such as records of mappings and lost data, is counted and told with the first line's number.
//!
//! Read here and not by inferno, which leaves out without a word what it does not understand, all events but one, and
//! samples without a stack, and knows no process IDs apart from names.

mod frame;
mod header;
#[cfg(test)]
mod tests;

use super::text::{Lines, Summed, no_such_type};
use super::{Error, Head, ReadOptions, Reading};
use crate::profile::fold::visible;
use crate::profile::{AsFrame as _, Frame, Labels, Profile, Sample, SourceFrame, Unit};
use crate::text::lines::LineReader;
use header::{First, Header, plain, without_unit};
use std::io::BufRead;

/// The name of a thread that has none, as in recordings.
const NAMELESS: &str = "[nameless]";

const EXPECTED: &str = "an event such as `bash 42 3.5: 1 cycles:`, as perf script without -F prints it, or with \
                        -F comm,pid,tid,time,period,event,ip,sym,dso";

/// Whether there is an event, or a line with less and a frame below it, before any other text but comments and records.
pub(super) fn looks_so(head: &Head<'_>) -> bool {
    let mut above_is_unsure = false;
    let mut sure = 0;
    if head.is_binary {
        return false;
    }
    for line in head.text.lines().filter(|line| !line.trim().is_empty()) {
        let is_far_in = line.starts_with('\t') || line.starts_with("        ");
        let is_frame = frame::parse(line).is_some_and(|frame| {
            let has_name = line.split_whitespace().nth(1).is_some();
            frame::has_address(line) && (frame.has_module || (is_far_in && has_name))
        });
        match First::sure(line) {
            // Of a tracepoint, or of a recording without stacks, there are many.
            Some(First::Sample(header)) if header.has_time() => return true,
            Some(First::Sample(_)) => {
                sure += 1;
                above_is_unsure = true;
            }
            Some(First::Record) => {}
            None if is_frame && (above_is_unsure || is_far_in) => return true,
            None if line.starts_with('#') => {}
            None if sure > 0 && !line.starts_with(' ') => return false,
            None => {
                let named = || First::named(line).filter(|_| sure == 0);
                above_is_unsure = First::unsure(line).or_else(named).is_some();
            }
        }
        if sure > 1 {
            return true;
        }
    }
    sure > 0
}

pub(super) fn read(from: &mut dyn BufRead, options: &ReadOptions<'_>) -> Result<Reading, Error> {
    let mut reader = Reader {
        summed: Summed::new(Unit::Samples),
        events: Vec::new(),
        event_of: Vec::new(),
        open: None,
        skips: false,
        has_sure: false,
        has_names: false,
        records: Lines::default(),
        unread: Lines::default(),
        columns: Lines::default(),
    };
    let (mut lines, mut last) = (LineReader::new(from), 0);
    while let Some((line, text)) = lines.next()? {
        reader.line(line, text.trim_end())?;
        last = line;
    }
    reader.close(last)?;
    if reader.events.is_empty() {
        return Err(match reader.unread.first() {
            Some((line, text)) => Error::at(line, format!("{text} should be {EXPECTED}")),
            None => Error::whole(format!("there is no event in it: {EXPECTED}")),
        });
    }
    let group = reader.chosen(options.sample_type)?;
    Ok(reader.reading(&group))
}

/// Counts under one name.
#[derive(Default)]
struct Event {
    name: String,
    weight: u64,
    count: u64,
    /// How many samples say no period.
    without_period: u64,
    /// How many samples have no stack.
    without_stack: u64,
}

impl Event {
    /// Its name, and how much it is.
    fn told(&self) -> String {
        let name = match &*self.name {
            "" => "events without a name",
            name => name,
        };
        format!("{} {}", self.weight, visible(name))
    }
}

/// A sample whose stack is not complete.
#[derive(Default)]
struct Open {
    event: String,
    labels: Labels,
    period: Option<u64>,
    /// The line, where only a stack below tells that it is an event's.
    unsure: Option<(usize, String)>,
    /// From the leaf on, with file and line.
    stack: Vec<(Frame, Box<str>, u32)>,
    /// Whether a blank line has come.
    has_gap: bool,
}

struct Reader {
    summed: Summed,
    events: Vec<Event>,
    /// By the number of a sample: its event.
    event_of: Vec<u32>,
    open: Option<Open>,
    /// Whether frames are below a line that is no event.
    skips: bool,
    /// Whether a line was surely an event's. Then no line that is but a name is one.
    has_sure: bool,
    /// Whether a thread has a name.
    has_names: bool,
    records: Lines,
    /// Lines that are no events and no frames.
    unread: Lines,
    /// Lines with columns behind the module.
    columns: Lines,
}

/// Takes the names of threads away: that column was left out, and not empty.
fn without_names(profile: &mut Profile) {
    let labels: Vec<_> = profile
        .samples()
        .iter()
        .map(|sample| sample.labels)
        .collect();
    let labels: Vec<_> = { labels.into_iter() }
        .map(|labels| {
            let labels = profile.labels_at(labels).clone();
            profile.labels(Labels {
                comm: None,
                ..labels
            })
        })
        .collect();
    profile.change_samples(|place, sample| {
        let labels = labels[place];
        Some(Sample { labels, ..sample })
    });
}

impl Reader {
    fn line(&mut self, line: usize, text: &str) -> Result<(), Error> {
        if text.is_empty() {
            self.skips = false;
            return match &mut self.open {
                // Some put a blank line below an event's.
                Some(open) if open.stack.is_empty() && !open.has_gap => {
                    open.has_gap = true;
                    Ok(())
                }
                _ => self.close(line),
            };
        }
        // A thread's name may begin as comments do.
        match First::sure(text).filter(|first| !text.starts_with("# ") || first.has_time()) {
            Some(First::Sample(header)) => {
                self.has_sure = true;
                return self.begin(line, &header);
            }
            Some(First::Record) => {
                self.records.add(line, text);
                return self.close(line);
            }
            None if text.starts_with('#') => return Ok(()),
            None => {}
        }
        let is_indented = text.starts_with([' ', '\t']);
        let parsed = frame::parse(text).filter(|frame| is_indented || frame.has_module);
        if let Some(parsed) = parsed {
            return self.frame(line, text, parsed);
        }
        if let Some(open) = &mut self.open
            && is_indented
        {
            match (frame::source(text), open.stack.last_mut()) {
                (Some((file, of)), Some((_, known, number))) if *number == 0 => {
                    (*known, *number) = (file.into(), of);
                }
                _ => self.unread.add(line, text),
            }
            return Ok(());
        }
        let unsure =
            || First::unsure(text).or_else(|| First::named(text).filter(|_| !self.has_sure));
        if !is_indented && let Some(First::Sample(header)) = unsure() {
            self.begin(line, &header)?;
            if let Some(open) = &mut self.open {
                open.unsure = Some((line, text.to_owned()));
            }
            return Ok(());
        }
        self.unread.add(line, text);
        self.skips = true;
        self.close(line)
    }

    fn frame(&mut self, line: usize, text: &str, parsed: frame::Line) -> Result<(), Error> {
        if self.skips {
            self.unread.add(line, text);
            return Ok(());
        }
        if parsed.has_more {
            self.columns.add(line, text);
        }
        // Where there is none, all columns of its event are left out.
        let open = self.open.get_or_insert_default();
        open.stack
            .extend(parsed.frame.map(|frame| (frame, "".into(), 0)));
        Ok(())
    }

    /// The number of an event, to which a sample is added.
    fn event(&mut self, name: &str, period: Option<u64>) -> usize {
        let known = self.events.iter().rposition(|event| event.name == name);
        let index = known.unwrap_or_else(|| {
            self.events.push(Event {
                name: name.to_owned(),
                ..Event::default()
            });
            self.events.len() - 1
        });
        let event = &mut self.events[index];
        event.weight = event.weight.saturating_add(period.unwrap_or(1));
        event.count += 1;
        event.without_period += u64::from(period.is_none());
        index
    }

    fn begin(&mut self, line: usize, header: &Header<'_>) -> Result<(), Error> {
        self.close(line)?;
        self.skips = false;
        // A stack of one frame is on the line of its event; other events have other things there.
        let alone = frame::parse(header.rest).filter(|frame| frame.has_module);
        if !header.rest.is_empty() && alone.as_ref().is_none_or(|frame| frame.has_more) {
            self.columns.add(line, header.rest);
        }
        let alone = alone.and_then(|alone| alone.frame);
        self.has_names |= header.comm.is_some_and(|comm| !comm.is_empty());
        let comm = header.comm.map(|comm| match comm {
            "" => NAMELESS,
            comm => comm,
        });
        self.open = Some(Open {
            event: header.event.to_owned(),
            labels: Labels {
                comm: comm.map(str::to_owned),
                pid: header.pid,
                ..Labels::default()
            },
            period: header.period,
            stack: Vec::from_iter(alone.map(|frame| (frame, "".into(), 0))),
            ..Open::default()
        });
        Ok(())
    }

    fn close(&mut self, line: usize) -> Result<(), Error> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        if let Some((line, text)) = open.unsure.filter(|_| open.stack.is_empty()) {
            self.unread.add(line, &text);
            return Ok(());
        }
        let event = self.event(&open.event, open.period);
        self.events[event].without_stack += u64::from(open.stack.is_empty());
        let frames = open.stack.iter().rev();
        let stack: Vec<_> = frames
            .map(|(frame, file, line)| SourceFrame {
                file,
                line: *line,
                ..frame.as_frame()
            })
            .collect();
        let event = event as u32;
        self.summed.frames.group(event);
        let weight = (open.period.unwrap_or(1), 1);
        let place = self.summed.push_of(line, open.labels, &stack, weight)?;
        self.event_of
            .resize(self.event_of.len().max(place + 1), event);
        Ok(())
    }

    /// Which events are shown: those of one name, whatever their modifiers. Cores of two kinds count apart unless that
    /// name is asked for.
    fn chosen(&self, sample_type: Option<&str>) -> Result<Vec<usize>, Error> {
        let all = |is: &dyn Fn(&str) -> bool| {
            let events = self.events.iter().enumerate();
            let chosen: Vec<_> = events
                .filter(|(_, event)| is(&event.name))
                .map(|(at, _)| at)
                .collect();
            Some(chosen).filter(|chosen| !chosen.is_empty())
        };
        if let Some(name) = sample_type {
            return all(&|event| event == name)
                .or_else(|| all(&|event| plain(event) == name))
                .or_else(|| all(&|event| without_unit(plain(event)) == name))
                .ok_or_else(|| no_such_type(name, self.events.iter().map(|event| &*event.name)));
        }
        let weight = |name: &str| -> u64 {
            let alike = self
                .events
                .iter()
                .filter(|event| plain(&event.name) == name);
            alike.map(|event| event.weight).fold(0, u64::saturating_add)
        };
        // Of equals, the first.
        let names = self.events.iter().rev().map(|event| plain(&event.name));
        let heaviest = names.max_by_key(|name| weight(name)).unwrap_or_default();
        Ok(all(&|event| plain(event) == heaviest).unwrap_or_default())
    }

    /// The profile of these events, and what there is to say of the rest.
    fn reading(self, chosen: &[usize]) -> Reading {
        let events = |is_chosen: bool| {
            let all = self.events.iter().enumerate();
            all.filter(move |(at, _)| chosen.contains(at) == is_chosen)
                .map(|(_, event)| event)
        };
        let told = |is_chosen| events(is_chosen).map(Event::told).collect::<Vec<_>>();
        let without_period: u64 = events(true).map(|event| event.without_period).sum();
        let count: u64 = events(true).map(|event| event.count).sum();
        let shown: Vec<_> = { events(true).map(|event| visible(&event.name)) }.collect();
        let mut reading = self.summed.into_reading();
        reading.note_others(&told(false), &shown.join(" and "));
        let mut note = |label, text: String| reading.notes.push((label, text));
        if chosen.len() > 1 {
            note("summed", told(true).join(", "));
        }
        if (1..count).contains(&without_period) {
            let text = format!(
                "{without_period} of {count} samples have no period, so all are counted as one"
            );
            note("note", text);
        }
        let without_stack: u64 = events(true).map(|event| event.without_stack).sum();
        if without_stack > 0 {
            let text =
                format!("{without_stack} samples have no stack; perf record -g takes stacks");
            note("note", text);
        }
        for (lines, what) in [
            (
                &self.records,
                "records that are no samples, such as of mappings and lost data",
            ),
            (&self.columns, "columns behind events and frames"),
            (&self.unread, "lines that are no events and no frames"),
        ] {
            if let Some(text) = lines.told(what) {
                note("not shown", text);
            }
        }
        let name = chosen
            .first()
            .map_or("", |at| plain(&self.events[*at].name));
        let profile = &mut reading.profile;
        profile.unit = match without_period {
            0 => header::unit(name),
            _ => Unit::Samples,
        };
        if !self.has_names {
            without_names(profile);
        }
        profile.change_samples(|place, mut sample| {
            if without_period > 0 {
                sample.weight = sample.count;
            }
            (chosen.contains(&(self.event_of[place] as usize))).then_some(sample)
        });
        reading
    }
}
