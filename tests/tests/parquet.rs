//! Tables of samples: what is in them, what `render` and `diff` make of them, and what engines of SQL add up.
//!
//! In: profiles that were made up, and raw recordings. Out: a difference between these and what their tables say.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use fastrand::Rng;
use flame_bpf::input::{self, File, ReadOptions};
use flame_bpf::output::{self, EventTable, Format, Style};
use flame_bpf::profile::cgroup::{Cgroup, CgroupPattern};
use flame_bpf::profile::fold::{self, FoldStyle};
use flame_bpf::profile::process_context::ProcessContext;
use flame_bpf::profile::select::Selection;
use flame_bpf::profile::{
    Frame, FrameKind, FrameProfile, Labels, Profile, Sample, Unit, Window, WindowIndex,
    WindowTotals,
};
use flame_bpf_tests::{Invocation, MadeUp, engines, golden, python, require, stacks};
use parquet::record::Field;
use tempfile::tempdir;

fn written(profile: &Profile) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written = output::write(profile, Format::PARQUET, &Style::default(), &mut bytes);
    written.expect("memory takes everything");
    bytes
}

fn read(bytes: &[u8]) -> Profile {
    let options = ReadOptions {
        windows: 100,
        ..ReadOptions::ALL
    };
    let file = File::of(bytes).expect("it is known");
    assert_eq!(file.kind.name, "Parquet");
    file.read(&options).expect("it can be read").profile
}

fn folded(profile: &Profile) -> String {
    let style = FoldStyle {
        delimited: true,
        annotate: true,
    };
    let mut text = Vec::new();
    fold::fold(profile, style, &mut text).expect("memory takes everything");
    String::from_utf8(text).expect("UTF-8")
}

/// Weight and count by owner and window.
fn by_owner(profile: &Profile) -> BTreeMap<(Labels, u32), (u64, u64)> {
    let mut sums: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for sample in profile.samples() {
        let labels = profile.labels_at(sample.labels).clone();
        let sum = sums.entry((labels, sample.window.0)).or_default();
        sum.0 += sample.weight;
        sum.1 += sample.count;
    }
    sums
}

#[test]
fn a_table_comes_back_with_all_stacks_labels_and_times() {
    for unit in [
        Unit::Samples,
        Unit::Nanoseconds,
        Unit::Events("bytes".to_owned()),
    ] {
        for seed in 0..8 {
            let profile = MadeUp::new(seed, unit.clone()).profile;
            let again = read(&written(&profile));
            assert_eq!(folded(&again), folded(&profile));
            assert_eq!(by_owner(&again), by_owner(&profile));
            assert_eq!(again.unit, profile.unit);
            assert_eq!(again.origin.started, profile.origin.started);
            assert_eq!(again.origin.period_ns, profile.origin.period_ns);
            let windows = |profile: &Profile| -> Vec<_> {
                profile.windows.iter().map(|of| of.window).collect()
            };
            assert_eq!(windows(&again), windows(&profile));
            assert_eq!(written(&again), written(&again));
        }
    }
}

#[test]
fn all_that_fired_stands_in_rows() {
    let mut profile = MadeUp::new(3, Unit::Samples).profile;
    for (window, totals) in (0..).zip(&mut profile.windows) {
        (totals.filtered, totals.lost) = (window, 10 * window);
        totals.firings = 1_000_000;
    }
    let bytes = written(&profile);
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    for row in stacks::rows_of_parquet(&bytes) {
        let (Field::Str(outcome), Field::Long(count)) = (&row["outcome"], &row["count"]) else {
            panic!("{row:?}");
        };
        *sums.entry(outcome.clone()).or_default() += *count;
    }
    let recorded = profile.total_count() as i64;
    assert_eq!((sums["filtered"], sums["lost"]), (6, 60));
    assert_eq!(sums["recorded"], recorded);
    assert_eq!(sums.values().sum::<i64>(), 4_000_000);
    let again = read(&bytes);
    for (again, totals) in again.windows.iter().zip(&profile.windows) {
        let of = |totals: &flame_bpf::profile::WindowTotals| {
            (totals.firings, totals.filtered, totals.lost)
        };
        assert_eq!(of(again), of(totals));
    }
}

#[test]
fn the_service_of_a_row_is_what_its_process_publishes_unless_one_is_said() {
    let mut profile = MadeUp::new(3, Unit::Samples).profile;
    let context = ProcessContext::of([("service.name", "shop")]).map(Arc::new);
    profile.change_labels(|labels| Labels {
        context: context.clone(),
        ..labels
    });
    let style = &Style::default();
    for (said, expected) in [(None, "shop"), (Some("said"), "said")] {
        let (mut bytes, table) = (
            Vec::new(),
            EventTable {
                profile: &profile,
                style,
            },
        );
        output::write_events(&[table], said, &[], &mut bytes).expect("memory takes everything");
        let rows = stacks::rows_of_parquet(&bytes).into_iter();
        let services: BTreeSet<_> = rows.map(|row| format!("{:?}", row["service"])).collect();
        let expected = format!("{:?}", Field::Str(expected.to_owned()));
        assert_eq!(services, BTreeSet::from([expected]));
    }
}

#[test]
fn several_events_and_files_are_read_one_event_at_a_time() {
    let one = MadeUp::new(1, Unit::Samples).profile;
    let mut other = MadeUp::new(2, Unit::Nanoseconds).profile;
    other.origin.event = Some("waits".into());
    let style = Style::default();
    let of = |profile| EventTable {
        profile,
        style: &style,
    };
    let mut both = Vec::new();
    output::write_events(&[of(&one), of(&other)], None, &[], &mut both).expect("it is written");
    assert_eq!(folded(&read(&both)), folded(&one));
    let options = ReadOptions {
        sample_type: Some("waits"),
        ..ReadOptions::ALL
    };
    let files = [Bytes::from(both), Bytes::from(written(&other))];
    let twice = input::read_files(2, &mut |file| Ok(files[file].clone()), &options);
    let twice = twice.expect("both are read").profile;
    assert_eq!(twice.total_weight(), 2 * other.total_weight());
    let none = ReadOptions {
        sample_type: Some("nonsense"),
        ..ReadOptions::ALL
    };
    let error = input::read_files(1, &mut |file| Ok(files[file].clone()), &none);
    let (_, error) = error.expect_err("there is none");
    assert!(
        error.to_string().contains("it has samples, waits"),
        "{error}"
    );
}

/// Renders a file with these flags to stdout.
fn render(file: &Path, flags: &str) -> String {
    let run = Invocation::new("render")
        .arg(file.display())
        .args(flags)
        .run()
        .expect_code(0);
    String::from_utf8(run.stdout).expect("UTF-8")
}

#[test]
fn a_recording_and_its_table_are_rendered_alike() {
    let folder = tempdir().expect("a temporary folder can be made");
    for name in ["raw", "raw-wakers", "raw-windows"] {
        let recording = golden(&format!("{name}.fbpf"));
        let table = folder.path().join(format!("{name}.parquet"));
        render(&recording, &format!("-o {}", table.display()));
        for flags in [
            "-f --annotate --delimited",
            "-f",
            "-f --process app",
            "-f --hide vfs_read",
        ] {
            assert_eq!(
                render(&table, flags),
                render(&recording, flags),
                "{name} {flags}"
            );
        }
        let diff = Invocation::new("diff -o -")
            .arg(recording.display())
            .arg(table.display())
            .run()
            .expect_no_panic();
        assert!(
            diff.stderr.is_empty() || !diff.stderr.contains("cannot"),
            "{}",
            diff.stderr
        );
    }
    let (recording, table) = (
        golden("raw-windows.fbpf"),
        folder.path().join("raw-windows.parquet"),
    );
    let windows = |file: &Path| {
        let json = folder.path().join("x.json");
        render(file, &format!("-o {}", json.display()));
        let text = fs::read_to_string(&json).expect("it is there");
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let windows = &value["windows"];
        ["start_ns", "end_ns", "firings", "filtered", "lost"].map(|of| windows[of].to_string())
    };
    assert_eq!(windows(&table), windows(&recording));
}

/// Sums of each stack, as an engine gives them: a name of an engine, and what it selects from.
fn summed(engine: &str, files: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("engines/folded.py");
    let output = Command::new(python().expect("it was asked for"))
        .env("PYTHONPATH", engines().expect("it was asked for"))
        .arg(script)
        .args([engine, files])
        .output()
        .expect("Python can be started");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn an_engine_adds_up_what_render_shows() {
    let packages = require!(python().and_then(|_| engines()));
    let folder = tempdir().expect("a temporary folder can be made");
    let name = "raw-windows.fbpf";
    let mut expected = BTreeMap::new();
    for host in 0..10 {
        let place = folder.path().join(format!("host=h{host}/date=2026-11-22"));
        fs::create_dir_all(&place).expect("folders can be made");
        let table = place.join("14.parquet");
        render(&golden(name), &format!("-o {}", table.display()));
        for (stack, weight) in stacks::of_folded(render(&golden(name), "-f").as_bytes()) {
            *expected.entry(stack).or_insert(0) += weight;
        }
    }
    // Threads and CPUs are columns of their own.
    let mut unlabelled = BTreeMap::new();
    for (stack, weight) in &expected {
        let is_label = |name: &&String| name.starts_with("[cpu ") || name.starts_with("[tid ");
        let stack: Vec<String> = stack
            .iter()
            .filter(|name| !is_label(name))
            .cloned()
            .collect();
        *unlabelled.entry(stack).or_insert(0) += weight;
    }
    let files = format!("{}/*/*/*.parquet", folder.path().display());
    for engine in ["duckdb", "chdb"] {
        if !packages.join(engine).is_dir() {
            continue;
        }
        let found = stacks::of_folded(summed(engine, &files).as_bytes());
        assert!(found == unlabelled, "{engine}: {found:?}\n{unlabelled:?}");
    }
    let rendered = render(folder.path(), "-f");
    assert!(
        stacks::of_folded(rendered.as_bytes()) == expected,
        "{rendered}"
    );
}

#[test]
fn a_recording_that_is_in_no_table_of_its_store_is_named() {
    let store = tempdir().expect("a temporary folder can be made");
    let day = store.path().join("host=h/date=2026-11-22");
    fs::create_dir_all(&day).expect("folders can be made in it");
    let recording = day.join(".15-1795359600000000000-0.fbpf");
    fs::copy(golden("raw-windows.fbpf"), &recording).expect("a golden file can be copied");
    let render_store = |code| {
        let run = Invocation::new("render -f").arg(store.path().display());
        let run = run.run().expect_code(code);
        run.expect_stderr(&recording.display().to_string())
    };
    render_store(1).expect_stderr("no hour of this store is over");
    let table = day.join("14.parquet");
    render(&recording, &format!("-o {}", table.display()));
    render_store(0).expect_stderr("what came after the last table is not shown; 1 recording");
    fs::remove_file(&recording).expect("it can be removed");
    assert!(!render(store.path(), "-f").is_empty());
}

#[test]
fn broken_tables_are_refused_in_one_sentence() {
    let whole = written(&MadeUp::new(5, Unit::Samples).profile);
    let folder = tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("x.parquet");
    let mut changed = whole.clone();
    changed[100..140].fill(0xff);
    for bytes in [
        &whole[..whole.len() - 1],
        &whole[..40],
        b"PAR1",
        b"PAR1PAR1",
        &changed,
    ] {
        fs::write(&file, bytes).expect("it can be written");
        let run = Invocation::new("render -f")
            .arg(file.display())
            .run()
            .expect_code(1);
        let errors: Vec<&str> = run.stderr.lines().collect();
        assert_eq!(errors.len(), 1, "{}", run.stderr);
        assert!(errors[0].contains("Parquet"), "{}", run.stderr);
    }
}

/// An hour of a server with two busy CPUs, 19 samples a second on each, as a store has it: in windows of a minute. Each of eight units
/// has 300 stacks, of which few are frequent, as Zipf has it.
fn hour_of_servers() -> Profile {
    let mut rng = Rng::with_seed(1);
    let windows = 60;
    let end = Duration::from_secs(3600);
    let start = Duration::ZERO;
    let mut made = FrameProfile::new(Profile::new(Unit::Samples, Window { start, end }));
    let name = |unit: usize, number: usize| {
        let ends = [
            "::poll",
            "_locked",
            "Handler.handle",
            "<T>::next",
            "(int, char const*)",
            "",
        ];
        format!(
            "unit{unit}_module{}::function_{number}{}",
            number % 17,
            ends[number % ends.len()]
        )
    };
    let mut windows_of = Vec::new();
    let mut per_unit = Vec::new();
    for unit in 0..8 {
        let functions: Vec<String> = (0..900).map(|number| name(unit, number)).collect();
        // A stack is one before, from some depth on with other functions.
        let mut stacks: Vec<Vec<usize>> = vec![vec![0, 1, 2, 3]];
        while stacks.len() < 300 {
            let mut stack = stacks[rng.usize(..stacks.len())].clone();
            stack.truncate(rng.usize(2..=stack.len()));
            let depth = rng.usize(8..40).max(stack.len() + 1);
            while stack.len() < depth {
                stack.push(rng.usize(..functions.len()));
            }
            stacks.push(stack);
        }
        per_unit.push((functions, stacks));
    }
    let sums: Vec<f64> = (1..=300)
        .scan(0.0, |sum, rank| {
            *sum += 1.0 / f64::from(rank).powf(1.1);
            Some(*sum)
        })
        .collect();
    for window in 0..windows {
        made.group(window);
        for _ in 0..2_280 {
            let unit = rng.usize(0..8).min(rng.usize(0..8));
            let at = rng.f64() * sums[sums.len() - 1];
            let rank = sums.partition_point(|sum| *sum < at);
            let (functions, stacks) = &per_unit[unit];
            let frames: Vec<Frame> = stacks[rank]
                .iter()
                .map(|function| Frame {
                    name: functions[*function].clone(),
                    kind: FrameKind::User,
                })
                .collect();
            let labels = Labels {
                process: Some(format!("server{unit}")),
                cgroup: Some(Cgroup::of_path(format!("/system.slice/unit{unit}.service")).into()),
                ..Labels::default()
            };
            let place = made.push_of(labels, &frames, 1, 1);
            windows_of.resize(windows_of.len().max(place + 1), 0);
            windows_of[place] = window;
        }
    }
    let mut profile = made.into_profile();
    profile.change_samples(|place, sample| {
        Some(Sample {
            window: WindowIndex(windows_of[place]),
            ..sample
        })
    });
    profile.windows = (0..windows)
        .map(|window| WindowTotals {
            window: Window {
                start: window * Duration::from_secs(60),
                end: (window + 1) * Duration::from_secs(60),
            },
            firings: 4_560,
            filtered: 2_280,
            ..WindowTotals::default()
        })
        .collect();
    profile.origin.started = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_374_000));
    profile
}

#[test]
fn an_hour_of_servers_takes_three_bytes_a_sample() {
    let profile = hour_of_servers();
    let bytes = written(&profile);
    let samples = profile.total_count();
    let per_sample = bytes.len() as f64 / samples as f64;
    if let Some(path) = std::env::var_os("FLAME_BPF_HOUR") {
        fs::write(path, &bytes).expect("it can be written");
    }
    assert!(
        per_sample <= 3.0,
        "{} bytes of {samples} samples",
        bytes.len()
    );
    let cgroups = [CgroupPattern::unit("unit3")];
    let options = ReadOptions {
        cgroups: &cgroups,
        ..ReadOptions::ALL
    };
    let file = File::of(&*bytes).expect("it is known");
    let read = file.read(&options).expect("it can be read").profile;
    let of = |profile: Profile| {
        let selection = Selection {
            cgroups: cgroups.to_vec(),
            ..Selection::default()
        };
        let selected = selection.of(profile).expect("there are cgroups");
        let left_out: u64 = selected.left_out.iter().map(|of| of.weight).sum();
        (folded(&selected.profile), left_out)
    };
    // The rest is counted, though its stacks were not read.
    assert!(of(read) == of(profile), "a unit reads otherwise");
}
