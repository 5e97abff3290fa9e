//! The instructions of functions, as a disassembler shows them.
//!
//! In: an image, and addresses in its code. Out: the stretches of code that the addresses lie in, from the unwind
//! descriptions or the symbols.
//! Never: more than a bound of any stretch; files may be hostile.

pub(crate) use super::arch::listing::Stretch;

use super::descriptions::Descriptions;
use crate::object::{Elf, Image};
use std::collections::BTreeSet;

/// The most bytes of one stretch: a hundred times what is long for a function.
pub(crate) const MAX_BYTES: u64 = 1 << 20;

/// The most symbols that bounds are looked for in.
const MAX_SYMBOLS: usize = 1 << 22;

/// The stretches of code that these addresses lie in, ascending. An address whose function has no known bounds is in none.
pub(crate) fn stretches(image: &Image<'_>, elf: &Elf, addresses: &[u64]) -> Vec<Stretch> {
    let mut described = Descriptions::of(image);
    let mut ranges: BTreeSet<(u64, u64)> = BTreeSet::new();
    let mut rest: Vec<u64> = Vec::new();
    for &address in addresses {
        match described.code_around(address) {
            Ok(range) => {
                ranges.insert((range.start, range.end));
            }
            Err(_) => rest.push(address),
        }
    }
    if !rest.is_empty() {
        rest.sort_unstable();
        let mut left = MAX_SYMBOLS;
        elf.each_function(image.file, |function| {
            left = left.saturating_sub(1);
            let Some(begin) = function.address.filter(|_| left > 0) else {
                return;
            };
            let end = begin.0.saturating_add(function.size);
            let first = rest.partition_point(|address| *address < begin.0);
            if rest.get(first).is_some_and(|address| *address < end) {
                ranges.insert((begin.0, end));
            }
        });
    }
    let mut stretches: Vec<Stretch> = Vec::new();
    for (begin, end) in ranges {
        // Descriptions and symbols of the same code may overlap.
        let known = stretches.last().map_or(0, |last| last.addresses.end);
        if begin >= known {
            let end = end.min(begin.saturating_add(MAX_BYTES));
            stretches.extend(Stretch::read(image, begin..end));
        }
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_function_is_found_around_an_address() {
        let file = File::open("/proc/self/exe").expect("this program");
        let (image, elf) = (
            Image::read(&file).expect("an object"),
            Elf::read(&file).expect("an object"),
        );
        let mut main = None;
        elf.each_function(&file, |function| {
            if function.name == b"main" {
                main = function.address.map(|at| (at.0, function.size));
            }
        });
        let (begin, size) = main.expect("a program has a main");
        let [stretch] = &stretches(&image, &elf, &[begin + 1, begin])[..] else {
            panic!("one function");
        };
        assert_eq!(stretch.addresses, begin..begin + size);
        assert_eq!(stretch.place(begin), Some(0));
        assert!(stretches(&image, &elf, &[1]).is_empty());
    }
}
