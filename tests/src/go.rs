//! Go programs, by the toolchains of this machine.
//!
//! In: sources under `workloads/go/`. Out: a [`Program`], cached as all are.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{Program, cached, read, run, source};

/// Where toolchains are installed.
const PLACES: [&str; 3] = [
    "/usr/local/go/bin/go",
    "/usr/lib/go-1.19/bin/go",
    "/usr/bin/go",
];

/// The Go toolchains of this machine, each once.
///
/// # Errors
///
/// When there is none.
pub fn go_toolchains() -> Result<Vec<PathBuf>, String> {
    let mut found: Vec<PathBuf> = Vec::new();
    for place in PLACES {
        if let Ok(path) = Path::new(place).canonicalize()
            && !found.contains(&path)
        {
            found.push(path);
        }
    }
    match found.is_empty() {
        true => Err("no Go toolchain; apt install golang-go".to_owned()),
        false => Ok(found),
    }
}

impl Program {
    /// Builds `workloads/go/<stem>.go` by a toolchain, without symbols and debug information, and with further flags that are
    /// split at white space.
    ///
    /// # Panics
    ///
    /// When the toolchain does not take the source.
    pub fn go(toolchain: &Path, stem: &str, flags: &str) -> Self {
        let source = source(&format!("go/{stem}.go"));
        let text = read(&source);
        let takes_c = text.windows(10).any(|part| part == b"import \"C\"");
        cached(&(text, toolchain, flags), stem, |out| {
            let mut go = Command::new(toolchain);
            go.args(["build", "-ldflags=-s -w"]);
            go.args(flags.split_whitespace());
            go.env("CGO_ENABLED", if takes_c { "1" } else { "0" });
            go.env("GOTOOLCHAIN", "local");
            run(go.arg("-o").arg(out).arg(&source));
        })
    }
}
