//! Results of trying what a recording needs.
//!
//! In: what was tried, and how it went. Out: a line for each, or JSON; and an exit code.

use super::trouble_of;
use crate::machine::Mend;
use crate::profile::fold::visible;
use anyhow::Error;
use serde_json::{Value, json};

/// All that was tried, in order.
#[derive(Debug, Default)]
pub struct Examination {
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    subject: String,
    state: State,
    text: String,
    mend: Option<Mend>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Works,
    /// It does not work, or not all of it; other things do.
    Partly,
    /// Without it nothing is recorded.
    Fails,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Partly => "lacks",
            Self::Fails => "FAILS",
        }
    }
}

impl Examination {
    pub(super) fn works(&mut self, subject: &str, text: impl Into<String>) {
        self.note(subject, State::Works, text.into(), None);
    }

    pub(super) fn partly(&mut self, subject: &str, text: impl Into<String>, mend: Option<Mend>) {
        self.note(subject, State::Partly, text.into(), mend);
    }

    /// Notes an error after which nothing is recorded.
    pub(super) fn fails(&mut self, subject: &str, error: &Error) {
        self.failed(subject, State::Fails, error);
    }

    /// Notes an error after which other things are recorded.
    pub(super) fn lacks(&mut self, subject: &str, error: &Error) {
        self.failed(subject, State::Partly, error);
    }

    fn failed(&mut self, subject: &str, state: State, error: &Error) {
        let whole = format!("{error:#}");
        let trouble = trouble_of(error);
        // The remedy has a line of its own.
        let text = match &trouble {
            Some(trouble) => whole.replace(&trouble.to_string(), &trouble.why),
            None => whole,
        };
        self.note(subject, state, text, trouble.map(|trouble| trouble.mend));
    }

    fn note(&mut self, subject: &str, state: State, text: String, mend: Option<Mend>) {
        self.lines.push(Line {
            subject: subject.to_owned(),
            state,
            text,
            mend,
        });
    }

    /// 0 if all works, 1 if something is missing, 2 if nothing can be recorded.
    pub fn exit_code(&self) -> u8 {
        match self.lines.iter().map(|line| line.state).max() {
            None | Some(State::Works) => 0,
            Some(State::Partly) => 1,
            Some(State::Fails) => 2,
        }
    }

    /// A line for each thing that was tried, and under it what mends it. Ends with a line break.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            let (state, subject) = (line.state.name(), &line.subject);
            let said = visible(&line.text);
            let colon = if said.is_empty() { "" } else { ": " };
            text.push_str(&format!("{state}  {subject}{colon}{said}\n"));
            match &line.mend {
                Some(Mend::Command(command)) => text.push_str(&format!("  mend: {command}\n")),
                Some(Mend::Advice(advice)) => text.push_str(&format!("  mend by hand: {advice}\n")),
                None => {}
            }
        }
        text
    }

    /// The same for programs. Ends with a line break.
    pub fn json(&self) -> String {
        let checks: Vec<Value> = self.lines.iter().map(Line::json).collect();
        format!(
            "{:#}\n",
            json!({ "exit_code": self.exit_code(), "checks": checks })
        )
    }
}

impl Line {
    fn json(&self) -> Value {
        let (command, advice) = match &self.mend {
            Some(Mend::Command(command)) => (Some(command), None),
            Some(Mend::Advice(advice)) => (None, Some(advice)),
            None => (None, None),
        };
        json!({
            "subject": self.subject,
            "state": self.state.name().to_lowercase(),
            "text": self.text,
            "command": command,
            "advice": advice,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Trouble;

    #[test]
    fn each_line_says_how_it_went_and_the_worst_is_the_exit_code() {
        let mut examination = Examination::default();
        assert_eq!(examination.exit_code(), 0);
        examination.works("CPUs", "2 online");
        examination.works("locks", "");
        assert_eq!(examination.exit_code(), 0);
        examination.partly("output", "the disk\u{1b} is full", None);
        assert_eq!(examination.exit_code(), 1);
        let trouble = Trouble::advice("it is too old", "take a newer one");
        examination.fails("on-CPU", &Error::from(trouble).context("cannot load"));
        assert_eq!(examination.exit_code(), 2);
        assert_eq!(
            examination.text(),
            "works  CPUs: 2 online\nworks  locks\nlacks  output: the disk\\u{1b} is full\n\
             FAILS  on-CPU: cannot load: it is too old\n  mend by hand: take a newer one\n"
        );
        let json: Value = serde_json::from_str(&examination.json()).unwrap();
        assert_eq!(json["exit_code"], 2);
        assert_eq!(json["checks"][3]["state"], "fails");
        assert_eq!(json["checks"][3]["advice"], "take a newer one");
        assert_eq!(json["checks"][0]["command"], Value::Null);
    }
}
