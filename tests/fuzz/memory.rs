//! Memory of interpreters, broken.
//!
//! In: recordings of real ones. Out: a walk in each that was broken, which must end, and show no function that was not there.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use fastrand::Rng;
use flame_bpf_tests::recorded::{Recording, break_at_will, check_broken};

use crate::corpus::{Seed, whole};

/// All recordings.
pub(crate) fn corpus() -> Result<Vec<Seed>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("recorded");
    let files = fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))?;
    let mut files: Vec<PathBuf> = files
        .map(|file| file.map(|file| file.path()))
        .collect::<Result<_, _>>()?;
    // The same input for the same number.
    files.sort();
    files
        .iter()
        .map(|file| Ok(whole(fs::read(file)?)))
        .collect()
}

/// A recording in which something was changed.
pub(crate) fn input(one: &Seed, rng: &mut Rng) -> Vec<u8> {
    let mut recording = parse(&one.bytes).expect("the recordings can be read");
    break_at_will(&mut recording, rng);
    recording.to_string().into_bytes()
}

/// Walks.
pub(crate) fn read(input: &[u8]) {
    if let Ok(recording) = parse(input)
        && let Err(error) = check_broken(&recording)
    {
        panic!("{error:#}");
    }
}

fn parse(bytes: &[u8]) -> Result<Recording> {
    Recording::parse(str::from_utf8(bytes)?)
}
