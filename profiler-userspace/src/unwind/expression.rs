//! Recognizes the DWARF expressions that compilers, assemblers and C libraries put into unwind instructions.
//!
//! In: an expression's operations. Out: one of a few shapes, or that it has another. Never evaluates an
//! expression. See DWARF 5, section 2.5.

use gimli::{EndianSlice, LittleEndian, Operation};

/// The known shapes of expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expression {
    /// register + offset.
    Place { register: u16, offset: i64 },
    /// The word at (register + offset), + addend.
    Memory {
        register: u16,
        offset: i64,
        addend: i64,
    },
    /// The word at (register + offset + 8 × index), + addend.
    IndexedMemory {
        register: u16,
        offset: i64,
        index: u16,
        addend: i64,
    },
    /// register + offset, + 8 where ip & 15 ≥ threshold.
    Linkage {
        register: u16,
        offset: i64,
        threshold: u64,
    },
    /// Any other.
    Other,
}

/// The DWARF number of the instruction pointer, used in the expressions of linkage tables.
const IP: u16 = super::arch::RETURN_ADDRESS;

/// The most operations in any known shape.
const MAX: usize = 9;

/// An operation, as far as known shapes have it.
#[derive(Clone, Copy)]
enum Op {
    /// Pushes register + offset.
    Register(u16, i64),
    /// Pushes a number.
    Number(u64),
    /// Reads the word at the address on top.
    Word,
    /// Adds to what is on top.
    Add(u64),
    /// Any without operands: its name says what it does to the numbers on top.
    Drop,
    And,
    Ge,
    Mul,
    Plus,
    Shl,
}

impl Op {
    fn of(operation: &Operation<EndianSlice<'_, LittleEndian>>) -> Option<Self> {
        Some(match *operation {
            Operation::RegisterOffset {
                register, offset, ..
            } => Self::Register(register.0, offset),
            Operation::UnsignedConstant { value } => Self::Number(value),
            Operation::Deref {
                size: 8,
                space: false,
                ..
            } => Self::Word,
            Operation::PlusConstant { value } => Self::Add(value),
            Operation::Drop => Self::Drop,
            Operation::And => Self::And,
            Operation::Ge => Self::Ge,
            Operation::Mul => Self::Mul,
            Operation::Plus => Self::Plus,
            Operation::Shl => Self::Shl,
            _ => return None,
        })
    }
}

impl Expression {
    pub(super) fn read(
        expression: gimli::Expression<EndianSlice<'_, LittleEndian>>,
        encoding: gimli::Encoding,
    ) -> Self {
        let mut operations = [Op::Drop; MAX];
        let mut count = 0;
        let mut iter = expression.operations(encoding);
        while let Ok(Some(operation)) = iter.next() {
            let (Some(place), Some(known)) = (operations.get_mut(count), Op::of(&operation)) else {
                return Self::Other;
            };
            *place = known;
            count += 1;
        }
        shape(&operations[..count])
    }
}

fn shape(operations: &[Op]) -> Expression {
    use Op::{Add, And, Drop, Ge, Mul, Number, Plus, Register, Shl, Word};
    match *operations {
        // Where a register is saved. The expression may first drop the CFA it was given.
        [Register(register, offset)] | [Drop, Register(register, offset)] => {
            Expression::Place { register, offset }
        }
        // A saved stack pointer, as in functions that realign their stack.
        [Register(register, offset), Word] => Expression::Memory {
            register,
            offset,
            addend: 0,
        },
        [Register(register, offset), Word, Add(value)]
        // The same in SBCL's assembly, where it enters Lisp.
        | [Register(register, offset), Word, Number(value), Plus] => Expression::Memory {
            register,
            offset,
            addend: value.cast_signed(),
        },
        // OpenSSL's multiplication, which saves it behind a variable number of words.
        [
            Register(register, offset),
            Register(index, 0),
            Number(8),
            Mul,
            Plus,
            Word,
            Add(value),
        ] => Expression::IndexedMemory {
            register,
            offset,
            index,
            addend: value.cast_signed(),
        },
        // The expression that linkers write for procedure linkage tables.
        [
            Register(register, offset),
            Register(IP, 0),
            Number(15),
            And,
            Number(threshold),
            Ge,
            Number(3),
            Shl,
            Plus,
        ] => Expression::Linkage {
            register,
            offset,
            threshold,
        },
        _ => Expression::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FP: u16 = 6;
    const SP: u16 = 7;

    fn read(bytes: &[u8]) -> Expression {
        let encoding = gimli::Encoding {
            address_size: 8,
            format: gimli::Format::Dwarf32,
            version: 5,
        };
        Expression::read(
            gimli::Expression(EndianSlice::new(bytes, LittleEndian)),
            encoding,
        )
    }

    #[test]
    fn the_word_at_a_place_may_have_something_added_in_two_ways() {
        let memory = |register, offset, addend| Expression::Memory {
            register,
            offset,
            addend,
        };
        // breg6 -8, deref: GCC, for a realigned stack.
        assert_eq!(read(&[0x76, 0x78, 0x06]), memory(FP, -8, 0));
        // breg7 16, deref, plus_uconst 8: OpenSSL.
        assert_eq!(read(&[0x77, 0x10, 0x06, 0x23, 0x08]), memory(SP, 16, 8));
        // breg6 0, deref, lit16, plus: SBCL.
        assert_eq!(read(&[0x76, 0x00, 0x06, 0x40, 0x22]), memory(FP, 0, 16));
    }

    #[test]
    fn the_expression_of_linkage_tables_is_known() {
        let bytes = [
            0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22,
        ];
        let linkage = Expression::Linkage {
            register: SP,
            offset: 8,
            threshold: 11,
        };
        assert_eq!(read(&bytes), linkage);
    }

    #[test]
    fn what_is_cut_or_longer_is_another_expression() {
        for bytes in [
            &[][..],
            // breg6 without its offset; lit16 is not added, or subtracted; four bytes are read; more than is known.
            &[0x76],
            &[0x76, 0x00, 0x06, 0x40],
            &[0x76, 0x00, 0x06, 0x40, 0x1c],
            &[0x76, 0x00, 0x94, 0x04],
            &[0x96; MAX + 1],
        ] {
            assert_eq!(read(bytes), Expression::Other, "{bytes:?}");
        }
    }
}
