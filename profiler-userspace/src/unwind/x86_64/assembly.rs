//! Rows for code that nothing describes, by reading it.
//!
//! In: the code, and where functions begin in it ([`Undescribed`]). Out: stretches of code with their rules. From each
//! beginning on ([`flow`]), [`walk`] follows the code to wherever it leads, [`effect`] what each instruction does to the
//! stack pointer and to what is saved, and [`rule`] says what a [state](state) amounts to. What cannot be followed gets no row: a
//! guess is worse than none.

mod effect;
mod flow;
mod leaves;
mod parts;
#[cfg(test)]
mod proof;
mod registers;
mod rule;
mod state;
mod states;
#[cfg(test)]
mod tests;
mod visited;
mod walk;

use crate::code::Undescribed;
use crate::unwind::found::{Change, Stretch, UnwindFindings};
use foldhash::{HashMap, HashMapExt as _};
use profiler_common::abi::Rule;

/// Adds rows for undescribed code.
pub(in crate::unwind) fn describe(code: &Undescribed, found: &mut UnwindFindings) {
    let walk = flow::follow(code);
    let mut rules = HashMap::new();
    let mut open: Option<Stretch> = None;
    let mut behind = 0;
    for (place, reached) in walk.visited.each() {
        let Some((part, into)) = walk.parts.at(place) else {
            continue;
        };
        let address = part.address + into as u64;
        if address < behind {
            // Some code jumps behind an instruction's prefix.
            continue;
        }
        behind = address + u64::from(reached.bytes());
        let number = reached.state();
        let rule = *rules
            .entry(number)
            .or_insert_with(|| rule::rule(walk.states.get(number)));
        if rule == Rule::MISSING {
            close(found, &mut open);
            continue;
        }
        if open
            .as_ref()
            .is_some_and(|stretch| stretch.addresses.end < address)
        {
            close(found, &mut open);
        }
        let stretch = open.get_or_insert_with(|| {
            let changes = found.next_change();
            Stretch {
                addresses: address..address,
                changes: changes..changes,
            }
        });
        found.statistics.read_bytes += u64::from(reached.bytes());
        stretch.addresses.end = behind;
        let rule = found.rules.place(rule);
        let changes = stretch.changes.start as usize..found.changes.len();
        let last = found.changes.get(changes).and_then(<[_]>::last);
        if last.is_none_or(|last| last.rule != rule) {
            let after = u32::try_from(address - stretch.addresses.start).unwrap_or(u32::MAX);
            found.changes.push(Change { after, rule });
        }
    }
    close(found, &mut open);
    found.statistics.undescribed_bytes += code
        .parts
        .iter()
        .map(|part| part.1.len() as u64)
        .sum::<u64>();
}

/// Adds a stretch that is complete.
fn close(found: &mut UnwindFindings, open: &mut Option<Stretch>) {
    if let Some(Stretch { addresses, changes }) = open.take() {
        found.add_stretch(addresses, changes.start);
    }
}
