//! Columns of a group of rows.
//!
//! In: rows. Out: their cells, column by column, some rows at a time.

use super::Written;
use super::rows::{FrameCells, Owner, Rows, StoreRow};
use crate::parquet_schema::FRAME;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};

/// So many rows are handed over at a time.
const BATCH_ROWS: usize = 2048;

/// The cell of a row.
type Cell<'a, T> = Box<dyn Fn(&StoreRow) -> Option<T> + 'a>;

/// A column's cells.
enum Cells<'a> {
    Text(Cell<'a, ByteArray>),
    Number(Cell<'a, i64>),
    FrameText(fn(&FrameCells) -> Option<&ByteArray>),
    FrameNumber(fn(&FrameCells) -> Option<&i64>),
}

/// Writes a group.
pub(super) fn write(
    file: &mut SerializedFileWriter<Written>,
    rows: &Rows,
    group: &[StoreRow],
) -> Result<()> {
    let columns: Vec<(String, i16)> = (file.schema_descr().columns().iter())
        .map(|column| (column.path().string(), column.max_def_level()))
        .collect();
    let mut writer = file.next_row_group()?;
    for (name, defined) in columns {
        let mut column = writer.next_column()?.ok_or_else(|| unknown(&name))?;
        let cells = cells(rows, &name).ok_or_else(|| unknown(&name))?;
        for batch in group.chunks(BATCH_ROWS) {
            match &cells {
                Cells::Text(of) => flat::<ByteArrayType>(&mut column, batch, defined, of)?,
                Cells::Number(of) => flat::<Int64Type>(&mut column, batch, defined, of)?,
                Cells::FrameText(of) => {
                    nested::<ByteArrayType>(&mut column, (rows, batch), defined, *of)?;
                }
                Cells::FrameNumber(of) => {
                    nested::<Int64Type>(&mut column, (rows, batch), defined, *of)?;
                }
            }
        }
        column.close()?;
    }
    writer.close()?;
    Ok(())
}

/// A column that has no cells, or is not there.
fn unknown(column: &str) -> ParquetError {
    ParquetError::General(format!("there is no column {column}"))
}

/// The cells of a column of that name.
fn cells<'a>(rows: &'a Rows, name: &str) -> Option<Cells<'a>> {
    if let Some(name) = name.strip_prefix(FRAME) {
        return Some(match name {
            "function" => Cells::FrameText(|frame| Some(&frame.function)),
            "module" => Cells::FrameText(|frame| frame.module.as_ref()),
            "build_id" => Cells::FrameText(|frame| frame.build_id.as_ref()),
            "kind" => Cells::FrameText(|frame| Some(&frame.kind)),
            "file" => Cells::FrameText(|frame| frame.file.as_ref()),
            "line" => Cells::FrameNumber(|frame| frame.line.as_ref()),
            _ => return None,
        });
    }
    let owned = |of: fn(&Owner) -> &Option<ByteArray>| {
        Cells::Text(Box::new(move |row| of(rows.owner(row)?).clone()))
    };
    let numbered =
        |of: fn(&Owner) -> Option<i64>| Cells::Number(Box::new(move |row| of(rows.owner(row)?)));
    Some(match name {
        "time" => Cells::Number(Box::new(|row| rows.time(row))),
        "duration_ns" => Cells::Number(Box::new(|row| Some(rows.duration(row)))),
        "host" => Cells::Text(Box::new(|_| rows.host.clone())),
        "event" => Cells::Text(Box::new(|_| Some(rows.event.clone()))),
        "unit" => Cells::Text(Box::new(|_| Some(rows.unit.clone()))),
        "outcome" => Cells::Text(Box::new(|row| Some(rows.outcome(row).into()))),
        "cgroup" => owned(|owner| &owner.cgroup),
        "systemd_unit" => owned(|owner| &owner.systemd_unit),
        "container" => owned(|owner| &owner.container),
        "container_id" => owned(|owner| &owner.container_id),
        "pod" => owned(|owner| &owner.pod),
        "pod_uid" => owned(|owner| &owner.pod_uid),
        "service" => owned(|owner| &owner.service),
        "source" => owned(|owner| &owner.source),
        "process" => owned(|owner| &owner.process),
        "thread" => owned(|owner| &owner.thread),
        "pid" => numbered(|owner| owner.pid),
        "tid" => numbered(|owner| owner.tid),
        "cpu" => numbered(|owner| owner.cpu),
        "state" => Cells::Text(Box::new(|row| rows.state(row).map(ByteArray::from))),
        "count" => Cells::Number(Box::new(|row| Some(rows.count(row)))),
        "value" => Cells::Number(Box::new(|row| Some(rows.value(row)))),
        _ => return None,
    })
}

/// Writes a cell for each row. Those that must be there are defined at level zero.
fn flat<T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    rows: &[StoreRow],
    defined: i16,
    of: impl Fn(&StoreRow) -> Option<T::T>,
) -> Result<()> {
    let cells: Vec<Option<T::T>> = rows.iter().map(of).collect();
    let level = |cell: &Option<T::T>| if cell.is_some() { defined } else { defined - 1 };
    let levels: Vec<i16> = cells.iter().map(level).collect();
    let values: Vec<T::T> = cells.into_iter().flatten().collect();
    let levels = (defined > 0).then_some(&*levels);
    column.typed::<T>().write_batch(&values, levels, None)?;
    Ok(())
}

/// Writes a cell for each frame of each row.
fn nested<T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    (rows, batch): (&Rows, &[StoreRow]),
    defined: i16,
    of: fn(&FrameCells) -> Option<&T::T>,
) -> Result<()> {
    let (mut values, mut levels, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
    for row in batch {
        let begin = levels.len();
        for frame in rows.stack(row) {
            let value = of(frame);
            levels.push(if value.is_some() {
                defined
            } else {
                defined - 1
            });
            values.extend(value.cloned());
            repeated.push(i16::from(levels.len() > begin + 1));
        }
        if levels.len() == begin {
            levels.push(0);
            repeated.push(0);
        }
    }
    let column = column.typed::<T>();
    column.write_batch(&values, Some(&levels), Some(&repeated))?;
    Ok(())
}
