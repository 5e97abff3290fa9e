//! Raw recordings of real programs: rendered, they are what the recording itself would have written, and no
//! more than is still true.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use flame_bpf_tests::{
    Folded, Invocation, NEARLY_ALL, PrivateCopy, Program, Run, Running, Stack, Workload,
    kernel_test,
};
use rustix::process::Signal;
use tempfile::{TempDir, tempdir};

/// A raw recording, and folded text of the same.
struct Recorded {
    folder: TempDir,
    run: Run,
}

impl Recorded {
    /// Records with these flags.
    fn by(invocation: Invocation) -> Self {
        let folder = tempdir().expect("a temporary folder can be made");
        let run = invocation
            .path("-o", &folder.path().join("x.fbpf"))
            .path("-o", &folder.path().join("x.folded"))
            .run()
            .expect_code(0);
        Self { folder, run }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self) -> Vec<u8> {
        fs::read(self.path("x.folded")).expect("the folded text is there")
    }

    fn render(&self, flags: &str) -> Run {
        Invocation::new("render -f")
            .arg(self.path("x.fbpf").display())
            .args(flags)
            .run()
            .expect_code(0)
    }
}

// Others' programs may be deleted meanwhile: their stacks have other names then, and times are rounded for each.
#[kernel_test(alone)]
fn a_rendered_recording_equals_the_direct_output() {
    let shares = Program::c_with_debug_information("shares").start(&[]);
    let maker = Program::c("anonymous").start(&["map"]);
    // Nearly always in the kernel: what -K has to show on a machine where nothing else runs.
    let pipe = Program::c("pipe").start(&[]);
    let waits = Program::c("waits").start(&[]);
    for flags in [
        "-a -F 499 -d 1",
        "-a -F 499 -d 1 --inline --lines",
        "-a -F 499 -d 1 --per-thread --per-cpu --no-demangle",
        "-a -d 1 --off-cpu --reasons",
        "-a -d 1 --off-wake --reasons",
        "-a -d 1 --wakeup --per-thread",
        "-a -d 1 -e sched:sched_switch",
        "-a -d 1 -K",
    ] {
        let recorded = Recorded::by(Invocation::new(flags));
        let words = flags.split_whitespace();
        let naming: Vec<&str> = words
            .filter(|word| ["--inline", "--lines", "--no-demangle"].contains(word))
            .collect();
        let rendered = recorded.render(&naming.join(" "));
        let at_once = Folded::parse(&recorded.text()).expect("folded text");
        let folded = rendered.folded();
        // Others' programs may be deleted between the two; they weigh the same then, too.
        assert_eq!(folded.total(), at_once.total(), "{flags}");
        let ours = |folded: &Folded| -> Vec<Stack> {
            let names = ["shares", "anonymous", "pipe", "waits"];
            let ours = folded.only(|stack| names.iter().any(|name| stack.has(name)));
            ours.cloned().collect()
        };
        assert!(!ours(&at_once).is_empty(), "{flags}");
        assert_eq!(ours(&folded), ours(&at_once), "{flags}");
        // The messages of the recording are printed again.
        let lines: Vec<&str> = recorded.run.stderr.lines().collect();
        let recorded_line = lines.iter().position(|line| line.starts_with("recorded: "));
        let said = &lines[..=recorded_line.expect("the summary says what was recorded") + 1];
        assert!(
            rendered.stderr.starts_with(&said.join("\n")),
            "{}",
            rendered.stderr
        );
    }
    drop((shares, maker, pipe, waits));
}

#[kernel_test]
fn a_raw_recording_renders_without_the_programs() {
    let workload = Program::c("shares").start(&[]);
    let folder = tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("x.fbpf");
    let run = Invocation::new("-F 997 -d 1 --title Later")
        .flag("-p", workload.pid())
        .path("-o", &path)
        .run()
        .expect_code(2);
    assert!(run.stderr.contains("flame-bpf render"), "{}", run.stderr);
    let run = Invocation::new("-F 997 -d 1")
        .flag("-p", workload.pid())
        .path("-o", &path)
        .run()
        .expect_code(0);
    assert!(run.stdout.is_empty());
    drop(workload);
    let rendered = Invocation::new("render -f").arg(path.display()).run();
    let folded = rendered.expect_code(0).folded();
    let share = folded.share(|stack| stack.has("alpha"));
    assert!(
        (0.4..0.6).contains(&share),
        "alpha has {share:.3}: {folded}"
    );
}

fn chain(stack: &Stack) -> bool {
    stack.has_chain(&["main", "work_round"])
}

/// Records a program from a file that the test may do with as it likes.
fn record(copy: &Path) -> Recorded {
    let workload = Workload::start(&mut Command::new(copy));
    Recorded::by(Invocation::new("-F 997 -d 1").flag("-p", workload.pid()))
}

#[kernel_test]
fn a_program_replaced_since_the_recording_gives_no_names() {
    let shares = Program::c("shares");
    let copy = PrivateCopy::of(shares.path());
    let recorded = record(copy.path());
    let at_once = Folded::parse(&recorded.text()).expect("folded text");
    assert!(at_once.share(chain) > NEARLY_ALL, "{at_once}");
    let named = |flags: &str| {
        let run = recorded.render(flags);
        let folded = run.folded();
        assert_eq!(folded.total(), at_once.total());
        (folded, run.stderr)
    };
    // Deleted, then replaced: it stands by its offsets, and why is said.
    let nameless = || {
        let (folded, said) = named("");
        assert!(
            !folded.any(|stack| stack.has("main") || stack.has("work_round")),
            "{folded}"
        );
        assert!(
            folded.share(|stack| stack.mentions("[shares+0x")) > NEARLY_ALL,
            "{folded}"
        );
        assert!(
            said.contains("in shares, whose recorded version is not here (build ID "),
            "{said}"
        );
    };
    fs::remove_file(copy.path()).expect("a copy can be deleted");
    nameless();
    fs::copy(Program::c("spin").path(), copy.path()).expect("a program can be copied");
    nameless();
    // The same build at the same place is the program, whenever it was put there.
    fs::copy(shares.path(), copy.path()).expect("a program can be copied");
    assert_eq!(named("").0, at_once);
}

#[kernel_test]
fn names_of_a_deleted_program_are_kept_in_the_recording() {
    let copy = PrivateCopy::of(Program::c("shares").path());
    let workload = Workload::start(&mut Command::new(copy.path()));
    fs::remove_file(copy.path()).expect("a copy can be deleted");
    let recorded = Recorded::by(Invocation::new("-F 997 -d 1").flag("-p", workload.pid()));
    drop(workload);
    let folded = recorded.render("").folded();
    assert!(folded.share(chain) > NEARLY_ALL, "{folded}");
    let at_once = Folded::parse(&recorded.text()).expect("folded text");
    assert_eq!(folded, at_once);
}

#[kernel_test]
fn a_debug_file_names_a_program_that_is_absent() {
    let shares = Program::c_with_debug_information("shares");
    let copy = PrivateCopy::of(shares.stripped().path());
    let recorded = record(copy.path());
    fs::remove_file(copy.path()).expect("a copy can be deleted");
    let id = recorded.render("-v").stderr;
    let id = id
        .split("(build ID ")
        .nth(1)
        .and_then(|rest| rest.split(')').next());
    let (first, rest) = id.expect("the build ID is printed").split_at(2);
    let directory = recorded.path("debug/.build-id").join(first);
    fs::create_dir_all(&directory).expect("folders can be made");
    fs::copy(shares.path(), directory.join(format!("{rest}.debug"))).expect("a copy");
    let debug = recorded.path("debug");
    let folded = recorded
        .render(&format!("--debug-dir {}", debug.display()))
        .folded();
    assert!(folded.share(chain) > NEARLY_ALL, "{folded}");
}

/// A recording in windows of a second, under way.
fn recording_windows(workload: &Workload, path: &Path) -> Running {
    let run = Invocation::new("-v -F 2999 --window 1s")
        .flag("-p", workload.pid())
        .path("-o", path);
    let mut running = run.start();
    running.wait_until_attached();
    running
}

#[kernel_test(timing)]
fn windows_are_written_as_they_end_and_selected_by_time() {
    let workload = Program::c("shares").start(&[]);
    let folder = tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("x.fbpf");
    let running = recording_windows(&workload, &path);
    thread::sleep(Duration::from_millis(3500));
    // While it goes on, what has passed is there.
    let rendered = Invocation::new("render -f -v").arg(path.display()).run();
    let rendered = rendered.expect_code(0);
    assert!(!rendered.stderr.contains("MISSING"), "{}", rendered.stderr);
    let early = rendered.folded().total();
    running.signal(Signal::INT);
    let run = running.finish().expect_code(0);
    let balance = run.balance();
    balance.assert_lossless();
    let render = |flags: &str| {
        let run = Invocation::new(flags).arg(path.display()).run();
        run.expect_code(0).folded()
    };
    let all = render("render -f");
    assert_eq!(all.total(), balance.recorded, "{}", run.stderr);
    let share = all.share(|stack| stack.has("alpha"));
    assert!((0.4..0.6).contains(&share), "{share} in {all}");
    assert!(early < all.total() && early > 1_000, "{early}");
    // The first window has part in both.
    let (first, rest) = (
        render("render -f --to 500ms"),
        render("render -f --from 500ms"),
    );
    assert!(
        first.total() > 500 && first.total() < all.total(),
        "{first}"
    );
    assert_eq!(rest.total(), all.total());
}

#[kernel_test(timing)]
fn finished_windows_survive_a_killed_recorder() {
    let workload = Program::c("shares").start(&[]);
    let folder = tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("x.fbpf");
    let running = recording_windows(&workload, &path);
    thread::sleep(Duration::from_millis(2500));
    running.signal(Signal::KILL);
    drop(running.finish());
    let rendered = Invocation::new("render -f").arg(path.display()).run();
    let folded = rendered.expect_code(0).folded();
    // Two windows of a second each, of a program that has its CPU a sixth of the time at least.
    assert!(folded.total() > 1_000, "{folded}");
    let left: Vec<_> = fs::read_dir(folder.path())
        .expect("the folder is there")
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// Copies a program to paths of its own, one after the other, runs each for a few milliseconds, and deletes it.
const RUN_AND_DELETE: &str = "\
for number in $(seq 1 30); do cp \"$1\" \"$2/once$number\"; \"$2/once$number\" 0 20000 5; rm \"$2/once$number\"; done";

#[kernel_test]
fn a_deleted_program_is_named_in_its_window_and_closed_afterwards() {
    let folder = tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("x.fbpf");
    let mut running = Invocation::new("-v -a -F 997 --window 1s")
        .path("-o", &path)
        .start();
    running.wait_until_attached();
    let script = Command::new("sh")
        .args(["-c", RUN_AND_DELETE, "sh"])
        .arg(Program::c("execstorm").path())
        .arg(folder.path())
        .status();
    assert!(script.expect("a shell can be started").success());
    // The last of them has ended by the next look at who has, which a window's end is.
    thread::sleep(Duration::from_millis(2500));
    let open: Vec<_> = fs::read_dir(format!("/proc/{}/fd", running.pid()))
        .expect("it runs")
        .filter_map(|link| fs::read_link(link.ok()?.path()).ok())
        .filter(|file| file.starts_with(folder.path()))
        .collect();
    assert!(open.iter().all(|file| file.starts_with(&path)), "{open:?}");
    running.signal(Signal::INT);
    running.finish().expect_code(0);
    let rendered = Invocation::new("render -f").arg(path.display()).run();
    let folded = rendered.expect_code(0).folded();
    let theirs = |stack: &Stack| stack.root().starts_with("once");
    let working = folded.share_among(theirs, |stack| stack.has("program_work"));
    // Part of so short a life is spent in the kernel and in the dynamic loader.
    assert!(working > 0.5, "{working:.3} of {folded}");
}
