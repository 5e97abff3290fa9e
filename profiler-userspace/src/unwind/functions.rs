//! Rows of single functions, read from their code: of those that samples came to and that nothing describes.
//!
//! In: a file, addresses in it, and what of the code around each has no rows. Out: [`ReadFunction`]s, whose rules are their own.
//! Code that cannot be followed gets no row.

use super::arch::{assembly, set_up};
use super::found::UnwindFindings;
use crate::code::{self, Undescribed};
use profiler_common::abi::Rule;
use std::fs::File;
use std::ops::Range;

/// Code around an address of which nothing is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    /// Its addresses, or those near the address.
    pub(super) addresses: Range<u64>,
    /// Whether it is code that keeps frame pointers, as far as a sample tells.
    pub(super) keeps_frame_pointers: bool,
}

/// A function that was read.
pub(super) struct ReadFunction {
    /// Where nothing was known before.
    pub(super) within: Range<u64>,
    found: UnwindFindings,
}

/// From this address on, this rule holds.
pub(super) type Change = (u64, Rule);

impl ReadFunction {
    /// Its stretches of code: where each ends, and its changes, the first of which is at its beginning.
    pub(super) fn stretches(&self) -> impl Iterator<Item = (u64, Vec<Change>)> {
        self.found.stretches.iter().filter_map(|stretch| {
            let addresses = &stretch.addresses;
            let is_within =
                self.within.start <= addresses.start && addresses.end <= self.within.end;
            let changes = self.found.changes_of(stretch);
            let rules = self.found.rules.rules();
            let rule = |number: u16| rules.get(usize::from(number)).copied();
            let changes: Vec<Change> = changes
                .iter()
                .filter_map(|change| {
                    let address = addresses.start + u64::from(change.after);
                    Some((address, rule(change.rule)?))
                })
                .collect();
            (is_within && !changes.is_empty()).then_some((addresses.end, changes))
        })
    }

    fn covers(&self, address: u64) -> bool {
        self.found.touches(&(address..address.saturating_add(1)))
    }
}

/// Functions that were read, and code that cannot be followed.
#[derive(Default)]
pub(super) struct Functions {
    pub(super) read: Vec<ReadFunction>,
    pub(super) given_up: Vec<Range<u64>>,
}

impl Functions {
    /// Those around addresses of a file. `gap` says what is not known around one; none if nothing is to be read there.
    pub(super) fn around(
        file: &File,
        addresses: &[u64],
        mut gap: impl FnMut(u64) -> Option<Gap>,
    ) -> Self {
        let mut functions = Self::default();
        let Some(all) = code::Functions::of(file) else {
            return functions;
        };
        for &address in addresses {
            if functions.has(address) {
                continue;
            }
            let Some(gap) = gap(address) else { continue };
            match function(&all, address, &gap) {
                Ok(read) => functions.read.push(read),
                Err(code) => functions.given_up.push(code),
            }
        }
        functions
    }

    fn has(&self, address: u64) -> bool {
        self.read.iter().any(|function| function.covers(address))
            || self.given_up.iter().any(|code| code.contains(&address))
    }
}

/// Rows of a function. Where code keeps frame pointers, one that begins by setting up its own needs no more than a look.
fn rows(code: &Undescribed, keeps_frame_pointers: bool) -> UnwindFindings {
    let by_set_up = || {
        let (begin, bytes) = code.parts.first()?;
        set_up::describe(*begin, bytes)
    };
    keeps_frame_pointers
        .then(by_set_up)
        .flatten()
        .unwrap_or_else(|| {
            let mut found = UnwindFindings::default();
            assembly::describe(code, &mut found);
            found.sort();
            found
        })
}

/// The function around an address; where none can be followed, the code that its address is in.
fn function(
    functions: &code::Functions<'_>,
    address: u64,
    gap: &Gap,
) -> Result<ReadFunction, Range<u64>> {
    let alone = address..address.saturating_add(1);
    if let Some(end) = functions.end_of_stacks(address, &gap.addresses) {
        let mut found = UnwindFindings::default();
        let rule = match end {
            code::EndOfStacks::In => Rule::ROOT,
            code::EndOfStacks::Before => Rule::ROOT_BEHIND,
        };
        found.add_alike(vec![alone.clone()], rule);
        let within = alone;
        return Ok(ReadFunction { within, found });
    }
    let read = |code: &Undescribed| ReadFunction {
        within: gap.addresses.clone(),
        found: rows(code, gap.keeps_frame_pointers),
    };
    let mut nearest = alone.clone();
    for code in functions.around(address, &gap.addresses) {
        let alone_read = read(&code);
        if alone_read.covers(address) {
            return Ok(alone_read);
        }
        let together = functions.with_callees(&code).map(|code| read(&code));
        if let Some(together) = together.filter(|read| read.covers(address)) {
            return Ok(together);
        }
        if let Some((begin, bytes)) = code.parts.first()
            && nearest == alone
        {
            let end = begin.saturating_add(bytes.len() as u64);
            nearest = *begin..end.max(alone.end);
        }
    }
    Err(nearest)
}

/// The number of stretches of rows that the functions around these addresses of a file have, if nothing is known of the code near
/// them: for feeding broken files.
pub fn stretches_around(file: &File, addresses: &[u64]) -> usize {
    const NEAR: u64 = 1 << 16;
    let stretches = [false, true].map(|keeps_frame_pointers| {
        let functions = Functions::around(file, addresses, |address| {
            let addresses = address.saturating_sub(NEAR)..address.saturating_add(NEAR);
            Some(Gap {
                addresses,
                keeps_frame_pointers,
            })
        });
        let read = functions.read.iter();
        read.map(|function| function.stretches().count())
            .sum::<usize>()
    });
    stretches.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::ElfAddress;
    use crate::unwind::{Depth, UnwindTable};
    use profiler_common::abi::RuleKind;

    /// Where the functions of this program are looked for as if nothing described them, what is found agrees with what does.
    #[test]
    fn single_functions_have_the_rows_that_the_compiler_says() {
        /// From one address to the next, in bytes.
        const STEP: usize = 20_011;
        /// In loops that were unrolled into larger functions and not optimized, many a label looks like a beginning.
        const LARGE: u64 = 8 << 10;
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let table = UnwindTable::read_expecting(&file, Depth::Described, None, |_| ()).unwrap();
        let code = table.ranges.iter().map(|range| range.addresses.clone());
        let code = code.max_by_key(|code| code.end - code.start).unwrap();
        let mut large: Vec<Range<u64>> = Vec::new();
        crate::object::Elf::read(&file)
            .unwrap()
            .each_function(&file, |function| {
                if let Some(begin) = function.address.filter(|_| function.size > LARGE) {
                    large.push(begin.0..begin.0 + function.size);
                }
            });
        let (mut all, mut followed, mut wrong) = (0, 0, 0);
        for address in code.clone().step_by(STEP) {
            if large.iter().any(|function| function.contains(&address)) {
                continue;
            }
            let described = table.rule_at(ElfAddress(address));
            let Some(described) = described.filter(|rule| rule.how() == RuleKind::Offset) else {
                continue;
            };
            all += 1;
            let gap = Gap {
                addresses: code.clone(),
                keeps_frame_pointers: false,
            };
            let functions = Functions::around(&file, &[address], |_| Some(gap.clone()));
            let Some(read) = functions.read.first() else {
                assert!(functions.given_up[0].contains(&address));
                continue;
            };
            followed += 1;
            let stretches = read.stretches();
            let around = stretches.filter(|(end, all)| (all[0].0..*end).contains(&address));
            let changes: Vec<Change> = around.flat_map(|(_, changes)| changes).collect();
            let rule = changes.iter().rev().find(|change| change.0 <= address);
            let rule = rule.unwrap().1;
            // The frame may be found by either register.
            let is_comparable = rule.how() == RuleKind::Offset && rule.base() == described.base();
            wrong += usize::from(is_comparable && rule.operand() != described.operand());
        }
        assert!(
            all > 100 && followed * 10 > all * 8,
            "{followed} of {all} are followed"
        );
        // The program is this test itself: which addresses are met changes with each build of it. In one, 6 of 1,141 are wrong.
        assert!(wrong * 100 <= followed, "{wrong} of {followed} are wrong");
    }

    /// Assembly that keeps its stack pointer in a register that calls may change, while it calls what does not.
    #[test]
    fn a_helper_is_read_with_the_function_that_calls_it() {
        const SOURCE: &str = "
            int main(void) { return 0; }
            asm(\".p2align 4; helper: add $1, %eax; ret; .p2align 4; nop; ret; .p2align 4;\"
                \".type caller, @function; caller: mov %rsp, %rcx; and $-16, %rsp; sub $48, %rsp;\"
                \"call helper; behind: add $2, %eax; mov %rcx, %rsp; ret; .size caller, . - caller\");
        ";
        /// From the function to behind its call.
        const BEHIND: u64 = 16;
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("a.c"), folder.path().join("a"));
        std::fs::write(&source, SOURCE).unwrap();
        let built = std::process::Command::new("gcc")
            .arg("-o")
            .args([&program, &source])
            .status();
        assert!(built.unwrap().success());
        let file = File::open(&program).unwrap();
        let mut caller = None;
        crate::object::Elf::read(&file)
            .unwrap()
            .each_function(&file, |function| {
                if function.name == b"caller" {
                    caller = function.address;
                }
            });
        let caller = caller.unwrap().0;
        let addresses = caller - 64..caller + 64;
        let functions = Functions::around(&file, &[caller + BEHIND], |_| {
            Some(Gap {
                addresses: addresses.clone(),
                keeps_frame_pointers: false,
            })
        });
        let (_, changes) = functions.read[0].stretches().last().unwrap();
        let rule = changes.iter().rfind(|change| change.0 <= caller + BEHIND);
        let rule = rule.unwrap().1;
        assert_eq!(
            (rule.how(), rule.operand()),
            (RuleKind::Offset, 8),
            "{rule:?}"
        );
        assert_ne!(rule.base(), Rule::ENTRY.base());
    }

    #[test]
    fn only_what_is_within_the_gap_counts() {
        let mut found = UnwindFindings::default();
        found.change(0, Rule::ENTRY);
        for addresses in [10..20, 20..30, 30..40] {
            found.add_stretch(addresses, 0);
        }
        let read = ReadFunction {
            within: 15..30,
            found,
        };
        let stretches: Vec<_> = read.stretches().collect();
        assert_eq!(stretches, [(30, vec![(20, Rule::ENTRY)])]);
    }
}
