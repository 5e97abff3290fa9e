use super::*;

const STACKS: &str = "shares;start;main;work_round;alpha;burn 50\n\
    shares;start;main;work_round;beta;burn 30\n\
    shares;start;main;work_round;gamma_outer;burn 15\n\
    shares;start;main 5\n";

const COUNTERS: &str = "BPF program on_cpu: 9 instructions verified\n\
    counter: fired 150\ncounter: recorded 100\ncounter: filtered-target 49\n\
    counter: lost-tally-table 1\ncounter: run-time-ns 99999\n";

/// The log of one step.
fn log(name: &str, out: &str, errors: &str, exit: i32) -> Log {
    let lines = |text: &str| text.lines().map(str::to_owned).collect();
    Log {
        steps: vec![Step {
            name: name.to_owned(),
            out: lines(out),
            errors: lines(errors),
            exit: Some(exit),
        }],
        ..Log::default()
    }
}

/// The fault of a step `process` with this output, if there is one.
fn wrong(out: &str, errors: &str, exit: i32) -> Option<String> {
    let log = log("process", out, errors, exit);
    judge(&log, &["on_cpu".to_owned()]).remove(1).err()
}

#[test]
fn a_profile_of_the_right_shape_passes() {
    assert_eq!(wrong(STACKS, COUNTERS, 0), None);
}

#[test]
fn a_profile_of_another_shape_fails_with_a_reason() {
    let said = |out: &str, errors: &str, exit, part: &str| {
        let wrong = wrong(out, errors, exit).expect("it is wrong");
        assert!(wrong.contains(part), "{wrong}");
    };
    said(STACKS, "error: refused", 1, "error: refused");
    said(STACKS, "", 0, "no counters");
    let leaking = COUNTERS.replace("fired 150", "fired 151");
    said(STACKS, &leaking, 0, "151 firings");
    let second =
        |fired| format!("{COUNTERS}off-CPU counter: fired {fired}\noff-CPU counter: recorded 7\n");
    assert_eq!(wrong(STACKS, &second(7), 0), None);
    said(STACKS, &second(8), 0, "off-CPU 8 firings, of which 7");
    let several = |of_other| {
        let first = COUNTERS.replace("counter:", "cpu-clock counter:");
        format!("{first}a:b counter: fired 3\na:b counter: recorded {of_other}\n")
    };
    assert_eq!(wrong(STACKS, &several(3), 0), None);
    said(STACKS, &several(2), 0, "a:b 3 firings, of which 2");
    said("shares;main 99", COUNTERS, 0, "99 in the stacks");
    said("shares;start 100", COUNTERS, 0, "only 0 of 100");
    let flat = STACKS
        .replace("burn 50", "burn 30")
        .replace("main 5", "main 25");
    said(&flat, COUNTERS, 0, "only 75 of 100");
    let swapped = STACKS.replace("alpha", "x").replace("beta", "alpha");
    said(&swapped, COUNTERS, 0, "should fall");
}

/// The fault of stacks in the shape of `step`, if there is one.
fn misshapen(step: &str, stacks: &[(&str, u64)]) -> Option<String> {
    let expected = STEPS.iter().find(|expected| expected.step == step);
    let total = stacks.iter().map(|(_, weight)| weight).sum();
    expected.unwrap().shape.judge(stacks, total).err()
}

#[test]
fn a_complete_stack_leads_from_the_start_along_the_chain() {
    let all = TWELVE.join(";");
    let whole = &*format!("bare_chain;_start;__libc_start_main;{all}");
    let part = "bare_chain;_start;x;y;main;first;second";
    assert_eq!(misshapen("tables", &[(whole, 40), (part, 60)]), None);
    let said = misshapen("tables", &[(whole, 20), (part, 80)]).unwrap();
    assert!(said.contains("only 20 of 100"), "{said}");
    for wrong in [
        "bare_chain;main;first",
        "bare_chain;[no unwind info];main;first",
        "bare_chain;_start;x;main;second",
        "bare_chain;_start;x;main;first;first",
        "bare_chain;_start;a;b;c;d;main;first",
        "bare_chain;_start",
    ] {
        let said = misshapen("tables", &[(whole, 99), (wrong, 1)]);
        assert!(said.is_some_and(|said| said.contains(wrong)), "{wrong}");
    }
}

#[test]
fn a_marked_stack_with_a_wrong_frame_fails() {
    let marked = "bare_chain;[no frame pointer];main;twelfth;burn";
    assert_eq!(misshapen("no-tables", &[(marked, 9)]), None);
    assert!(misshapen("no-tables", &[("bare_chain;burn", 9)]).is_some());
    let strange = "bare_chain;[no frame pointer];burn;main";
    assert!(misshapen("no-tables", &[(marked, 9), (strange, 1)]).is_some());
}

#[test]
fn a_program_with_frame_pointers_needs_its_whole_chain() {
    let whole = &*format!("chain;[no frame pointer];{}", TWELVE.join(";"));
    assert_eq!(misshapen("pointers", &[(whole, 9)]), None);
    assert!(misshapen("pointers", &[(whole, 8), ("chain;main;twelfth;burn", 2)]).is_some());
}

#[test]
fn a_program_that_no_step_loaded_and_a_step_that_never_came_fail() {
    let verdicts = judge(&Log::default(), &["on_cpu".to_owned()]);
    assert_eq!(verdicts.len(), names().count());
    assert!(verdicts.iter().all(Result::is_err), "{verdicts:?}");
    assert_eq!(verdicts[0], Err("no step loaded on_cpu".to_owned()));
}

#[test]
fn a_program_that_the_kernel_is_too_old_for_may_be_missing() {
    let missing = |kernel: &str| {
        let log = Log {
            kernel: Some(kernel.to_owned()),
            ..Log::default()
        };
        judge(&log, &["fault_locks".to_owned()]).remove(0).is_err()
    };
    assert!(!missing("6.1.0-56-cloud-amd64"));
    assert!(missing("6.4.0") && missing("6.12.1") && missing("unknown"));
}

#[test]
fn a_program_that_runs_once_is_judged_by_its_output() {
    let programs = ["on_cpu", "name_symbol"].map(str::to_owned);
    let verdict = |out| judge(&log("kernel-stacks", out, COUNTERS, 0), &programs).remove(0);
    assert_eq!(verdict("swapper;do_idle;halt 100"), Ok(()));
    let unnamed = verdict("swapper;[kernel] 100");
    assert_eq!(unnamed, Err("no step loaded name_symbol".to_owned()));
}
