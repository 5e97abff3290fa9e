use super::*;
use crate::allocator;
use crate::profile::fold::FoldStyle;
use proptest::collection::vec;
use proptest::prelude::*;

pub(super) fn read(
    bytes: &[u8],
    options: &ReadOptions<'_>,
) -> Result<(&'static Kind, Reading), Error> {
    let file = File::of(bytes)?;
    Ok((file.kind, file.read(options)?))
}

/// The kind of a file, and its profile as folded text with kernel frames marked.
pub(super) fn kind_and_text(text: &str) -> (&'static str, String) {
    let (kind, reading) = read(text.as_bytes(), &ReadOptions::ALL).unwrap();
    (kind.name, annotated(&reading.profile))
}

pub(super) fn annotated(profile: &Profile) -> String {
    fold::text(profile, FoldStyle::ANNOTATED)
}

/// The error for a broken file.
pub(super) fn refused(text: &str) -> String {
    match read(text.as_bytes(), &ReadOptions::ALL) {
        Ok((kind, reading)) => panic!("{}: {}", kind.name, annotated(&reading.profile)),
        Err(error) => error.to_string(),
    }
}

pub(super) fn notes(text: &str) -> Vec<String> {
    let (_, reading) = read(text.as_bytes(), &ReadOptions::ALL).unwrap();
    let notes = reading.notes.into_iter();
    notes
        .map(|(label, text)| format!("{label}: {text}"))
        .collect()
}

const SYSTEMTAP: &str = " 0xffffffff8103ce3b : native_safe_halt+0xb/0x10 [kernel]
 0xffffffff8101c6a3 : default_idle+0x53/0x1d0 [kernel]
 0xffffffff81aebbfe : start_kernel+0x3ba/0x3c5 [kernel] (inexact)
\t2404

 0x7f533952bc77 : __read+0x17/0x60 [/usr/lib/libc.so.6]
 0x7f5339520000 : [/usr/lib/libc.so.6+0x2000/0x1000]
 0x4005e6
10
";

#[test]
fn systemtap_prints_a_stack_of_lines_and_then_a_number() {
    let (kind, folded) = kind_and_text(SYSTEMTAP);
    assert_eq!(kind, "SystemTap stacks");
    assert_eq!(
        folded,
        "0x4005e6;[/usr/lib/libc.so.6+0x2000];__read 10\n\
         start_kernel_[k];default_idle_[k];native_safe_halt_[k] 2404\n"
    );
}

#[test]
fn odd_lines_of_systemtap_are_told_wherever_they_are() {
    let folded = kind_and_text(SYSTEMTAP).1;
    let count = SYSTEMTAP.lines().count();
    for odd in ["ERROR: probe overhead exceeded threshold", "8"] {
        for at in [0, 4, 5, count] {
            let mut lines: Vec<_> = SYSTEMTAP.lines().collect();
            lines.insert(at, odd);
            // A text that begins otherwise is taken for none of SystemTap's.
            let (text, line) = match (at, odd) {
                (0, "8") => continue,
                (0, _) => (lines.join("\n").replace("ERROR", "WARNING"), 1),
                _ => (lines.join("\n"), at + 1),
            };
            assert_eq!(kind_and_text(&text).1, folded, "{text}");
            let told = notes(&text).concat();
            assert!(
                told.contains(&format!(
                    ": 1 lines that end no stack and are no frame; the first is line {line}: "
                )),
                "{told}"
            );
        }
    }
    let cut = SYSTEMTAP.strip_suffix("10\n").unwrap();
    let (_, whole) = folded.split_once('\n').unwrap();
    assert_eq!(kind_and_text(cut).1, whole);
    let told = notes(cut).concat();
    assert!(
        told.contains("behind line 8: the file ends within a stack"),
        "{told}"
    );
    let (rest, _) = folded.split_once('\n').unwrap();
    let heavy = SYSTEMTAP.replace("2404", "18446744073709551616");
    assert_eq!(kind_and_text(&heavy).1.trim_end(), rest);
}

#[test]
fn systemtap_of_which_nothing_can_be_read_is_refused_by_line() {
    let refusal = refused(" 0x7f533952bc77 : __read+0x17/0x60 [/usr/lib/libc.so.6]\n2404 times\n");
    assert!(
        refusal.starts_with("line 2: `2404 times` should be a frame"),
        "{refusal}"
    );
    let heavy = SYSTEMTAP.replace("2404", "18446744073709551615");
    assert!(refused(&heavy).contains("2^64"), "{}", refused(&heavy));
}

const BPFTRACE: &str = "Attaching 2 probes...

@[
    leaf+25
    main+14
]: 2
@[bash, , 
    vfs_read+1
    entry_SYSCALL_64_after_hwframe+118
, 31]: 3
@[Web Content, 
    std::map<int, int>::at(int const&)+7
, 
    asm_exc_page_fault+34
, 8]: 4
@[, opt x]: 1
@other[kdamond.0]: 9
@total: 10
@s[
\tffffffff813a2413 finish_task_switch.isra.0+147
]: count 2, average 3, total 6
@h[
    leaf
]: 
[2, 4)     1 |@@@@|

Lost 3 events
";

#[test]
fn bpftrace_prints_maps_whose_keys_are_words_and_stacks() {
    let (kind, folded) = kind_and_text(BPFTRACE);
    assert_eq!(kind, "bpftrace maps");
    assert_eq!(
        folded,
        "Web Content;8;std::map<int, int>::at(int const&);asm_exc_page_fault_[k] 4\n\
         bash;31;entry_SYSCALL_64_after_hwframe_[k];vfs_read_[k] 3\n\
         main;leaf 2\n\
         opt x 1\n"
    );
    let notes = notes(BPFTRACE);
    assert_eq!(
        notes,
        [
            "not shown: 9 @other, 10 @total, 6 @s, @h: shown is @; choose with --sample-type",
            "bpftrace: line 27: `Lost 3 events`"
        ]
    );
}

#[test]
fn another_map_of_bpftrace_is_read_when_it_is_asked_for() {
    let of = |name| {
        let options = ReadOptions {
            sample_type: Some(name),
            ..ReadOptions::ALL
        };
        read(BPFTRACE.as_bytes(), &options).map(|(_, reading)| annotated(&reading.profile))
    };
    assert_eq!(of("@other").unwrap(), "kdamond.0 9\n");
    assert_eq!(of("s").unwrap(), "finish_task_switch.isra.0_[k] 6\n");
    let error = of("h").unwrap_err().to_string();
    assert!(error.contains("@h holds histograms"), "{error}");
    let error = of("x").unwrap_err().to_string();
    assert!(error.contains("one of: @, @other"), "{error}");
}

#[test]
fn entries_of_bpftrace_that_are_broken_are_told_by_line() {
    let told = notes("@[\n    leaf\nLost 3 events\n]: 2\n@[\n    x\n]: -2\n@x y\n@[\n    leaf\n");
    assert_eq!(
        told,
        [
            "not shown: 3 entries; the first is in line 8: `@x y` should be an entry such as `@[comm, ustack]: 7`",
            "bpftrace: line 3: `Lost 3 events`",
        ]
    );
    let refusal = refused("@[a]: 3\n@x y\n");
    assert!(
        refusal.starts_with("line 2: `@x y` should be an entry"),
        "{refusal}"
    );
    let refusal = refused("@[\n    leaf\n]: -2\n");
    assert!(
        refusal.contains("no map in it has a stack as a key"),
        "{refusal}"
    );
}

#[test]
fn gzipped_files_are_unpacked_whatever_is_in_them() {
    let mut gzip = flate2::GzBuilder::new().write(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gzip, SYSTEMTAP.as_bytes()).unwrap();
    let mut packed = gzip.finish().unwrap();
    let (_, reading) = read(&packed, &ReadOptions::ALL).unwrap();
    let (_, plain) = read(SYSTEMTAP.as_bytes(), &ReadOptions::ALL).unwrap();
    assert_eq!(annotated(&reading.profile), annotated(&plain.profile));
    packed.truncate(packed.len() / 2);
    let error = read(&packed, &ReadOptions::ALL).unwrap_err().to_string();
    assert!(error.contains("cannot be unpacked"), "{error}");
}

#[test]
fn a_file_of_no_kind_is_answered_with_the_kinds() {
    let broken = read(b"\x02\x01\x01\0\0", &ReadOptions::ALL);
    let error = broken.unwrap_err().to_string();
    assert!(
        error.contains("pprof, bpftrace maps, macOS sample output, perf script text"),
        "{error}"
    );
    assert!(refused("").contains("it is empty"));
    assert!(refused("\n \n").contains("it is empty"));
}

#[test]
fn what_people_take_for_a_profile_is_answered_with_what_to_give_instead() {
    for (begin, answer) in [
        (&b"PERFILE2\x68\0\0\0"[..], "perf script -i FILE"),
        (b"<svg xmlns=\"http://www.w3.org/2000/svg\">", "(.fbpf)"),
        (b"{\"type\": \"map\", \"data\": {}}\n", "without -f json"),
        (b"\x7fELF\x02", "a program"),
        (b"PK\x03\x04\x14\0\0\0", "unpack it"),
        (b"{\n\"a\": 1}", "JSON"),
        (b" {\"snapshot\":{}}", "heap snapshot"),
        (b"[\n{\"ph\":\"B\"}", "trace events"),
        (
            b"<?xml version=\"1.0\" standalone=\"no\"?>\n<svg>",
            "picture",
        ),
        (
            b"version: 1\r\ncreator: xdebug 3.0\r\ncmd: x\r\n\r\nevents: Time_(10ns)\r\n",
            "callgrind",
        ),
        (
            b"use std::io;\n\nfn main() {\n        add (x)\n}\n",
            "none of",
        ),
        (b"heap_v2/524288\n  t*: 1: 2 [0: 0]\n", "jeprof --collapsed"),
        (
            b"heap profile:  1: 2 [ 3: 4] @ heap_v2/524288\n",
            "go tool pprof -proto",
        ),
        (
            b"\0\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\x27\0\0",
            "go tool pprof -proto",
        ),
    ] {
        let error = read(begin, &ReadOptions::ALL).unwrap_err().to_string();
        assert!(error.contains(answer), "{error}");
    }
    // Names may begin so, too.
    let closure = kind_and_text("{closure};main 3\n");
    assert_eq!(closure.0, "folded text");
    assert_eq!(kind_and_text("[unknown];main 3\n").0, "folded text");
}

proptest! {
    #[test]
    fn systemtap_weight_in_is_weight_out(weights in vec(0..1000_u64, 1..6)) {
        let text: String = weights.iter().map(|weight| format!(" 0x{weight:x} : f+0x1/0x2 [kernel]\n{weight}\n")).collect();
        let (_, reading) = read(text.as_bytes(), &ReadOptions::ALL).unwrap();
        prop_assert_eq!(reading.profile.total_weight(), weights.iter().sum::<u64>());
    }
}

#[test]
fn frames_of_bpftrace_may_have_sources_and_inlined_functions() {
    let text = "Attached 1 probe\n\n@[\n    spin+37@/srv/app/loop.c:14\n    work+21@/srv/@app/loop.c:22\n    main+9\n]: 40\n\
                @[\n    spin+41@/srv/app/loop.c:15\n    work+21@/srv/@app/loop.c:22\n    main+9\n]: 30\n\
                @[\n    [inlined] clock@/srv/@app/loop.c:5\n    [inlined] tick@/srv/app/loop.c:8\n    work+30@/srv/app/loop.c:23\n    main+9\n]: 7\n\
                @[\n    memcpy@GLIBC_2.14+3\n    <unwind failure>\n]: 2\n\
                @[\n    vfs_read+1@/src/fs.c:3\n    entry_SYSCALL_64+7@/src/entry.S:1\n    <unwind failure>\n]: 1\n";
    let (_, mut reading) = read(text.as_bytes(), &ReadOptions::ALL).unwrap();
    let lines = annotated(&reading.profile);
    assert!(
        lines.contains("main;work (loop.c:22);spin (loop.c:14) 40\n"),
        "{lines}"
    );
    assert!(
        lines.contains("tick (loop.c:8)_[i];clock (loop.c:5)_[i] 7\n"),
        "{lines}"
    );
    reading.profile.line_frames = false;
    assert_eq!(
        annotated(&reading.profile),
        "[unwind failure];entry_SYSCALL_64_[k];vfs_read_[k] 1\n[unwind failure];memcpy@GLIBC_2.14 2\n\
         main;work;spin 70\nmain;work;tick_[i];clock_[i] 7\n"
    );
    assert_eq!(notes(text), [""; 0]);
}

#[test]
fn a_map_of_bpftrace_that_is_printed_twice_is_told() {
    let once = "@[\n    leaf\n]: 2\n@[\n    other\n]: 3\n";
    assert_eq!(notes(once), [""; 0]);
    let twice = notes(&[once, "\n", once].concat());
    assert!(
        twice[0].starts_with("note: @ is printed again in line 10, and all"),
        "{twice:?}"
    );
}

#[test]
fn the_heaviest_map_of_bpftrace_is_shown() {
    let text = "@few[\n    leaf\n]: 2\n@many[(app, 7), \n    other+3 (/bin/x)\n]: 3\n@many[\n    7f0000001000\n]: 1\n";
    assert_eq!(kind_and_text(text).1, "7f0000001000 1\napp;7;other 3\n");
    assert_eq!(
        notes(text),
        ["not shown: 2 @few: shown is @many; choose with --sample-type"]
    );
}

#[test]
fn folded_text_may_have_decimals() {
    let with_unit = |text: &str| {
        let (_, reading) = read(text.as_bytes(), &ReadOptions::ALL).unwrap();
        (
            annotated(&reading.profile),
            reading.profile.unit.noun().to_owned(),
        )
    };
    assert_eq!(
        with_unit("main;parse 12.5\nmain;store 7.25\n"),
        (
            "main;parse 1250\nmain;store 725\n".to_owned(),
            "samples/100".to_owned()
        )
    );
    assert_eq!(
        with_unit("a 12.0\nb 6.\nc .5e1\n"),
        ("a 12\nb 6\nc 5\n".to_owned(), "samples".to_owned())
    );
    assert_eq!(notes("a 0.30000000000000004\nb 1\n").len(), 1);
    let nanoseconds = ReadOptions {
        unit: Unit::Nanoseconds,
        ..ReadOptions::ALL
    };
    let (_, reading) = read(b"a 12.5\nb 7.25\n", &nanoseconds).unwrap();
    assert_eq!(
        (reading.profile.total_weight(), reading.profile.unit),
        (19_750, Unit::Nanoseconds)
    );
}

#[test]
fn lines_of_folded_text_that_hold_no_stack_are_told() {
    let text = "// a comment\na;b 1\na;c 12V.43\na;d 2\n";
    let (_, reading) = read(b"a;b 1\na;d 2\nx\n", &ReadOptions::ALL).unwrap();
    assert_eq!(reading.profile.total_weight(), 3);
    assert_eq!(
        notes("a;b 1\na;d 2\na;c 12V.43\n"),
        [
            "not shown: 1 lines that hold no stack; line 3 ends in `12V.43`, which is no weight: it should be a number below 2^64"
        ]
    );
    let refusal = refused(text);
    assert!(
        refusal.contains("none of: Parquet, pprof")
            && refusal.contains("; for the last, line 1 ends in"),
        "{refusal}"
    );
    assert!(refused("a;b 1 2\na;c 3 4\n").contains("two weights"));
}

#[test]
fn marks_and_encodings_of_editors_are_no_part_of_names() {
    let text = "main;parse 3\r\nmain;store 4\r\n";
    let units: Vec<u16> = text.encode_utf16().collect();
    let of = |mark: &[u8], to: fn(u16) -> [u8; 2]| {
        let bytes = units.iter().flat_map(|unit| to(*unit));
        mark.iter().copied().chain(bytes).collect::<Vec<u8>>()
    };
    for bytes in [
        [b"\xef\xbb\xbf", text.as_bytes()].concat(),
        of(b"\xff\xfe", u16::to_le_bytes),
        of(b"\xfe\xff", u16::to_be_bytes),
        of(b"", u16::to_le_bytes),
        of(b"", u16::to_be_bytes),
    ] {
        let (kind, reading) = read(&bytes, &ReadOptions::ALL).unwrap();
        assert_eq!(kind.name, "folded text");
        assert_eq!(annotated(&reading.profile), "main;parse 3\nmain;store 4\n");
    }
}

#[test]
fn letters_may_be_cut_where_reading_stops() {
    let text = "🔥;work 3\n".repeat(HEAD_BYTES / 8);
    let mut bytes = b"\xff\xfe".to_vec();
    bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    let (_, reading) = read(&bytes, &ReadOptions::ALL).unwrap();
    let expected = format!("🔥;work {}\n", 3 * HEAD_BYTES / 8);
    assert_eq!(annotated(&reading.profile), expected);
}

#[test]
fn text_takes_the_memory_of_its_distinct_stacks() {
    let perf = "w 42/43 [001] 3.5:  1 cycles:\n\t 401136 leaf+0x6 (/bin/w)\n\t 401150 main+0x10 (/bin/w)\n\n";
    for (text, samples) in [
        (perf.to_owned(), 1),
        ("w;main;leaf 1\nw;main;other 2\n".to_owned(), 2),
        (SYSTEMTAP.to_owned(), 2),
    ] {
        let once = read(text.as_bytes(), &ReadOptions::ALL)
            .unwrap()
            .1
            .profile
            .total_weight();
        let times = (4 << 20) / text.len();
        let text = text.repeat(times);
        let (read, most) = allocator::most(|| read(text.as_bytes(), &ReadOptions::ALL));
        let profile = read.unwrap().1.profile;
        assert_eq!(profile.samples().len(), samples, "{text:.40}");
        assert_eq!(profile.total_weight(), once * times as u64, "{text:.40}");
        assert!(most < 512 << 10, "{most} bytes for {text:.40}");
    }
}

#[test]
fn cpuprofiles_are_read_by_the_time_between_samples() {
    let text = r#" {"nodes":[{"id":1,"callFrame":{"functionName":"(root)","url":"","lineNumber":-1},"children":[2,3]},
        {"id":2,"callFrame":{"functionName":"work","url":"file:///a.js","lineNumber":11}},
        {"id":3,"callFrame":{"functionName":"","url":"/b.js","lineNumber":0}}],
        "startTime":100,"endTime":150,"samples":[2,3,2],"timeDeltas":[10,20,5]}"#;
    let (kind, reading) = read(text.as_bytes(), &ReadOptions::ALL).unwrap();
    assert_eq!(kind.name, ".cpuprofile");
    assert_eq!(reading.profile.unit, Unit::Nanoseconds);
    // From 110 to 130, to 135, to 150.
    assert_eq!(
        annotated(&reading.profile),
        "(anonymous) (b.js:1) 5\nwork (a.js:12) 35\n"
    );
    let circle = text.replace("\"lineNumber\":11}", "\"lineNumber\":11},\"children\":[1]");
    assert!(
        refused(&circle).contains("calls itself"),
        "{}",
        refused(&circle)
    );
}

#[test]
fn speedscope_files_are_read_both_ways() {
    let file = |profiles: &str| {
        format!(
            r#"{{"$schema":"https://www.speedscope.app/file-format-schema.json","activeProfileIndex":1,
            "shared":{{"frames":[{{"name":"main"}},{{"name":"work","file":"/a.c","line":3}}]}},"profiles":[{profiles}]}}"#
        )
    };
    let sampled = r#"{"type":"sampled","name":"one","unit":"seconds","samples":[[0,1],[0]],"weights":[1,0.5]}"#;
    let evented = r#"{"type":"evented","name":"two","unit":"none","startValue":0,"events":[{"type":"O","frame":0,"at":0},
        {"type":"O","frame":1,"at":2},{"type":"C","frame":1,"at":5},{"type":"C","frame":0,"at":6}]}"#;
    let both = file(&[sampled, evented].join(","));
    assert_eq!(
        kind_and_text(&both),
        (
            "speedscope's JSON",
            "main 3\nmain;work (a.c:3) 3\n".to_owned()
        )
    );
    assert_eq!(
        notes(&both),
        ["not shown: one: shown is two; choose with --sample-type"]
    );
    assert_eq!(
        kind_and_text(&file(sampled)).1,
        "main 500000\nmain;work (a.c:3) 1000000\n"
    );
    let wrong = file(&sampled.replace("[0,1]", "[0,7]"));
    assert!(
        refused(&wrong).contains("there is no frame 7"),
        "{}",
        refused(&wrong)
    );
}
