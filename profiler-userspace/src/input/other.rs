//! Files that people take for profiles, and that are read here by nobody.
//!
//! In: how a file begins. Out: what it is, and what to give instead.

use super::Head;

const PICTURE: &str = "it is a picture or a page; give what it was made of, such as a raw recording (.fbpf), pprof or folded text";

const ARCHIVE: &str = "it is an archive, or packed in another way than by gzip; unpack it";

const GPERFTOOLS: &str = "it is in the own format of gperftools, as some jemalloc's are, which go tool pprof understands: go tool pprof -proto PROGRAM FILE > x.pb.gz";

/// Binary files, and others that no text begins like.
const MAGIC: &[(&[u8], &str)] = &[
    (
        b"PERFILE2",
        "it is of perf record; give what perf script makes of it: perf script -i FILE | flame-bpf render -",
    ),
    (b"\x7fELF", "it is a program or a core, and no profile"),
    (b"PK\x03\x04", ARCHIVE),
    (b"\x28\xb5\x2f\xfd", ARCHIVE),
    (b"\xfd7zXZ\0", ARCHIVE),
    (b"7z\xbc\xaf", ARCHIVE),
    (b"BZh", ARCHIVE),
    (b"\x04\x22\x4d\x18", ARCHIVE),
    (b"\x89PNG", PICTURE),
    (b"GIF8", PICTURE),
    (b"\xff\xd8\xff", PICTURE),
    (b"%PDF", PICTURE),
    // A header of words: 0, 3, 0.
    (
        b"\0\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        GPERFTOOLS,
    ),
    (b"\0\0\0\0\x03\0\0\0\0\0\0\0", GPERFTOOLS),
    (
        b"FLR\0",
        "it is of Java's Flight Recorder; give folded text: jfrconv FILE x.collapsed, of async-profiler",
    ),
    (
        b"Nettrace",
        "it is of .NET; give speedscope's JSON: dotnet-trace convert --format speedscope FILE",
    ),
];

/// Texts, behind white space.
const TEXTS: &[(&str, &str)] = &[
    ("<svg", PICTURE),
    ("<!doctype", PICTURE),
    ("<html", PICTURE),
    (
        "heap_v2/",
        "it is jemalloc's own format; give folded text: jeprof --collapsed PROGRAM FILE > x.folded",
    ),
    ("heap profile:", GPERFTOOLS),
    ("--- heap", GPERFTOOLS),
    ("--- contention", GPERFTOOLS),
    ("--- growth", GPERFTOOLS),
    ("--- thread", GPERFTOOLS),
    ("growth profile:", GPERFTOOLS),
    (
        "goroutine profile:",
        "it is Go's text for people; give its pprof, which is the same address without debug=1",
    ),
    ("# callgrind format", CALLGRIND),
];

const XML: &str = "it is XML, such as a picture in SVG; give what it was made of, or a raw recording (.fbpf), pprof or folded text";

const GOROUTINES: &str =
    "it is a dump of Go's goroutines; give its pprof, which is the same address without debug=2";

const CALLGRIND: &str = "it is in callgrind's format, which has no stacks; look at it with callgrind_annotate or kcachegrind";

/// The format of a binary file, if it is known and no profile.
pub(super) fn of_magic(bytes: &[u8]) -> Option<&'static str> {
    let tar = bytes.get(257..262) == Some(b"ustar");
    let known = MAGIC.iter().find(|(begin, _)| bytes.starts_with(begin));
    known.map(|(_, is)| *is).or(tar.then_some(ARCHIVE))
}

/// The format of a text, if it is known by how it begins and no profile.
pub(super) fn of_text(head: &Head<'_>) -> Option<&'static str> {
    let text = head.text.trim_start();
    let begins = |begin: &str| {
        let start = text.get(..begin.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(begin))
    };
    let known = TEXTS.iter().find(|(begin, _)| begins(begin));
    known.map(|(_, is)| *is)
}

/// The format of a text that is of no kind, if it is known.
pub(super) fn of_rest(head: &Head<'_>) -> Option<&'static str> {
    let text = head.text.trim_start();
    let first = text.lines().next().unwrap_or_default();
    match text {
        _ if text.starts_with("<?xml") => Some(XML),
        _ if is_callgrind(text) => Some(CALLGRIND),
        _ if text.starts_with("goroutine ") && first.ends_with("]:") => Some(GOROUTINES),
        _ if is_json(text) => Some(of_json(text)),
        _ => None,
    }
}

/// Whether a text is of callgrind or, as that of xdebug, in its format.
fn is_callgrind(text: &str) -> bool {
    let mut lines = text.lines().take(64);
    lines
        .next()
        .is_some_and(|line| line.starts_with("version: "))
        && lines.any(|line| line.starts_with("events: "))
}

/// Whether a text begins as JSON does. Names of functions begin with such brackets, too: `{closure};main 3`.
pub(super) fn is_json(text: &str) -> bool {
    let text = text.trim_start();
    let behind = |bracket| {
        text.strip_prefix(bracket)
            .map(|rest: &str| rest.trim_start())
    };
    let object = behind('{').is_some_and(|rest| rest.starts_with(['"', '}']) || rest.is_empty());
    let list =
        behind('[').is_some_and(|rest| rest.starts_with(['{', '[', ']', '"']) || rest.is_empty());
    object || list
}

fn of_json(text: &str) -> &'static str {
    let has = |key: &str| text.contains(key);
    if has("\"traceEvents\"") || has("\"ph\"") {
        "it is Chrome's trace events, which are not read; give a .cpuprofile, as node --cpu-prof and the browser's tools save"
    } else if has("\"snapshot\"") || has("\"selfSize\"") {
        "it is a heap snapshot or profile of JavaScript, which is not read; give a .cpuprofile"
    } else {
        "it is JSON, which is not read but for .cpuprofile and speedscope's; give a raw recording (.fbpf), pprof, folded \
         text, or what bpftrace prints without -f json"
    }
}
