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

/// The DWARF number of x86-64's instruction pointer, used in the expressions of linkage tables.
const RIP: u16 = 16;

/// The most operations in any known shape.
const MOST: usize = 9;

type Op<'a> = Operation<EndianSlice<'a, LittleEndian>>;

impl Expression {
    pub(super) fn read(
        expression: gimli::Expression<EndianSlice<'_, LittleEndian>>,
        encoding: gimli::Encoding,
    ) -> Self {
        let mut operations = [Op::Nop; MOST];
        let mut count = 0;
        let mut iter = expression.operations(encoding);
        while let Ok(Some(operation)) = iter.next() {
            let Some(place) = operations.get_mut(count) else {
                return Self::Other;
            };
            *place = operation;
            count += 1;
        }
        operations.get(..count).map_or(Self::Other, shape)
    }
}

fn shape(operations: &[Op<'_>]) -> Expression {
    use Operation::{
        And, Deref, Drop, Ge, Mul, Plus, PlusConstant, RegisterOffset, Shl, UnsignedConstant,
    };
    match *operations {
        // Where a register is saved. The expression may first drop the CFA it was given.
        [
            RegisterOffset {
                register, offset, ..
            },
        ]
        | [
            Drop,
            RegisterOffset {
                register, offset, ..
            },
        ] => Expression::Place {
            register: register.0,
            offset,
        },
        // A saved stack pointer, as in functions that realign their stack.
        [
            RegisterOffset {
                register, offset, ..
            },
            Deref {
                size: 8,
                space: false,
                ..
            },
        ] => Expression::Memory {
            register: register.0,
            offset,
            addend: 0,
        },
        [
            RegisterOffset {
                register, offset, ..
            },
            Deref {
                size: 8,
                space: false,
                ..
            },
            PlusConstant { value },
        ] => Expression::Memory {
            register: register.0,
            offset,
            addend: value.cast_signed(),
        },
        // OpenSSL's multiplication, which saves it behind a variable number of words.
        [
            RegisterOffset {
                register, offset, ..
            },
            RegisterOffset {
                register: index,
                offset: 0,
                ..
            },
            UnsignedConstant { value: 8 },
            Mul,
            Plus,
            Deref {
                size: 8,
                space: false,
                ..
            },
            PlusConstant { value },
        ] => Expression::IndexedMemory {
            register: register.0,
            offset,
            index: index.0,
            addend: value.cast_signed(),
        },
        // The expression that linkers write for procedure linkage tables.
        [
            RegisterOffset {
                register, offset, ..
            },
            RegisterOffset {
                register: gimli::Register(RIP),
                offset: 0,
                ..
            },
            UnsignedConstant { value: 15 },
            And,
            UnsignedConstant { value: threshold },
            Ge,
            UnsignedConstant { value: 3 },
            Shl,
            Plus,
        ] => Expression::Linkage {
            register: register.0,
            offset,
            threshold,
        },
        _ => Expression::Other,
    }
}
