//! Profiles of other tools, broken.
//!
//! In: bytes like those of such a file. Out: their being read, and a profile that can be written, read again, and selected
//! from, if it is one.

use std::hint::black_box;
use std::io::Read as _;
use std::path::Path;

use flame_bpf::input::{File, ReadOptions};
use flame_bpf::output::{self, Format, Style};
use flame_bpf::profile::fold;
use flame_bpf::profile::select::{Pattern, Selection};

use crate::corpus::{Seed, whole};

/// Real files of each kind, and small ones made by hand.
pub(crate) fn corpus() -> Vec<Seed> {
    let golden = |name: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
        std::fs::read(folder.join(name)).expect("the golden files are there")
    };
    let mut files = vec![
        golden("inputs/bpftrace.txt"),
        golden("inputs/perf-script.txt"),
        golden("inputs/systemtap.txt"),
        unpacked(&golden("raw.pb.gz")),
        golden("raw.pb.gz"),
        table(&golden("raw.pb.gz")),
    ];
    files.extend(
        [
            &b"CPU     ID\n\n  unix`a+0x1\n  unix`main+0x2\n   7\n"[..],
            b"Call graph:\n    5 Thread_1\n      5 main  (in app) + 3\n    + 4 work (in app)\n\nTotal number in stack\n",
            b"Function Stack,CPU Time:Self,Module\nmain,0,app\n work,0.5,app\n",
            b"COST CENTRE MODULE SRC no. entries %time %alloc %time %alloc\n\nMAIN MAIN <built-in> 1 0 0.5 0.0 100.0 100.0\n",
            b"<?xml version=\"1.0\"?>\n<trace-query-result><node><row><backtrace id=\"1\"><frame id=\"2\" name=\"f\" addr=\"0x1\">\
              </frame></backtrace></row><row><backtrace ref=\"1\"/></row></node></trace-query-result>\n",
            b"Level,Function Name,Number of Calls,Elapsed Inclusive Time %,Elapsed Exclusive Time %,Avg Elapsed Inclusive \
              Time,Avg Elapsed Exclusive Time,Module Name,\n1,\"a\",4,0.00,0.00,0.00,0.00,\"m\",\n2,\"b\",4,0.00,0.00,0.00,0.00,\
              \"m\",\n",
        ]
        .map(<[u8]>::to_vec),
    );
    files.into_iter().map(whole).collect()
}

/// A profile of another kind as Parquet.
fn table(of: &[u8]) -> Vec<u8> {
    let file = File::of(of).expect("our own file is known");
    let reading = file.read(&ReadOptions::ALL);
    let profile = reading.expect("our own file can be read").profile;
    let mut bytes = Vec::new();
    output::write(&profile, Format::PARQUET, &Style::default(), &mut bytes)
        .expect("memory can be written");
    bytes
}

fn unpacked(gzipped: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut gzip = flate2::read::GzDecoder::new(gzipped);
    gzip.read_to_end(&mut bytes)
        .expect("our own file can be unpacked");
    bytes
}

/// Reads a file, and uses what came of it.
pub(crate) fn read(input: &[u8]) {
    let Ok(file) = File::of(input) else {
        return;
    };
    let options = ReadOptions {
        windows: 8,
        ..ReadOptions::ALL
    };
    let Ok(reading) = file.read(&options) else {
        return;
    };
    black_box(reading.notes);
    let profile = reading.profile;
    let weight = profile.total_weight();
    let pattern = Pattern::parse("a|main").expect("a pattern");
    let selection = Selection {
        focus: vec![Pattern::parse("").expect("a pattern")],
        hide: vec![pattern.clone()],
        ignore: vec![pattern],
        collapse_recursion: true,
        ..Selection::default()
    };
    let selected = selection
        .of(profile.clone())
        .expect("all owners are wanted");
    let left_out = selected.left_out.iter().map(|left_out| left_out.weight);
    let left_out = left_out.fold(0, u64::saturating_add);
    assert_eq!(
        selected.profile.total_weight().saturating_add(left_out),
        weight,
        "weight was lost"
    );
    let mut text = Vec::new();
    fold::fold(&profile, fold::FoldStyle::default(), &mut text).expect("memory can be written");
    let format = Format::from_path(Path::new("x.pb.gz")).expect("it is known");
    let mut pprof = Vec::new();
    output::write(&profile, format, &Style::default(), &mut pprof).expect("memory can be written");
}
