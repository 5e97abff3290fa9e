//! Columns of a group of rows.
//!
//! In: a table. Out: the cells of all columns that are read, some rows at a time; those of frames only of rows that are wanted.

use super::broken;
use super::columns::{Cells, Column, NONE, Table, Texts};
use super::stacks::Raw;
use crate::input::Error;
use crate::parquet_schema::FRAME;
use parquet::data_type::{ByteArrayType, DataType, Int64Type};

/// A column, if it is there, and its cells of some rows.
type FoundColumn<T, C> = (Option<Column<T>>, Cells<C>);
type TextColumn = FoundColumn<ByteArrayType, u32>;
type NumberColumn = FoundColumn<Int64Type, Option<i64>>;

/// The columns of a group of rows that are no frames.
pub(super) struct Flat {
    pub(super) texts: [TextColumn; TEXTS.len()],
    pub(super) numbers: [NumberColumn; NUMBERS.len()],
}

/// Columns of texts, and whether they must be there.
const TEXTS: [(&str, bool); 10] = [
    ("event", true),
    ("outcome", true),
    ("host", false),
    ("cgroup", false),
    ("container", false),
    ("pod", false),
    ("source", false),
    ("process", false),
    ("thread", false),
    ("state", false),
];

/// Columns of numbers, and whether they must be there.
const NUMBERS: [(&str, bool); 7] = [
    ("time", true),
    ("duration_ns", true),
    ("count", true),
    ("value", true),
    ("pid", false),
    ("tid", false),
    ("cpu", false),
];

/// A column that must be there.
pub(super) fn needed<C>(column: Option<C>, name: &str) -> Result<C, Error> {
    column.ok_or_else(|| {
        Error::Whole(format!(
            "it has no column `{name}`, so it is no table of samples; such tables are made by flame-bpf -o x.parquet"
        ))
    })
}

/// Columns of such names, and room for the cells of each.
fn open<T: DataType, C, const N: usize>(
    table: &mut Table,
    group: usize,
    names: [(&str, bool); N],
) -> Result<[FoundColumn<T, C>; N], Error> {
    let mut columns = Vec::new();
    for (name, is_needed) in names {
        let mut column = table.column(group, name)?;
        if is_needed {
            column = Some(needed(column, name)?);
        }
        columns.push((column, Cells::default()));
    }
    (columns.try_into()).map_err(|_| broken("columns are missing"))
}

impl Flat {
    pub(super) fn open(table: &mut Table, group: usize) -> Result<Self, Error> {
        Ok(Self {
            texts: open(table, group, TEXTS)?,
            numbers: open(table, group, NUMBERS)?,
        })
    }

    pub(super) fn read(&mut self, rows: usize, texts: &mut Texts) -> Result<(), Error> {
        for (column, cells) in &mut self.texts {
            match column {
                Some(column) => column.texts(rows, texts, cells)?,
                None => cells.all = vec![NONE; rows],
            }
        }
        for (column, cells) in &mut self.numbers {
            match column {
                Some(column) => column.numbers(rows, cells)?,
                None => cells.all = vec![None; rows],
            }
        }
        Ok(())
    }
}

/// The columns of frames.
pub(super) struct Frames {
    texts: [TextColumn; 5],
    line: NumberColumn,
}

/// Columns of frames, in the order of [`Raw`] but for the line, which is the last.
const FRAME_TEXTS: [&str; 5] = ["function", "module", "build_id", "kind", "file"];

impl Frames {
    pub(super) fn open(table: &mut Table, group: usize) -> Result<Self, Error> {
        let mut texts = Vec::new();
        for name in FRAME_TEXTS {
            texts.push((
                table.column(group, &format!("{FRAME}{name}"))?,
                Cells::default(),
            ));
        }
        if texts[0].0.is_none() {
            needed(None::<()>, "stack")?;
        }
        Ok(Self {
            texts: (texts.try_into()).map_err(|_| broken("columns are missing"))?,
            line: (
                table.column(group, &format!("{FRAME}line"))?,
                Cells::default(),
            ),
        })
    }

    pub(super) fn skip(&mut self, rows: usize) -> Result<(), Error> {
        for column in self
            .texts
            .iter_mut()
            .filter_map(|(column, _)| column.as_mut())
        {
            column.skip(rows)?;
        }
        (self.line.0.as_mut()).map_or(Ok(()), |column| column.skip(rows))
    }

    pub(super) fn read(&mut self, rows: usize, texts: &mut Texts) -> Result<(), Error> {
        for (column, cells) in &mut self.texts {
            if let Some(column) = column {
                column.texts(rows, texts, cells)?;
            }
        }
        match &mut self.line {
            (Some(column), cells) => column.numbers(rows, cells),
            (None, _) => Ok(()),
        }
    }

    /// The frames of a row that was read.
    pub(super) fn of_row(&self, row: usize, frames: &mut Vec<Raw>) -> Result<(), Error> {
        let functions = self.texts[0].1.of_row(row);
        frames.clear();
        frames.resize(functions.len(), [NONE; 6]);
        let uneven = || broken("frames have uneven numbers of cells");
        for (place, (column, cells)) in self.texts.iter().enumerate() {
            if column.is_none() {
                continue;
            }
            let cells = cells.of_row(row);
            if cells.len() != frames.len() {
                return Err(uneven());
            }
            for (frame, cell) in frames.iter_mut().zip(cells) {
                frame[place] = *cell;
            }
        }
        if self.line.0.is_some() {
            let lines = self.line.1.of_row(row);
            if lines.len() != frames.len() {
                return Err(uneven());
            }
            for (frame, line) in frames.iter_mut().zip(lines) {
                frame[5] = line.and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
            }
        }
        Ok(())
    }
}
