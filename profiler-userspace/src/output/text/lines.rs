//! The table of lines.
//!
//! In: a profile whose frames have lines. Out: for each line of each function what was counted there, and in all that was
//! called from there; a line that is met twice in a stack counts once. What has no line is summed up. Below each stands its
//! source where that is at hand.

use super::Report;
use super::layout::{SHARE_COLUMNS, percent};
use crate::profile::fold::visible;
use crate::text::label::{CUT, take, without_middle};
use foldhash::HashMap;
use std::cmp::Reverse;
use std::fmt::Write as _;

/// A line: its file, its number, and a function that it is in.
type LineKey = (String, u32, usize);

impl Report<'_> {
    /// Appends the lines with most weight: so many of them, or those with the least share that was asked for.
    pub(super) fn lines(&self, rows: usize, text: &mut String) {
        let mut known: HashMap<LineKey, usize> = HashMap::default();
        let mut all: Vec<(LineKey, [u64; 2])> = Vec::new();
        let by_frame: Vec<Option<usize>> = (self.tree.frame_ids())
            .map(|frame| {
                let code = self.tree.code(frame)?;
                let function = self.functions.of(frame)?;
                let file = &self.profile.function_at(code.function).file;
                if code.line == 0 || file.is_empty() {
                    return None;
                }
                let place = (visible(file).into_owned(), code.line, function);
                Some(*known.entry(place).or_insert_with_key(|place| {
                    all.push((place.clone(), [0; 2]));
                    all.len() - 1
                }))
            })
            .collect();
        // For each line the last sample that it was met in, plus one.
        let mut met: Vec<usize> = vec![0; all.len()];
        let mut without = 0_u64;
        for (number, sample) in (1..).zip(self.tree.samples()) {
            for frame in self.tree.callers(sample.own) {
                let Some(line) = by_frame[frame.index()] else {
                    continue;
                };
                if std::mem::replace(&mut met[line], number) != number {
                    let total = &mut all[line].1[1];
                    *total = total.saturating_add(sample.weight);
                }
            }
            // Time in a function without lines is its own, not its caller's.
            let innermost = self.functions.innermost(self.tree, sample.own);
            let itself = match innermost.and_then(|(frame, _)| by_frame[frame.index()]) {
                Some(line) => &mut all[line].1[0],
                None => &mut without,
            };
            *itself = itself.saturating_add(sample.weight);
        }
        all.sort_by(|(a, [a_self, a_total]), (b, [b_self, b_total])| {
            let most_first = (Reverse((a_self, a_total))).cmp(&Reverse((b_self, b_total)));
            most_first.then_with(|| (&a.0, a.1).cmp(&(&b.0, b.1)))
        });
        let count = all.len();
        match self.style.min_percent {
            Some(min) => {
                all.retain(|(_, [itself, total])| self.reaches((*itself).max(*total), min))
            }
            None => all.truncate(rows),
        }
        let room = (self.style.columns).saturating_sub(3 * (SHARE_COLUMNS + 1) + 3);
        let places: Vec<String> = (all.iter())
            .map(|((file, line, _), _)| format!("{file}:{line}"))
            .collect();
        let widest = places.iter().map(|place| place.chars().count()).max();
        let most = match self.style.cuts_names {
            true => room / 2,
            false => usize::MAX,
        };
        let columns = widest.unwrap_or(0).clamp(4, most);
        let _ = writeln!(
            text,
            "\n{:>6} {:>6} {:>6}  {}  function",
            "self",
            "sum",
            "total",
            self.style.padded("line", columns)
        );
        let mut sum = 0_u64;
        for (((file, line, function), [itself, total]), place) in all.iter().zip(&places) {
            sum = sum.saturating_add(*itself);
            let place = without_middle(place, columns, CUT);
            let fill = columns.saturating_sub(place.chars().count());
            let row = format!(
                "{} {} {}  {place}{}  {}",
                percent(*itself, self.total),
                percent(sum, self.total),
                percent(*total, self.total),
                " ".repeat(fill),
                self.style.padded(
                    &self.functions.at(*function).0.name,
                    room.saturating_sub(columns)
                ),
            );
            let _ = writeln!(text, "{}", row.trim_end());
            if let Some(source) = self.source.and_then(|source| source.line(file, *line)) {
                let indent = 3 * (SHARE_COLUMNS + 1) + 1;
                let room = self.style.columns.saturating_sub(indent);
                let room = if self.style.cuts_names {
                    room
                } else {
                    usize::MAX
                };
                let source = take(source.trim_start().chars(), room);
                let _ = writeln!(text, "{:indent$}{source}", "");
            }
        }
        let _ = writeln!(
            text,
            "{} of {count} lines; {} in code whose lines are not known",
            all.len(),
            percent(without, self.total).trim_start()
        );
    }
}
