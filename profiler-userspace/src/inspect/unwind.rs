//! The unwind table of one object as text.
//!
//! In: a file. Out: text. Never touches the kernel half.

use crate::object::{ElfAddress, RegularFile};
use crate::unwind::{self, UnwindTable};
use anyhow::{Context as _, Result};
use std::path::Path;

/// All rows of the table of `file`, or the one for an address in the object's own terms.
///
/// # Errors
/// When the file cannot be read, or has no table.
pub fn unwind(file: &Path, address: Option<u64>) -> Result<String> {
    let opened =
        RegularFile::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let table = UnwindTable::read(&opened.file)
        .with_context(|| format!("{} has no unwind table", file.display()))?;
    Ok(unwind::show(&table, address.map(ElfAddress)))
}
