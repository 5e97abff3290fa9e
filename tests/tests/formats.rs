//! The bytes of formats for people's viewers, made of one raw recording.

use flame_bpf_tests::{Invocation, golden};
use std::fs;
use std::path::Path;
use tempfile::tempdir;

/// Extensions of the golden files.
const FORMATS: [&str; 5] = ["txt", "speedscope.json", "json", "json.gz", "otlp"];

fn render(flags: &str, path: &Path) {
    Invocation::new(&format!("render {flags}"))
        .arg(golden("raw-windows.fbpf").display())
        .path("-o", path)
        .run()
        .expect_code(0);
}

#[test]
fn the_bytes_of_each_format() {
    let folder = tempdir().expect("a temporary folder can be made");
    for format in FORMATS {
        let path = folder.path().join(format!("x.{format}"));
        render("", &path);
        let written = fs::read(&path).expect("the file is there");
        let golden = golden(&format!("raw-windows.{format}"));
        if std::env::var_os("FLAME_BPF_BLESS").is_some_and(|value| value == "1") {
            fs::write(&golden, &written).expect("the golden file can be written");
        }
        let expected = fs::read(&golden).expect("there is a golden file");
        assert!(
            written == expected,
            "{} is not what is written now; if that is right, accept it with `cargo xtask bless`",
            golden.display()
        );
    }
}

#[test]
fn a_report_fits_80_columns_and_peeks_at_one_function() {
    let folder = tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("x.txt");
    render("--min 0", &path);
    let all = fs::read_to_string(&path).expect("the file is there");
    assert!(all.lines().all(|line| line.chars().count() <= 80), "{all}");
    assert!(
        all.contains("all ") && all.contains("callers, from where time was spent"),
        "{all}"
    );
    render("--peek vfs_read", &path);
    let peek = fs::read_to_string(&path).expect("the file is there");
    assert!(peek.contains("callers, function, callees"), "{peek}");
    Invocation::new("render --peek (")
        .arg(golden("raw-windows.fbpf").display())
        .run()
        .expect_code(2)
        .expect_stderr("regex");
}
