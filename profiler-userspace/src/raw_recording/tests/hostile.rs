//! Files that say what no writer does.

use super::*;
use crate::raw_recording::section::Kind;
use crate::raw_recording::wire::Batch;

/// A file whose second section is this batch.
fn with_batch(batch: &Batch) -> Vec<u8> {
    let whole = bytes(&usual());
    let mut bytes = whole[..MAGIC.len() + 1].to_vec();
    let head_bytes = u32::from_le_bytes(whole[10..14].try_into().unwrap()) as usize;
    bytes.extend(&whole[9..9 + 13 + head_bytes]);
    let window = crate::raw_recording::wire::Window::default();
    crate::raw_recording::section::write(&mut bytes, Kind::Window, &window).unwrap();
    crate::raw_recording::section::write(&mut bytes, Kind::Batch, batch).unwrap();
    bytes
}

#[test]
fn dangling_indices_are_refused() {
    let of = |change: &dyn Fn(&mut Batch)| {
        let mut batch = Batch {
            location_kinds: vec![0],
            location_values: vec![0],
            stack_bases: vec![0],
            stack_shared: vec![0],
            stack_lengths: vec![1],
            stack_steps: vec![0],
            stack_ends: vec![0],
            label_comms: vec![b"a".to_vec()],
            label_pids: vec![1],
            label_starts: vec![2],
            label_tids: vec![0],
            label_cpus: vec![0],
            sample_labels: vec![0],
            sample_users: vec![1],
            sample_kernels: vec![0],
            sample_thread_state: vec![0],
            sample_counts: vec![1],
            ..Batch::default()
        };
        change(&mut batch);
        read(&with_batch(&batch))
    };
    let whole = of(&|_| ()).unwrap();
    assert_eq!(whole.raw_recording.normalized.total_count(), 1);
    let broken: [&dyn Fn(&mut Batch); 46] = [
        &|batch| batch.stack_bases = vec![1],
        &|batch| batch.stack_bases = vec![2],
        &|batch| batch.stack_bases = vec![u32::MAX],
        &|batch| batch.stack_bases = Vec::new(),
        &|batch| batch.waker_labels = vec![0],
        &|batch| batch.sample_wakers = vec![1],
        &|batch| {
            batch.waker_labels = vec![1];
            batch.waker_users = vec![0];
            batch.waker_kernels = vec![0];
        },
        &|batch| {
            batch.waker_labels = vec![0];
            batch.waker_users = vec![0];
            batch.waker_kernels = vec![2];
        },
        // Of a thread that runs.
        &|batch| {
            batch.waker_labels = vec![0];
            batch.waker_users = vec![1];
            batch.waker_kernels = vec![0];
            batch.sample_wakers = vec![1];
        },
        &|batch| batch.location_kinds = vec![1],
        &|batch| batch.location_kinds = vec![2],
        &|batch| batch.location_kinds = vec![u32::MAX],
        &|batch| batch.location_values.clear(),
        &|batch| batch.location_places = vec![1, 1],
        &|batch| {
            batch.location_kinds = vec![1];
            batch.location_places = vec![u64::MAX];
        },
        &|batch| batch.stack_shared = vec![1],
        &|batch| batch.stack_lengths = vec![u32::MAX],
        &|batch| batch.stack_steps = vec![1],
        &|batch| {
            batch.stack_steps = vec![1];
            batch.stack_locations = vec![1];
        },
        &|batch| batch.stack_steps = vec![2],
        &|batch| batch.stack_steps = vec![u32::MAX],
        &|batch| batch.stack_locations = vec![0],
        &|batch| batch.stack_lengths = vec![2],
        &|batch| batch.stack_ends = vec![200],
        &|batch| batch.label_comms = vec![vec![b'a'; 17]],
        &|batch| batch.label_cpus = vec![1 << 33],
        &|batch| batch.sample_labels = vec![1],
        &|batch| batch.sample_labels = vec![-1],
        &|batch| batch.sample_labels = vec![i64::MAX],
        &|batch| batch.sample_users = vec![2],
        &|batch| batch.sample_thread_state = vec![9],
        &|batch| batch.sample_weights = vec![1, 2],
        &|batch| batch.names = vec!["x".to_owned()],
        &|batch| batch.object_paths = vec![b"/x".to_vec()],
        &|batch| batch.segment_sizes = vec![1],
        &|batch| {
            batch.names = vec!["x".to_owned()];
            batch.name_kinds = vec![99];
        },
        &|batch| {
            batch.names = vec!["x".to_owned()];
            batch.name_kinds = vec![0];
            batch.name_files = vec![1];
            batch.name_lines = vec![1];
        },
        &|batch| batch.name_lines = vec![1],
        &|batch| batch.label_pids.clear(),
        &|batch| batch.label_pids = vec![-1],
        &|batch| batch.label_starts.push(1),
        &|batch| batch.label_contexts = vec![1],
        &|batch| batch.label_contexts = vec![0, 0],
        &|batch| batch.context_lengths = vec![1],
        &|batch| batch.context_keys = vec!["service.name".to_owned()],
        &|batch| {
            batch.context_lengths = vec![u32::MAX, 1];
            batch.context_keys = vec!["service.name".to_owned()];
            batch.context_values = vec!["shop".to_owned()];
        },
    ];
    for (at, change) in broken.into_iter().enumerate() {
        let error = of(change).unwrap_err();
        assert!(
            matches!(error, Error::Nonsense { section: 3, .. }),
            "{at}: {error}"
        );
    }
    // Attributes that a later writer may know are passed over.
    let later = of(&|batch| {
        batch.label_contexts = vec![1];
        batch.context_lengths = vec![1, 0];
        batch.context_keys = vec!["service.owner".to_owned()];
        batch.context_values = vec!["shop".to_owned()];
    });
    assert_eq!(later.unwrap().missing, whole.missing);
    let overflow = of(&|batch| {
        batch.sample_labels.push(0);
        batch.sample_users.push(-1);
        batch.sample_kernels.push(0);
        batch.sample_thread_state.push(0);
        batch.sample_counts = vec![u64::MAX, 1];
    });
    assert!(matches!(overflow, Err(Error::Nonsense { .. })));
}

#[test]
fn a_short_section_cannot_unpack_to_a_huge_one() {
    let bomb = crate::raw_recording::section::pack(&vec![0; 4 << 20]).unwrap();
    for claimed in [1u32 << 20, 4 << 20] {
        let mut bytes = bytes(&usual())[..MAGIC.len() + 1].to_vec();
        let mut header = vec![1];
        header.extend(u32::try_from(bomb.len()).unwrap().to_le_bytes());
        header.extend(claimed.to_le_bytes());
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&header);
        hasher.update(&bomb);
        bytes.extend(&header);
        bytes.extend(hasher.finalize().to_le_bytes());
        bytes.extend(&bomb);
        assert!(matches!(read(&bytes), Err(Error::Nothing { .. })));
    }
}
