//! The first line of an event of `perf script`: `comm PID/TID [CPU] TIME: PERIOD EVENT: REST`.
//!
//! In: a line. Out: its fields, any of which `-F` may have left out.

use crate::profile::Unit;

/// Columns between the IDs and the event, and which of them there are.
#[derive(Clone, Copy)]
pub(super) struct Header<'a> {
    /// The thread's name; none where that column was left out, empty where the thread has none.
    pub(super) comm: Option<&'a str>,
    /// None where only the thread's ID is told.
    pub(super) pid: Option<u32>,
    pub(super) period: Option<u64>,
    /// Empty where that column was left out.
    pub(super) event: &'a str,
    pub(super) rest: &'a str,
    has_time: bool,
}

/// A line that begins an event, or one of another record.
pub(super) enum First<'a> {
    Sample(Header<'a>),
    /// A mapping, a loss, a fork, as `--show-mmap-events` and the like print them.
    Record,
}

impl<'a> First<'a> {
    /// A line with IDs, or at least a time, and an event, which no frame has.
    pub(super) fn sure(line: &'a str) -> Option<Self> {
        let line = line.trim();
        // Most lines are frames.
        if !line.ends_with(':') && !line.contains(": ") && !line.contains("PERF_RECORD_") {
            return None;
        }
        if line.starts_with("PERF_RECORD_") {
            return Some(Self::Record);
        }
        // A name may hold numbers, too; the IDs are those behind which all is as it is behind IDs.
        let has_event = |first: &Self| match first {
            Self::Record => true,
            Self::Sample(header) => !header.event.is_empty(),
        };
        let mut less = None;
        for first in of_ids(line).filter(has_event) {
            match &first {
                Self::Sample(header) if !header.has_time() => less = less.or(Some(first)),
                _ => return Some(first),
            }
        }
        let of_time = || nameless_ids(line).filter(has_event).find(Self::has_time);
        of_time().or(less)
    }

    /// A line with fewer columns, which only what follows it can tell from other text.
    pub(super) fn unsure(line: &'a str) -> Option<Self> {
        let line = line.trim();
        of_ids(line).next().or_else(|| nameless_ids(line).next())
    }

    /// A line that is but a thread's name, as `-F comm,ip,sym` prints it above a stack.
    pub(super) fn named(line: &'a str) -> Option<Self> {
        /// Names of threads are no longer (`TASK_COMM_LEN` - 1).
        const MAX_BYTES: usize = 15;
        let comm = line.trim();
        let is_name = !comm.is_empty() && comm.len() <= MAX_BYTES && !line.starts_with(' ');
        is_name.then_some(Self::Sample(Header {
            comm: Some(comm),
            pid: None,
            period: None,
            event: "",
            rest: "",
            has_time: false,
        }))
    }

    pub(super) fn has_time(&self) -> bool {
        matches!(self, Self::Sample(header) if header.has_time())
    }
}

impl<'a> Header<'a> {
    pub(super) fn has_time(&self) -> bool {
        self.has_time
    }

    fn behind_ids(comm: Option<&'a str>, pid: Option<u32>, behind: &'a str) -> Option<First<'a>> {
        let mut words = Words(behind);
        let is_cpu = |word: &str| word.starts_with('[') && word.ends_with(']');
        let mut before = words;
        let mut time = None;
        while let Some(word) = words.next() {
            match word {
                "VM:" | "VCPU:" => drop(words.next()),
                _ if is_cpu(word)
                    || is_misc(word)
                    || is_date(word)
                    || word.starts_with("VCPU:") => {}
                _ if is_time(word) => {
                    time = Some(word);
                    before = words;
                    break;
                }
                _ => break,
            }
            before = words;
        }
        let mut words = before;
        let mut word = words.next();
        if word.is_some_and(|word| word.starts_with("PERF_RECORD_")) {
            return Some(First::Record);
        }
        let period = word.and_then(|word| word.parse().ok());
        if period.is_some() {
            word = words.next();
        }
        let event = match word {
            None => "",
            Some(word) => word
                .strip_suffix(':')
                .filter(|event| !event.is_empty() && !event.contains(['[', '(', '"']))?,
        };
        Some(First::Sample(Self {
            comm,
            pid,
            period,
            event,
            rest: words.0.trim(),
            has_time: time.is_some(),
        }))
    }
}

/// Each place where the IDs may be, and what is behind them.
fn of_ids(line: &str) -> impl Iterator<Item = First<'_>> {
    words_with_places(line).filter_map(|(begin, word, behind)| {
        let (pid, tid) = word.split_once('/').unwrap_or(("", word));
        // The idle task's thread has no ID that is its own; perf writes -1 where it knows none.
        let is_id = |id: &str| id.parse::<u32>().is_ok() || id == "-1";
        let is_ids = is_id(tid) && (pid.is_empty() || is_id(pid));
        let comm = line[..begin].trim();
        is_ids.then(|| Header::behind_ids(Some(comm), pid.parse().ok(), behind))?
    })
}

/// Each place where the IDs would be if they were left out.
fn nameless_ids(line: &str) -> impl Iterator<Item = First<'_>> {
    let places = words_with_places(line).map(|(begin, ..)| begin);
    places.filter_map(|begin| {
        let comm = Some(line[..begin].trim()).filter(|comm| !comm.is_empty());
        Header::behind_ids(comm, None, &line[begin..])
    })
}

/// Words, where they begin, and what is behind them.
fn words_with_places(line: &str) -> impl Iterator<Item = (usize, &str, &str)> {
    let mut start = 0;
    let pieces = line.split_inclusive(' ').map(move |piece| {
        let begin = start;
        start += piece.len();
        (begin, piece.trim_end(), &line[start..])
    });
    pieces.filter(|(_, word, _)| !word.is_empty())
}

/// `10.000001:`
fn is_time(word: &str) -> bool {
    word.strip_suffix(':').is_some_and(|time| {
        time.contains('.')
            && time
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
    })
}

/// The column that `-F +misc` prints: where the sample was taken, by letters.
fn is_misc(word: &str) -> bool {
    word.len() <= 3 && word.bytes().all(|byte| b"KUHGgMESp".contains(&byte))
}

/// A part of what `-F +tod` prints: `2026-11-26`, `11:29:47.000001`.
fn is_date(word: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_digit() || b"-:.".contains(&byte);
    word.contains(['-', ':']) && !word.ends_with(':') && word.bytes().all(is_part)
}

/// Words, and what is behind those that were taken.
#[derive(Clone, Copy)]
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

/// An event without its modifiers: `cycles` of `cycles:ppp`, `cpu_core/cycles/` of `cpu_core/cycles/P`.
pub(super) fn plain(event: &str) -> &str {
    let is_modifiers = |text: &str| text.bytes().all(|byte| b"ukhGHIpPSDWeb".contains(&byte));
    match event.rsplit_once([':', '/']) {
        Some((name, modifiers)) if is_modifiers(modifiers) => match name.contains('/') {
            true => &event[..event.len() - modifiers.len()],
            false => name,
        },
        _ => event,
    }
}

/// A plain event without the processor's unit that counts it, of which processors with two kinds of cores have two:
/// `cycles` of `cpu_core/cycles/`.
pub(super) fn without_unit(plain: &str) -> &str {
    let inner = plain
        .strip_suffix('/')
        .and_then(|event| event.split_once('/'));
    inner.map_or(plain, |(_, name)| name)
}

/// The unit of such an event's periods.
pub(super) fn unit(plain: &str) -> Unit {
    match without_unit(plain) {
        "cpu-clock" | "task-clock" => Unit::Nanoseconds,
        name => Unit::Events(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(line: &str) -> String {
        match First::sure(line) {
            None => "none".to_owned(),
            Some(First::Record) => "record".to_owned(),
            Some(First::Sample(of)) => {
                format!("{:?} {:?} {:?} {}", of.comm, of.pid, of.period, of.event)
            }
        }
    }

    #[test]
    fn columns_may_be_left_out_or_added() {
        for (line, expected) in [
            (
                "app 100 [001]   10.1:   250 cycles:P: ",
                r#"Some("app") None Some(250) cycles:P"#,
            ),
            (
                "V8 Worker 3 7/9 [001] 10.1: 250 cycles: ",
                r#"Some("V8 Worker 3") Some(7) Some(250) cycles"#,
            ),
            (
                "              101 [001]   10.1:     250 cycles: ",
                r#"Some("") None Some(250) cycles"#,
            ),
            (
                "#shard-3 102 [001] 10.1: 250 cycles: ",
                r##"Some("#shard-3") None Some(250) cycles"##,
            ),
            (
                "app 100 U      10.1: 250 cycles: ",
                r#"Some("app") None Some(250) cycles"#,
            ),
            (
                "app 100 2026-11-26 11:29:47.000001 10.1: 250 cycles: ",
                r#"Some("app") None Some(250) cycles"#,
            ),
            ("app   100 cycles: ", r#"Some("app") None None cycles"#),
            (
                "app   100/100 250 cycles:",
                r#"Some("app") Some(100) Some(250) cycles"#,
            ),
            (
                "app  10.1: 250 cycles:",
                r#"Some("app") None Some(250) cycles"#,
            ),
            (
                "cc 123 [000] 12.3: 1000 cycles: 7f00 main (/x)",
                r#"Some("cc") None Some(1000) cycles"#,
            ),
            (
                "app 100 [001] 10.0: PERF_RECORD_MMAP2 100/100: [0x55(0x2000) @ 0 fe:00 42 0]: r-xp /a",
                "record",
            ),
            (
                "app 100 [001] 10.0: PERF_RECORD_COMM: app:100/100",
                "record",
            ),
            ("PERF_RECORD_LOST 5", "record"),
            (
                " instruction trace error type 1 time 10.5 cpu 0 pid 100 tid 100 ip 0 code 8: Lost trace data",
                "none",
            ),
            ("    7f0000001000 std::map<int>::at(int) (/x)", "none"),
        ] {
            assert_eq!(fields(line), expected, "{line}");
        }
    }

    #[test]
    fn modifiers_and_units_of_processors_are_no_part_of_an_event() {
        let of = |event| (plain(event), without_unit(plain(event)));
        assert_eq!(of("cycles:ppp"), ("cycles", "cycles"));
        assert_eq!(of("cpu_core/cycles/P"), ("cpu_core/cycles/", "cycles"));
        assert_eq!(of("cpu_core/cycles/"), ("cpu_core/cycles/", "cycles"));
        assert_eq!(of("sched:sched_switch").0, "sched:sched_switch");
    }
}
