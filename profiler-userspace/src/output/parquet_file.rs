//! Parquet: a table of samples, for engines of SQL.
//!
//! In: profiles of events, each with its style. Out: one file, the same bytes for the same profiles, with the columns of
//! [`crate::parquet_schema`]: a row for each owner, stack and window, and rows for the firings of each window that are no
//! sample. A group of rows is in memory at a time. Never: two rows for one firing.

mod columns;
mod rows;

use super::{Error, Style};
use crate::parquet_schema::{EventFacts, Facts, KEY, MESSAGE};
use crate::profile::{Activity, Profile};
use parquet::basic::{Compression, GzipLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use rows::{Rows, StoreRow};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// So many rows are a group at most.
const GROUP_ROWS: usize = 1 << 17;

/// So many frames a group has at most, but for its last row.
const GROUP_FRAMES: usize = 1 << 22;

/// A larger dictionary of a column in a group would have each value spelled out.
const DICTIONARY_BYTES: usize = 32 << 20;

/// Higher levels take more time and save little. All engines read gzip, and zstd would need a compiler for C.
const GZIP_LEVEL: u32 = 6;

/// An event's profile, as it is written.
#[derive(Clone, Copy)]
pub struct EventTable<'a> {
    /// The samples.
    pub profile: &'a Profile,
    /// Title and balance.
    pub style: &'a Style,
}

/// Writes the profile.
pub(super) fn write(profile: &Profile, style: &Style, out: &mut dyn Write) -> Result<(), Error> {
    write_events(&[EventTable { profile, style }], None, &[], out)
}

/// Writes the profiles of some events. `service`: the one that all processes are, if they are one; `made_of`: names of the files
/// that the profiles come from, for those who want to know.
///
/// # Errors
/// When the bytes are refused.
pub fn write_events(
    events: &[EventTable<'_>],
    service: Option<&str>,
    made_of: &[String],
    out: &mut dyn Write,
) -> Result<(), Error> {
    let written = Written::default();
    let facts = facts(events, made_of);
    let schema = Arc::new(parse_message_type(MESSAGE).map_err(unwritable)?);
    let mut file = SerializedFileWriter::new(written.clone(), schema, Arc::new(properties(&facts)))
        .map_err(unwritable)?;
    for EventTable { profile, .. } in events {
        let rows = Rows::new(profile, service);
        for group in groups(&rows) {
            columns::write(&mut file, &rows, group).map_err(unwritable)?;
            out.write_all(&written.take())?;
        }
    }
    file.finish().map_err(unwritable)?;
    Ok(out.write_all(&written.take())?)
}

fn facts(events: &[EventTable<'_>], made_of: &[String]) -> Facts {
    let machine = events
        .first()
        .and_then(|of| of.profile.origin.machine.as_ref());
    let event = |EventTable { profile, style }: &EventTable<'_>| EventFacts {
        name: rows::event(profile).to_owned(),
        title: style.title.clone(),
        threads: match profile.origin.activity {
            Activity::Running => "running",
            Activity::Waiting => "waiting",
            Activity::Both => "both",
        }
        .to_owned(),
        period_ns: profile.origin.period_ns,
        balance: style.notes.lines().map(str::to_owned).collect(),
    };
    Facts {
        writer: concat!("flame-bpf ", env!("CARGO_PKG_VERSION")).to_owned(),
        kernel: machine.map(|machine| machine.kernel.clone()),
        made_of: made_of.to_vec(),
        events: events.iter().map(event).collect(),
    }
}

fn properties(facts: &Facts) -> WriterProperties {
    let level = GzipLevel::try_new(GZIP_LEVEL).unwrap_or_default();
    let mut properties = WriterProperties::builder()
        .set_created_by(facts.writer.clone())
        .set_compression(Compression::GZIP(level))
        .set_dictionary_page_size_limit(DICTIONARY_BYTES)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_key_value_metadata(Some(vec![KeyValue::new(KEY.to_owned(), facts.text())]));
    // Those by which engines pass over groups.
    for column in [
        "time",
        "event",
        "host",
        "cgroup",
        "systemd_unit",
        "container",
        "process",
    ] {
        let path = ColumnPath::from(column);
        properties = properties.set_column_statistics_enabled(path, EnabledStatistics::Chunk);
    }
    properties.build()
}

/// Rows in groups, none of which has very many rows or frames.
fn groups(rows: &Rows) -> impl Iterator<Item = &[StoreRow]> {
    let mut rest = rows.all();
    std::iter::from_fn(move || {
        let (mut end, mut frames) = (0, 0);
        while end < rest.len().min(GROUP_ROWS) && frames < GROUP_FRAMES {
            frames += rows.depth(&rest[end]);
            end += 1;
        }
        let (group, others) = rest.split_at(end);
        rest = others;
        (!group.is_empty()).then_some(group)
    })
}

/// Bytes that were written and not taken yet. The library wants a writer of its own.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Error of the library, which no profile should cause.
fn unwritable(error: ParquetError) -> Error {
    Error::Write(io::Error::other(error))
}
