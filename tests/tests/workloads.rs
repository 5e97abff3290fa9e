//! The workloads keep their promises: a test that compares flame-bpf with a workload is worth what the
//! workload is worth. Runs anywhere with gcc, without root and without flame-bpf.

use std::ffi::OsStr;
use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use flame_bpf_tests::{Mangling, Program, Recipe, Said, TWELVE, cpu_ns, thread_cpu_ns};

fn comm(task: &str) -> Vec<u8> {
    fs::read(format!("/proc/{task}/comm")).expect("the task is alive")
}

fn symbols(program: &Program) -> String {
    let output = Command::new("nm")
        .arg(program.path())
        .output()
        .expect("nm comes with gcc");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_shares_workload_has_its_documented_shares() {
    let workload = Program::c("shares").start(&["500"]);
    let truth = workload.stop_by_itself().shares();
    let promised = [
        ("alpha", 0.50),
        ("beta", 0.30),
        ("gamma_outer", 0.15),
        ("delta", 0.05),
    ];
    assert_eq!(truth.len(), promised.len());
    for ((function, share), (name, promise)) in truth.iter().zip(promised) {
        assert_eq!(function, name);
        assert!((share - promise).abs() < 0.02, "{name}: {share}");
    }
}

#[test]
fn a_stopped_workload_prints_its_measurements() {
    let workload = Program::c("shares").start(&[]);
    thread::sleep(Duration::from_millis(100));
    assert_eq!(workload.stop().shares().len(), 4);
}

#[test]
fn a_dropped_workload_is_killed_with_its_children() {
    let workload = Program::c("pipe").start(&[]);
    let (writer, reader) = (workload.pid(), workload.words()[0].clone());
    assert_eq!(comm(&reader), b"pipe\n");
    drop(workload);
    assert!(!fs::exists(format!("/proc/{writer}")).expect("procfs is mounted"));
    // The reader is an orphan now, which its new parent reaps when it gets to it.
    for _ in 0..400 {
        match fs::read_to_string(format!("/proc/{reader}/stat")) {
            Err(_) => return,
            Ok(stat) if stat.contains(") Z ") => return,
            Ok(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
    panic!("the reader outlived its group");
}

#[test]
fn the_deep_workload_has_its_sixteen_functions() {
    let symbols = symbols(&Program::c("deep"));
    for step in 0..16 {
        assert!(symbols.contains(&format!(" step_{step}\n")), "{symbols}");
    }
    let workload = Program::c("deep").start(&["2000"]);
    thread::sleep(Duration::from_millis(50));
    assert!(workload.cpu_ns() > 0);
}

#[test]
fn a_workload_can_be_named_with_any_bytes() {
    for (hex, name) in [("613b62", &b"a;b"[..]), ("0aff3c78", b"\n\xff<x")] {
        let workload = Program::c("comm").start(&[hex]);
        let mut expected = name.to_vec();
        expected.push(b'\n');
        assert_eq!(comm(&workload.pid().to_string()), expected);
    }
}

#[test]
fn workload_threads_have_their_names_and_cpu_shares() {
    let workload = Program::c("spin").start(&["hungry=2000/0", "sated=500/4000"]);
    let [hungry, sated] = workload.words() else {
        panic!("two threads were asked for, {:?} came", workload.words());
    };
    assert_eq!(comm(hungry), b"hungry\n");
    assert_eq!(comm(sated), b"sated\n");
    thread::sleep(Duration::from_millis(300));
    let (most, least) = (thread_cpu_ns(hungry), thread_cpu_ns(sated));
    assert!(most > 2 * least && least > 0, "{most} and {least}");
    assert!(cpu_ns(workload.pid()) >= most + least);
}

#[test]
fn the_sleeping_workload_uses_no_cpu() {
    let workload = Program::c("sleeper").start(&[]);
    thread::sleep(Duration::from_millis(20));
    let before = workload.cpu_ns();
    thread::sleep(Duration::from_millis(200));
    assert_eq!(workload.cpu_ns(), before);
}

#[test]
fn the_exit_code_workload_exits_as_asked() {
    let program = Program::c("exit_code");
    for code in ["0", "7", "255"] {
        let status = Command::new(program.path())
            .args([code, "1", "1"])
            .output()
            .expect("the program can be started")
            .status;
        assert_eq!(
            status.code().map(|code| code.to_string()).as_deref(),
            Some(code)
        );
    }
}

#[test]
fn the_fork_storm_has_children() {
    let workload = Program::c("forkstorm").start(&["100", "20000", "5"]);
    let path = format!("/proc/{0}/task/{0}/children", workload.pid());
    for _ in 0..400 {
        if !fs::read_to_string(&path)
            .expect("the storm rages")
            .is_empty()
        {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("no child was seen");
}

#[test]
fn every_workload_gets_ready_and_stops() {
    for stem in ["clock", "faults", "anonymous"] {
        let workload = Program::c(stem).start(&[]);
        thread::sleep(Duration::from_millis(50));
        assert!(workload.cpu_ns() > 0, "{stem} is idle");
        assert_eq!(workload.stop(), Said::default(), "{stem}");
    }
    let workload = Program::cpp("templates").start(&[]);
    assert_eq!(workload.stop(), Said::default());
}

#[test]
fn rust_symbols_are_mangled_both_ways() {
    let default = symbols(&Program::rust("threads", Mangling::Default));
    let v0 = symbols(&Program::rust("threads", Mangling::V0));
    assert!(v0.contains("_R") && v0.contains("7threads5alpha8checksum"));
    assert!(default.contains("5alpha8checksum"));
    let workload = Program::rust("threads", Mangling::V0).start(&[]);
    let [alpha, ..] = workload.words() else {
        panic!("no thread said who it is");
    };
    assert_eq!(comm(alpha), b"alpha-thread\n");
}

#[test]
fn derived_programs_are_stripped_or_renamed_as_asked() {
    let program = Program::c("shares");
    assert!(symbols(&program).contains("alpha_inner"));
    assert!(!symbols(&program.stripped()).contains("alpha_inner"));

    let split = program.with_debug_file();
    assert!(!symbols(&split).contains("alpha_inner"));
    assert!(split.path().with_extension("debug").is_file());

    let hostile = program.with_symbol("alpha_inner", OsStr::new("in;ner <a> \"b\""));
    assert!(symbols(&hostile).contains(" in;ner <a> \"b\"\n"));

    let named = program.named("other_name").start(&[]);
    assert_eq!(comm(&named.pid().to_string()), b"other_name\n");
    for changed in [program.stripped(), split, hostile] {
        assert_eq!(changed.start(&["20"]).stop_by_itself().shares().len(), 4);
    }
}

/// The names of an executable's sections.
fn sections(program: &Program) -> Vec<String> {
    let output = Command::new("readelf")
        .args(["--section-headers", "--wide"])
        .arg(program.path())
        .output()
        .expect("readelf comes with gcc");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = text.split_whitespace();
    words
        .filter(|word| word.starts_with('.'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_chain_workload_keeps_its_functions_in_every_build() {
    let chain = Recipe::c("chain");
    for recipe in [
        chain.clone(),
        chain.clone().compiled("-fno-pie").linked("-no-pie"),
        chain.clone().linked("-static"),
        chain.clone().compiled("-fPIE").linked("-static-pie"),
        chain.clone().compiled("-DROOM=100000"),
        chain.clone().compiled("-O0 -fomit-frame-pointer"),
    ] {
        let program = recipe.make();
        let symbols = symbols(&program);
        for function in TWELVE {
            assert!(
                symbols.contains(&format!(" {function}\n")),
                "no {function} in {recipe:?}"
            );
        }
        let workload = program.start(&["40"]);
        thread::sleep(Duration::from_millis(50));
        assert!(workload.cpu_ns() > 0, "{recipe:?} is idle");
        assert_eq!(workload.stop(), Said::default());
    }
}

#[test]
fn unwind_sections_are_as_the_recipe_asks() {
    let has = |recipe: &Recipe, name: &str| sections(&recipe.make()).iter().any(|s| s == name);
    let chain = Recipe::c("chain");
    assert!(has(&chain, ".eh_frame_hdr"));
    assert!(!has(&chain, ".debug_frame"));
    let without = chain.clone().linked("-Wl,--no-eh-frame-hdr");
    assert!(!has(&without, ".eh_frame_hdr") && has(&without, ".eh_frame"));
    let debug = chain.clone().compiled("-g -fno-asynchronous-unwind-tables");
    assert!(has(&debug, ".debug_frame"));
    let apart = chain
        .compiled("-DAPART -fno-pie")
        .linked("-no-pie -Wl,--section-start=.text_apart=0x10000000");
    assert!(has(&apart, ".text_apart"));
}

#[test]
fn interrupted_workloads_continue() {
    let coroutine = Recipe::c("coroutine").make();
    assert_eq!(coroutine.start(&[]).stop(), Said::default());
    let signals = Recipe::c("signals").make();
    for stack in ["usual", "below", "above"] {
        let workload = signals.start(&[stack]);
        thread::sleep(Duration::from_millis(50));
        assert!(workload.cpu_ns() > 0, "{stack}");
        assert_eq!(workload.stop(), Said::default(), "{stack}");
    }
    for stem in ["edge", "leaves", "realigned", "threaded"] {
        let workload = Recipe::c(stem).make().start(&[]);
        thread::sleep(Duration::from_millis(50));
        assert!(workload.cpu_ns() > 0, "{stem} is idle");
    }
}

#[test]
fn plugins_are_loaded_and_libraries_linked() {
    let plugin = Recipe::c("plugin").named("plugin.so").shared().make();
    let plugin = plugin.path().to_str().expect("our paths are plain");
    for arguments in [&[plugin, "now"][..], &[plugin]] {
        let workload = Recipe::c("host").make().start(arguments);
        // The other one does not wait for a word, and would die of it.
        if arguments.len() == 1 {
            workload.proceed();
        }
        thread::sleep(Duration::from_millis(100));
        let maps = fs::read_to_string(format!("/proc/{}/maps", workload.pid()));
        assert!(maps.expect("the workload lives").contains("plugin.so"));
    }
    let library = Recipe::c("tiny").named("libtiny.so").shared().make();
    let program = Recipe::c("linkage").with_library(&library).make();
    assert_eq!(program.start(&[]).stop(), Said::default());
    for middle in ["gap_middle", "gap_moved"] {
        let gap = Recipe::c("gap").part(middle).make();
        assert_eq!(gap.start(&[]).stop(), Said::default());
    }
}

#[test]
fn the_branch_workload_has_a_child() {
    let workload = Recipe::c("branch").make().start(&["500"]);
    let path = format!("/proc/{0}/task/{0}/children", workload.pid());
    for _ in 0..400 {
        let children = fs::read_to_string(&path).expect("the parent waits");
        if let Some(child) = children.split_whitespace().next() {
            thread::sleep(Duration::from_millis(30));
            assert!(thread_cpu_ns(child) > 0, "the child is idle");
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("no child was seen");
}
