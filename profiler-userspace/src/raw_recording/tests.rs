mod hostile;
mod merged;
mod windows;

use super::read::read_within;
use super::section::{MAGIC, VERSION};
use super::*;
use crate::object::{BuildId, Proof, Segment, Segments};
use crate::profile::Wakers;
use crate::profile::cgroup::Cgroup;
use crate::profile::normalized::{
    Label, Location, LocationIndex, NamedFunction, NormalizedKey, NormalizedStack, NormalizedWaker,
    ObjectIndex, Sums,
};
use crate::profile::process_context::ProcessContext;
use crate::profile::{FrameKind, Window, WindowIndex};
use profiler_common::abi::{Fallbacks, StackEnd, ThreadState};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

fn facts() -> Facts {
    Facts {
        writer: "flame-bpf 0".to_owned(),
        title: "on-CPU: <web> & co".to_owned(),
        noun: "sample".to_owned(),
        event: "cpu-clock".to_owned(),
        unit: Unit::Samples,
        host: "web1".to_owned(),
        kernel: "6.18".to_owned(),
        kernel_build_id: [7; 20].into(),
        command_line: vec!["flame-bpf".into(), "-a".into()],
        started: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        period_ns: Some(1_003_009),
        activity: Activity::Waiting,
        off_cpu: Some(OffCpuView {
            scheduler: false,
            reasons: true,
            kernel: false,
            ran: false,
            wakers: Wakers::Above,
        }),
    }
}

fn objects() -> Vec<RecordedObject> {
    let segments = Segments::new(vec![Segment {
        file: 0x1000..0x9000,
        address: 0x40_1000,
        executable: true,
    }]);
    let object = |path: &str, build_id| RecordedObject {
        path: path.into(),
        proof: Some(Proof {
            build_id,
            size: 77,
            modified_ns: -5,
        }),
        segments: segments.clone(),
    };
    vec![
        object("/bin/a", BuildId::new(&[7; 20])),
        object("/lib/b\n;\u{fe}.so", None),
        RecordedObject::gone("/gone".into()),
    ]
}

const THREAD_STATE: [ThreadState; 5] = [
    ThreadState::Running,
    ThreadState::Blocked,
    ThreadState::Runnable,
    ThreadState::Ran,
    ThreadState::Woken,
];

/// Stacks by the numbers of their locations, from the leaf; and samples by the numbers of their stacks.
fn raw_recording(
    stacks: &[Vec<u64>],
    samples: &[(Option<usize>, Option<usize>, u8, u64)],
) -> RawRecording {
    let mut normalized = NormalizedProfile::new(Window::until(Duration::from_millis(1500)));
    let location = |normalized: &mut NormalizedProfile, value: u64| {
        let function = |value: u64| NamedFunction {
            name: format!("name {value} ;\n"),
            kind: match value % 4 {
                0 => FrameKind::Kernel,
                1 => FrameKind::Mark,
                2 => FrameKind::User,
                _ => FrameKind::Jit,
            },
            file: match value % 3 {
                0 => "".into(),
                file => format!("/src/{file}.c").into(),
            },
            line: match value % 3 {
                0 => 0,
                _ => value as u32,
            },
            defined: 0,
        };
        let location = match value % 5 {
            0 => Location::Unknown,
            1 if value.is_multiple_of(2) => {
                normalized.name_within(function(value / 20), value.wrapping_mul(13))
            }
            1 => normalized.name(function(value)),
            object => Location::At {
                object: ObjectIndex(object as u32 - 2),
                offset: value.wrapping_mul(1 << 40 | 13),
            },
        };
        normalized.location(location)
    };
    let stacks: Vec<_> = stacks
        .iter()
        .enumerate()
        .map(|(at, values)| {
            let locations: Box<[LocationIndex]> = values
                .iter()
                .map(|value| location(&mut normalized, *value))
                .collect();
            normalized.stack(NormalizedStack {
                locations,
                end: StackEnd::ALL[at % StackEnd::ALL.len()],
                fallbacks: Fallbacks::from_bits(at as u8 % 4).unwrap(),
            })
        })
        .collect();
    for (user, kernel, who, count) in samples {
        let label = Label {
            pid: u32::from(who % 5),
            start: u64::from(who % 5) << 60,
            comm: [who % 3; 16],
            tid: (who % 2 == 0).then_some(u32::MAX - u32::from(*who)),
            cpu: (who % 4 == 0).then_some(0),
            cgroup: (who % 3 > 0).then(|| {
                let path = format!(
                    "/kubepods/pod01234567-89ab-cdef-0123-456789abcdef/{:064}",
                    who % 3
                );
                normalized.cgroup(&Arc::new(Cgroup::told(
                    &path,
                    Some("web"),
                    Some("shop/web-1"),
                )))
            }),
        };
        if let Some(context) = context_of(label.pid) {
            normalized.note_context(label.pid, label.start, &Arc::new(context));
        }
        let (user, kernel) = (
            user.map(|index| stacks[index % stacks.len()]),
            kernel.map(|index| stacks[index % stacks.len()]),
        );
        let waker = (who % 7 == 3).then(|| {
            normalized.waker(NormalizedWaker {
                label: Label { cpu: None, ..label },
                user: kernel,
                kernel: user,
            })
        });
        let thread_state = match waker {
            Some(_) => ThreadState::Woken,
            None => THREAD_STATE[usize::from(*who) % THREAD_STATE.len()],
        };
        let key = NormalizedKey {
            label,
            user,
            kernel,
            thread_state,
            event: 0,
            waker,
            window: WindowIndex::default(),
        };
        let sums = Sums {
            weight: count * u64::from(*who),
            count: *count,
        };
        normalized.add(key, sums);
    }
    RawRecording {
        facts: facts(),
        normalized,
        objects: objects(),
        closing: Some("Nothing was lost.".to_owned()),
    }
}

/// Some processes publish one, and two of these the same.
fn context_of(pid: u32) -> Option<ProcessContext> {
    let attributes = [("service.name", "shop"), ("service.version", "1.2")];
    ProcessContext::of(attributes.into_iter().take(pid.min(3) as usize))
}

fn read(bytes: &[u8]) -> Result<Read, Error> {
    super::read(bytes, None, 40)
}

fn bytes(raw_recording: &RawRecording) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(raw_recording, &mut bytes).unwrap();
    bytes
}

/// Sums by owner and stack.
type Resolved = BTreeMap<(Label, String), (u64, u64)>;

/// All samples, whatever their parts are numbered.
fn resolved(raw_recording: &RawRecording) -> Resolved {
    resolved_of(&raw_recording.normalized, &raw_recording.objects)
}

fn resolved_of(normalized: &NormalizedProfile, objects: &[RecordedObject]) -> Resolved {
    let location = |index: &LocationIndex| match normalized.location_at(*index) {
        Location::At { object, offset } => {
            format!("{:?} {offset}", objects[object.0 as usize])
        }
        Location::Named(name) => format!("{:?}", normalized.names()[name as usize]),
        Location::Within { name, place } => {
            format!("{:?} {place}", normalized.names()[name as usize])
        }
        other => format!("{other:?}"),
    };
    let owner = |label: &Label| {
        let label_alone = Label {
            cgroup: None,
            ..*label
        };
        let of = (
            normalized.process_name(label),
            normalized.cgroup_of(label),
            normalized.context_of(label),
        );
        (label_alone, format!("{of:?}"))
    };
    let mut samples = BTreeMap::new();
    for (key, sums) in normalized.samples() {
        let stack = |index| {
            let stack = normalized.stack_at(index);
            let locations: Vec<String> = stack.locations.iter().map(location).collect();
            format!("{:?}", (locations, stack.end, stack.fallbacks))
        };
        let both = [key.user, key.kernel].map(|index| index.map(stack));
        let waker = key.waker.map(|index| {
            let waker = normalized.waker_at(index);
            (
                owner(&waker.label),
                [waker.user, waker.kernel].map(|index| index.map(stack)),
            )
        });
        let text = format!("{both:?} {:?} {waker:?}", key.thread_state);
        let (label, cgroup) = owner(&key.label);
        let all: &mut (u64, u64) = samples.entry((label, text + &cgroup)).or_default();
        *all = (all.0 + sums.weight, all.1 + sums.count);
    }
    samples
}

fn usual() -> RawRecording {
    raw_recording(
        &[vec![2, 3, 4], vec![7, 3, 4], vec![], vec![11, 16, 0]],
        &[
            (Some(0), Some(3), 1, 5),
            (Some(1), None, 2, 1),
            (None, Some(2), 4, 1),
            (Some(0), None, 0, 9),
        ],
    )
}

/// Stacks enough for several batches.
fn large() -> RawRecording {
    let stacks: Vec<Vec<u64>> = (0..12_000)
        .map(|n| {
            (0..40)
                .map(|depth| (n >> (depth / 4)) * 41 + depth)
                .collect()
        })
        .collect();
    let samples: Vec<_> = (0..12_000).map(|n| (Some(n), None, 1, 1)).collect();
    raw_recording(&stacks, &samples)
}

proptest! {
    #[test]
    fn a_written_recording_is_read_back(
        stacks in proptest::collection::vec(proptest::collection::vec(0u64..60, 0..12), 1..20),
        samples in proptest::collection::vec(
            (any::<Option<usize>>(), any::<Option<usize>>(), any::<u8>(), 0u64..1 << 40), 1..40),
    ) {
        let raw_recording = raw_recording(&stacks, &samples);
        let read = read(&bytes(&raw_recording)).unwrap();
        prop_assert_eq!(read.missing, None);
        prop_assert_eq!(read.recorded, raw_recording.normalized.total_count());
        prop_assert_eq!(&read.raw_recording.facts, &raw_recording.facts);
        prop_assert_eq!(&read.raw_recording.closing, &raw_recording.closing);
        prop_assert_eq!(read.raw_recording.normalized.window, raw_recording.normalized.window);
        prop_assert_eq!(resolved(&read.raw_recording), resolved(&raw_recording));
        prop_assert_eq!(read.raw_recording.normalized.samples().len(), raw_recording.normalized.samples().len());
    }

    /// Whatever is in a file, reading it ends, and well.
    #[test]
    fn broken_bytes_never_panic(at in any::<proptest::sample::Index>(), with: u8) {
        let whole = bytes(&usual());
        let mut broken = whole.clone();
        broken[at.index(whole.len())] = with;
        if let Ok(read) = read(&broken) {
            prop_assert!(broken == whole || read.missing == Some(Missing::Damaged)
                || read.missing == Some(Missing::CutOff));
        }
    }
}

#[test]
fn a_truncated_file_gives_its_complete_parts() {
    let large = large();
    let whole = bytes(&large);
    let all = resolved(&large);
    let mut counts = Vec::new();
    // Every length near the ends, and some between.
    let lengths = (0..200).chain((200..whole.len()).step_by(whole.len() / 12));
    for length in lengths.chain(whole.len() - 5..whole.len()) {
        match read(&whole[..length]) {
            Ok(read) => {
                assert_eq!(read.missing, Some(Missing::CutOff), "{length}");
                assert_eq!(read.raw_recording.closing, None);
                assert_eq!(read.recorded, 12_000);
                let batch = resolved(&read.raw_recording);
                assert!(batch.iter().all(|(key, sums)| all.get(key) == Some(sums)));
                counts.push(batch.len());
            }
            Err(Error::Foreign) => assert!(length <= MAGIC.len()),
            Err(error) => {
                assert!(matches!(error, Error::Nothing { .. }), "{length}: {error}");
                assert!(counts.is_empty(), "{length}");
            }
        }
    }
    assert!(counts.is_sorted());
    counts.dedup();
    assert!(counts.len() > 2, "several batches: {counts:?}");
    assert_eq!(read(&whole).unwrap().missing, None);
}

#[test]
fn a_damaged_part_drops_what_follows() {
    let mut bytes = bytes(&large());
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let read = read(&bytes).unwrap();
    assert_eq!(read.missing, Some(Missing::Damaged));
    let count = read.raw_recording.normalized.total_count();
    assert!((1..12_000).contains(&count), "{count}");
}

#[test]
fn what_exceeds_memory_is_left_out_and_reported() {
    let bytes = bytes(&large());
    let read = |most| read_within(&mut &*bytes, (None, 40), most);
    let limited = read(8 << 20).unwrap();
    assert_eq!(limited.missing, Some(Missing::TooLarge));
    assert!((1..12_000).contains(&limited.raw_recording.normalized.total_count()));
    assert!(matches!(read(1000), Err(Error::Nothing { .. })));
    assert_eq!(read(1 << 30).unwrap().missing, None);
}

#[test]
fn other_files_and_later_versions_are_refused() {
    let refusal = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert!(refusal(b"").contains("not a raw recording"));
    assert!(refusal(b"app;main 3\n").contains("not a raw recording"));
    let mut later = bytes(&usual());
    later[MAGIC.len()] = VERSION + 1;
    assert!(
        refusal(&later).contains(&format!("version {VERSION}")),
        "{}",
        refusal(&later)
    );
}

#[test]
fn how_waits_are_to_be_shown_is_told() {
    let mut raw_recording = usual();
    let others = [Wakers::None, Wakers::Alone].map(|wakers| {
        let view = raw_recording.facts.off_cpu;
        view.map(|view| OffCpuView { wakers, ..view })
    });
    for view in others
        .into_iter()
        .chain([None, raw_recording.facts.off_cpu])
    {
        raw_recording.facts.off_cpu = view;
        let read = read(&bytes(&raw_recording)).unwrap();
        assert_eq!(read.raw_recording.facts.off_cpu, view);
    }
}

/// The key of a sample without stacks of a process's only thread, which is called so.
fn of_thread(comm: &[u8; 16], tid: Option<u32>) -> NormalizedKey {
    NormalizedKey {
        label: Label {
            pid: 1,
            start: 2,
            comm: *comm,
            tid,
            ..Label::default()
        },
        ..NormalizedKey::default()
    }
}

#[test]
fn whole_names_of_threads_are_kept() {
    let mut plain = usual();
    plain.normalized = NormalizedProfile::default();
    let keys = [7, 8].map(|tid| of_thread(b"http-nio-8080-e\0", Some(tid)));
    let sums = Sums {
        weight: 4,
        count: 4,
    };
    for key in keys {
        plain.normalized.add(key, sums);
    }
    let name: Arc<[u8]> = b"http-nio-8080-exec-1"[..].into();
    plain.normalized.name_thread(&keys[0].label, &name);
    let mut read = read(&bytes(&plain)).unwrap();
    let names = |normalized: &NormalizedProfile| {
        let samples = normalized.samples();
        let names = samples.map(|(key, _)| normalized.thread_name(&key.label).to_vec());
        names.collect::<Vec<_>>()
    };
    let expected = [&b"http-nio-8080-exec-1"[..], b"http-nio-8080-e"];
    assert_eq!(names(&read.raw_recording.normalized), expected);
    let samples = read.raw_recording.normalized.samples();
    assert!(samples.map(|(key, _)| *key).eq(keys));
    let mut merged = Merged::default();
    merged.add(Merged::of(&mut read.raw_recording));
    assert_eq!(names(&merged.into_parts().0), expected);
}

#[test]
fn weights_equal_to_counts_take_no_space() {
    let mut plain = usual();
    plain.normalized = NormalizedProfile::default();
    let key = of_thread(b"sixteen bytes ok", None);
    let sums = Sums {
        weight: 4,
        count: 4,
    };
    plain.normalized.add(key, sums);
    let read = read(&bytes(&plain)).unwrap();
    let samples: Vec<_> = read.raw_recording.normalized.samples().collect();
    assert_eq!(samples, [(&key, sums)]);
}
