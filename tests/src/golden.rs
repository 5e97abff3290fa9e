//! Comparing with files that a person has checked.
//!
//! In: what was written now. Out: a panic with the first difference, if any. With `FLAME_BPF_BLESS=1` the file is rewritten.

use std::path::PathBuf;

/// Compares a text with a golden file, or writes it where that was asked for.
///
/// # Panics
/// Where they differ, with the first line that does.
#[track_caller]
pub fn compare(name: &str, actual: &str) {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "golden", name]
        .iter()
        .collect();
    if std::env::var_os("FLAME_BPF_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, actual).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return;
    }
    let advice = "If what is written now is right, accept it with `cargo xtask bless`.";
    let expected = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}\n{advice}", path.display()));
    let (mut left, mut right) = (expected.lines(), actual.lines());
    for line in 1.. {
        match (left.next(), right.next()) {
            (None, None) => break,
            (expected, actual) => assert!(
                expected == actual,
                "tests/golden/{name}, line {line}:\n  expected {expected:?}\n   written {actual:?}\n{advice}"
            ),
        }
    }
    assert!(
        expected == actual,
        "tests/golden/{name} differs in its line ends\n{advice}"
    );
}
