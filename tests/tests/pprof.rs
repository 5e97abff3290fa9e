//! pprof files: their bytes, and what `go tool pprof` makes of them.
//!
//! In: the golden raw recordings. Out: a difference from the file that was accepted, or from folded text of the same
//! recording. `cargo xtask bless` accepts what is written now.

use std::fs;
use std::path::Path;

use flame_bpf_tests::go_pprof::{has_pprof, pprof};
use flame_bpf_tests::{Invocation, golden, require};
use tempfile::tempdir;

/// Renders a golden raw recording to `path`.
fn render(name: &str, path: &Path) {
    Invocation::new("render")
        .arg(golden(name).display())
        .path("-o", path)
        .run()
        .expect_code(0);
}

#[test]
fn the_bytes_of_a_pprof_file() {
    let folder = tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("x.pb.gz");
    render("raw.fbpf", &path);
    let written = fs::read(&path).expect("the file is there");
    let golden = golden("raw.pb.gz");
    if std::env::var_os("FLAME_BPF_BLESS").is_some_and(|value| value == "1") {
        fs::write(&golden, &written).expect("the golden file can be written");
    }
    let expected = fs::read(&golden).expect("there is a golden file");
    assert!(
        written == expected,
        "tests/golden/raw.pb.gz is not what is written now; if that is right, accept it with `cargo xtask bless`"
    );
}

#[test]
fn go_tool_pprof_reads_the_weights_of_folded_text() {
    require!(has_pprof());
    let folder = tempdir().expect("a temporary folder can be made");
    for (name, kind, unit) in [
        ("raw.fbpf", "cycles", 1),
        ("raw-wakers.fbpf", "off_cpu", 1000),
    ] {
        let [file, folded] = ["x.pb.gz", "x.folded"].map(|name| folder.path().join(name));
        render(name, &file);
        render(name, &folded);
        let text = fs::read_to_string(&folded).expect("the text is there");
        let weight = |line: &str| {
            line.rsplit(' ')
                .next()
                .and_then(|word| word.parse::<u64>().ok())
        };
        let total: u64 = text.lines().filter_map(weight).sum();
        let index = format!("-sample_index={kind}");
        let raw = pprof(&["-raw"], &file);
        // `samples/count cycles/count[dflt]`, then a line for each sample: both values, and locations.
        assert!(
            raw.contains(&format!("{kind}/")) && raw.contains("[dflt]"),
            "{raw}"
        );
        let values = raw.lines().filter_map(|line| {
            let (values, _) = line.trim().split_once(':')?;
            let (count, weight) = values.trim().split_once(' ')?;
            Some((
                count.parse::<u64>().ok()?,
                weight.trim().parse::<u64>().ok()?,
            ))
        });
        let weights: u64 = values.map(|(_, weight)| weight).sum();
        assert_eq!(weights, total * unit, "{raw}");
        let top = pprof(&["-top", "-lines", &index], &file);
        assert!(top.starts_with("File: app\n"), "{top}");
        assert!(top.contains("Build ID: abababab"), "{top}");
        assert!(top.contains("[app+0x"), "{top}");
        let tags = pprof(&["-tags", &index], &file);
        for key in ["pid", "comm", "state"] {
            assert!(tags.contains(&format!(" {key}: Total")), "{tags}");
        }
        let comments = pprof(&["-comments"], &file);
        assert!(comments.contains("on-CPU: whole machine"), "{comments}");
    }
}
