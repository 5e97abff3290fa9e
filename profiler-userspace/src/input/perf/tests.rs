use crate::input::ReadOptions;
use crate::input::tests::{annotated, kind_and_text, notes, read, refused};
use crate::profile::Unit;
use proptest::collection::vec;
use proptest::prelude::*;

const PERF: &str = "# captured on: Sun Nov 22
w 24873 15168.410097:    2004008 cpu-clock:ppp: 
\t            1140 leaf+0x17 (/tmp/bt/w)
\t            1140 work (inlined)
\t            116d main+0xe (/tmp/bt/w)

V8 Worker 3 7/24873 [002] 15168.5:    1000 cpu-clock:ppp: 
\tffffffff8103ce3b do_syscall_64+0x1 ([kernel.kallsyms])
  vmlinux.c:12
  elsewhere
\t    7f533952bc77 [unknown] (/usr/lib/libc.so.6)

  idle    0/0     [000] 15168.6:       1000 cpu-clock:ppp:  ffffffff9aa3c8de [unknown] ([unknown])
  w     24873/24873     [000] 15168.7:       1 sched:sched_switch: prev_comm=w prev_pid=3

w 24873 15168.8:    2000 cpu-clock:ppp: 

";

#[test]
fn perf_script_prints_events_and_their_stacks() {
    let (kind, reading) = read(PERF.as_bytes(), &ReadOptions::ALL).unwrap();
    assert_eq!(kind.name, "perf script text");
    let profile = &reading.profile;
    assert_eq!(profile.unit, Unit::Nanoseconds);
    assert_eq!(
        (profile.total_weight(), profile.total_count()),
        (2_008_008, 4)
    );
    assert_eq!(
        annotated(profile),
        "V8 Worker_3;[libc.so.6];do_syscall_64 (vmlinux.c:12)_[k] 1\nidle;[unknown]_[k] 1\nw 2\nw;main;work_[i];leaf 2004\n"
    );
    let pids: Vec<_> = (profile.samples().iter())
        .map(|sample| profile.labels_at(sample.labels).pid)
        .collect();
    assert_eq!(pids, [None, Some(7), Some(0), None]);
    assert_eq!(
        notes(PERF),
        [
            "not shown: 1 sched:sched_switch: shown is cpu-clock:ppp; choose with --sample-type",
            "note: 1 samples have no stack; perf record -g takes stacks",
            "not shown: 1 columns behind events and frames; the first is line 14: `prev_comm=w prev_pid=3`",
            "not shown: 1 lines that are no events and no frames; the first is line 10: `elsewhere`",
        ]
    );
}

#[test]
fn another_event_of_perf_is_read_when_it_is_asked_for() {
    let options = ReadOptions {
        sample_type: Some("sched:sched_switch"),
        ..ReadOptions::ALL
    };
    let (_, reading) = read(PERF.as_bytes(), &options).unwrap();
    assert_eq!(annotated(&reading.profile), "w 1\n");
    let without_periods =
        "w 3 1.5: cycles: \n\t 1140 main (/w)\n\nw 3 1.6: cycles: \n\t 1140 main (/w)\n";
    let (_, reading) = read(without_periods.as_bytes(), &ReadOptions::ALL).unwrap();
    assert_eq!(annotated(&reading.profile), "w;main 2\n");
    assert_eq!(reading.profile.unit, Unit::Samples);
}

const ONE: &str = "app 100 [001]   10.000001:     250000 cpu-clock:pppH: \n\
\t    55d0c0001234 work+0x10 (/opt/x/app)\n\t    55d0c0001100 main+0x20 (/opt/x/app)\n\n";

/// Folded text and notes of a file of perf's.
fn text_and_notes(text: &str) -> (String, Vec<String>) {
    let (kind, folded) = kind_and_text(text);
    assert_eq!(kind, "perf script text");
    (folded, notes(text))
}

#[test]
fn one_odd_line_costs_no_more_than_itself() {
    let nameless = ONE.replace("app 100", "                    101");
    let (folded, told) = text_and_notes(&[ONE, &nameless].concat());
    assert_eq!(folded, "[nameless];main;work 250\napp;main;work 250\n");
    assert_eq!(told, [""; 0]);
    let hash = ONE.replace("app 100", "#shard-3 102");
    let comment = "# cmdline : /usr/bin/perf record -g\n# time of first sample : 10.0\n";
    let (folded, told) = text_and_notes(&[comment, ONE, &hash].concat());
    assert_eq!(folded, "#shard-3;main;work 250\napp;main;work 250\n");
    assert_eq!(told, [""; 0]);
    let records = "app 100 [001]   10.0: PERF_RECORD_MMAP2 100/100: [0x55(0x2000) @ 0 fe:00 42 0]: r-xp /opt/x/app\n";
    let lost = "app 100 [001]   10.000002: PERF_RECORD_LOST 5\n\n";
    let (folded, told) = text_and_notes(&[records, ONE, lost, ONE].concat());
    assert_eq!(folded, "app;main;work 500\n");
    assert!(
        told[0].starts_with("not shown: 2 records that are no samples"),
        "{told:?}"
    );
    assert!(told[0].contains("the first is line 1: "), "{told:?}");
    let error = " instruction trace error type 1 time 10.5 cpu 0 pid 100 tid 100 ip 0 code 8: Lost trace data\n";
    let (folded, told) = text_and_notes(&[ONE, error, ONE].concat());
    assert_eq!(folded, "app;main;work 500\n");
    assert!(
        told[0].contains("line 5: `instruction trace error"),
        "{told:?}"
    );
}

#[test]
fn columns_that_are_left_out_or_added_do_not_matter() {
    let without_time =
        "app   100 cpu-clock: \n\t  1234 work+0x10 (/opt/x/app)\n\t  1100 main (/opt/x/app)\n\n";
    assert_eq!(
        text_and_notes(&without_time.repeat(2)).0,
        "app;main;work 2\n"
    );
    let without_indent = "app 100 cycles:\nffffffff8103d0ca native_write_msr ([kernel.kallsyms])\n7f7241239aec write (/lib/libc.so)\n\n";
    assert_eq!(
        text_and_notes(without_indent).0,
        "app;write;native_write_msr_[k] 1\n"
    );
    let misc = ONE.replace("[001]", "U     ");
    assert_eq!(text_and_notes(&misc).0, "app;main;work 250\n");
    let less = "app   100 \n\t  1234 work+0x10\n\t  1100 main\n\n";
    assert_eq!(text_and_notes(&less.repeat(2)).0, "app;main;work 2\n");
    let names = "app \n\t  1234 work+0x10\n\t  1100 main\n\n";
    assert_eq!(text_and_notes(&names.repeat(2)).0, "app;main;work 2\n");
    let no_names = ONE.replace("app 100 ", "                  100 ");
    assert_eq!(text_and_notes(&no_names).0, "main;work 250\n");
    let gap = ONE.replace("pppH: \n", "pppH: \n\n");
    assert_eq!(text_and_notes(&gap.repeat(2)).0, "app;main;work 500\n");
    let only_frames = "\n\t          295301 call_mut\n\t          250bcb run_test\n";
    assert_eq!(text_and_notes(only_frames).0, "run_test;call_mut 1\n");
    let branches = ONE.replace(
        "main+0x20 (/opt/x/app)\n",
        "main+0x20 (/opt/x/app)\n insn: 48 89 e5\n 0x1/0x2/P/-/-/0\n",
    );
    let (folded, told) = text_and_notes(&branches);
    assert_eq!(folded, "app;main;work 250\n");
    assert!(
        told[0].contains(
            "2 lines that are no events and no frames; the first is line 4: `insn: 48 89 e5`"
        ),
        "{told:?}"
    );
    let alone = "cc 100 10.1: 250000 cpu-clock:  55d0c0001234 work+0x10 (/opt/x/app) insn: 48 89\n";
    let (folded, told) = text_and_notes(&alone.repeat(2));
    assert_eq!(folded, "cc;work 500\n");
    assert!(
        told[0].contains("2 columns behind events and frames; the first is line 1"),
        "{told:?}"
    );
}

#[test]
fn lines_of_sources_belong_to_their_frames() {
    let text = ONE.replace(
        "work+0x10 (/opt/x/app)\n",
        "work+0x10 (/opt/x/app)\n  loop.c:14\n",
    );
    let other = text.replace("loop.c:14", "loop.c:15");
    let (_, mut reading) = read([text, other].concat().as_bytes(), &ReadOptions::ALL).unwrap();
    assert_eq!(
        annotated(&reading.profile),
        "app;main;work (loop.c:14) 250\napp;main;work (loop.c:15) 250\n"
    );
    reading.profile.line_frames = false;
    assert_eq!(annotated(&reading.profile), "app;main;work 500\n");
}

#[test]
fn of_several_events_the_heaviest_is_shown_and_the_rest_is_counted() {
    let of = |event: &str, function: &str, period: u64| {
        format!("app 100 [003] 10.3: {period} {event}: \n\t 1234 {function}+0x10 (/x)\n\n")
    };
    let choose = |text: &str, name| {
        let options = ReadOptions {
            sample_type: name,
            ..ReadOptions::ALL
        };
        read(text.as_bytes(), &options)
            .map(|(_, reading)| annotated(&reading.profile))
            .map_err(|error| error.to_string())
    };
    let hybrid = [
        of("cpu_atom/cycles/P", "early", 10),
        of("cpu_core/cycles/P", "busy", 90_000),
    ]
    .concat();
    assert_eq!(choose(&hybrid, None).unwrap(), "app;busy 90000\n");
    assert_eq!(
        notes(&hybrid),
        ["not shown: 10 cpu_atom/cycles/P: shown is cpu_core/cycles/P; choose with --sample-type"]
    );
    assert_eq!(
        choose(&hybrid, Some("cycles")).unwrap(),
        "app;busy 90000\napp;early 10\n"
    );
    assert_eq!(
        choose(&hybrid, Some("cpu_atom/cycles/")).unwrap(),
        "app;early 10\n"
    );
    assert_eq!(
        choose(&hybrid, Some("cpu_atom/cycles/P")).unwrap(),
        "app;early 10\n"
    );
    assert!(
        choose(&hybrid, Some("x"))
            .unwrap_err()
            .contains("one of: cpu_atom/cycles/P, cpu_core/cycles/P")
    );
    let modifiers = [of("cycles:P", "busy", 1000), of("cycles", "busy", 90_000)].concat();
    assert_eq!(choose(&modifiers, None).unwrap(), "app;busy 91000\n");
    assert_eq!(notes(&modifiers), ["summed: 1000 cycles:P, 90000 cycles"]);
    assert_eq!(
        choose(&modifiers, Some("cycles")).unwrap(),
        "app;busy 90000\n"
    );
    assert_eq!(
        choose(&modifiers, Some("cycles:P")).unwrap(),
        "app;busy 1000\n"
    );
}

#[test]
fn paths_of_any_shape_are_no_part_of_names() {
    let of = |frame: &str| format!("app 100 10.3: 1 cycles: \n\t 7f0000001000 {frame}\n\n");
    let frames = [
        "step (/memfd:engine (deleted))",
        "[unknown] (/usr/bin/serviced (deleted))",
        "call(int (*)(void))+0x10 (/opt/my dir (1)/lib.so)",
        "Lapp/Main;::run ([JIT] tid 100)",
        "nft_do_chain (/lib/modules/6.1.0/kernel/net/nf_tables.ko.xz)",
    ];
    let text: String = frames.map(of).concat();
    assert_eq!(
        text_and_notes(&text).0,
        "app;Lapp/Main:::run_[j] 1\napp;[serviced] 1\napp;call(int (*)(void)) 1\napp;nft_do_chain_[k] 1\napp;step 1\n"
    );
}

#[test]
fn perf_script_of_which_nothing_can_be_read_is_refused_by_line() {
    let records = "app 100 [001]   10.0: PERF_RECORD_MMAP2 100/100: [0x55(0x2000) @ 0 fe:00 42 0]: r-xp /opt/x/app\n";
    let text = [records, "  x y z\n", "\t 1234\n"].concat();
    assert!(refused(&text).contains("line 1"), "{}", refused(&text));
    let heavy = PERF.replace("2004008", "18446744073709551615");
    assert!(refused(&heavy).contains("2^64"), "{}", refused(&heavy));
}

proptest! {
    #[test]
    fn odd_lines_between_samples_change_no_sum(odd in vec("[ -~]{0,40}", 0..4), before in any::<bool>()) {
        let odd: String = odd.iter().map(|line| format!("~{line}\n")).collect();
        let text = if before { [ONE, &odd, "\n", ONE].concat() } else { [ONE, ONE, &odd].concat() };
        prop_assert_eq!(kind_and_text(&text).1, "app;main;work 500\n");
        let counted = odd.lines().count();
        let expected = format!("{counted} lines that are no events and no frames");
        prop_assert!(counted == 0 || notes(&text).iter().any(|note| note.contains(&expected)), "{:?}", notes(&text));
    }
}
