//! The proof that tables say what unwind sections say: for real objects, at every address where gimli's
//! own evaluation of a description changes, a step by the table's rule finds the same caller as one by
//! gimli's row, in a memory where every word is different.

#![expect(
    clippy::print_stdout,
    reason = "the proof says what it compared, and what it could not"
)]

pub(super) mod objects;

use super::{Error, UnwindTable};
use crate::object::ElfAddress;
use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EndianSlice, EvaluationResult, LittleEndian,
    Location, Piece, Register, RegisterRule, UnwindContext, UnwindExpression, UnwindSection as _,
    UnwindTableRow, Value,
};
use object::{Object as _, ObjectSection as _};
use profiler_common::abi::{Rule, RuleKind, StackEnd};
use profiler_common::walk::native::{self, Frame, Kept};
use profiler_common::walk::{Memory, Registers, Step};
use std::collections::BTreeMap;
use std::time::Instant;

type Slice<'a> = EndianSlice<'a, LittleEndian>;
type Section<'a> = EhFrame<Slice<'a>>;

/// Memory that is there everywhere, with a word of its own at every address. The words are aligned
/// addresses of user space, and above all registers.
struct Everywhere;

impl Everywhere {
    fn word(address: u64) -> u64 {
        let mixed = address.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        0x1000_0000_0000 | ((mixed ^ mixed >> 29) & 0x0fff_ffff_fff8)
    }
}

impl Memory for Everywhere {
    fn read<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        Some(std::array::from_fn(|i| {
            Self::word(address.wrapping_add(8 * i as u64))
        }))
    }
}

/// The registers of the frame from which each step goes. All are above the stack pointer.
fn register(number: u16) -> u64 {
    0x7000_0000
        + if number == 7 {
            0
        } else {
            0x1000 * (u64::from(number) + 1)
        }
}

/// Caller of a frame. A register that nobody keeps is none.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Root,
    Caller {
        ip: u64,
        sp: u64,
        fp: Option<u64>,
        bx: Option<u64>,
    },
    /// No such address is that of a stack or of code.
    Implausible,
}

/// How often each thing happened.
#[derive(Debug, Default)]
struct Tally {
    descriptions: u64,
    rows: u64,
    compared: u64,
    unsupported: u64,
    lost_bx: u64,
    overlaps: u64,
    kinds: BTreeMap<RuleKind, u64>,
}

/// gimli's row, followed with gimli's evaluation of expressions.
struct Theirs<'s, 'a> {
    section: &'s Section<'a>,
    ip: u64,
}

impl Theirs<'_, '_> {
    fn evaluate(&self, expression: &UnwindExpression<usize>, cfa: Option<u64>) -> u64 {
        let expression = expression.get(self.section).unwrap();
        let mut evaluation = expression.evaluation(gimli::Encoding {
            address_size: 8,
            format: gimli::Format::Dwarf32,
            version: 4,
        });
        if let Some(cfa) = cfa {
            evaluation.set_initial_value(cfa);
        }
        let mut result = evaluation.evaluate().unwrap();
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    assert_eq!(size, 8);
                    evaluation.resume_with_memory(Value::Generic(Everywhere::word(address)))
                }
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = if register.0 == 16 {
                        self.ip
                    } else {
                        self::register(register.0)
                    };
                    evaluation.resume_with_register(Value::Generic(value))
                }
                other => panic!("{other:?}"),
            }
            .unwrap();
        }
        match evaluation.result().as_slice() {
            [
                Piece {
                    location: Location::Address { address },
                    ..
                },
            ] => *address,
            other => panic!("{other:?}"),
        }
    }

    fn caller(&self, row: &UnwindTableRow<usize>) -> Answer {
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                self::register(register.0).wrapping_add_signed(*offset)
            }
            CfaRule::Expression(expression) => self.evaluate(expression, None),
        };
        let restored = |number: u16, untouched: u64| match row.register(Register(number)) {
            None | Some(RegisterRule::SameValue) => Some(untouched),
            Some(RegisterRule::Undefined) => None,
            Some(RegisterRule::Offset(offset)) => {
                Some(Everywhere::word(cfa.wrapping_add_signed(offset)))
            }
            Some(RegisterRule::ValOffset(offset)) => Some(cfa.wrapping_add_signed(offset)),
            Some(RegisterRule::Register(other)) => Some(register(other.0)),
            Some(RegisterRule::Expression(expression)) => {
                Some(Everywhere::word(self.evaluate(&expression, Some(cfa))))
            }
            Some(RegisterRule::ValExpression(expression)) => {
                Some(self.evaluate(&expression, Some(cfa)))
            }
            Some(other) => panic!("{other:?}"),
        };
        let Some(ip) = restored(16, 0) else {
            return Answer::Root;
        };
        if cfa % 8 != 0 {
            return Answer::Implausible;
        }
        Answer::Caller {
            ip,
            sp: restored(7, cfa).unwrap(),
            fp: restored(6, register(6)),
            bx: restored(3, register(3)),
        }
    }
}

/// The caller that a step by the rule finds.
fn ours(rule: Rule, ip: u64) -> Answer {
    let registers = Registers {
        ip,
        sp: register(7),
        fp: register(6),
    };
    let frame = Frame::running(registers, register(3));
    let other = |number: u8| Some(register(number.into()));
    match native::step(rule, &frame, other, &Everywhere) {
        Step::End(StackEnd::Root) => Answer::Root,
        Step::End(StackEnd::Implausible) => Answer::Implausible,
        Step::End(end) => panic!("{end:?} by {rule:?}"),
        Step::Caller(caller) => {
            let value = |kept: Kept| kept.read(&Everywhere).ok();
            Answer::Caller {
                ip: caller.ip,
                sp: caller.sp,
                fp: value(caller.fp),
                bx: value(caller.saved),
            }
        }
    }
}

/// Compares the table of an object with gimli at every change of every description.
fn compare(bytes: &[u8], table: &UnwindTable) -> Tally {
    let file = object::File::parse(bytes).unwrap();
    let section = file.section_by_name(".eh_frame").unwrap();
    let address_of = |name| {
        file.section_by_name(name)
            .map_or(0, |found| found.address())
    };
    let bases = BaseAddresses::default()
        .set_eh_frame(section.address())
        .set_text(address_of(".text"))
        .set_got(address_of(".got"));
    let data = section.uncompressed_data().unwrap();
    let section = EhFrame::new(&data, LittleEndian);
    let mut descriptions = Vec::new();
    let mut entries = section.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        if let CieOrFde::Fde(partial) = entry {
            let fde = partial.parse(EhFrame::cie_from_offset).unwrap();
            descriptions.push(fde);
        }
    }
    let is_code =
        |address: u64| (table.ranges.iter()).any(|range| range.addresses.contains(&address));
    descriptions.retain(|fde| is_code(fde.initial_address()) && fde.len() > 0);
    descriptions.sort_by_key(|fde| fde.initial_address());
    let mut tally = Tally::default();
    let mut context = UnwindContext::new();
    for (place, fde) in descriptions.iter().enumerate() {
        let next = descriptions
            .get(place + 1)
            .map_or(u64::MAX, |next| next.initial_address());
        if next < fde.end_address() {
            tally.overlaps += 1;
        }
        tally.descriptions += 1;
        let end = fde.end_address().min(next);
        let mut rows = fde.rows(&section, &bases, &mut context).unwrap();
        // Where gimli gives up, GCC's unwinder may go on, and so do we.
        while let Ok(Some(row)) = rows.next_row() {
            tally.rows += 1;
            let (first, last) = (row.start_address(), row.end_address().min(end));
            if first >= last {
                continue;
            }
            for ip in [first, first + (last - first) / 2, last - 1] {
                let rule = table.rule_at(ElfAddress(ip)).unwrap();
                *tally.kinds.entry(rule.how()).or_default() += 1;
                tally.compared += 1;
                if rule == Rule::UNSUPPORTED {
                    tally.unsupported += 1;
                    continue;
                }
                let theirs = Theirs {
                    section: &section,
                    ip,
                };
                let mut expected = theirs.caller(row);
                let found = ours(rule, ip);
                // Rows may give up rbx where only a trampoline's frame is ever found by it.
                if let (
                    Answer::Caller {
                        bx: ours @ None, ..
                    },
                    Answer::Caller { bx, .. },
                ) = (&found, &mut expected)
                    && bx != ours
                {
                    *bx = None;
                    tally.lost_bx += 1;
                }
                assert_eq!(found, expected, "at {ip:#x}, by {rule:?}, from {row:?}");
            }
        }
        // Linkage tables have rules even where no description has them.
        let linked = file.sections().any(|section| {
            let bytes = section.address()..section.address() + section.size();
            section.name().is_ok_and(|name| name.contains("plt"))
                && bytes.end > end
                && bytes.start < end + 8
        });
        if end < next && is_code(end) && !linked {
            for gap in [end, (next - 1).min(end + 7)] {
                assert!(
                    table
                        .rule_at(ElfAddress(gap))
                        .is_none_or(|rule| rule == Rule::MISSING),
                    "no description has {gap:#x}"
                );
            }
        }
    }
    tally
}

/// The unwind sections that a build without optimization has the time for, in bytes.
const SMALL_BYTES: u64 = if cfg!(debug_assertions) {
    500_000
} else {
    u64::MAX
};

/// Proves one object and prints its line; none if there was a reason not to.
fn prove(name: &str, bytes: &[u8]) -> Option<Tally> {
    let start = Instant::now();
    let table = match UnwindTable::parse(bytes) {
        Ok(table) => table,
        Err(Error::NotElf) => return None,
        Err(error) => {
            println!("not compared: {name}: {error}");
            return None;
        }
    };
    let built = start.elapsed();
    if table.is_empty() {
        println!("not compared: {name}: it has no unwind sections");
        return None;
    }
    if table.origin.section_bytes > SMALL_BYTES {
        println!("not compared: {name}: too large for this build; run with --release");
        return None;
    }
    let tally = compare(bytes, &table);
    println!(
        "{:8} rows {:5} rules {:8} bytes {:6.1} ms; {} compared, {} unsupported, {} rbx lost: {name}",
        table.rows.len(),
        table.rules.len(),
        table.bytes(),
        built.as_secs_f64() * 1e3,
        tally.compared,
        tally.unsupported,
        tally.lost_bx,
    );
    Some(tally)
}

#[test]
fn tables_agree_with_gimli_at_every_row_of_real_objects() {
    let (mut objects, mut kinds) = (0, BTreeMap::<RuleKind, u64>::new());
    let mut seen = std::collections::HashSet::new();
    for path in objects::candidates() {
        let bytes = std::fs::read(&path).unwrap();
        if !seen.insert(crc32fast::hash(&bytes)) {
            continue;
        }
        let Some(tally) = prove(&path.display().to_string(), &bytes) else {
            continue;
        };
        objects += 1;
        for (kind, count) in tally.kinds {
            *kinds.entry(kind).or_default() += count;
        }
        assert!(tally.descriptions > 0 && tally.rows > 0);
        assert!(
            tally.unsupported * 1000 <= tally.compared,
            "{}: {} of {} have no rule",
            path.display(),
            tally.unsupported,
            tally.compared
        );
    }
    println!("{objects} objects; {kinds:?}");
    assert!(objects > 0, "this machine has no programs");
}

#[test]
fn the_tables_of_the_vdso_agree_with_gimli() {
    use std::os::unix::fs::FileExt as _;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let Some(line) = maps.lines().find(|line| line.ends_with("[vdso]")) else {
        println!("SKIP the_vdso_is_understood: the kernel gives this process none");
        return;
    };
    let (start, rest) = line.split_once('-').unwrap();
    let start = u64::from_str_radix(start, 16).unwrap();
    let end = u64::from_str_radix(rest.split_once(' ').unwrap().0, 16).unwrap();
    let mut bytes = vec![0; usize::try_from(end - start).unwrap()];
    let memory = std::fs::File::open("/proc/self/mem").unwrap();
    memory.read_exact_at(&mut bytes, start).unwrap();
    let tally = prove("[vdso]", &bytes).unwrap();
    assert_eq!(tally.unsupported, 0);
}
