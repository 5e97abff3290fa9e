//! Walks along chains of interpreters, in memory that `cargo xtask record-memory` recorded of real ones: as it was, and broken at
//! will.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use fastrand::Rng;
use flame_bpf_tests::recorded::{Recording, break_at_will, check_broken};
use profiler_common::runtime::RuntimeKind;

/// How often each recording is broken. `cargo xtask fuzz memory` does so more often.
const TIMES: u64 = 200;

/// The recordings and their names.
fn all() -> Vec<(String, Recording)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("recorded");
    let files = fs::read_dir(&folder).expect("the recordings are there");
    let mut all: Vec<(String, Recording)> = files
        .map(|file| {
            let path = file.expect("a file").path();
            let text = fs::read_to_string(&path).expect("text");
            let recording = Recording::parse(&text)
                .unwrap_or_else(|error| panic!("{}: {error:#}", path.display()));
            (path.display().to_string(), recording)
        })
        .collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

#[test]
fn every_recorded_chain_is_walked_as_it_was_recorded() {
    for (name, recording) in all() {
        let walk = recording.replay();
        assert_eq!(walk.lines, recording.shows, "{name}");
        let functions = walk
            .lines
            .iter()
            .filter(|line| line.starts_with("function"));
        assert!(functions.count() >= 4, "{name}: {:?}", walk.lines);
    }
}

/// Makes of the table of runtimes the set of those with chains: of others, frames are native ones.
macro_rules! with_chains {
    (
        $(
            $kind:ident $strings:ident
            $(, chain $chain:ident $level:ident $step:ident)?
            $(, code $owner:ident $leave:ident)?
            $(, frame $framed:ident $function:ident)?;
        )+
    ) => {
        [$($(RuntimeKind::$chain as u8,)?)+]
    };
}

#[test]
fn there_is_a_recording_of_every_chain() {
    let kinds: BTreeSet<RuntimeKind> = all()
        .iter()
        .map(|(name, recording)| recording.kind().unwrap_or_else(|| panic!("{name}")))
        .collect();
    let chains = profiler_common::runtimes!(with_chains).map(RuntimeKind::from_code);
    assert_eq!(kinds, chains.into_iter().flatten().collect());
}

#[test]
fn memory_that_cannot_be_read_shows_no_other_functions() {
    for (name, recording) in all() {
        for run in runs(&recording) {
            let mut broken = recording.clone();
            broken
                .process
                .memory
                .retain(|address, _| !run.contains(address));
            check_broken(&broken)
                .unwrap_or_else(|error| panic!("{name} without {run:x?}: {error}"));
        }
    }
}

#[test]
fn broken_memory_and_descriptors_show_no_other_functions() {
    for (name, recording) in all() {
        let mut differ = 0;
        for seed in 0..TIMES {
            let mut broken = recording.clone();
            break_at_will(&mut broken, &mut Rng::with_seed(seed));
            let walk = check_broken(&broken)
                .unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}"));
            differ += u64::from(walk.lines != recording.shows);
        }
        // Otherwise nothing was broken that counts.
        assert!(differ > TIMES / 4, "{name}: {differ} of {TIMES}");
    }
}

/// The addresses of bytes that follow each other.
fn runs(recording: &Recording) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for &address in recording.process.memory.keys() {
        match runs.last_mut() {
            Some(run) if run.end == address => run.end += 1,
            _ => runs.push(address..address + 1),
        }
    }
    runs
}
