//! A program's calling a function.

use super::{AttachPoint, Attachment, ProbeSpec};
use profiler_common::abi::ProgramId;
use std::fmt;
use std::path::PathBuf;

/// The probe's row.
pub(super) fn spec(function: &Function) -> ProbeSpec {
    let calls = Attachment::begins(ProgramId::Function, AttachPoint::Functions);
    ProbeSpec::new("call", vec![calls]).titled(function.to_string())
}

/// A function of a program or library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The file, or the name of a file that the target has mapped.
    pub file: PathBuf,
    /// The function's name, as the linker knows it or as graphs show it.
    pub name: String,
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.file_name().unwrap_or(self.file.as_os_str());
        write!(f, "{}:{}", file.to_string_lossy(), self.name)
    }
}
