//! Real inputs, from which broken ones are made.
//!
//! In: this machine's libraries, and workloads built in unusual ways. Out: [`Seed`]s, the same ones in the same order each time.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use flame_bpf_tests::Recipe;
use object::read::elf::{FileHeader as _, SectionHeader as _};
use object::{LittleEndian, elf::FileHeader64};

/// Libraries that every system has, small ones first. What is not there is left out.
const LIBRARIES: [&str; 10] = [
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/x86_64-linux-gnu/libgcc_s.so.1",
    "/lib/x86_64-linux-gnu/libz.so.1",
    "/lib/x86_64-linux-gnu/libdl.so.2",
    "/lib/x86_64-linux-gnu/liblzma.so.5",
    "/lib/x86_64-linux-gnu/libtinfo.so.6",
    "/lib/x86_64-linux-gnu/libm.so.6",
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/usr/bin/ls",
];

/// A real input.
pub(crate) struct Seed {
    /// All of it.
    pub(crate) bytes: Vec<u8>,
    /// The parts that are worth breaking: headers, unwind sections, tables.
    pub(crate) parts: Vec<Range<usize>>,
}

/// Object files with unwind sections of all kinds.
pub(crate) fn objects() -> Result<Vec<Seed>> {
    let chain = || Recipe::c("chain");
    let debug = || chain().compiled("-g -fno-asynchronous-unwind-tables");
    let built = [
        chain(),
        chain().compiled("-fPIE").linked("-static-pie"),
        chain().linked("-Wl,--no-eh-frame-hdr"),
        debug(),
        debug().linked("-Wl,--compress-debug-sections=zlib"),
        Recipe::c("realigned"),
        Recipe::c("edge"),
        Recipe::c("tiny").named("libtiny.so").shared(),
    ];
    let mut paths: Vec<PathBuf> = built
        .iter()
        .map(|recipe| recipe.make().path().to_owned())
        .collect();
    // Small ones are quick to read, so they come more often.
    paths.extend(paths.clone());
    paths.extend(LIBRARIES.map(PathBuf::from));
    let seeds: Vec<Seed> = paths
        .iter()
        .filter_map(|path| fs::read(path).ok())
        .map(|bytes| Seed {
            parts: parts(&bytes),
            bytes,
        })
        .collect();
    ensure!(!seeds.is_empty(), "there is no object file to begin with");
    Ok(seeds)
}

/// The parts of an object file that are worth breaking; all of it if it is none.
fn parts(bytes: &[u8]) -> Vec<Range<usize>> {
    const WORTH: [&[u8]; 13] = [
        b".eh_frame",
        b".eh_frame",
        b".eh_frame_hdr",
        b".debug_frame",
        b".plt",
        b".plt.sec",
        b".plt.got",
        b".note.gnu.build-id",
        b".symtab",
        b".dynsym",
        b".gnu_debuglink",
        b".gnu_debugdata",
        b".shstrtab",
    ];
    let headers = 0..bytes.len().min(64);
    let mut parts = Vec::from([headers]);
    let Ok(header) = FileHeader64::<LittleEndian>::parse(bytes) else {
        return parts;
    };
    let mut add = |start: u64, size: u64| {
        let (start, size) = (start as usize, size as usize);
        let range = start..start.saturating_add(size).min(bytes.len());
        if !range.is_empty() {
            parts.push(range);
        }
    };
    let endian = LittleEndian;
    add(
        header.e_phoff(endian),
        u64::from(header.e_phnum(endian)) * 56,
    );
    add(
        header.e_shoff(endian),
        u64::from(header.e_shnum(endian)) * 64,
    );
    if let Ok(sections) = header.sections(endian, bytes) {
        for section in sections.iter() {
            let name = sections.section_name(endian, section).unwrap_or_default();
            // As often as it is in the list.
            for _ in WORTH.iter().filter(|worth| **worth == name) {
                add(section.sh_offset(endian), section.sh_size(endian));
            }
        }
    }
    parts
}

/// Mappings of processes.
pub(crate) fn maps() -> Vec<Seed> {
    let mut texts = vec![
        b"7f0000040000-7f0000050000 r-xp 00001000 103:12 99                        /tmp/two  words\\012here\n".to_vec(),
        b"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n".to_vec(),
    ];
    // Not this process's own, which are other ones each time.
    texts.extend((0..40).map(|n: u64| {
        let start = 0x5600_0000_0000 + n * 0x10000;
        let line = |start: u64, permissions: &str| {
            format!(
                "{start:x}-{:x} {permissions} {n:08x} fe:00 {n}    /usr/lib/lib{n}.so (deleted)\n",
                start + 0x1000
            )
        };
        (line(start, "r--p") + &line(start + 0x1000, "r-xp"))
            .repeat(n as usize % 9 + 1)
            .into_bytes()
    }));
    texts.into_iter().map(whole).collect()
}

/// Folded stacks.
pub(crate) fn folded() -> Vec<Seed> {
    let mut texts: Vec<Vec<u8>> = [
        &b"app;_start;main;f 90\napp;[no unwind info];g;h 6\nother;[tid 3];x_[k] 100\n"[..],
        b"# a comment\n\napp;main;std::vector<int, std::allocator<int> >::push_back(int const&) 18446744073709551615\n",
        b"a;-;b_[k];c_[k] 1\na;--;b 2\r\n[cpu 1];x 0\n",
    ]
    .map(<[u8]>::to_vec)
    .to_vec();
    texts.push(
        (0..60)
            .map(|n| format!("app;{}leaf{n} {n}\n", "frame;".repeat(n)))
            .collect::<String>()
            .into_bytes(),
    );
    texts.into_iter().map(whole).collect()
}

/// An input of which every part is worth breaking.
pub(crate) fn whole(bytes: Vec<u8>) -> Seed {
    Seed {
        parts: std::iter::once(0..bytes.len()).collect(),
        bytes,
    }
}
