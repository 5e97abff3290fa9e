//! Unwind tables: from an object's address to the rule there, and from a rule to the caller.

use crate::{
    platform::{
        config,
        maps::{RULES, SLABS, Scratch},
        subprog::subprog,
        word::Half,
    },
    walk::{
        scratch::{REMEMBERED, Walk},
        stack_memory::StackMemory,
    },
};
use core::ops::ControlFlow;
use profiler_common::{
    abi::{
        Fallbacks, PageRows, Rule, RuleKind, SLAB_WORDS, StackEnd, Switches, TABLE_PAGE_BITS,
        TableRow, slab_of,
    },
    walk::{
        arch::REGISTERS,
        bisect::{MAX_NARROWINGS, Span},
        native,
    },
};

subprog! {
    /// The rule for an object's own `address`, whose page's rows are found from `pages` on; none if the table is not
    /// there.
    pub(crate) fn find_rule(cpu_slot: u32, pages: u32, address: u64) -> Option<Rule> {
        remembered_rule(&Scratch::of(cpu_slot)?.walk, pages, address)
    }
}

/// Replaces the frame in the scratch memory by its caller, or says why there is none: a `StackEnd`.
///
/// Two halves, each verified for itself: in one function, each way through the first would be verified with each through the second.
#[inline(always)]
pub(crate) fn follow_rule(cpu_slot: u32, rule: Rule) -> ControlFlow<u64> {
    match caller_found_from(cpu_slot, rule) {
        Ok(found_from) => advance_from(cpu_slot, rule, found_from),
        Err(end) => ControlFlow::Break(end),
    }
}

subprog! {
    fn caller_found_from(cpu_slot: u32, rule: Rule) -> Result<u64, u64> {
        let Some(Scratch { walk, .. }) = Scratch::of(cpu_slot) else {
            return Err(StackEnd::BadRow as u64);
        };
        if config::has(Switches::GUESS) {
            let is_root_row = matches!(rule.how(), RuleKind::Root);
            walk.guess.is_root_row.store(u64::from(is_root_row));
        }
        let frame = walk.frame();
        let memory = StackMemory(&walk.stack);
        native::caller_found_from(rule, &frame, |number| register(walk, number), &memory)
            .map_err(|end| end as u64)
    }
}

subprog! {
    fn advance_from(cpu_slot: u32, rule: Rule, found_from: u64) -> ControlFlow<u64> {
        let Some(Scratch { walk, .. }) = Scratch::of(cpu_slot) else {
            return ControlFlow::Break(StackEnd::BadRow as u64);
        };
        let mut frame = walk.frame();
        let memory = StackMemory(&walk.stack);
        let register = |number| register(walk, number);
        match native::advance_from(found_from, rule, &mut frame, register, &memory) {
            Ok(()) => {
                if rule.is_from_code() {
                    walk.add_fallback(Fallbacks::CODE);
                }
                walk.put(frame);
                ControlFlow::Continue(())
            }
            Err(end) => ControlFlow::Break(end as u64),
        }
    }
}

/// A register of the first frame, by its DWARF number.
#[inline(always)]
fn register(walk: &'static Walk, number: u8) -> Option<u64> {
    let word = walk.registers.get(usize::from(number) & (REGISTERS - 1))?;
    Some(word.load())
}

/// As [`rule`], from the cache of recent rules if it is there.
///
/// Cached rules are valid until the index of code changes: table memory is reused only after that, and after every firing
/// that began before has ended.
#[inline(always)]
fn remembered_rule(walk: &'static Walk, pages: u32, address: u64) -> Option<Rule> {
    // Plus one, so that it is never zero.
    let table = (u64::from(pages) + 1) | walk.code_changes.load() << 33;
    let place = (address ^ address >> 8) as usize & (REMEMBERED - 1);
    let remembered = walk.rules.get(place)?;
    if remembered.address.load() == address && remembered.table.load() == table {
        return Some(Rule(remembered.rule.load()));
    }
    let rule = rule(pages, address)?;
    remembered.address.store(address);
    remembered.table.store(table);
    remembered.rule.store(rule.0);
    Some(rule)
}

/// The rule for `address`, whose page's rows are found from `pages` on; none if the table is not there.
#[inline(always)]
fn rule(pages: u32, address: u64) -> Option<Rule> {
    let page = (address >> TABLE_PAGE_BITS) as u32;
    let (slab, word) = slab_of(pages.wrapping_add(page.wrapping_mul(2)));
    let slab = SLABS.get_value(slab, &0)?;
    let span = Span::new(PageRows {
        first: load(slab, word),
        count: load(slab, word.wrapping_add(1)),
    });
    let (slab, _) = slab_of(span.first());
    let row = search(SLABS.get_value(slab, &0)?, span, address as u16);
    Some(Rule(RULES.get(u32::from(row.rule))?.load()))
}

/// The row for the lowest bits of an address, among a page's rows.
#[inline(always)]
fn search(slab: &'static [Half; SLAB_WORDS], mut span: Span, low: u16) -> TableRow {
    for _ in 0..MAX_NARROWINGS {
        let Some(middle) = span.middle() else { break };
        span = span.narrow(row(slab, middle), low);
    }
    row(slab, span.first())
}

#[inline(always)]
fn row(slab: &'static [Half; SLAB_WORDS], place: u32) -> TableRow {
    let word = load(slab, place);
    TableRow {
        low: word as u16,
        rule: (word >> 16) as u16,
    }
}

#[inline(always)]
fn load(slab: &'static [Half; SLAB_WORDS], place: u32) -> u32 {
    slab[place as usize & (SLAB_WORDS - 1)].load()
}
