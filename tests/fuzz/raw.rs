//! Broken raw recordings.
//!
//! In: the golden ones, and a source of randomness. Out: files whose messages are broken and whose lengths and
//! checksums are right, so that what is behind them is reached; now and then just broken bytes. A file is read,
//! named and folded.

use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::time::Duration;

use anyhow::{Context as _, Result};
use fastrand::Rng;
use flame_bpf::profile::{fold, off_cpu};
use flame_bpf::raw_recording;
use flame_bpf::symbolize::{self, Naming, Sources};
use lzma_rust2::{LzmaOptions, LzmaReader, LzmaWriter};

use crate::corpus::Seed;
use crate::mutate;

/// Magic and version.
const START: usize = 9;

/// Kind, packed length, length, checksum.
const HEADER: usize = 13;

/// The golden files.
pub(crate) fn corpus() -> Result<Vec<Seed>> {
    let seed = |path: &str| {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {path}"))?;
        let parts = std::iter::once(0..bytes.len()).collect();
        Ok(Seed { bytes, parts })
    };
    [
        concat!(env!("CARGO_MANIFEST_DIR"), "/golden/raw.fbpf"),
        concat!(env!("CARGO_MANIFEST_DIR"), "/golden/raw-wakers.fbpf"),
        concat!(env!("CARGO_MANIFEST_DIR"), "/golden/raw-windows.fbpf"),
    ]
    .into_iter()
    .map(seed)
    .collect()
}

/// A file with some of its messages broken.
pub(crate) fn input(one: &Seed, other: &Seed, rng: &mut Rng) -> Vec<u8> {
    if rng.u32(0..8) == 0 {
        return mutate::text(one, other, rng);
    }
    let mut sections = sections(&one.bytes);
    for _ in 0..rng.usize(1..3) {
        let (from, to) = (rng.usize(..sections.len()), rng.usize(..sections.len()));
        match rng.u32(0..8) {
            0 => sections.swap(from, to),
            1 => sections.insert(to, sections[from].clone()),
            2 => sections[to].0 = rng.u8(0..6),
            _ => {
                let seed = |bytes: &[u8]| Seed {
                    parts: std::iter::once(0..bytes.len()).collect(),
                    bytes: bytes.to_vec(),
                };
                let (broken, with) = (seed(&sections[to].1), seed(&sections[from].1));
                // One that an earlier change has emptied has no place where bytes could change.
                let have_bytes = !broken.bytes.is_empty() && !with.bytes.is_empty();
                sections[to].1 = match have_bytes && rng.bool() {
                    true => mutate::object(&broken, &with, rng),
                    false => mutate::text(&broken, &with, rng),
                };
            }
        }
    }
    let mut bytes = one.bytes[..START].to_vec();
    for (kind, message) in sections {
        let packed = pack(&message);
        let mut header = vec![kind];
        header.extend((packed.len() as u32).to_le_bytes());
        header.extend((message.len() as u32).to_le_bytes());
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&header);
        hasher.update(&packed);
        header.extend(hasher.finalize().to_le_bytes());
        bytes.extend(header);
        bytes.extend(packed);
    }
    bytes
}

/// LZMA's lc, lp and pb in raw recordings, and the size of its dictionary.
const CONTEXT: (u32, u32, u32) = (1, 0, 0);
const DICTIONARY: u32 = 1 << 20;

fn pack(message: &[u8]) -> Vec<u8> {
    let mut options = LzmaOptions::with_preset(0);
    (options.lc, options.lp, options.pb) = CONTEXT;
    options.dict_size = 4096;
    let packer = LzmaWriter::new_no_header(Vec::new(), &options, false);
    let mut packer = packer.expect("memory can be written");
    packer.write_all(message).expect("memory can be written");
    packer.finish().expect("memory can be written")
}

fn unpack(packed: &[u8], bytes: u32) -> Vec<u8> {
    let (lc, lp, pb) = CONTEXT;
    let unpacker = LzmaReader::new(packed, u64::from(bytes), lc, lp, pb, DICTIONARY, None);
    let mut message = Vec::new();
    (unpacker.expect("those are sensible"))
        .read_to_end(&mut message)
        .expect("the golden file is whole");
    message
}

/// The kinds and messages of a whole file.
fn sections(bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut rest = &bytes[START..];
    let mut sections = Vec::new();
    while let Some((header, behind)) = rest.split_at_checked(HEADER) {
        let length = u32::from_le_bytes([header[1], header[2], header[3], header[4]]) as usize;
        let (packed, next) = behind.split_at(length);
        let bytes = u32::from_le_bytes([header[5], header[6], header[7], header[8]]);
        sections.push((header[0], unpack(packed, bytes)));
        rest = next;
    }
    sections
}

/// Reads, names and folds.
pub(crate) fn read(input: &[u8]) {
    let second = Duration::from_secs(1);
    let part = raw_recording::read(
        input,
        Some(&|began| began + 60 * second..began + 65 * second),
        1,
    );
    let Ok(read) = raw_recording::read(input, None, 40) else {
        return;
    };
    let raw_recording = read.raw_recording;
    if let Ok(part) = part {
        assert!(
            part.raw_recording.normalized.total_count() <= raw_recording.normalized.total_count()
        );
    }
    let sources = Sources {
        naming: &Naming::default(),
        fetch: None,
        progress: None,
        names: None,
    };
    let unit = raw_recording.facts.unit.clone();
    let named = symbolize::symbolize_stored(
        raw_recording.normalized.clone(),
        &raw_recording.objects,
        unit,
        &sources,
    );
    assert_eq!(
        named.profile.total_count(),
        raw_recording.normalized.total_count()
    );
    let profile = match raw_recording.facts.off_cpu {
        Some(how) => off_cpu::view(named.profile, how),
        None => named.profile,
    };
    assert_eq!(
        profile.total_count(),
        raw_recording.normalized.total_count()
    );
    let mut text = Vec::new();
    fold::fold(&profile, fold::FoldStyle::default(), &mut text).expect("memory can be written");
    black_box(text);
    // A recording that was read can be written, and is the same then.
    let mut again = Vec::new();
    raw_recording::write(&raw_recording, &mut again).expect("what was read can be written");
    let again = raw_recording::read(&*again, None, 40).expect("what was written can be read");
    assert_eq!(again.missing, None);
    assert_eq!(
        again.raw_recording.normalized.total_count(),
        raw_recording.normalized.total_count()
    );
    assert_eq!(
        again.raw_recording.normalized.samples().len(),
        raw_recording.normalized.samples().len()
    );
}
