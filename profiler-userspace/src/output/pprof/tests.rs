use super::*;
use crate::pprof::Line;
use crate::profile::cgroup::Cgroup;
use crate::profile::{
    Frame, FrameKind, FrameProfile, Labels, Sample, Unit, Window, WindowIndex, WindowTotals, fold,
};
use flate2::read::GzDecoder;
use std::io::Read as _;

fn unpacked(bytes: &[u8]) -> pprof::Profile {
    let mut plain = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    pprof::Profile::decode(&*plain).unwrap()
}

fn written(profile: &Profile) -> pprof::Profile {
    let style = Style {
        notes: "recorded: 3\nlost: nothing\n".to_owned(),
        ..Style::default()
    };
    let (mut bytes, mut again) = (Vec::new(), Vec::new());
    write(profile, &style, &mut bytes).unwrap();
    write(profile, &style, &mut again).unwrap();
    assert_eq!(bytes, again);
    unpacked(&bytes)
}

fn text(written: &pprof::Profile, number: i64) -> &str {
    str::from_utf8(&written.string_table[number as usize]).unwrap()
}

fn stack(names: &[(&str, FrameKind)]) -> Vec<Frame> {
    let frame = |&(name, kind): &(&str, FrameKind)| Frame::new(name, kind);
    names.iter().map(frame).collect()
}

/// A profile of one stack.
fn profile(unit: Unit, names: &[(&str, FrameKind)], weight: u64, count: u64) -> Profile {
    let mut frames = FrameProfile::new(Profile::new(unit, Window::default()));
    frames.push(&stack(names), weight, count);
    frames.into_profile()
}

#[test]
fn several_events_are_types_of_one_file_and_the_first_is_the_usual_one() {
    use FrameKind::{Process, User};
    let on_cpu = profile(Unit::Samples, &[("app", Process), ("main", User)], 7, 7);
    let faults = Unit::Events("page-faults".to_owned());
    let faults = profile(faults, &[("app", Process), ("map", User)], 40, 2);
    let mut waits = profile(Unit::Nanoseconds, &[("app", Process), ("main", User)], 9, 1);
    waits.origin.activity = crate::profile::Activity::Waiting;
    let mut together = Together::new("cpu-clock", on_cpu.clone());
    together.add("page-faults", &faults).unwrap();
    together.add("off-CPU", &waits).unwrap();
    // Two names that come to the same.
    together.add("cpu:clock", &on_cpu).unwrap();
    let mut bytes = Vec::new();
    write_together(&together, &Style::default(), &mut bytes).unwrap();
    let written = unpacked(&bytes);
    let text = |number| text(&written, number);
    let types = written.sample_type.iter();
    let types: Vec<_> = types.map(|of| (text(of.kind), text(of.unit))).collect();
    assert_eq!(
        types,
        [
            ("cpu_clock_2", "count"),
            ("off_cpu_samples", "count"),
            ("off_cpu", "nanoseconds"),
            ("page_faults_samples", "count"),
            ("page_faults", "count"),
            ("cpu_clock", "count"),
        ]
    );
    assert_eq!(text(written.default_sample_type), "cpu_clock");
    let values = written.sample.iter().map(|sample| &*sample.value);
    assert_eq!(
        values.collect::<Vec<_>>(),
        [
            [0, 0, 0, 0, 0, 7],
            [0, 0, 0, 2, 40, 0],
            [0, 1, 9, 0, 0, 0],
            [7, 0, 0, 0, 0, 0],
        ]
    );
    // A function of two events is there once.
    let names: Vec<_> = written.function.iter().map(|of| text(of.name)).collect();
    assert_eq!(names.iter().filter(|name| **name == "main").count(), 1);
}

#[test]
fn a_file_keeps_to_what_parca_and_pyroscope_take() {
    use FrameKind::{Inlined, Jit, Kernel, Process, User};
    let long = "ä".repeat(50_000);
    let names = [
        ("a\u{0}b\u{fffd}\n", Process),
        (&*long, User),
        ("", Inlined),
        ("pprof::x", Jit),
        ("vfs_read", Kernel),
    ];
    let mut with_labels = FrameProfile::new(profile(
        Unit::Events("cpu/event=0x3c,name=a-b:c/".to_owned()),
        &names,
        u64::MAX,
        1,
    ));
    let labels = Labels {
        comm: Some("x".repeat(70_000)),
        pid: Some(1),
        tid: Some(0),
        cpu: Some(3),
        cgroup: Some(Cgroup::of_path("/a.slice/nginx.service").into()),
        source: Some("host-1".to_owned()),
        ..Labels::default()
    };
    with_labels.push_of(labels, &stack(&[("main", User); 400]), 0, 1);
    let written = written(&with_labels.into_profile());
    assert_eq!(written.string_table[0], b"");
    assert!(written.string_table.iter().all(|text| text.len() <= 65_535));
    let text = |number| text(&written, number);
    // All are there, and are UTF-8.
    (0..).zip(&written.string_table).for_each(|(number, _)| {
        let _there = text(number);
    });
    let is_dense = |ids: Vec<u64>| ids.iter().copied().eq(1..=ids.len() as u64);
    assert!(is_dense(written.mapping.iter().map(|of| of.id).collect()));
    assert!(is_dense(written.location.iter().map(|of| of.id).collect()));
    assert!(is_dense(written.function.iter().map(|of| of.id).collect()));
    for location in &written.location {
        assert!(location.mapping_id <= written.mapping.len() as u64);
        assert!(!location.line.is_empty(), "some readers drop such frames");
        let functions = 1..=written.function.len() as u64;
        let mut lines = location.line.iter();
        assert!(lines.all(|line| functions.contains(&line.function_id)));
    }
    for of in &written.sample_type {
        let name = text(of.kind);
        assert!(
            !name.is_empty() && !name.contains(['-', ':', ',', '/']),
            "{name}"
        );
    }
    for sample in &written.sample {
        assert!(sample.location_id.len() <= 1_000);
        assert_eq!(sample.value.len(), written.sample_type.len());
        assert!(sample.value.iter().all(|value| *value >= 0));
        let mut keys: Vec<_> = sample.label.iter().map(|label| text(label.key)).collect();
        assert!(
            keys.iter()
                .all(|key| !key.is_empty() && !key.starts_with("pprof::"))
        );
        assert!(keys.len() <= 100);
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), sample.label.len(), "one value for each key");
        assert!(
            sample.label.iter().all(|label| label.number == 0),
            "some readers drop numbers"
        );
    }
}

#[test]
fn inlined_functions_are_lines_and_ids_are_dense() {
    let unit = Unit::Events("cache-misses".to_owned());
    let mut frames = FrameProfile::new(Profile::new(unit, Window::default()));
    let stack = [
        Frame::new("app", FrameKind::Process),
        Frame::new("<Vec<T> as Drop>::drop", FrameKind::User),
        Frame::new("core", FrameKind::Inlined),
        Frame::new("vfs_read", FrameKind::Kernel),
    ];
    frames.push(&stack, 3_000, 3);
    frames.push(&stack[..2], 1_000, 1);
    let file = written(&frames.into_profile());
    let text = |number| text(&file, number);
    let types: Vec<_> = file.sample_type.iter().map(|of| text(of.kind)).collect();
    assert_eq!(types, ["samples", "cache_misses"]);
    assert_eq!(text(file.default_sample_type), "cache_misses");
    assert_eq!(file.string_table[0], b"");
    assert!(
        (1..)
            .zip(&file.location)
            .all(|(id, location)| location.id == id)
    );
    assert!(
        (1..)
            .zip(&file.function)
            .all(|(id, function)| function.id == id)
    );
    let values: Vec<_> = file
        .sample
        .iter()
        .map(|sample| sample.value.clone())
        .collect();
    assert_eq!(values, [[3, 3_000], [1, 1_000]]);
    let names: Vec<Vec<&str>> = file.sample[0]
        .location_id
        .iter()
        .map(|id| &file.location[*id as usize - 1].line)
        .map(|lines| {
            let function = |line: &Line| file.function[line.function_id as usize - 1];
            lines.iter().map(|line| text(function(line).name)).collect()
        })
        .collect();
    assert_eq!(
        names,
        [vec!["vfs_read"], vec!["core", "<Vec<T> as Drop>::drop"]]
    );
    assert!(
        file.function
            .iter()
            .all(|function| text(function.system_name).is_empty())
    );
    let comments: Vec<_> = file.comment.iter().map(|comment| text(*comment)).collect();
    assert_eq!(comments[1..], ["recorded: 3", "lost: nothing"]);
    let label = &file.sample[0].label;
    assert_eq!((text(label[0].key), text(label[0].text)), ("comm", "app"));
}

#[test]
fn samples_of_several_windows_are_one() {
    let mut profile = fold::parse(b"a;main 3\nb;main 4\n", Unit::Samples).unwrap();
    profile.windows = vec![WindowTotals::default(); 2];
    let later = Sample {
        window: WindowIndex(1),
        ..profile.samples()[0]
    };
    profile.push(later);
    let samples = written(&profile).sample;
    let values: Vec<_> = samples.iter().map(|sample| sample.value[0]).collect();
    assert_eq!(values, [6, 4]);
}
