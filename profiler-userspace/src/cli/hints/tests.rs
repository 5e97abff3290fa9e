use std::ffi::OsString;

/// The answer to a command line typed at a terminal.
#[track_caller]
fn said(line: &str) -> String {
    let words = std::iter::once("flame-bpf")
        .chain(line.split_whitespace())
        .map(OsString::from);
    match super::super::parse(words, true) {
        Ok(plan) => panic!("{line} is accepted: {plan:?}"),
        Err(exit) => {
            assert_eq!(exit.code, 2, "{line}");
            exit.text
        }
    }
}

/// The command that the answer shows, which must be one that flame-bpf obeys.
#[track_caller]
fn tip(line: &str) -> String {
    let said = said(line);
    let tip = said.lines().find_map(|line| line.strip_prefix("  tip: "));
    let tip = tip
        .unwrap_or_else(|| panic!("{line}: no tip in {said}"))
        .to_owned();
    // A shell would remove these quotes.
    let words: Vec<OsString> = tip
        .replace('\'', "")
        .replace("PID", "1")
        .split(' ')
        .map(OsString::from)
        .collect();
    if let Err(exit) = super::super::parse(words, true) {
        assert_eq!(
            exit.code, 0,
            "{line}: the tip `{tip}` does not work: {}",
            exit.text
        );
    }
    tip
}

#[track_caller]
fn assert_tips(tips: &[(&str, &str)]) {
    for (typed, ours) in tips {
        assert_eq!(tip(typed), *ours, "{typed}");
    }
}

#[test]
fn the_d_flag_of_bcc_is_answered() {
    for (typed, ours) in [
        ("-dfK", "flame-bpf -fK --delimited"),
        ("-df", "flame-bpf -f --delimited"),
        ("-dfU 10", "flame-bpf -fU --delimited 10"),
        ("-adf", "flame-bpf -f --annotate --delimited"),
        (
            "-adf -F 49 -p 185 30",
            "flame-bpf -f --annotate --delimited -F 49 -p 185 30",
        ),
        ("-dfp 185 30", "flame-bpf -f --delimited -p 185 30"),
        ("-fd -p 185", "flame-bpf -f --delimited -p 185"),
        ("-f -d", "flame-bpf -f --delimited"),
        (
            "-dfK --stack-storage-size 8192 5",
            "flame-bpf -fK --delimited 5",
        ),
    ] {
        assert_eq!(tip(typed), ours, "{typed}");
        assert!(
            said(typed).contains("-d is the duration in seconds here"),
            "{typed}"
        );
    }
}

#[test]
fn a_wrong_duration_is_reported_as_such() {
    for line in ["-d soon", "-d 10M", "-p 185 -d x"] {
        let said = said(line);
        assert!(
            said.contains("not a duration") && !said.contains("bcc"),
            "{line}: {said}"
        );
    }
}

#[test]
fn flags_of_perf_are_answered() {
    assert_tips(&[
        ("-g -p 185", "flame-bpf -p 185"),
        ("-F 99 -ag -- sleep 10", "flame-bpf -a -F 99 -- sleep 10"),
        (
            "-F 99 -ag --call-graph dwarf -- sleep 10",
            "flame-bpf -a -F 99 --call-graph dwarf -- sleep 10",
        ),
        ("-F max -p 185", "flame-bpf -F 997 -p 185"),
        ("--all-kernel -a 10", "flame-bpf -Ka 10"),
        ("--all-cpus 10", "flame-bpf -a 10"),
        ("-e cycles:pp -p 185", "flame-bpf -e cycles -p 185"),
        ("-k -p 185 10", "flame-bpf -K -p 185 10"),
    ]);
}

#[test]
fn flags_of_py_spy_and_of_container_tools_are_answered() {
    assert_tips(&[
        ("--native -p 185", "flame-bpf -p 185"),
        ("--subprocesses -p 185", "flame-bpf --children -p 185"),
        ("--memory -p 185", "flame-bpf --alloc -p 185"),
        (
            "--format speedscope -p 185",
            "flame-bpf -p PID -d 10 -o profile.speedscope.json",
        ),
    ]);
    assert_tips(&[
        ("--native", "flame-bpf"),
        ("-i 1ms -p 185", "flame-bpf -p 185"),
        (
            "--remote-store-address=grpc.example:443",
            "flame-bpf service --parca http://localhost:7070",
        ),
        ("--profiling-cpu-sampling-frequency=19", "flame-bpf -F 19"),
    ]);
    for line in ["--cgroupmap web -a 1", "-G web -a"] {
        let said = said(line);
        assert!(said.contains("--cgroup PATH"), "{line}: {said}");
    }
}

#[test]
fn misspelled_commands_are_answered_and_recordings_rendered() {
    assert_eq!(
        tip("rendr x.fbpf -o x.svg"),
        "flame-bpf render x.fbpf -o x.svg"
    );
    assert_eq!(tip("dif a.fbpf b.fbpf"), "flame-bpf diff a.fbpf b.fbpf");
    let words = ["flame-bpf", "x.fbpf", "-o", "y.svg"].map(OsString::from);
    let task = super::super::parse(words, true);
    assert!(
        matches!(task, Ok(super::super::Task::Render(_))),
        "{task:?}"
    );
    let words = ["flame-bpf", "help", "top"].map(OsString::from);
    let exit = super::super::parse(words, true).unwrap_err();
    assert!(exit.code == 0 && exit.text.contains("top"), "{exit:?}");
}

#[test]
fn verbs_of_other_tools_are_answered() {
    assert_tips(&[
        ("record -g -p 185", "flame-bpf -p 185"),
        (
            "record -F 99 -a -g -- sleep 60",
            "flame-bpf -a -F 99 -- sleep 60",
        ),
        (
            "record -g -o perf.data ./prog -x 1",
            "flame-bpf -- ./prog -x 1",
        ),
        (
            "record --rate 1000 -d 10 -p 185",
            "flame-bpf -F 1000 -d 10 -p 185",
        ),
        ("record ./prog", "flame-bpf -- ./prog"),
        ("record -o out.svg -p 185", "flame-bpf -o out.svg -p 185"),
        ("flamegraph -p 185", "flame-bpf -p 185"),
        // Command lines that cannot be translated get an example.
        ("record -p", "flame-bpf -p PID -d 10"),
        ("record -b -p 185", "flame-bpf -p PID -d 10"),
        ("record -p nginx", "flame-bpf -p PID -d 10"),
        ("report --stdio", "flame-bpf -p PID -d 10"),
        ("script", "flame-bpf -a -d 10 -o stacks.folded"),
    ]);
}

#[test]
fn names_of_bcc_tools_are_answered() {
    assert_tips(&[
        (
            "offcputime -df -p 185 30",
            "flame-bpf -f --off-cpu --delimited -p 185 30",
        ),
        (
            "offcputime-bpfcc -uf -m 1000 10",
            "flame-bpf -f --off-cpu --user-threads-only -m 1000 10",
        ),
        ("offcputime -k", "flame-bpf --off-cpu --kernel-threads-only"),
        (
            "offwaketime -f -p 185 --stack-storage-size 8192 5",
            "flame-bpf -f --off-wake -p 185 5",
        ),
        ("wakeuptime -f -p 185 5", "flame-bpf -f --wakeup -p 185 5"),
        // Command lines that cannot be translated get an example.
        ("offcputime --state x", "flame-bpf --off-cpu -p PID -d 10"),
        ("wakeuptime -p nginx", "flame-bpf --wakeup -p PID -d 10"),
        (
            "trace -s -p 185",
            "flame-bpf --syscalls=latency -p PID -d 10",
        ),
    ]);
    assert!(said("offcputime -df 10").contains("offcputime is --off-cpu here"));
}

#[test]
fn a_command_without_double_dash_is_answered() {
    for (typed, ours) in [
        ("./prog", "flame-bpf -- ./prog"),
        ("-F 997 make -j8 all", "flame-bpf -F 997 -- make -j8 all"),
        ("10 ./prog --pid 5", "flame-bpf 10 -- ./prog --pid 5"),
        ("./prog -- x", "flame-bpf -- ./prog -- x"),
        ("prog a;b", "flame-bpf -- prog 'a;b'"),
    ] {
        assert_eq!(tip(typed), ours, "{typed}");
        assert!(said(typed).contains("behind `--`"), "{typed}");
    }
}

#[test]
fn a_program_name_is_answered_with_how_to_find_its_pid() {
    assert!(said("nginx").contains("-p $(pgrep -n nginx)"));
}

#[test]
fn a_foreign_flag_beside_a_mistake_gets_no_tip() {
    for (line, answer) in [
        ("-g -p nginx", "always recorded"),
        ("-dfK -p nginx", "--delimited"),
    ] {
        let said = said(line);
        assert!(
            said.contains(answer) && !said.contains("tip"),
            "{line}: {said}"
        );
    }
}

#[test]
fn other_mistakes_keep_their_own_error() {
    for (line, answer) in [
        ("--frobnicate", "--frobnicate"),
        ("-p nginx", "pgrep"),
        ("-F 0", "0 Hz"),
        ("10x", "not a duration"),
        ("-a -p 7", "keep one"),
        ("--title -dfK", "--title"),
        ("-o perf.data", "let it end in"),
        ("-Z -g", "-Z"),
    ] {
        let said = said(line);
        assert!(
            said.contains(answer) && !said.contains("tip: flame-bpf"),
            "{line}: {said}"
        );
    }
}

#[test]
fn arguments_of_a_launched_command_are_not_parsed() {
    let words = ["flame-bpf", "--", "perf", "record", "-g", "-dfK"].map(OsString::from);
    let Ok(super::super::Task::Record(plan)) = super::super::parse(words.clone(), true) else {
        panic!("it is accepted");
    };
    assert_eq!(plan.launch.as_deref(), Some(&words[2..]));
}

#[test]
fn flags_that_are_nearly_ours_are_told() {
    assert_tips(&[
        ("--dur 5", "flame-bpf --duration 5"),
        ("--freqency 99 -p 1", "flame-bpf --freq 99 -p 1"),
        ("--outptu x.svg", "flame-bpf --output x.svg"),
        ("--per-thraed -p 1", "flame-bpf --per-thread -p 1"),
    ]);
    assert!(said("--dur 5").contains("there is no --dur; --duration comes near"));
    // Several begin so, and nothing is near.
    for typed in ["--off 5", "--xyzzy"] {
        assert!(!said(typed).contains("comes near"), "{}", said(typed));
    }
}
