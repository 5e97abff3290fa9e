//! An unwind table as text, to find out why a walk ended.
//!
//! In: a table, or one address of it. Out: text.

use super::{UnwindTable, arch, page_of};
use crate::object::ElfAddress;
use profiler_common::abi::{Origin, Rule, RuleKind, Slot, TABLE_PAGE_BITS};
use profiler_common::walk::arch::{FP, SAVED, SP};
use std::fmt::Write as _;

/// All rows of a table after a few lines of sizes; or, if an address is given, the row for it.
pub fn show(table: &UnwindTable, address: Option<ElfAddress>) -> String {
    let mut text = String::new();
    if let Some(address) = address {
        match table.row_at(address) {
            Some(row) => {
                let start = start_of(table, address, row);
                line(&mut text, table, start, row);
            }
            None => {
                let _ = writeln!(text, "{:#x} is not in the object's code", address.0);
            }
        }
        return text;
    }
    sizes(&mut text, table);
    for range in &table.ranges {
        let addresses = &range.addresses;
        let _ = writeln!(text, "code {:#x}..{:#x}", addresses.start, addresses.end);
        for page in page_of(addresses.start)..=page_of(addresses.end - 1) {
            let place = page - page_of(addresses.start) + u64::from(range.first_page);
            let Some(rows) = usize::try_from(place)
                .ok()
                .and_then(|place| table.pages.get(place))
            else {
                continue;
            };
            for row in rows.first..rows.first + rows.count {
                let low = table.rows.get(row as usize).map_or(0, |row| row.low);
                let start = (page << TABLE_PAGE_BITS) + u64::from(low);
                line(&mut text, table, start, row as usize);
            }
        }
    }
    text
}

fn sizes(text: &mut String, table: &UnwindTable) {
    let origin = &table.origin;
    let _ = writeln!(
        text,
        "{} rows of {} rules in {} pages, {} bytes",
        table.rows.len(),
        table.rules.len(),
        table.pages.len(),
        table.bytes(),
    );
    let _ = writeln!(
        text,
        "from {} descriptions with {} changes in {} bytes; {} stray, {} overlapping, {} broken",
        origin.descriptions,
        origin.changes,
        origin.section_bytes,
        origin.strays,
        origin.overlaps,
        origin.broken,
    );
    if origin.kept_bytes > 0 {
        let _ = writeln!(
            text,
            "and {} bytes of code that nothing describes and that keeps frame pointers",
            origin.kept_bytes,
        );
    } else if origin.undescribed_bytes > 0 {
        let _ = writeln!(
            text,
            "and from {} of {} bytes of code that nothing describes",
            origin.read_bytes, origin.undescribed_bytes,
        );
    }
}

/// The address of the row that holds at an address: in the same page, but not necessarily at the address.
fn start_of(table: &UnwindTable, address: ElfAddress, row: usize) -> u64 {
    let low = table.rows.get(row).map_or(0, |row| row.low);
    (page_of(address.0) << TABLE_PAGE_BITS) + u64::from(low)
}

fn line(text: &mut String, table: &UnwindTable, start: u64, row: usize) {
    let rule = table
        .rows
        .get(row)
        .and_then(|row| table.rules.get(usize::from(row.rule)))
        .copied()
        .unwrap_or(Rule::MISSING);
    let source = if rule.is_from_code() {
        "  (read from code)"
    } else if rule.is_frame_pointer() {
        "  (frame pointer)"
    } else {
        ""
    };
    let _ = writeln!(text, "{start:#14x}  {}{source}", describe(rule));
}

/// A rule in words.
pub(super) fn describe(rule: Rule) -> String {
    let [base, fp, sp, saved] = [rule.base(), FP, SP, SAVED].map(|number| name(number.into()));
    let low = signed(rule.low());
    let frame = match rule.how() {
        RuleKind::Missing => return "no unwind info".to_owned(),
        RuleKind::Root => return "the outermost frame".to_owned(),
        RuleKind::Unsupported => return "unwind info not understood".to_owned(),
        RuleKind::Signal => {
            return format!("signal frame, {sp} at {base}{}", signed(rule.operand()));
        }
        RuleKind::Switch => {
            return format!("stored registers, {sp} at {base}{}", signed(rule.operand()));
        }
        RuleKind::Offset => format!("cfa={base}{}", signed(rule.operand())),
        RuleKind::Memory => format!("cfa=[{base}{low}]{}", signed(rule.high())),
        RuleKind::IndexedMemory => format!(
            "cfa=[{base}{low}+8*{}]{}",
            name(rule.high() & 15),
            signed(rule.high() >> 4)
        ),
        RuleKind::Linkage => format!(
            "cfa={base}{low}, +8 if {}&15>={}",
            arch::INSTRUCTION_POINTER,
            rule.high()
        ),
        RuleKind::InRegister => format!("cfa={base}{low} ra={}", name(rule.high() & 15)),
    };
    let mut text = frame;
    for (register, slot) in [(fp, rule.fp()), (saved, rule.saved())] {
        match slot {
            Slot::SAME => {}
            Slot::LOST => {
                let _ = write!(text, " {register} lost");
            }
            slot => {
                let bytes = signed(slot.bytes());
                let place = match rule.origin() {
                    Origin::Cfa => format!("[cfa{bytes}]"),
                    Origin::FramePointer => format!("[{fp}{bytes}]"),
                    Origin::StackPointer => format!("[{sp}{bytes}]"),
                    Origin::Register => name(i64::from(slot.0)).to_owned(),
                };
                let _ = write!(text, " {register}={place}");
            }
        }
    }
    text
}

fn name(register: i64) -> &'static str {
    usize::try_from(register)
        .ok()
        .and_then(|register| arch::NAMES.get(register).copied())
        .unwrap_or("?")
}

/// `+8`, `-16`, or nothing for zero.
fn signed(number: i64) -> String {
    if number == 0 {
        String::new()
    } else {
        format!("{number:+}")
    }
}
