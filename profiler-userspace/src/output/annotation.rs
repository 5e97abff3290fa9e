//! A function's instructions with what was counted at each, as text.
//!
//! In: instructions, their weights, the source lines that they come from. Out: a line for each, with its share of the
//! function, and source between. The same bytes for the same function.
//! Never: a character that a terminal would obey.

use super::SourceText;
use crate::profile::fold::visible;
use crate::text::number::share;
use std::fmt::Write as _;
use std::sync::Arc;

/// The instructions of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotation {
    /// Remarks above them, a line each.
    pub head: Vec<String>,
    /// Weight of the function: shares are of this.
    pub total: u64,
    /// Stretches of code, each in the order of its addresses.
    pub stretches: Vec<Vec<Instruction>>,
    /// Source to show; without any, places in it stand alone.
    pub source: SourceText,
}

/// An instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    /// Its address in the object, as disassemblers show it.
    pub address: u64,
    /// How it reads.
    pub text: String,
    /// Weight while it was next to run.
    pub itself: u64,
    /// That, and what was counted in what it called.
    pub total: u64,
    /// Where it comes from, if that is known.
    pub place: Option<SourceLocation>,
}

/// A place in source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceLocation {
    /// The function that was compiled into this one there; empty for this one itself.
    pub inlined: String,
    /// The file, with its directories.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
}

/// Columns of addresses: those of programs' files are short.
const ADDRESS: usize = 9;

/// Columns before addresses, and behind them before instructions and source.
const AROUND: [usize; 2] = [16, 3];

impl Annotation {
    /// All of it as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.head {
            let _ = writeln!(text, "{}", visible(line));
        }
        let all = self.stretches.iter().flatten();
        let digits = all.map(|instruction| format!("{:x}", instruction.address).len());
        let width = digits.max().unwrap_or(0).max(ADDRESS);
        for stretch in &self.stretches {
            let _ = writeln!(text, "\n   self   total {:>width$}", "address");
            let mut last = None;
            for instruction in stretch {
                let place = instruction.place.as_ref();
                if let Some(place) = place.filter(|place| last != Some(*place)) {
                    self.place(place, width, &mut text);
                }
                last = place.or(last);
                let _ = writeln!(
                    text,
                    "{:>7} {:>7} {:>width$x}:  {}",
                    self.share(instruction.itself),
                    self.share(instruction.total),
                    instruction.address,
                    visible(&instruction.text)
                );
            }
        }
        text
    }

    fn share(&self, weight: u64) -> String {
        match weight {
            0 => String::new(),
            weight => share(weight as f64, self.total as f64),
        }
    }

    fn place(&self, place: &SourceLocation, width: usize, text: &mut String) {
        let SourceLocation {
            inlined,
            file,
            line,
        } = place;
        let file = visible(file);
        let name = file.rsplit('/').next().unwrap_or_default();
        let within = match &**inlined {
            "" => String::new(),
            inlined => format!("{}, ", visible(inlined)),
        };
        let source = self.source.line(&file, *line).unwrap_or_default();
        let [before, behind] = AROUND;
        let indent = before + width + behind;
        let row = format!("{:indent$}{within}{name}:{line}  {source}", "");
        let _ = writeln!(text, "{}", row.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{SourceFile, SourceRun};

    #[test]
    fn source_stands_above_what_it_became() {
        let place = |inlined: &str, line| {
            Some(SourceLocation {
                inlined: inlined.to_owned(),
                file: "/src/a.c".into(),
                line,
            })
        };
        let instruction = |address, text: &str, [itself, total]: [u64; 2], place| Instruction {
            address,
            text: text.to_owned(),
            itself,
            total,
            place,
        };
        let mut source = SourceText::default();
        let run = SourceRun {
            first: 7,
            lines: vec!["  sum += x;".to_owned()],
        };
        let file = SourceFile {
            runs: vec![run],
            ..SourceFile::default()
        };
        source.insert("/src/a.c".to_owned(), file);
        let annotation = Annotation {
            head: vec!["work \u{1b}[31m".to_owned()],
            total: 1000,
            stretches: vec![vec![
                instruction(0x1139, "mov     %rsp,%rbp", [0, 0], place("", 7)),
                instruction(0x113c, "add     %rax,%rdx", [250, 250], place("", 7)),
                instruction(0x113f, "call    0x2000", [0, 750], place("core", 3)),
                instruction(0x1144, "ret", [0, 0], None),
            ]],
            source,
        };
        assert_eq!(
            annotation.text(),
            "work \\u{1b}[31m

   self   total   address
                            a.c:7    sum += x;
                     1139:  mov     %rsp,%rbp
  25.0%   25.0%      113c:  add     %rax,%rdx
                            core, a.c:3
          75.0%      113f:  call    0x2000
                     1144:  ret
"
        );
    }
}
