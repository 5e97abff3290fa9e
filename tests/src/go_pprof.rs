//! `go tool pprof`, whose word counts on what is in a pprof file.
//!
//! In: a file. Out: what is printed of it. A complaint on stderr fails the test.

use std::path::Path;
use std::process::Command;

/// Whether `go tool pprof` is here.
///
/// # Errors
/// A hint to install it if it is not.
pub fn has_pprof() -> Result<(), String> {
    let help = Command::new("go").args(["tool", "pprof", "-h"]).output();
    let is_here = help.is_ok_and(|help| !help.stderr.is_empty() || !help.stdout.is_empty());
    match is_here {
        true => Ok(()),
        false => Err("no `go tool pprof`; apt install golang-go".to_owned()),
    }
}

/// Output of `go tool pprof` with these flags.
///
/// # Panics
/// When it fails, or says anything on stderr.
pub fn pprof(flags: &[&str], path: &Path) -> String {
    let run = Command::new("go")
        .args(["tool", "pprof"])
        .args(flags)
        .arg(path)
        .output()
        .expect("it was there just now");
    let complaints = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{complaints}");
    assert_eq!(complaints, "");
    String::from_utf8_lossy(&run.stdout).into_owned()
}
