//! The table itself: functions by address, their names, and values that change along their code.

use super::Function;
use crate::object::Part;
use crate::object::image::read_at;
use std::cell::Cell;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt as _;

/// How many bytes of values may be read in all: some seconds' work, what a million addresses take.
const MAX_STEPS: u64 = 1 << 31;

/// How much of a value table is read at a time, in bytes.
const BLOCK_BYTES: usize = 128;

/// A name or a path may have so many bytes.
const MAX_NAME_BYTES: usize = 4096;

/// A format of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Format {
    /// Since Go 1.16: functions by address.
    Go116,
    /// Since Go 1.18: functions by offset from the beginning of the code.
    Go118,
    /// Since Go 1.20: inlined functions are listed otherwise.
    Go120,
}

impl Format {
    fn of(magic: u32) -> Option<Self> {
        match magic {
            0xffff_fffa => Some(Self::Go116),
            0xffff_fff0 => Some(Self::Go118),
            0xffff_fff1 => Some(Self::Go120),
            _ => None,
        }
    }
}

/// A table up to this size is kept in memory while all of it is read, in bytes: the largest known has a third of that.
const MAX_HELD_BYTES: u64 = 64 << 20;

/// How much is read at a time to find a table, in bytes, and how much in all.
const SEARCH_BYTES: usize = 64 << 10;
const MAX_SEARCHED_BYTES: u64 = 256 << 20;

/// Tables begin at multiples of this (`cmd/link/internal/ld/data.go`, `dodata`).
const ALIGNMENT: usize = 32;

/// How an inlined function is listed.
pub(super) struct InlinedLayout {
    /// How many bytes it takes.
    pub(super) bytes: u64,
    /// Where in it its name's offset is.
    pub(super) name: usize,
    /// Where in it is what stands for its call.
    pub(super) parent: usize,
}

/// Where a table of values begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Values(u32);

/// A table, read from its file as it is asked.
pub(super) struct Table<'f> {
    file: &'f File,
    part: Part,
    /// All bytes, if they are kept.
    held: Option<Vec<u8>>,
    pub(super) format: Format,
    /// The size of the shortest instruction, in bytes: the unit of value tables.
    unit: u64,
    functions: u64,
    /// The beginning of the code, if the table says so.
    pub(super) text: Option<u64>,
    /// Offsets of the table's parts.
    pub(super) names: u64,
    units: u64,
    files: u64,
    values: u64,
    records: u64,
    steps: Cell<u64>,
}

impl<'f> Table<'f> {
    /// Reads a table's header.
    pub(super) fn read(file: &'f File, part: Part) -> Option<Self> {
        let mut table = Self {
            file,
            part,
            held: None,
            format: Format::Go116,
            unit: 1,
            functions: 0,
            text: None,
            names: 0,
            units: 0,
            files: 0,
            values: 0,
            records: 0,
            steps: Cell::new(MAX_STEPS),
        };
        table.format = Format::of(table.u32(0)?)?;
        let [_, _, unit, pointer] = table.u32(4)?.to_le_bytes();
        if pointer != 8 {
            return None;
        }
        table.unit = unit.into();
        table.functions = table.u64(8)?;
        let first = match table.format {
            Format::Go116 => 24,
            Format::Go118 | Format::Go120 => {
                table.text = Some(table.u64(24)?).filter(|&text| text != 0);
                32
            }
        };
        table.names = table.u64(first)?;
        table.units = table.u64(first + 8)?;
        table.files = table.u64(first + 16)?;
        table.values = table.u64(first + 24)?;
        table.records = table.u64(first + 32)?;
        let size = table.functions.checked_mul(table.entry_bytes())?;
        (table.records.checked_add(size)? <= part.bytes).then_some(table)
    }

    /// Finds a table in a larger part of its file, which holds other data, too.
    pub(super) fn search(file: &'f File, part: Part) -> Option<Self> {
        const STEP: u64 = SEARCH_BYTES as u64;
        let bytes = part.bytes.min(MAX_SEARCHED_BYTES);
        let blocks = (0..bytes).step_by(SEARCH_BYTES);
        let mut places = blocks.flat_map(|block| {
            let size = STEP.min(bytes - block) as usize;
            let read = read_at(file, part.offset.saturating_add(block), size);
            let heads = read.chunks(ALIGNMENT).enumerate();
            let is_head = |head: &[u8]| {
                let magic = head.first_chunk().map(|magic| u32::from_le_bytes(*magic));
                magic.and_then(Format::of).is_some() && head.get(4..8) == Some(&[0, 0, 1, 8])
            };
            let found: Vec<u64> = heads
                .filter(|(_, head)| is_head(head))
                .map(|(number, _)| block + (number * ALIGNMENT) as u64)
                .collect();
            found
        });
        places.find_map(|place| {
            let rest = Part {
                address: part.address.checked_add(place)?,
                offset: part.offset.checked_add(place)?,
                bytes: part.bytes - place,
            };
            Self::read(file, rest)
        })
    }

    /// Where the table is in memory, before relocation.
    pub(super) fn address(&self) -> u64 {
        self.part.address
    }

    /// Reads all of the table at once: for whoever wants every function.
    pub(super) fn hold(&mut self) {
        if self.part.bytes <= MAX_HELD_BYTES {
            self.held = Some(read_at(
                self.file,
                self.part.offset,
                self.part.bytes as usize,
            ));
        }
    }

    /// How many bytes it has.
    pub(super) fn bytes(&self) -> u64 {
        self.part.bytes
    }

    /// How many functions it lists.
    pub(super) fn functions(&self) -> u64 {
        self.functions
    }

    /// A function by its number, in code that begins at `text`, and where the next one begins.
    pub(super) fn numbered(&self, number: u64, text: u64) -> Option<(Function, u64)> {
        let place = self.place(number)?.checked_add(self.entry_bytes() / 2)?;
        let function = Function {
            entry: text.checked_add(self.begin(number)?)?,
            record: self.records.checked_add(self.number(place)?)?,
        };
        let next = text.checked_add(self.begin(number.checked_add(1)?)?)?;
        Some((function, next))
    }

    /// The function that has code at an address, in code that begins at `text`.
    pub(super) fn function(&self, address: u64, text: u64) -> Option<Function> {
        let wanted = address.checked_sub(text)?;
        let (mut low, mut high) = (0, self.functions);
        // The last function that begins at or before the address.
        while low < high {
            let middle = low.midpoint(high);
            match self.begin(middle)? <= wanted {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        // Behind the last function stands where it ends.
        let (function, next) = self.numbered(low.checked_sub(1)?, text)?;
        (address < next).then_some(function)
    }

    /// The name of the function with that record.
    pub(super) fn function_name(&self, record: u64) -> Option<Vec<u8>> {
        self.name(self.field(record, 0)?)
    }

    /// The name at an offset among names.
    pub(super) fn name(&self, offset: u32) -> Option<Vec<u8>> {
        self.string(self.names.checked_add(offset.into())?)
    }

    /// The path of a file, by the number that a function of its compilation unit has for it.
    pub(super) fn file(&self, record: u64, number: u32) -> Option<Vec<u8>> {
        let first = self.field(record, 7)?;
        let number = u64::from(first).checked_add(number.into())?;
        let at = self.units.checked_add(number.checked_mul(4)?)?;
        let offset = self.u32(at).filter(|&offset| offset != u32::MAX)?;
        self.string(self.files.checked_add(offset.into())?)
    }

    /// The tables of a function's files and lines.
    pub(super) fn line_values(&self, record: u64) -> Option<(Values, Values)> {
        Some((
            Values(self.field(record, 4)?),
            Values(self.field(record, 5)?),
        ))
    }

    /// The table of the sizes of a function's frame.
    pub(super) fn size_values(&self, record: u64) -> Option<Values> {
        self.field(record, 3).map(Values)
    }

    /// Flags of a function for the runtime; see `internal/abi.FuncFlag`.
    pub(super) fn flags(&self, record: u64) -> Option<u8> {
        let [_, flags, ..] = self.field(record, self.fields() - 1)?.to_le_bytes();
        Some(flags)
    }

    /// One of a function's further tables.
    pub(super) fn inlined_values(&self, record: u64, number: u32) -> Option<Values> {
        let count = self.field(record, 6)?;
        let fields = self.fields();
        (number < count).then(|| self.field(record, fields.checked_add(number)?).map(Values))?
    }

    /// The offset of one of a function's data.
    pub(super) fn data(&self, record: u64, number: u32) -> Option<u32> {
        let fields = self.fields();
        // The last byte before is how many there are.
        let [.., count] = self.field(record, fields - 1)?.to_le_bytes();
        let values = self.field(record, 6)?;
        let place = fields.checked_add(values)?.checked_add(number)?;
        let data = (number < count.into()).then(|| self.field(record, place))??;
        (data != u32::MAX).then_some(data)
    }

    /// How inlined functions are listed; none where that is not known.
    pub(super) fn inlined_layout(&self) -> Option<InlinedLayout> {
        let layout = |bytes, name, parent| InlinedLayout {
            bytes,
            name,
            parent,
        };
        match self.format {
            Format::Go116 => None,
            Format::Go118 => Some(layout(20, 12, 16)),
            Format::Go120 => Some(layout(16, 4, 8)),
        }
    }

    /// The value that holds at an offset in a function; none if its table ends before.
    pub(super) fn value(&self, values: Values, at: u64) -> Option<i32> {
        let mut found = None;
        self.each_value(values, |end, value| match at < end {
            true => {
                found = Some(value);
                ControlFlow::Break(())
            }
            false => ControlFlow::Continue(()),
        })?;
        found
    }

    /// Calls `visit` with each value of a table, in order, and the offset in the function at which it ceases to hold, until
    /// `visit` has enough. None if the table is damaged behind what was visited.
    pub(super) fn each_value(
        &self,
        values: Values,
        mut visit: impl FnMut(u64, i32) -> ControlFlow<()>,
    ) -> Option<()> {
        // At the first byte of all is no table.
        let start = (values.0 != 0).then(|| self.values.checked_add(values.0.into()))??;
        let mut bytes = Stream {
            table: self,
            at: start,
            block: Vec::new(),
            next: 0,
        };
        let (mut end, mut value) = (0u64, -1i32);
        let mut is_first = true;
        loop {
            let change = bytes.number()?;
            if change == 0 && !is_first {
                return Some(());
            }
            is_first = false;
            // The lowest bit is the sign.
            let magnitude = (change >> 1).cast_signed();
            value = value.wrapping_add(magnitude ^ -(change & 1).cast_signed());
            end = end.checked_add(u64::from(bytes.number()?).checked_mul(self.unit)?)?;
            if visit(end, value).is_break() {
                return Some(());
            }
        }
    }

    /// How many words of a record come before its lists.
    fn fields(&self) -> u32 {
        match self.format {
            // The name, then as the others.
            Format::Go116 | Format::Go118 => 9,
            // The line of the beginning was added.
            Format::Go120 => 10,
        }
    }

    /// A word of a record: 0 its name, 3 the sizes of its frame, 4 its files, 5 its lines, 6 how many tables, 7 its unit.
    fn field(&self, record: u64, number: u32) -> Option<u32> {
        // First stands where it begins.
        let skipped = match self.format {
            Format::Go116 => 8,
            Format::Go118 | Format::Go120 => 4,
        };
        let at = u64::from(number).checked_mul(4)?.checked_add(skipped)?;
        self.u32(record.checked_add(at)?)
    }

    fn entry_bytes(&self) -> u64 {
        match self.format {
            Format::Go116 => 16,
            Format::Go118 | Format::Go120 => 8,
        }
    }

    fn place(&self, function: u64) -> Option<u64> {
        self.records
            .checked_add(function.checked_mul(self.entry_bytes())?)
    }

    /// Where a function begins.
    fn begin(&self, function: u64) -> Option<u64> {
        self.number(self.place(function)?)
    }

    /// A number of an entry.
    fn number(&self, at: u64) -> Option<u64> {
        match self.format {
            Format::Go116 => self.u64(at),
            Format::Go118 | Format::Go120 => self.u32(at).map(u64::from),
        }
    }

    fn u32(&self, at: u64) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    fn u64(&self, at: u64) -> Option<u64> {
        self.array(at).map(u64::from_le_bytes)
    }

    fn array<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        let end = at.checked_add(N as u64)?;
        if end > self.part.bytes {
            return None;
        }
        if let Some(held) = &self.held {
            let at = usize::try_from(at).ok()?;
            return held.get(at..)?.first_chunk().copied();
        }
        let offset = self.part.offset.checked_add(at)?;
        self.file.read_exact_at(&mut bytes, offset).ok()?;
        Some(bytes)
    }

    fn string(&self, at: u64) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            let block = self.block(at.checked_add(bytes.len() as u64)?)?;
            if let Some(end) = block.iter().position(|&byte| byte == 0) {
                bytes.extend_from_slice(&block[..end]);
                return (!bytes.is_empty()).then_some(bytes);
            }
            bytes.extend_from_slice(&block);
            if block.is_empty() || bytes.len() > MAX_NAME_BYTES {
                return None;
            }
        }
    }

    /// Some bytes from here on.
    fn block(&self, at: u64) -> Option<Vec<u8>> {
        let left = usize::try_from(self.part.bytes.checked_sub(at)?).unwrap_or(usize::MAX);
        let wanted = left.min(BLOCK_BYTES);
        let (bytes, count) = if let Some(held) = &self.held {
            let rest = held.get(usize::try_from(at).ok()?..)?;
            let bytes = rest[..rest.len().min(wanted)].to_vec();
            let count = bytes.len();
            (bytes, count)
        } else {
            let offset = self.part.offset.checked_add(at)?;
            let mut bytes = vec![0; wanted];
            let count = self.file.read_at(&mut bytes, offset).ok()?;
            bytes.truncate(count);
            (bytes, count)
        };
        self.steps.set(self.steps.get().checked_sub(count as u64)?);
        Some(bytes)
    }
}

/// Numbers of variable length, one after the other.
struct Stream<'t, 'f> {
    table: &'t Table<'f>,
    /// Where the next block begins.
    at: u64,
    block: Vec<u8>,
    next: usize,
}

impl Stream<'_, '_> {
    fn byte(&mut self) -> Option<u8> {
        if self.next == self.block.len() {
            self.block = self.table.block(self.at)?;
            self.at = self.at.checked_add(self.block.len() as u64)?;
            self.next = 0;
        }
        let byte = *self.block.get(self.next)?;
        self.next += 1;
        Some(byte)
    }

    /// Seven bits a byte, the lowest first.
    fn number(&mut self) -> Option<u32> {
        let mut number = 0;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte()?;
            number |= u32::from(byte & 0x7f).wrapping_shl(shift);
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}
