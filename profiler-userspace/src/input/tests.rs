mod perf;
mod pprof;

use super::*;
use crate::profile::fold::FoldStyle;
use proptest::collection::vec;
use proptest::prelude::*;

const USUAL: Wanted<'_> = Wanted {
    unit: Unit::Samples,
    sample_type: None,
};

fn read(bytes: &[u8], wanted: &Wanted<'_>) -> Result<(Kind, Reading), Error> {
    let kind = Kind::of(bytes)?;
    Ok((kind, kind.read(bytes, wanted)?))
}

/// The kind of a file, and its profile as folded text with kernel frames marked.
fn kind_and_text(text: &str) -> (&'static str, String) {
    let (kind, reading) = read(text.as_bytes(), &USUAL).unwrap();
    (kind.name(), annotated(&reading.profile))
}

fn annotated(profile: &Profile) -> String {
    let style = FoldStyle {
        annotate: true,
        ..FoldStyle::default()
    };
    let mut text = Vec::new();
    fold::fold(profile, style, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// The error for a broken file.
fn refused(text: &str) -> String {
    match read(text.as_bytes(), &USUAL) {
        Ok((kind, reading)) => panic!("{}: {}", kind.name(), annotated(&reading.profile)),
        Err(error) => error.to_string(),
    }
}

fn notes(text: &str) -> Vec<String> {
    let (_, reading) = read(text.as_bytes(), &USUAL).unwrap();
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
fn systemtap_stacks_that_are_broken_are_refused_by_line() {
    let cut = SYSTEMTAP.strip_suffix("10\n").unwrap();
    assert!(
        refused(cut).contains("ends within a stack"),
        "{}",
        refused(cut)
    );
    let wrong = SYSTEMTAP.replace("\t2404", "2404 times");
    assert!(
        refused(&wrong).starts_with("line 4: `2404 times` is no frame"),
        "{}",
        refused(&wrong)
    );
    let twice = SYSTEMTAP.replace("\t2404", "7\n8");
    assert!(refused(&twice).starts_with("line 5: a number without a stack"));
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
            "not shown: @other, @total, @s, @h: shown is @; choose with --sample-type",
            "bpftrace: line 27: `Lost 3 events`"
        ]
    );
}

#[test]
fn another_map_of_bpftrace_is_read_when_it_is_asked_for() {
    let of = |name| {
        let wanted = Wanted {
            sample_type: Some(name),
            ..USUAL
        };
        read(BPFTRACE.as_bytes(), &wanted).map(|(_, reading)| annotated(&reading.profile))
    };
    assert_eq!(of("@other").unwrap(), "kdamond.0 9\n");
    assert_eq!(of("s").unwrap(), "finish_task_switch.isra.0 6\n");
    let error = of("h").unwrap_err().to_string();
    assert!(error.contains("@h holds histograms"), "{error}");
    let error = of("x").unwrap_err().to_string();
    assert!(error.contains("one of: @, @other"), "{error}");
}

#[test]
fn bpftrace_maps_that_are_broken_are_refused_by_line() {
    let refusal = refused("@[\n    leaf\nmain\n]: 2\n");
    assert!(
        refusal.starts_with("line 3: `main` is within the entry that begins in line 1"),
        "{refusal}"
    );
    let refusal = refused("@[\n    leaf\n]: 2\n@[\n    leaf\n");
    assert!(
        refusal.starts_with("line 4: the file ends within"),
        "{refusal}"
    );
    let refusal = refused("@[\n    leaf\n]: -2\n@[\n    x\n]: 1\n");
    assert!(
        refusal.starts_with("line 3: `-2` is no weight"),
        "{refusal}"
    );
    let refusal = refused("@[a]: 3\n@x y\n");
    assert!(
        refusal.starts_with("line 2: `@x y` should be an entry"),
        "{refusal}"
    );
}

#[test]
fn what_inferno_collapses_is_told_apart_and_read() {
    let dtrace = "CPU     ID\n\n  unix`a+0x1\n  unix`main+0x2\n   7\n";
    assert_eq!(
        kind_and_text(dtrace),
        ("DTrace stacks", "unix`main;unix`a 7\n".to_owned())
    );
    let sample = "Analysis\nCall graph:\n    5 Thread_1\n      5 main  (in app) + 3\n\nTotal number in stack\n";
    assert_eq!(
        kind_and_text(sample),
        ("macOS sample output", "Thread_1;app`main 5\n".to_owned())
    );
    let vtune = "Function Stack,CPU Time:Self,Module\nmain,0,app\n work,0.5,app\n";
    assert_eq!(kind_and_text(vtune).0, "VTune CSV");
    let xctrace = "<?xml version=\"1.0\"?>\n<trace-query-result><node><row><backtrace id=\"1\"><frame id=\"2\" name=\"f\" \
                   addr=\"0x1\"></frame></backtrace></row></node></trace-query-result>\n";
    assert_eq!(kind_and_text(xctrace), ("xctrace XML", "f 1\n".to_owned()));
}

#[test]
fn what_inferno_panics_at_is_an_error_with_a_line() {
    let start = "Level,Function Name,Number of Calls,Elapsed Inclusive Time %,Elapsed Exclusive Time %,Avg Elapsed \
                 Inclusive Time,Avg Elapsed Exclusive Time,Module Name,";
    let jump = format!(
        "{start}\n1,\"a\",4,0.00,0.00,0.00,0.00,\"m\",\n9,\"b\",4,0.00,0.00,0.00,0.00,\"m\",\n"
    );
    assert!(refused(&jump).starts_with("line 3: "), "{}", refused(&jump));
    let letters = format!("{start}\nx,\"a\",4\n");
    assert!(
        refused(&letters).starts_with("line 2: "),
        "{}",
        refused(&letters)
    );
}

#[test]
fn gzipped_files_are_unpacked_whatever_is_in_them() {
    let mut gzip = flate2::GzBuilder::new().write(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gzip, SYSTEMTAP.as_bytes()).unwrap();
    let mut packed = gzip.finish().unwrap();
    assert_eq!(unpacked(packed.clone()).unwrap(), SYSTEMTAP.as_bytes());
    packed.truncate(packed.len() / 2);
    assert!(
        unpacked(packed)
            .unwrap_err()
            .to_string()
            .contains("cannot be unpacked")
    );
}

#[test]
fn a_file_of_no_kind_is_answered_with_the_kinds() {
    let error = Kind::of(b"\x02\x01\x01\0\0").unwrap_err().to_string();
    assert!(
        error.contains("pprof, bpftrace maps, perf script text"),
        "{error}"
    );
    assert!(refused("").contains("no stack"));
}

#[test]
fn what_people_take_for_a_profile_is_answered_with_what_to_give_instead() {
    for (begin, answer) in [
        (&b"PERFILE2\x68\0\0\0"[..], "perf script -i FILE"),
        (b"<svg xmlns=\"http://www.w3.org/2000/svg\">", "(.fbpf)"),
        (b"{\"type\": \"map\", \"data\": {}}\n", "without -f json"),
        (b"\x7fELF\x02", "a program"),
    ] {
        let error = Kind::of(begin).unwrap_err().to_string();
        assert!(error.contains(answer), "{error}");
    }
    // Names may begin so, too.
    let closure = kind_and_text("{closure};main 3\n");
    assert_eq!(closure.0, "folded text");
}

proptest! {
    #[test]
    fn systemtap_weight_in_is_weight_out(weights in vec(0..1000_u64, 1..6)) {
        let text: String = weights.iter().map(|weight| format!(" 0x{weight:x} : f+0x1/0x2 [kernel]\n{weight}\n")).collect();
        let (_, reading) = read(text.as_bytes(), &USUAL).unwrap();
        prop_assert_eq!(reading.profile.total_weight(), weights.iter().sum::<u64>());
    }
}
