//! Classes of Java programs.
//!
//! In: a source under `workloads/java/`. Out: the folder of its classes, cached as programs are.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{cached, read, run, source};

/// Folder of the classes that a compiler makes of `workloads/java/<program>.java`, for machines of a version and later ones.
///
/// # Panics
///
/// When the compiler does not take the source.
pub fn java_classes(compiler: &Path, version: u32, program: &str) -> PathBuf {
    let source = source(&format!("java/{program}.java"));
    let key = (read(&source), compiler, version);
    let main = cached(&key, &format!("{program}.class"), |out| {
        let folder = out.parent().expect("a class is in a folder");
        let mut javac = Command::new(compiler);
        javac.args(["--release", &version.to_string(), "-d"]);
        run(javac.arg(folder).arg(&source));
    });
    let folder = main.path().parent().expect("a class is in a folder");
    folder.to_owned()
}
