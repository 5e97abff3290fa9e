//! JSON that is written as it comes: a profile's columns are too long to be held twice.
//!
//! In: values. Out: their text, the same bytes for the same values. It knows nothing of profiles, and leaves it to its caller
//! that what is opened is closed.

use serde_json::Value;
use std::io::{self, BufWriter, Write};

/// A document that is being written.
pub(super) struct Json<'o>(BufWriter<&'o mut dyn Write>);

impl<'o> Json<'o> {
    pub(super) fn new(out: &'o mut dyn Write) -> Self {
        Self(BufWriter::new(out))
    }

    /// Text that is JSON, or a part of it.
    pub(super) fn text(&mut self, text: &str) -> io::Result<()> {
        self.0.write_all(text.as_bytes())
    }

    pub(super) fn value(&mut self, value: &Value) -> io::Result<()> {
        write!(self.0, "{value}")
    }

    pub(super) fn list(
        &mut self,
        values: impl IntoIterator<Item = impl Into<Value>>,
    ) -> io::Result<()> {
        self.text("[")?;
        for (place, value) in values.into_iter().enumerate() {
            self.text(if place > 0 { "," } else { "" })?;
            self.value(&value.into())?;
        }
        self.text("]")
    }

    /// Opens an object of lists, of which each is a column of a table.
    pub(super) fn columns(&mut self) -> io::Result<Columns<'_, 'o>> {
        self.text("{")?;
        Ok(Columns {
            json: self,
            is_first: true,
        })
    }

    /// Writes what is not written yet.
    pub(super) fn end(mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A table that is being written.
pub(super) struct Columns<'j, 'o> {
    json: &'j mut Json<'o>,
    is_first: bool,
}

impl Columns<'_, '_> {
    /// Adds the name of what follows.
    fn key(&mut self, name: &str) -> io::Result<()> {
        self.json.text(if self.is_first { "\"" } else { ",\"" })?;
        self.is_first = false;
        self.json.text(name)?;
        self.json.text("\":")
    }

    /// Adds a value that is no list.
    pub(super) fn value(&mut self, name: &str, value: impl Into<Value>) -> io::Result<()> {
        self.key(name)?;
        self.json.value(&value.into())
    }

    /// Adds a column.
    pub(super) fn column(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = impl Into<Value>>,
    ) -> io::Result<()> {
        self.key(name)?;
        self.json.list(values)
    }

    /// Closes it.
    pub(super) fn end(self) -> io::Result<()> {
        self.json.text("}")
    }
}
