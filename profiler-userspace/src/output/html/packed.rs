//! Columns of numbers and a header as text that a page can hold.
//!
//! In: a header, names, columns. Out: base64 of a zlib stream: the size of the header, the header as JSON, the columns.
//! Numbers are little endian in groups of seven bits, the top bit set on all but the last byte. The header lists the
//! columns of each profile in their order, with how many numbers each has.

use crate::output::web::{self, number};
use flate2::Compression;
use indexmap::IndexSet;
use serde_json::{Value, json};
use std::io;

/// Texts by number, each once.
#[derive(Default)]
pub(super) struct Names(IndexSet<String>);

impl Names {
    /// The number of a text, which is added when it is not there yet.
    pub(super) fn number(&mut self, text: &str) -> u64 {
        let known = self.0.get_index_of(text);
        known.unwrap_or_else(|| self.0.insert_full(text.to_owned()).0) as u64
    }

    /// All of them, by number.
    pub(super) fn all(&self) -> Vec<&str> {
        self.0.iter().map(String::as_str).collect()
    }
}

/// Columns, one behind the other.
#[derive(Default)]
pub(super) struct Columns {
    shapes: Vec<(&'static str, usize)>,
    bytes: Vec<u8>,
}

impl Columns {
    /// Adds a column.
    pub(super) fn push(&mut self, name: &'static str, numbers: impl Iterator<Item = u64>) {
        let mut count = 0;
        for value in numbers {
            number(value, &mut self.bytes);
            count += 1;
        }
        self.shapes.push((name, count));
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.shapes.len()
    }

    /// Names and lengths of all columns from one on.
    pub(super) fn shapes(&self, begin: usize) -> Value {
        json!(self.shapes[begin..])
    }
}

/// Packs the data of a page.
pub(super) fn pack(header: &Value, columns: &Columns) -> io::Result<String> {
    let header = header.to_string();
    let mut size = Vec::new();
    number(header.len() as u64, &mut size);
    let parts = [&size, header.as_bytes(), &columns.bytes];
    web::pack(&parts, Compression::best())
}
