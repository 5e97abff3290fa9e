//! Recordings added up before they are named.
//!
//! In: recordings made here. Out: their samples, each once, with sums of both.

use super::*;
use std::sync::Arc;

/// Sums of samples by process and stack; whatever the numbers of things are.
fn lines(merged: Merged) -> Resolved {
    let (normalized, objects) = merged.into_parts();
    resolved_of(&normalized, &objects)
}

fn merged(recordings: &[RawRecording]) -> Merged {
    let mut all = recordings.iter().cloned();
    let mut merged = Merged::of(&mut all.next().expect("a recording"));
    all.for_each(|mut other| merged.add(Merged::of(&mut other)));
    merged
}

proptest! {
    #[test]
    fn order_and_grouping_of_recordings_change_nothing(
        stacks in prop::collection::vec(prop::collection::vec(0..20_u64, 0..4), 1..5),
        samples in prop::collection::vec(
            prop::collection::vec((prop::option::of(0..9_usize), prop::option::of(0..9_usize), 0..20_u8, 0..1000_u64), 0..5),
            2..5,
        ),
    ) {
        let mut recordings: Vec<_> = samples.iter().map(|samples| raw_recording(&stacks, samples)).collect();
        // Objects have other numbers in other recordings.
        for (at, recording) in recordings.iter_mut().enumerate() {
            recording.objects.rotate_left(at % 3);
        }
        let one_by_one = lines(merged(&recordings));
        let (first, others) = recordings.split_at(recordings.len() / 2);
        let mut grouped = merged(first);
        grouped.add(merged(others));
        prop_assert_eq!(&lines(grouped), &one_by_one);
        recordings.reverse();
        prop_assert_eq!(&lines(merged(&recordings)), &one_by_one);
        let weight: u64 = recordings.iter().map(|recording| recording.normalized.total_weight()).sum();
        prop_assert_eq!(one_by_one.values().map(|sums| sums.0).sum::<u64>(), weight);
    }
}

#[test]
fn processes_of_two_machines_keep_their_names() {
    let named = |name: Option<&str>| {
        let mut recording = raw_recording(&[vec![2]], &[(Some(0), None, 1, 1)]);
        if let Some(name) = name {
            let name: Arc<[u8]> = name.as_bytes().into();
            recording.normalized.name_process(1, 1 << 60, &name);
        }
        recording
    };
    let recordings = [named(Some("nginx")), named(None), named(Some("redis"))];
    let (normalized, _) = merged(&recordings).into_parts();
    let names = normalized.samples().map(|(key, sums)| {
        let name = normalized.process_name(&key.label);
        (name.map(|name| name.to_vec()), sums.count)
    });
    let names: Vec<_> = names.collect();
    let name = |name: &str| Some(name.as_bytes().to_vec());
    assert_eq!(names, [(name("nginx"), 1), (None, 1), (name("redis"), 1)]);
    // Of one machine, they are one.
    let again = [named(Some("nginx")), named(Some("nginx"))];
    assert_eq!(merged(&again).into_parts().0.samples().len(), 1);
}

#[test]
fn processes_of_two_machines_keep_their_contexts() {
    let published = |name: &str| {
        let mut recording = raw_recording(&[vec![2]], &[(Some(0), None, 1, 1)]);
        let context = ProcessContext::of([("service.name", name)]).unwrap();
        recording
            .normalized
            .note_context(1, 1 << 60, &Arc::new(context));
        recording
    };
    let (normalized, _) =
        merged(&[published("shop"), published("till"), published("shop")]).into_parts();
    let services = normalized.samples().map(|(key, sums)| {
        let context = normalized.context_of(&key.label).unwrap();
        (context.service().unwrap(), sums.count)
    });
    assert_eq!(services.collect::<Vec<_>>(), [("shop", 2), ("till", 1)]);
}
