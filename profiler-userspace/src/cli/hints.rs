//! Hints for command lines of perf and bcc.
//!
//! In: a command line that flame-bpf does not understand. Out: why, and the command that does the
//! same here, where the line reads like one for bcc's `profile` and its kin, for `perf record`, or for the
//! launchers that draw flame graphs. Never: guesses at a line that is understood, or shows a command
//! that flame-bpf would refuse.

mod foreign;

use std::borrow::Cow;
use std::ffi::OsString;

use clap::{Arg, CommandFactory as _};

use self::foreign::{BCC_LETTERS, EXAMPLE, FLAGS, PROBES, SUFFIX, TOOLS, VERBS, rows};
use super::value::{duration, shell_word};
use crate::output::Format;

/// Advice on the command line `typed` (without the program's name), and the command that would do
/// it.
///
/// `accepted` says whether flame-bpf would obey a command line, again without the program's name.
pub(super) fn advice(typed: &[OsString], accepted: impl Fn(&[OsString]) -> bool) -> Option<String> {
    let end = typed
        .iter()
        .position(|word| word == "--")
        .unwrap_or(typed.len());
    let (words, command) = typed.split_at(end);
    let words: Vec<&str> = words
        .iter()
        .map(|word| word.to_str())
        .collect::<Option<_>>()?;

    if let Some(meant) = words.first().and_then(|word| misspelled(word)) {
        let rest = typed.iter().skip(1).map(|word| word.to_string_lossy());
        let line = rest.fold(format!("flame-bpf {meant}"), |line, word| {
            format!("{line} {}", shell_word(&word))
        });
        return Some(sentence(
            &[format!("there is no command {}; {meant} comes near", words[0]).into()],
            &line,
        ));
    }
    if let Some(answer) = words.first().and_then(|word| probe(word)) {
        return Some(answer);
    }
    let mut spelling = Spelling {
        command: command.get(1..).unwrap_or_default().to_vec(),
        ..Spelling::default()
    };
    let first = words
        .first()
        .map(|first| first.strip_suffix(SUFFIX).unwrap_or(first));
    let verb = rows(VERBS).find(|[verb, _, _]| Some(*verb) == first);
    let tool = rows(TOOLS).find(|[tool, _, _]| Some(*tool) == first);
    if let Some([tool, flag, _]) = tool {
        spelling.because(format!("{tool} is {flag} here"));
        spelling.rest.push(flag.into());
    }
    let example = match verb {
        Some([_, why, ""]) => {
            spelling.because(why);
            Some(EXAMPLE)
        }
        Some([_, why, example]) => return Some(sentence(&[why.into()], example)),
        None => tool.map(|[.., example]| example),
    };
    spelling.tongue = match verb {
        Some(_) => Tongue::Verbs,
        None if tool.is_some() => Tongue::BccWaits,
        None if is_bcc(&words) => Tongue::Bcc,
        None => Tongue::Unknown,
    };
    let rest = &words[usize::from(verb.is_some() || tool.is_some())..];
    let whole = spelling.translate(rest);
    let example = spelling.instead.or(example);
    if spelling.reasons.is_empty() {
        return None;
    }
    let ours = spelling.words();
    if whole && accepted(&ours) {
        let shown = ours.iter().fold("flame-bpf".to_owned(), |line, word| {
            format!("{line} {}", shell_word(&word.to_string_lossy()))
        });
        return Some(sentence(&spelling.reasons, &shown));
    }
    match example {
        Some(example) => Some(sentence(&spelling.reasons, example)),
        // There is another mistake in the line; it is reported once this one is gone.
        None => whole.then(|| spelling.reasons.join("; ")),
    }
}

/// The answer to what bpftrace would attach to.
fn probe(word: &str) -> Option<String> {
    let begins = |begins: &str| begins.split(' ').any(|begin| word.starts_with(begin));
    let [_, why, line] = rows(PROBES).find(|[all, _, _]| begins(all))?;
    let name = word.rsplit(':').next().filter(|name| !name.is_empty());
    let line = line.replace("NAME", &shell_word(name.unwrap_or("NAME")));
    Some(sentence(&[why.into()], &line))
}

/// The command of ours that a word is one or two letters away from.
fn misspelled(word: &str) -> Option<String> {
    /// Of shorter names, many other words are as near.
    const LONG_ENOUGH: usize = 4;
    let command = super::Args::command();
    let names = command.get_subcommands().map(clap::Command::get_name);
    let near = |name: &&str| {
        let allowed = if name.len() > LONG_ENOUGH { 2 } else { 1 };
        name.len() >= LONG_ENOUGH && (1..=allowed).contains(&strsim::osa_distance(word, name))
    };
    names
        .filter(|name| *name != "help")
        .find(near)
        .map(str::to_owned)
}

/// The flag of ours that a word shortens, misspells by one or two letters, or continues; none if several fit.
fn meant(flag: &str) -> Option<String> {
    /// Of shorter names, many others are as near.
    const LONG_ENOUGH: usize = 3;
    let word = flag
        .strip_prefix("--")
        .filter(|word| word.len() >= LONG_ENOUGH)?;
    let command = super::Args::command();
    let names = |arg: &Arg| {
        let own = arg.get_long().map(str::to_owned);
        let aliases = arg.get_all_aliases().unwrap_or_default();
        let aliases = aliases.into_iter().map(str::to_owned);
        own.into_iter().chain(aliases).collect::<Vec<_>>()
    };
    let one = |is_meant: &dyn Fn(&str) -> bool| {
        let all = command.get_arguments().filter(|arg| !arg.is_hide_set());
        let mut meant = all.filter(|arg| names(arg).iter().any(|name| is_meant(name)));
        let first = meant.next()?.get_long()?;
        meant.next().is_none().then(|| format!("--{first}"))
    };
    let allowed = if word.len() > 2 * LONG_ENOUGH { 2 } else { 1 };
    one(&|name| name.starts_with(word))
        .or_else(|| one(&|name| strsim::osa_distance(word, name) <= allowed))
        .or_else(|| one(&|name| name.len() > LONG_ENOUGH && word.starts_with(name)))
}

fn sentence(reasons: &[Cow<'_, str>], command: &str) -> String {
    format!("{}\n\n  tip: {command}", reasons.join("; "))
}

/// Whether a `-d` stands where ours would need a value and bcc's, which delimits, does not.
fn is_bcc(words: &[&str]) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        let Some(letters) = word
            .strip_prefix('-')
            .filter(|letters| !letters.starts_with('-'))
        else {
            return false;
        };
        for (place, letter) in letters.char_indices() {
            let behind = &letters[place + letter.len_utf8()..];
            if letter == 'd' {
                return match (behind, words.get(at + 1)) {
                    ("", next) => next.is_none_or(|next| next.starts_with('-')),
                    (_, _) => behind.chars().all(|letter| BCC_LETTERS.contains(letter)),
                };
            }
            if own(&format!("-{letter}")) == Some(true) {
                return false;
            }
        }
        false
    })
}

/// Whether a flag of ours takes a value; none if it is not ours.
fn own(flag: &str) -> Option<bool> {
    let named = |arg: &&Arg| match (flag.strip_prefix("--"), flag.chars().nth(1)) {
        (Some(long), _) => {
            arg.get_long() == Some(long)
                || arg.get_all_aliases().is_some_and(|all| all.contains(&long))
        }
        (None, Some(short)) => {
            arg.get_short() == Some(short)
                || arg
                    .get_all_short_aliases()
                    .is_some_and(|all| all.contains(&short))
        }
        (None, None) => false,
    };
    let ours = super::Args::command();
    ours.get_arguments()
        .find(named)
        // A value that may be left out is behind `=`, and not a word of its own.
        .map(|arg| arg.get_action().takes_values() && !arg.is_require_equals_set())
}

/// Replacement of a flag.
#[derive(Clone, Copy)]
enum Instead<'a> {
    /// Nothing.
    Nothing,
    /// A flag of ours, with the same value if there was one.
    Flag(&'a str),
    /// A command line of ours instead of the whole.
    Line(&'static str),
}

/// Translation of one flag: by itself, with its value, or none.
enum Translated {
    Alone,
    WithValue,
    Not,
}

/// The tool whose flags a line uses besides ours.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Tongue {
    /// bcc's `profile`.
    Bcc,
    /// bcc's `offcputime` and its like.
    BccWaits,
    /// A profiler's with verbs, such as perf.
    Verbs,
    #[default]
    Unknown,
}

/// A command line of ours in the making.
#[derive(Default)]
struct Spelling {
    /// The tool that the line seems to be for.
    tongue: Tongue,
    /// Letters of flags without value.
    letters: String,
    /// Other flags, each with its value, and the duration.
    rest: Vec<OsString>,
    /// The command behind `--`.
    command: Vec<OsString>,
    /// A command line that stands for the whole.
    instead: Option<&'static str>,
    /// Why the line as typed is not ours.
    reasons: Vec<Cow<'static, str>>,
}

impl Spelling {
    fn because(&mut self, reason: impl Into<Cow<'static, str>>) {
        let reason = reason.into();
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// Takes over what stands before `--`; false where something cannot be.
    fn translate(&mut self, words: &[&str]) -> bool {
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            let understood = if word.starts_with("--") {
                let (flag, value) = match word.split_once('=') {
                    Some((flag, value)) => (flag, Some(value)),
                    None => (word, None),
                };
                match self.flag(flag, value, &mut words) {
                    Translated::Alone => value.is_none(),
                    Translated::WithValue => true,
                    Translated::Not => false,
                }
            } else if let Some(letters) =
                word.strip_prefix('-').filter(|letters| !letters.is_empty())
            {
                self.cluster(letters, &mut words)
            } else if duration(word).is_ok() {
                self.rest.push(word.into());
                true
            } else {
                return self.launch(word, words);
            };
            if !understood {
                return false;
            }
        }
        true
    }

    fn cluster<'a>(&mut self, letters: &'a str, next: &mut impl Iterator<Item = &'a str>) -> bool {
        for (place, letter) in letters.char_indices() {
            if self.is_bcc() && self.bcc_letter(letter) {
                continue;
            }
            let behind = &letters[place + letter.len_utf8()..];
            let value = Some(behind).filter(|behind| !behind.is_empty());
            match self.flag(&format!("-{letter}"), value, next) {
                Translated::Alone => {}
                Translated::WithValue => return true,
                Translated::Not => return false,
            }
        }
        true
    }

    fn is_bcc(&self) -> bool {
        matches!(self.tongue, Tongue::Bcc | Tongue::BccWaits)
    }

    /// A letter that bcc's `profile` and its kin give another meaning.
    fn bcc_letter(&mut self, letter: char) -> bool {
        let (flag, why) = match letter {
            'u' if self.tongue == Tongue::BccWaits => (
                "--user-threads-only",
                "-u is --user-threads-only here, as -U is user stacks only",
            ),
            'k' if self.tongue == Tongue::BccWaits => (
                "--kernel-threads-only",
                "-k is --kernel-threads-only here, as -K is kernel stacks only",
            ),
            'd' => (
                "--delimited",
                "-d is the duration in seconds here; bcc's -d is --delimited",
            ),
            'a' => (
                "--annotate",
                "-a is the whole machine here, which is the default; bcc's -a is --annotate",
            ),
            _ => return false,
        };
        self.because(why);
        self.rest.push(flag.into());
        true
    }

    /// A flag of anyone's: with `attached` as its value if it takes one, else with the next word.
    fn flag<'a>(
        &mut self,
        flag: &str,
        attached: Option<&'a str>,
        next: &mut impl Iterator<Item = &'a str>,
    ) -> Translated {
        let (takes_value, instead, why) = match own(flag) {
            Some(takes_value) => (takes_value, Instead::Flag(flag), None),
            None => match self.foreign(flag) {
                Some((takes_value, instead, why)) => (takes_value, instead, Some(why)),
                None => {
                    let Some(meant) = meant(flag) else {
                        return Translated::Not;
                    };
                    self.because(format!("there is no {flag}; {meant} comes near"));
                    return self.flag(&meant, attached, next);
                }
            },
        };
        let value = if takes_value {
            attached.or_else(|| next.next())
        } else {
            None
        };
        if takes_value && value.is_none() {
            return Translated::Not;
        }
        if let Some(why) = why {
            self.because(why);
        }
        match (instead, value) {
            (Instead::Nothing, _) => {}
            (Instead::Line(line), _) => {
                self.instead = Some(line);
                return Translated::Not;
            }
            (Instead::Flag(ours), Some(value)) => self.valued(ours, value),
            (Instead::Flag(ours), None) if ours.starts_with("--") => self.rest.push(ours.into()),
            (Instead::Flag(ours), None) => self.letters.push_str(&ours[1..]),
        }
        if takes_value {
            Translated::WithValue
        } else {
            Translated::Alone
        }
    }

    fn foreign(&self, flag: &str) -> Option<(bool, Instead<'static>, &'static str)> {
        // perf's own meaning of these is another, and rare.
        if self.tongue == Tongue::Verbs && ["-u", "-k"].contains(&flag) {
            return None;
        }
        let is_its = |names: &str| names.split(' ').any(|name| name == flag);
        let [_, value, instead, why] = rows(FLAGS).find(|[names, _, _, _]| is_its(names))?;
        let instead = match instead {
            "" => Instead::Nothing,
            flag if flag.starts_with('-') => Instead::Flag(flag),
            line => Instead::Line(line),
        };
        Some((!value.is_empty(), instead, why))
    }

    /// A flag of ours, with a value that may not be.
    fn valued(&mut self, flag: &str, value: &str) {
        let value = match flag {
            "-F" | "--freq" if value == "max" => {
                self.because(
                    "-F takes a number; the most that the kernel allows: sysctl \
                     kernel.perf_event_max_sample_rate",
                );
                "997"
            }
            // A file for another program to read.
            "-o" | "--output"
                if self.tongue == Tongue::Verbs
                    && value != "-"
                    && Format::from_path(value.as_ref()).is_err() =>
            {
                let known = Format::known_extensions("and");
                self.because(format!("flame-bpf writes {known} files"));
                return;
            }
            "-e" | "--event" => match value.split_once(':') {
                Some((perf_event, modifiers))
                    if modifiers
                        .bytes()
                        .all(|letter| b"pPukhGHD".contains(&letter)) =>
                {
                    self.because("events have no modifiers here; see -U and -K");
                    perf_event
                }
                _ => value,
            },
            _ => value,
        };
        self.rest.push(flag.into());
        self.rest.push(value.into());
    }

    /// A word that is not ours begins a command, unless it is a number gone wrong.
    fn launch<'a>(&mut self, word: &str, arguments: impl Iterator<Item = &'a str>) -> bool {
        let mut arguments = arguments.peekable();
        if self.is_bcc()
            || word.is_empty()
            || word.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        {
            return false;
        }
        if arguments.peek().is_none() && !word.contains('/') {
            let name = shell_word(word);
            self.because(format!(
                "a command to run goes behind `--`; a program that runs already: -p $(pgrep -n {name})"
            ));
        } else {
            self.because("a command to run goes behind `--`");
        }
        let behind = std::mem::take(&mut self.command);
        self.command.push(word.into());
        self.command.extend(arguments.map(OsString::from));
        if !behind.is_empty() {
            self.command.push("--".into());
            self.command.extend(behind);
        }
        true
    }

    fn words(&self) -> Vec<OsString> {
        let mut words = Vec::new();
        if !self.letters.is_empty() {
            words.push(format!("-{}", self.letters).into());
        }
        words.extend(self.rest.iter().cloned());
        if !self.command.is_empty() {
            words.push("--".into());
            words.extend(self.command.iter().cloned());
        }
        words
    }
}

#[cfg(test)]
mod tests;
