//! The libraries that a program needs.
//!
//! In: the program's file. Out: its libraries, as its own dynamic linker finds them. The program does not
//! run: glibc's and musl's linkers can list libraries.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program's dynamic linker and libraries; none for scripts and static programs.
pub(crate) fn needed_libs_of(program: &Path) -> Vec<PathBuf> {
    let Some(interpreter) = interpreter(program) else {
        return Vec::new();
    };
    let listed = Command::new(&interpreter)
        .arg("--list")
        .arg(program)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let text = listed.map(|listed| listed.stdout).unwrap_or_default();
    let mut files = vec![interpreter];
    files.extend(text.split(|&byte| byte == b'\n').filter_map(library));
    files
}

/// The path in a line such as `libc.so.6 => /lib/libc.so.6 (0x00007f…)`.
fn library(line: &[u8]) -> Option<PathBuf> {
    let line = std::str::from_utf8(line).ok()?;
    let (_, found) = line.split_once(" => ")?;
    let (path, _) = found.rsplit_once(" (0x")?;
    path.starts_with('/').then(|| PathBuf::from(path))
}

/// The path of the dynamic linker that the file names (`PT_INTERP`).
fn interpreter(program: &Path) -> Option<PathBuf> {
    let opened = crate::object::RegularFile::open(program).ok()?;
    let path = crate::object::Image::read(&opened.file)
        .ok()?
        .interpreter()?;
    let path = Path::new(std::ffi::OsStr::from_bytes(&path));
    path.is_absolute().then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needed_libraries_are_those_that_the_dynamic_linker_finds() {
        let files = needed_libs_of(&std::env::current_exe().unwrap());
        assert!(files.len() > 1, "{files:?}");
        assert!(files.iter().all(|file| file.is_file()), "{files:?}");
        let is_libc = |file: &&PathBuf| file.to_string_lossy().contains("libc");
        assert!(files.iter().any(|file| is_libc(&file)), "{files:?}");
    }

    #[test]
    fn a_static_program_needs_no_libraries() {
        let script = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(script.path(), "#!/bin/sh\nexit 1\n").unwrap();
        assert!(needed_libs_of(script.path()).is_empty());
        assert!(needed_libs_of(Path::new("/dev/null")).is_empty());
        assert_eq!(library(b"\tlinux-vdso.so.1 (0x00007ffd)"), None);
        assert_eq!(library(b"\tlibx.so => not found"), None);
        assert_eq!(
            library(b"\tlibx.so => /opt/a b/libx.so (0x00007f12)"),
            Some(PathBuf::from("/opt/a b/libx.so"))
        );
    }
}
