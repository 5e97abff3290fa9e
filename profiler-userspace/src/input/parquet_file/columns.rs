//! Cells of columns, some rows at a time.
//!
//! In: the bytes of a Parquet file. Out: for each row, or each frame of it, the number of a text, or a number. Texts have numbers of
//! their own, which all columns of all files share. Columns are known by their names, so that tables that an engine has rewritten
//! are read as well.

use super::broken;
use super::checks::{Checks, Chunk};
use super::guarded::guarded;
use crate::input::Error;
use crate::parquet_schema::FRAME;
use bytes::Bytes;
use foldhash::fast::RandomState;
use indexmap::IndexSet;
use parquet::basic::{LogicalType, TimeUnit};
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::file::reader::FileReader as _;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::schema::types::ColumnDescriptor;
use std::collections::HashMap;

/// The number of no text.
pub(super) const NONE: u32 = 0;

/// Texts by their numbers.
#[derive(Default)]
pub(super) struct Texts {
    all: IndexSet<Box<str>, RandomState>,
    /// Characters of all.
    pub(super) bytes: u64,
}

impl Texts {
    /// The number of a text, which is not [`NONE`].
    pub(super) fn number(&mut self, text: &str) -> u32 {
        let number = match self.all.get_index_of(text) {
            Some(known) => known,
            None => {
                self.bytes += text.len() as u64 + 64;
                self.all.insert_full(text.into()).0
            }
        };
        u32::try_from(number + 1).unwrap_or(u32::MAX)
    }

    /// The text of a number; none of [`NONE`].
    pub(super) fn get(&self, number: u32) -> Option<&str> {
        let index = (number as usize).checked_sub(1)?;
        self.all.get_index(index).map(|text| &**text)
    }
}

/// A file whose footer was read.
pub(super) struct Table {
    bytes: Bytes,
    reader: SerializedFileReader<Bytes>,
    checks: Checks,
}

impl Table {
    pub(super) fn new(bytes: Bytes) -> Result<Self, Error> {
        let reader = guarded(|| SerializedFileReader::new(bytes.clone()))?;
        Ok(Self {
            checks: Checks::new(bytes.len()),
            bytes,
            reader,
        })
    }

    /// The value of a key in the file's metadata.
    pub(super) fn value(&self, key: &str) -> Option<&str> {
        let metadata = self.reader.metadata().file_metadata();
        let all = metadata.key_value_metadata()?;
        all.iter().find(|one| one.key == key)?.value.as_deref()
    }

    /// How many groups of rows it has.
    pub(super) fn groups(&self) -> usize {
        self.reader.num_row_groups()
    }

    /// How many rows a group has.
    pub(super) fn rows(&self, group: usize) -> Result<usize, Error> {
        let rows = self.reader.metadata().row_group(group).num_rows();
        usize::try_from(rows).map_err(|_| broken("a group has less than no rows"))
    }

    /// A column of a group by its name; none if the table has none of that name.
    pub(super) fn column<T: DataType>(
        &mut self,
        group: usize,
        name: &str,
    ) -> Result<Option<Column<T>>, Error> {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        let all = schema.columns().iter();
        let Some(place) = { all }.position(|column| column.path().string() == name) else {
            return Ok(None);
        };
        let descriptor = schema.column(place);
        let is_frame = name.starts_with(FRAME);
        if descriptor.physical_type() != T::get_physical_type()
            || descriptor.max_rep_level() != i16::from(is_frame)
        {
            return Err(broken(&format!("its column {name} is of another type")));
        }
        let rows = self.rows(group)?;
        let part = self.reader.metadata().row_group(group).column(place);
        let begin = part.dictionary_page_offset();
        let chunk = Chunk {
            begin: begin.unwrap_or(part.data_page_offset()),
            bytes: part.compressed_size(),
        };
        let cells = (self.checks.chunk(&self.bytes, chunk))
            .map_err(|problem| broken(&format!("{problem} ({name})")))?;
        let has_all = if is_frame {
            cells >= rows as u64
        } else {
            cells == rows as u64
        };
        if !has_all || u64::try_from(part.num_values()).ok() != Some(cells) {
            return Err(broken(&format!(
                "its column {name} has a wrong number of cells"
            )));
        }
        let reader = guarded(|| self.reader.get_row_group(group)?.get_column_reader(place))?;
        Ok(Some(Column {
            reader: get_typed_column_reader(reader),
            factor: factor(&descriptor),
            defined: descriptor.max_def_level(),
            element: descriptor.repeated_ancestor_def_level(),
            levels: Vec::new(),
            repeats: Vec::new(),
            values: Vec::new(),
        }))
    }
}

/// Factor of a column's numbers: times may be in other units than nanoseconds.
fn factor(descriptor: &ColumnDescriptor) -> i64 {
    match descriptor.logical_type_ref() {
        Some(LogicalType::Timestamp(time)) => match time.unit {
            TimeUnit::MILLIS => 1_000_000,
            TimeUnit::MICROS => 1_000,
            TimeUnit::NANOS => 1,
        },
        _ => 1,
    }
}

/// A column of a group of rows.
pub(super) struct Column<T: DataType> {
    reader: ColumnReaderImpl<T>,
    factor: i64,
    /// Level at which a cell has a value.
    defined: i16,
    /// Level from which on there is a frame.
    element: i16,
    levels: Vec<i16>,
    repeats: Vec<i16>,
    values: Vec<T::T>,
}

impl<T: DataType> Column<T> {
    /// Passes over some rows.
    pub(super) fn skip(&mut self, rows: usize) -> Result<(), Error> {
        let skipped = guarded(|| self.reader.skip_records(rows))?;
        has_all(skipped, rows)
    }

    /// Reads some rows. `take` is called with each cell: whether a row begins with it, whether it is one at all, since a row may have no
    /// frames, and its value.
    fn read(
        &mut self,
        rows: usize,
        mut take: impl FnMut(bool, bool, Option<&T::T>),
    ) -> Result<(), Error> {
        self.levels.clear();
        self.repeats.clear();
        self.values.clear();
        let (levels, repeats) = (&mut self.levels, &mut self.repeats);
        let (reader, values) = (&mut self.reader, &mut self.values);
        let (read, ..) =
            guarded(|| reader.read_records(rows, Some(levels), Some(repeats), values))?;
        has_all(read, rows)?;
        let mut values = self.values.iter();
        if self.defined == 0 {
            values.for_each(|value| take(true, true, Some(value)));
            return Ok(());
        }
        for (at, level) in self.levels.iter().enumerate() {
            let begins = self.repeats.get(at).is_none_or(|repeat| *repeat == 0);
            let value = if *level == self.defined {
                values.next()
            } else {
                None
            };
            take(begins, *level >= self.element, value);
        }
        Ok(())
    }
}

impl Column<ByteArrayType> {
    /// The numbers of the texts of some rows, or of their frames.
    pub(super) fn texts(
        &mut self,
        rows: usize,
        texts: &mut Texts,
        cells: &mut Cells<u32>,
    ) -> Result<(), Error> {
        cells.clear();
        // Texts of a dictionary lie in one place, and are in memory as long as the rows are.
        let mut known: HashMap<(usize, usize), u32, RandomState> = HashMap::default();
        let mut number = |value: &ByteArray| {
            let text = value.data();
            let place = (text.as_ptr().addr(), text.len());
            *known
                .entry(place)
                .or_insert_with(|| texts.number(&String::from_utf8_lossy(text)))
        };
        self.read(rows, |begins, is_one, value| {
            cells.push(begins, is_one, value.map_or(NONE, &mut number));
        })
    }
}

impl Column<Int64Type> {
    /// The numbers of some rows, or of their frames; none where there is none.
    pub(super) fn numbers(
        &mut self,
        rows: usize,
        cells: &mut Cells<Option<i64>>,
    ) -> Result<(), Error> {
        cells.clear();
        let factor = self.factor;
        self.read(rows, |begins, is_one, value| {
            cells.push(
                begins,
                is_one,
                value.map(|value| value.saturating_mul(factor)),
            );
        })
    }
}

/// Cells of some rows.
pub(super) struct Cells<C> {
    /// Of one row after the other.
    pub(super) all: Vec<C>,
    /// Where the cells of each row begin.
    pub(super) begins: Vec<usize>,
}

impl<C> Default for Cells<C> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            begins: Vec::new(),
        }
    }
}

impl<C> Cells<C> {
    fn clear(&mut self) {
        self.all.clear();
        self.begins.clear();
    }

    fn push(&mut self, begins: bool, is_one: bool, cell: C) {
        if begins {
            self.begins.push(self.all.len());
        }
        if is_one {
            self.all.push(cell);
        }
    }

    /// The cells of a row.
    pub(super) fn of_row(&self, row: usize) -> &[C] {
        let end = self.begins.get(row + 1).copied();
        let begin = self.begins.get(row).copied();
        &self.all[begin.unwrap_or(self.all.len())..end.unwrap_or(self.all.len())]
    }
}

fn has_all(read: usize, rows: usize) -> Result<(), Error> {
    match read == rows {
        true => Ok(()),
        false => Err(broken("a column ends early")),
    }
}
