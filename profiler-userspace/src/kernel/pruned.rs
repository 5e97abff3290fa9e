//! The BPF object without programs that are not loaded.
//!
//! In: the object, and which programs are left out. Out: the same, in which their names are no functions any more. The loader
//! puts every program of an object together with all functions that it calls, in memory of its own: each that walks stacks
//! takes a millisecond and half a megabyte, and a recording loads one or two of sixteen.

use object::LittleEndian as Little;
use object::elf::{FileHeader64, SHT_SYMTAB, STT_FUNC, STT_NOTYPE, Sym64};
use object::read::elf::{FileHeader as _, SectionHeader as _};
use std::mem::offset_of;

/// The object without programs of these names. An object that cannot be read is left as it is, and the loader says why.
pub(super) fn without(object: &[u8], is_left_out: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut pruned = object.to_vec();
    for place in kinds_of(object, is_left_out).unwrap_or_default() {
        pruned[place] = pruned[place] & 0xf0 | STT_NOTYPE;
    }
    pruned
}

/// The offsets of the bytes that say that symbols of these names are functions.
fn kinds_of(object: &[u8], is_left_out: impl Fn(&[u8]) -> bool) -> object::Result<Vec<usize>> {
    let header = FileHeader64::<Little>::parse(object)?;
    let sections = header.sections(Little, object)?;
    let symbols = sections.symbols(Little, object, SHT_SYMTAB)?;
    let table = sections.section(symbols.section())?.sh_offset(Little) as usize;
    let left_out = symbols.enumerate().filter(|(_, symbol)| {
        let name = symbols.symbol_name(Little, symbol).unwrap_or_default();
        symbol.st_type() == STT_FUNC && is_left_out(name)
    });
    let kind = |index: usize| {
        table + index * size_of::<Sym64<Little>>() + offset_of!(Sym64<Little>, st_info)
    };
    Ok(left_out.map(|(index, _)| kind(index.0)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions(object: &[u8]) -> Vec<String> {
        let header = FileHeader64::<Little>::parse(object).unwrap();
        let sections = header.sections(Little, object).unwrap();
        let symbols = sections.symbols(Little, object, SHT_SYMTAB).unwrap();
        let functions = symbols.iter().filter(|symbol| symbol.st_type() == STT_FUNC);
        let name = |symbol| symbols.symbol_name(Little, symbol).unwrap();
        functions
            .map(|symbol| String::from_utf8_lossy(name(symbol)).into_owned())
            .collect()
    }

    #[test]
    fn what_is_left_out_is_no_function_and_all_else_is_the_same() {
        let object = super::super::load::OBJECT;
        let all = functions(object);
        let pruned = without(object, |name| name == b"off_cpu");
        let mut left = functions(&pruned);
        assert_eq!(left.len() + 1, all.len());
        assert!(all.contains(&"off_cpu".to_owned()));
        left.push("off_cpu".to_owned());
        left.sort_unstable();
        let mut all = all;
        all.sort_unstable();
        assert_eq!(left, all);
        let bytes = object.iter().zip(&pruned);
        assert_eq!(bytes.filter(|(before, after)| before != after).count(), 1);
    }

    #[test]
    fn what_is_no_object_is_left_as_it_is() {
        assert_eq!(without(b"no object", |_| true), b"no object");
    }
}
