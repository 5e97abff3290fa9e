//! Raw recordings as files: their bytes, what is made of them, and of what is none.
//!
//! In: a raw recording written by hand. Out: a difference from files that a person has looked at, if any;
//! `cargo xtask bless` accepts what is written now. Nothing here needs privileges: rendering never does.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use flame_bpf::object::{BuildId, Proof, RecordedObject, Segment, Segments};
use flame_bpf::profile::normalized::{
    Label, Location, NamedFunction, NormalizedKey, NormalizedProfile, NormalizedStack,
    NormalizedStackIndex, NormalizedWaker, ObjectIndex, Sums,
};
use flame_bpf::profile::{Activity, FrameKind, Unit, Window, WindowIndex, WindowTotals};
use flame_bpf::profile::{OffCpuView, Wakers};
use flame_bpf::raw_recording::{self, Facts, RawRecording, Writer};
use flame_bpf_tests::{Invocation, Run};
use profiler_common::abi::{Fallbacks, StackEnd, ThreadState};
use tempfile::{TempDir, tempdir};

/// An object that is on no machine.
fn object(path: &str, build_id: Option<BuildId>) -> RecordedObject {
    RecordedObject {
        path: PathBuf::from(path),
        proof: Some(Proof {
            build_id,
            size: 123_456,
            modified_ns: 1_700_000_000_123_456_789,
        }),
        segments: Segments::new(vec![Segment {
            file: 0x1000..0x3000,
            address: 0x40_1000,
            executable: true,
        }]),
    }
}

/// A raw recording with all that there can be in one.
fn recording() -> RawRecording {
    let mut normalized = NormalizedProfile::new(Window {
        start: Duration::ZERO,
        end: Duration::from_secs(10),
    });
    let at = |object, offset| Location::At {
        object: ObjectIndex(object),
        offset,
    };
    let mut named = |name: &str, kind| normalized.name(NamedFunction::new(name, kind));
    let jit = named("LazyCompile:~render /app/<view>.js:7", FrameKind::Jit);
    let read = named("vfs_read", FrameKind::Kernel);
    let entry = named("entry_SYSCALL_64_after_hwframe", FrameKind::Kernel);
    let mut stack = |locations: &[Location], end, fallbacks| -> NormalizedStackIndex {
        let locations = locations
            .iter()
            .map(|location| normalized.location(*location))
            .collect();
        normalized.stack(NormalizedStack {
            locations,
            end,
            fallbacks,
        })
    };
    let main = [at(0, 0x1234), at(0, 0x1100), at(1, 0x1fff)];
    let user = stack(&main, StackEnd::Root, Fallbacks::NONE);
    let deeper = stack(
        &[&[jit, at(0, 0x2222)][..], &main].concat(),
        StackEnd::Truncated,
        Fallbacks::FRAME_POINTER,
    );
    let astray = stack(
        &[Location::Unknown, at(2, 0x77)],
        StackEnd::NoRow,
        Fallbacks::NONE,
    );
    let kernel = stack(&[read, entry], StackEnd::Root, Fallbacks::NONE);
    let mut add = |comm: &[u8], tid: Option<u32>, user, kernel, thread_state, count, weight| {
        let mut padded = [0; 16];
        padded[..comm.len()].copy_from_slice(comm);
        let label = Label {
            pid: tid.unwrap_or(7) / 2,
            start: 1_234_567_890_123,
            comm: padded,
            tid,
            cpu: tid.map(|_| 3),
            cgroup: None,
        };
        normalized.add(
            NormalizedKey {
                label,
                user,
                kernel,
                thread_state,
                event: 0,
                waker: None,
                window: WindowIndex::default(),
            },
            Sums { weight, count },
        );
    };
    let running = ThreadState::Running;
    add(b"app", None, Some(user), None, running, 90, 90_000);
    add(b"app", None, Some(deeper), Some(kernel), running, 6, 6_000);
    add(
        b"a;b\n\xff",
        Some(77),
        Some(astray),
        None,
        running,
        3,
        3_000,
    );
    add(
        b"kworker/0:1",
        None,
        None,
        Some(kernel),
        ThreadState::Runnable,
        1,
        1_000,
    );
    let name: Arc<[u8]> = b"java a.b.Main\xff".as_slice().into();
    normalized.name_process(38, 1_234_567_890_123, &name);
    RawRecording {
        facts: Facts {
            writer: "flame-bpf 0.1.0".to_owned(),
            title: "on-CPU: whole machine, 10 s, host web1".to_owned(),
            noun: "sample".to_owned(),
            event: "cycles".to_owned(),
            unit: Unit::Events("cycles".to_owned()),
            host: "web1".to_owned(),
            kernel: "6.12.0".to_owned(),
            kernel_build_id: Box::default(),
            command_line: vec!["flame-bpf".into(), "-o".into(), "x.fbpf".into()],
            started: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
            period_ns: None,
            activity: Activity::Running,
            off_cpu: None,
        },
        normalized,
        objects: vec![
            object("/nowhere/app", BuildId::new(&[0xab; 20])),
            object("/nowhere/libx.so", None),
            RecordedObject::gone(PathBuf::from("/nowhere/deleted")),
        ],
        closing: Some("100 samples. Nothing was lost.".to_owned()),
    }
}

/// The same of waits, with those that ended them.
fn recording_of_wakers() -> RawRecording {
    let mut raw_recording = recording();
    let normalized = &mut raw_recording.normalized;
    let keys: Vec<NormalizedKey> = normalized.samples().map(|(key, _)| *key).collect();
    let waker = normalized.waker(NormalizedWaker {
        label: keys[2].label,
        user: keys[1].user,
        kernel: keys[1].kernel,
    });
    let wait = NormalizedKey {
        thread_state: ThreadState::Woken,
        event: 0,
        ..keys[0]
    };
    for (waker, weight) in [(Some(waker), 5_000), (None, 7_000)] {
        normalized.add(NormalizedKey { waker, ..wait }, Sums { weight, count: 1 });
    }
    raw_recording.facts.unit = Unit::Nanoseconds;
    raw_recording.facts.event = "off-CPU and wake-ups".to_owned();
    raw_recording.facts.activity = Activity::Waiting;
    raw_recording.facts.off_cpu = Some(OffCpuView {
        scheduler: false,
        reasons: false,
        kernel: true,
        ran: false,
        wakers: Wakers::Above,
    });
    raw_recording
}

fn bytes(raw_recording: &RawRecording) -> Vec<u8> {
    let mut bytes = Vec::new();
    raw_recording::write(raw_recording, &mut bytes).expect("a vector takes everything");
    bytes
}

/// A raw recording in a folder of its own.
fn file(bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("x.fbpf");
    fs::write(&path, bytes).expect("a file can be written");
    (folder, path)
}

fn render(path: &Path, flags: &str) -> Run {
    Invocation::new("render")
        .arg(path.display())
        .args(flags)
        .run()
        .expect_no_panic()
}

/// Compares bytes with those that were accepted.
#[track_caller]
fn compare(name: &str, actual: &[u8]) {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "golden", name]
        .iter()
        .collect();
    if std::env::var_os("FLAME_BPF_BLESS").is_some_and(|value| value == "1") {
        fs::write(&path, actual).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return;
    }
    let expected = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(
        expected == actual,
        "tests/golden/{name} is not what is written now; if that is right, accept it with `cargo xtask bless`"
    );
}

#[test]
fn a_raw_recording_is_as_in_the_golden_to_the_byte() {
    compare("raw.fbpf", &bytes(&recording()));
    compare("raw-wakers.fbpf", &bytes(&recording_of_wakers()));
    compare("raw-windows.fbpf", &in_windows());
}

/// Three windows of a minute, of which the second lost something, and then the end of the file is missing.
fn in_windows() -> Vec<u8> {
    let recording = recording();
    let mut bytes = Vec::new();
    let mut writer = Writer::begin(&recording.facts, &mut bytes).expect("memory can be written");
    for window in 0..3 {
        let mut recording = recording.clone();
        recording.facts.started += Duration::from_secs(60 * window);
        recording.normalized.window.end = Duration::from_secs(60);
        recording.closing = Some(format!("This is window {window}."));
        let totals = WindowTotals {
            window: recording.normalized.window,
            firings: 1000,
            filtered: 7,
            lost: window % 2,
            busy_ns: 1_000_000,
        };
        writer
            .window(&recording, &totals, &mut bytes)
            .expect("memory can be written");
    }
    bytes
}

#[test]
fn windows_render_as_in_the_golden() {
    let golden: PathBuf = [env!("CARGO_MANIFEST_DIR"), "golden", "raw-windows.fbpf"]
        .iter()
        .collect();
    let one = render(
        &[env!("CARGO_MANIFEST_DIR"), "golden", "raw.fbpf"]
            .iter()
            .collect::<PathBuf>(),
        "-f",
    );
    let total = one.expect_code(0).folded().total();
    for (flags, windows, said) in [
        ("-f", 3, "300 samples"),
        ("-f --from 1m", 2, "LOST: 1 sample in 1 window"),
        ("-f --from 61s --to 62s", 1, "This is window 1."),
        ("-f --to 1s", 1, "This is window 0."),
    ] {
        let run = render(&golden, flags).expect_code(0);
        assert_eq!(run.folded().total(), windows * total, "{flags}");
        assert!(run.stderr.contains(said), "{flags}: {}", run.stderr);
        assert!(!run.stderr.contains("MISSING"), "{}", run.stderr);
    }
    let other = render(&golden, "-f --from 1h").expect_code(1);
    assert!(
        other.stderr.contains("none of its windows"),
        "{}",
        other.stderr
    );
    let rendered = render(&golden, "-f -v --from 60s").expect_code(0);
    assert!(
        rendered.stderr.contains("windows: 2 of 3, from "),
        "{}",
        rendered.stderr
    );
}

#[test]
fn a_raw_recording_renders_as_in_the_golden() {
    let golden: PathBuf = [env!("CARGO_MANIFEST_DIR"), "golden", "raw.fbpf"]
        .iter()
        .collect();
    let run = render(&golden, "-f --annotate --delimited").expect_code(0);
    compare("raw.folded", &run.stdout);
    for part in [
        "100 samples. Nothing was lost.",
        "of leaves, in app, whose recorded version is not here (build ID abababab",
        "of leaves, in libx.so, whose recorded version is not here; ",
    ] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
    let rendered = render(&golden, "-f -v").expect_code(0);
    for part in [
        "host: web1",
        "command: flame-bpf -o x.fbpf",
        "3 objects, 2 of them",
    ] {
        assert!(
            rendered.stderr.contains(part),
            "{part}: {}",
            rendered.stderr
        );
    }
}

#[test]
fn a_raw_recording_of_wakers_renders_as_in_the_golden() {
    let golden: PathBuf = [env!("CARGO_MANIFEST_DIR"), "golden", "raw-wakers.fbpf"]
        .iter()
        .collect();
    let run = render(&golden, "-f").expect_code(0);
    compare("raw-wakers.folded", &run.stdout);
}

#[test]
fn one_raw_recording_renders_to_several_outputs() {
    let (folder, path) = file(&bytes(&recording()));
    let [svg, folded] = ["x.svg", "x.folded"].map(|name| folder.path().join(name));
    let run = Invocation::new("render --title Mine")
        .arg(path.display())
        .path("-o", &svg)
        .path("-o", &folded)
        .run()
        .expect_code(0);
    assert_eq!(run.folded_file(&folded).total(), 100_000);
    let svg = fs::read_to_string(svg).expect("the graph is there");
    assert!(svg.contains(">Mine</text>"), "the title");
    assert!(svg.contains("Nothing was lost"), "the balance");
    let quiet = render(&path, "-f -q").expect_code(0);
    assert_eq!(quiet.stderr, "");
}

#[test]
fn a_truncated_raw_recording_is_reported() {
    let whole = bytes(&recording());
    // The end's own section is the last one, and a hundred bytes at most.
    for quiet in ["", "-q"] {
        let (_folder, path) = file(&whole[..whole.len() - 3]);
        let run = render(&path, &format!("-f {quiet}")).expect_code(0);
        assert_eq!(run.folded().total(), 100_000);
        for part in [
            "the raw recording ends early",
            "100 samples shown",
            "MISSING",
        ] {
            assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
        }
    }
    let mut damaged = whole.clone();
    let last = damaged.len() - 3;
    damaged[last] ^= 0xff;
    let (_folder, path) = file(&damaged);
    let run = render(&path, "-f").expect_code(0);
    assert!(run.stderr.contains("is damaged"), "{}", run.stderr);
}

#[test]
fn a_file_that_is_no_raw_recording_is_refused_with_a_reason() {
    let whole = bytes(&recording());
    let mut later = whole.clone();
    later[8] = 99;
    for (bytes, reason) in [
        (&b""[..], "it is empty"),
        (b"app;main 3\napp;main\n", "line 2 has no weight"),
        (&whole[..60], "not one sample of it is whole"),
        (&later, "its format is version 99"),
    ] {
        let (folder, path) = file(bytes);
        let out = folder.path().join("x.svg");
        let run = render(&path, &format!("-o {}", out.display())).expect_code(1);
        assert!(
            run.stderr.starts_with("flame-bpf: cannot read "),
            "{}",
            run.stderr
        );
        assert!(run.stderr.contains(reason), "{reason}: {}", run.stderr);
        assert!(!out.exists(), "nothing is half-written");
    }
    let run = render(Path::new("/nowhere/x.fbpf"), "-f").expect_code(1);
    assert!(run.stderr.contains("No such file"), "{}", run.stderr);
}
