//! The notations of single values: lists of IDs and CPUs, durations, rates.
//!
//! In: what was typed as one flag's value. Out: the value, or a sentence for a person who typed
//! something else. Never: looks at other flags; that is [`super::plan`]'s business.

use std::str::FromStr;
use std::time::Duration;

use crate::clock::{Between, Moment};
use crate::plan::{CallGraph, MemoryLimits};
use crate::profile::select::Who;
use crate::symbolize::SymbolMemory;

/// IDs as typed in one place, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ids(pub(super) Vec<u32>);

/// CPUs, sorted and distinct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cpus(pub(super) Vec<u32>);

/// Processes or threads, by IDs or by a name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Owners(pub(super) Vec<Who>);

impl Owners {
    /// `7`, `7,8`, or a pattern for a name.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        Who::parse(text).map(Self)
    }
}

/// No Linux gives out a higher PID (`PID_MAX_LIMIT` in `include/linux/threads.h`).
const HIGHEST_ID: u32 = 1 << 22;

/// No Linux numbers CPUs higher (`NR_CPUS` with `MAXSMP`); without a limit,
/// `-C 0-4000000000` would fill the memory.
const HIGHEST_CPU: u32 = 8191;

/// Longer is a slip of the hand.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// One PID or several.
pub(super) fn pids(text: &str) -> Result<Ids, String> {
    ids(text, "PID", |word| {
        let word = shell_word(word);
        format!(
            "`{word}` is not a PID; for the newest process of that name: -p $(pgrep -n {word}), for all \
             of them: -p $(pgrep -d, {word})"
        )
    })
}

/// One TID or several.
pub(super) fn tids(text: &str) -> Result<Ids, String> {
    ids(text, "TID", |word| {
        format!("`{word}` is not a TID; the threads of a process are listed in /proc/PID/task")
    })
}

fn ids(text: &str, noun: &str, not_a_number: impl Fn(&str) -> String) -> Result<Ids, String> {
    if text.trim().is_empty() {
        return Err(format!(
            "no {noun} is given; if a command should print it, it printed nothing"
        ));
    }
    let mut ids = Vec::new();
    for item in text.split(',') {
        if item.trim().is_empty() {
            return Err(format!(
                "a {noun} is missing between two commas, or after the last one"
            ));
        }
        // `pgrep` without -d, writes one to a line.
        for word in item.split_whitespace() {
            let digits = word.strip_prefix('-').unwrap_or(word);
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(not_a_number(word));
            }
            match word.parse() {
                Ok(0) => return Err(format!("{noun} 0 is the idle task; to see it: -a -I")),
                Ok(id) if id <= HIGHEST_ID => ids.push(id),
                _ => {
                    return Err(format!(
                        "`{word}` is no {noun}: they go from 1 to {HIGHEST_ID}"
                    ));
                }
            }
        }
    }
    Ok(Ids(ids))
}

/// A name or a path by which cgroups are asked for.
pub(super) fn cgroup(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("nothing is named; if a command should print it, it printed nothing".to_owned()),
        name => Ok(name.to_owned()),
    }
}

/// `0-3,8`.
pub(super) fn cpus(text: &str) -> Result<Cpus, String> {
    let number = |word: &str| match word.trim().parse::<u32>() {
        Ok(cpu) if cpu <= HIGHEST_CPU => Ok(cpu),
        _ => Err(format!(
            "`{word}` is not a CPU's number; for instance 0-3,8"
        )),
    };
    let mut cpus = Vec::new();
    for item in text.split(',') {
        let (first, last) = match item.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(item)?, number(item)?),
        };
        if first > last {
            return Err(format!("`{item}` runs backwards; use {last}-{first}"));
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(Cpus(cpus))
}

/// How long a window of a raw recording is.
pub(super) fn window(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        short if short < Duration::from_secs(1) => {
            Err("a window has at least one second".to_owned())
        }
        window => Ok(window),
    }
}

/// A time within a recording: so long after its beginning, or of the clock.
pub(super) fn moment(text: &str) -> Result<Moment, String> {
    if let Some(moment) = Moment::parse(text) {
        return Ok(moment);
    }
    duration_or_none(text).map(Moment::After).map_err(|_| {
        "not a time; for instance 14:05, 14:05:30, \"2026-11-22 14:05\", or how long after the beginning: 90s, 2h"
            .to_owned()
    })
}

/// A part of a recording's time: two moments, of which one may be missing.
pub(super) fn between(text: &str) -> Result<Between, String> {
    let wrong = "write two times as 13:00..14:00 or \"2026-11-22 13:00..2026-11-22 14:00\"; one may be missing";
    let (from, to) = text.split_once("..").ok_or(wrong)?;
    let part = |text: &str| match text.trim() {
        "" => Ok(None),
        text => moment(text).map(Some),
    };
    let between = Between {
        from: part(from)?,
        to: part(to)?,
    };
    match between.from.is_none() && between.to.is_none() {
        true => Err(wrong.to_owned()),
        false => Ok(between),
    }
}

/// Seconds, with a fraction if need be, or with a unit: `10`, `0.5`, `500ms`, `10s`, `2m`, `1h`, `1d`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    match duration_or_none(text)? {
        Duration::ZERO => Err(
            "a duration of 0 records nothing; without a duration, recording goes on until Ctrl-C"
                .to_owned(),
        ),
        duration => Ok(duration),
    }
}

/// [`duration`], or one that is zero.
fn duration_or_none(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let seconds_each = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => {
            return Err(
                "not a duration; use seconds, or for instance 500ms, 10s, 2m, 1h, 1d".to_owned(),
            );
        }
    };
    // `f64` reads more than people call a number: `inf`, `1e3`, `+1`.
    let plain = digits
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let count: f64 = match digits.parse() {
        Ok(count) if plain => count,
        _ if digits.starts_with('-') => return Err("a duration cannot be negative".to_owned()),
        _ => {
            return Err(
                "not a duration; use seconds, or for instance 500ms, 10s, 2m, 1h, 1d".to_owned(),
            );
        }
    };
    match Duration::try_from_secs_f64(count * seconds_each) {
        Ok(duration) if duration <= LONGEST => Ok(duration),
        _ => {
            Err("longer than a year; without a duration, recording goes on until Ctrl-C".to_owned())
        }
    }
}

/// A whole number that is not zero, with what there is to say of zero and of anything else.
fn positive<T: FromStr + Default + PartialEq>(
    text: &str,
    of_zero: &str,
    of_others: &str,
) -> Result<T, String> {
    match text.parse() {
        Ok(number) if number == T::default() => Err(of_zero.to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err(of_others.to_owned()),
    }
}

/// Samples a second.
pub(super) fn frequency(text: &str) -> Result<u64, String> {
    let other = "not a rate; use a whole number of samples a second, such as 99 or 997";
    positive(text, "0 Hz samples nothing; the default is 99", other)
}

/// Occurrences between samples.
pub(super) fn period(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("a period of 0 samples nothing; 1 keeps every occurrence".to_owned()),
        // The kernel refuses periods with the highest bit set.
        Ok(period) if period >> 63 == 0 => Ok(period),
        _ => Err("not a period; use the number of occurrences between two samples".to_owned()),
    }
}

/// A length in an image; whether it can be drawn is the output's to say.
pub(super) fn pixels(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| "not a number of pixels; for instance 1200".to_owned())
}

/// An amount of memory.
pub(super) fn mebibytes(text: &str) -> Result<u32, String> {
    let other = "not an amount of memory; use a whole number of MiB, such as 64";
    positive(text, "0 MiB holds nothing; the default is 32", other)
}

/// An age, such as `30d`.
pub(super) fn age(text: &str) -> Result<Duration, String> {
    duration(text).map_err(|_| "not an age; use for instance 12h or 30d, at most 365d".to_owned())
}

/// The memory of a recording, in MiB: no less than one takes that names a few programs.
pub(super) fn all_memory(text: &str) -> Result<u32, String> {
    match mebibytes(text)? {
        mebibytes if mebibytes < MemoryLimits::MIN_MIB => Err(format!(
            "not enough to name programs; use {} or more",
            MemoryLimits::MIN_MIB
        )),
        mebibytes => Ok(mebibytes),
    }
}

/// A share of one CPU, such as `1%`: at least a thousandth, at most ten CPUs.
pub(super) fn share_of_cpu(text: &str) -> Result<f64, String> {
    let number = text
        .strip_suffix('%')
        .and_then(|digits| digits.parse::<f64>().ok());
    match number {
        Some(percent) if (0.1..=1000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("not a share of one CPU from 0.1% to 1000%; use one such as 1%".to_owned()),
    }
}

/// An amount of memory for naming.
pub(super) fn symbol_memory(text: &str) -> Result<SymbolMemory, String> {
    const MIN: u32 = SymbolMemory::MIN_MIB;
    match text.parse::<u32>() {
        Ok(mebibytes) if mebibytes >= MIN => Ok(SymbolMemory {
            bytes: u64::from(mebibytes) << 20,
        }),
        Ok(_) => Err(format!(
            "symbolizing needs {MIN} or more; the default is 256"
        )),
        Err(_) => Err("not an amount of memory; use a whole number of MiB, such as 256".to_owned()),
    }
}

/// How to walk user stacks; in perf's spelling, too, with a size behind a comma, which means nothing
/// here: no stacks are copied.
pub(super) fn call_graph(text: &str) -> Result<CallGraph, String> {
    let (how, size) = text.split_once(',').unwrap_or((text, "0"));
    match how {
        "auto" => Ok(CallGraph::Auto),
        "fp" => Ok(CallGraph::Fp),
        "dwarf" if size.parse::<u32>().is_ok() => Ok(CallGraph::Dwarf),
        "lbr" => Err("branch records are not supported; use auto, dwarf or fp".to_owned()),
        _ => Err("not a way to walk; use auto, dwarf or fp".to_owned()),
    }
}

/// A word as a shell must be given it to pass it on unchanged.
pub(super) fn shell_word(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./,:=+@%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_separated_by_commas_blanks_or_newlines() {
        assert_eq!(pids("7"), Ok(Ids(vec![7])));
        assert_eq!(pids("7,8, 9"), Ok(Ids(vec![7, 8, 9])));
        assert_eq!(pids("7\n8\n"), Ok(Ids(vec![7, 8])));
        assert_eq!(tids("4194304"), Ok(Ids(vec![4_194_304])));
    }

    #[test]
    fn a_wrong_id_is_answered_with_how_to_find_one() {
        for (typed, answer) in [
            ("nginx", "-p $(pgrep -n nginx)"),
            ("1,my prog", "pgrep -n my"),
            ("$(x)", "pgrep -n '$(x)'"),
            ("", "printed nothing"),
            ("1,,2", "between two commas"),
            ("1,", "between two commas"),
            ("0", "-a -I"),
            ("-5", "from 1 to"),
            ("-", "not a PID"),
            ("4194305", "from 1 to"),
            ("99999999999999", "from 1 to"),
        ] {
            let refusal = pids(typed).unwrap_err();
            assert!(refusal.contains(answer), "{typed}: {refusal}");
        }
        assert!(tids("main").unwrap_err().contains("/proc/PID/task"));
    }

    #[test]
    fn cpus_are_listed_as_the_kernel_lists_them() {
        assert_eq!(cpus("8,0-3,2"), Ok(Cpus(vec![0, 1, 2, 3, 8])));
        assert_eq!(cpus("0-0"), Ok(Cpus(vec![0])));
        assert!(cpus("3-0").unwrap_err().contains("use 0-3"));
        for wrong in ["", "a", "1-", "-1", "1-2-3", "0-4000000000", "1,,2"] {
            assert!(cpus(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_are_seconds_unless_they_have_a_unit() {
        for (typed, milliseconds) in [
            ("10", 10_000),
            ("0.5", 500),
            (".5", 500),
            ("10s", 10_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("1.5h", 5_400_000),
            ("1d", 86_400_000),
        ] {
            assert_eq!(
                duration(typed),
                Ok(Duration::from_millis(milliseconds)),
                "{typed}"
            );
        }
    }

    #[test]
    fn moments_are_clock_times_or_offsets_from_the_start() {
        for (typed, seconds) in [
            ("0", 0),
            ("0s", 0),
            ("90s", 90),
            ("2h", 7_200),
            ("1d", 86_400),
        ] {
            let after = Moment::After(Duration::from_secs(seconds));
            assert_eq!(moment(typed), Ok(after), "{typed}");
        }
        for typed in ["14:05", "14:05:30", "2026-11-22 14:05"] {
            assert!(
                !matches!(moment(typed), Err(_) | Ok(Moment::After(_))),
                "{typed}"
            );
        }
        for typed in ["", "-1s", "noon", "25:00", "s"] {
            assert!(moment(typed).unwrap_err().contains("14:05"), "{typed}");
        }
    }

    #[test]
    fn a_wrong_duration_is_refused() {
        for (typed, answer) in [
            ("fK", "use seconds"),
            ("", "use seconds"),
            ("s", "use seconds"),
            (".", "use seconds"),
            ("1e3", "use seconds"),
            ("inf", "use seconds"),
            ("nan", "use seconds"),
            ("+1", "use seconds"),
            ("10 s", "use seconds"),
            ("10M", "use seconds"),
            ("é", "use seconds"),
            ("-5", "negative"),
            ("0", "until Ctrl-C"),
            ("0.0s", "until Ctrl-C"),
            ("9000h", "longer than a year"),
            ("99999999999999999999999999", "longer than a year"),
        ] {
            let refusal = duration(typed).unwrap_err();
            assert!(refusal.contains(answer), "{typed}: {refusal}");
        }
    }

    #[test]
    fn rates_and_periods_are_positive_integers() {
        assert_eq!(frequency("997"), Ok(997));
        assert_eq!(period("1000000"), Ok(1_000_000));
        for wrong in ["0", "-1", "9.5", "max", ""] {
            assert!(
                frequency(wrong).is_err() && period(wrong).is_err(),
                "{wrong}"
            );
        }
        assert!(period("9223372036854775808").is_err());
        assert_eq!(pixels("1200"), Ok(1200));
        assert_eq!(mebibytes("64"), Ok(64));
        let bytes = 100 << 20;
        assert_eq!(symbol_memory("100"), Ok(SymbolMemory { bytes }));
        for wrong in ["63", "0", "-1", "256M", "99999999999", ""] {
            assert!(symbol_memory(wrong).is_err(), "{wrong}");
        }
        assert!(pixels("wide").is_err() && mebibytes("0").is_err() && mebibytes("64M").is_err());
    }

    #[test]
    fn call_graph_modes_are_those_of_perf_and_ours() {
        assert_eq!(call_graph("auto"), Ok(CallGraph::Auto));
        assert_eq!(call_graph("fp"), Ok(CallGraph::Fp));
        assert_eq!(call_graph("dwarf"), Ok(CallGraph::Dwarf));
        assert_eq!(call_graph("dwarf,16384"), Ok(CallGraph::Dwarf));
        for wrong in ["", "dwarf,x", "lbr", "DWARF", "none"] {
            assert!(call_graph(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_between_two_moments_may_have_one_of_them() {
        let date = |text: &str| Moment::parse(text);
        let of = |text: &str| between(text).map(|of| (of.from, of.to));
        let (one, two) = ("2026-11-22 13:00", "2026-11-22 14:00");
        assert_eq!(of(&format!("{one}..{two}")), Ok((date(one), date(two))));
        assert_eq!(of("..14:00"), Ok((None, date("14:00"))));
        let after = Moment::After(Duration::from_secs(90));
        assert_eq!(of("90s.."), Ok((Some(after), None)));
        for text in ["", "..", "13:00", "13:00..x", "13:00-14:00"] {
            assert!(of(text).is_err(), "{text}");
        }
    }

    #[test]
    fn words_special_to_a_shell_are_quoted() {
        assert_eq!(shell_word("./a-b_c.1"), "./a-b_c.1");
        assert_eq!(shell_word("a b"), "'a b'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
