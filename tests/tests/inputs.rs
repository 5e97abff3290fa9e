//! Profiles of other tools: what `render` makes of their files, and what it says of broken ones.
//!
//! In: files that these tools wrote, and changes of them. Out: a difference from the folded text that was accepted
//! (`cargo xtask bless` accepts what is written now), or an error that does not say what is wrong.

use std::fs;
use std::path::Path;

use flame_bpf_tests::{Invocation, Run, golden};
use tempfile::tempdir;

/// Renders a file, which has no spaces in its path, with these flags.
fn render(file: &Path, flags: &str) -> Run {
    Invocation::new("render")
        .arg(file.display())
        .args(flags)
        .run()
        .expect_no_panic()
}

#[test]
fn files_of_other_tools_are_read_by_what_is_in_them() {
    for (name, kind) in [
        ("bpftrace", "bpftrace maps"),
        ("perf-script", "perf script text"),
        ("systemtap", "SystemTap stacks"),
    ] {
        let run = render(&golden(&format!("inputs/{name}.txt")), "-f --annotate")
            .expect_code(0)
            .expect_stderr(&format!("input: {kind}: "));
        let accepted = golden(&format!("inputs/{name}.folded"));
        if std::env::var_os("FLAME_BPF_BLESS").is_some_and(|value| value == "1") {
            fs::write(&accepted, &run.stdout).expect("the golden file can be written");
        }
        let expected = fs::read(&accepted).expect("there is a golden file");
        assert!(
            run.stdout == expected,
            "{} is not what is written now:\n{}",
            accepted.display(),
            String::from_utf8_lossy(&run.stdout)
        );
    }
}

#[test]
fn our_own_pprof_gives_the_folded_text_of_its_recording() {
    let folder = tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("x.pb.gz");
    let recording = golden("raw.fbpf");
    render(&recording, &format!("-o {}", file.display())).expect_code(0);
    let direct = render(&recording, "-f --annotate").expect_code(0);
    let by_pprof = render(&file, "-f --annotate")
        .expect_code(0)
        .expect_stderr("input: pprof: ");
    assert_eq!(
        String::from_utf8_lossy(&by_pprof.stdout),
        String::from_utf8_lossy(&direct.stdout)
    );
}

#[test]
fn a_broken_file_is_refused_by_name_and_line_and_leaves_no_output() {
    let folder = tempdir().expect("a temporary folder can be made");
    let (file, output) = (
        folder.path().join("broken.txt"),
        folder.path().join("x.svg"),
    );
    for (text, said) in [
        (
            "@[\n    leaf\n",
            "read as bpftrace maps: line 1: this entry does not end",
        ),
        (
            " 0x4005e6 : main+0x26/0x40 [/a]\n",
            "read as SystemTap stacks: line 1: the file ends within a stack",
        ),
        (
            "main;work\n",
            "folded text; for the last, line 1 has no weight",
        ),
        ("\0\u{1}\u{2}", "none of: Parquet, pprof, "),
    ] {
        fs::write(&file, text).expect("a file can be written");
        render(&file, &format!("-o {}", output.display()))
            .expect_code(1)
            .expect_stderr(&format!("cannot read {}", file.display()))
            .expect_stderr(said);
        assert!(!output.exists(), "{said}");
    }
}

#[test]
fn several_files_are_one_profile_with_a_root_for_each_on_request() {
    let [systemtap, perf] =
        ["systemtap", "perf-script"].map(|name| golden(&format!("inputs/{name}.txt")));
    let run = render(
        &systemtap,
        &format!("{} -f --root-per file", systemtap.display()),
    );
    let folded = run.expect_code(0).folded();
    assert_eq!(folded.total(), 2 * 2414);
    let root = systemtap.display().to_string();
    assert_eq!(folded.weight(|stack| stack.root() == root), 2 * 2414);
    // The weights of SystemTap's stacks have no unit; perf's events beside them are times.
    let run = render(&systemtap, &format!("{} -f", perf.display())).expect_code(0);
    assert!(run.folded().total() > 2414);
    render(&systemtap, "-f --root-per host")
        .expect_code(1)
        .expect_stderr("does not name its host");
    let host = render(&golden("raw.fbpf"), "-f --root-per host").expect_code(0);
    assert!(
        host.folded()
            .stacks
            .iter()
            .all(|stack| stack.root() == "web1")
    );
}

#[test]
fn what_is_selected_and_what_is_left_out_are_the_whole() {
    let recording = golden("raw.fbpf");
    render(&recording, "-f --ignore ^vfs_read$")
        .expect_code(0)
        .expect_stderr("shown: 93,000 cycles (93.0%) of 100,000")
        .expect_stderr("not shown: 7,000 cycles (7.0%): a frame matches --ignore ^vfs_read$");
    let run = render(&recording, "-f --root-at LazyCompile --collapse-recursion")
        .expect_code(0)
        .expect_stderr("94,000 cycles (94.0%): no frame matches --root-at LazyCompile");
    let folded = run.folded();
    assert!(
        folded
            .stacks
            .iter()
            .all(|stack| stack.root().starts_with("LazyCompile")),
        "{folded}"
    );
    let cpu = render(&recording, "-f --cpu 3").expect_code(0);
    assert_eq!(cpu.folded().total(), 3_000);
    // All threads of the process, one of which is called so.
    let process = render(&recording, "-f --process app,3 --process kworker.*").expect_code(0);
    assert_eq!(process.folded().total(), 97_000);
    let thread = render(&recording, "-f --thread app,3 --thread kworker.*").expect_code(0);
    assert_eq!(thread.folded().total(), 1_000);
    let by_pid = render(&recording, "-f --process 3").expect_code(0);
    assert_eq!(by_pid.folded().total(), 97_000);
    render(&recording, "-f --focus nothing_has_this_name")
        .expect_code(1)
        .expect_stderr(
            "nothing is left to show: 100,000 cycles (100.0%): no frame matches --focus",
        );
}

#[test]
fn hidden_frames_keep_their_weight() {
    let run = render(&golden("raw.fbpf"), "-f --hide libx")
        .expect_code(0)
        .expect_stderr("hidden: frames in stacks of 96,000 cycles (96.0%): --hide libx");
    let folded = run.folded();
    assert_eq!(folded.total(), 100_000);
    assert!(!folded.any(|stack| stack.mentions("libx")), "{folded}");
}
