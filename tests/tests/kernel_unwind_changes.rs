//! Complete user stacks while programs change: what they have loaded, who they are, and what lies at
//! their paths.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use flame_bpf_tests::{
    Folded, Invocation, NEARLY_ALL, PrivateCopy, Recipe, Stack, TWELVE, Workload, kernel_test,
};

const PLUGIN: [&str; 5] = [
    "main",
    "call_plugin",
    "plugin_outer",
    "plugin_inner",
    "burn",
];

fn profile(workload: &Workload, duration: &str) -> Folded {
    Invocation::new("-f -U -F 997")
        .flag("-d", duration)
        .flag("-p", workload.pid())
        .run()
        .expect_code(0)
        .folded()
}

/// Records for this long; some time after its beginning the workload gets its word to go on.
fn profile_around(workload: &Workload, duration: &str) -> Folded {
    let mut running = Invocation::new("-f -U -F 997")
        .flag("-d", duration)
        .flag("-p", workload.pid())
        .start();
    running.wait_until_attached();
    // So that there is something before it, too.
    thread::sleep(Duration::from_millis(800));
    workload.proceed();
    running.finish().expect_code(0).folded()
}

/// Records a command to its end, which is to be one with `code`.
fn profile_command(stem: &str, argument: &str, code: i32) -> Folded {
    let program = Recipe::c(stem).make();
    let run = Invocation::new("-f -U -F 997")
        .command(program.path(), &[argument])
        .run()
        .expect_code(code);
    // The first line is the workload's own `ready`.
    let text = String::from_utf8(run.stdout).expect("folded text is UTF-8");
    let stacks = text.strip_prefix("ready\n").unwrap_or(&text);
    Folded::parse(stacks.as_bytes()).expect("folded text is well-formed")
}

/// Starts a copy of a program that may be removed.
fn start(path: &Path, arguments: &[&str]) -> Workload {
    Workload::start(Command::new(path).args(arguments))
}

/// Panics unless nearly all stacks with `function` are complete, and all frames that any stack has are of
/// the chain.
#[track_caller]
fn assert_soon_complete(folded: &Folded, function: &str, chain: &[&str]) {
    let there = |stack: &Stack| stack.has(function);
    // Enough samples to judge by.
    assert!(folded.share(there) > 0.02, "{function} is rare in {folded}");
    let complete = folded.share_among(there, |stack| {
        stack.mark().is_none() && stack.begins_at_start() && stack.ends_along(chain)
    });
    // Until the loader has read the new file's tables, there are some that are not.
    assert!(
        complete > 0.95,
        "{complete:.3} of the stacks with {function} are complete in {folded}"
    );
}

#[kernel_test]
fn a_library_loaded_while_recording_is_unwound() {
    let plugin = Recipe::c("plugin").named("plugin.so").shared().make();
    let plugin = plugin.path().to_str().expect("our paths are plain");
    let workload = Recipe::c("host").make().start(&[plugin]);
    let folded = profile_around(&workload, "3");
    assert_soon_complete(&folded, "plugin_inner", &PLUGIN);
    assert_soon_complete(&folded, "waiting", &["main", "waiting", "burn"]);
}

#[kernel_test]
fn a_library_replaced_while_in_use_is_unwound() {
    let plugin = |room: &str| {
        let recipe = Recipe::c("plugin").named("plugin.so").compiled(room);
        recipe.shared().make()
    };
    let copy = PrivateCopy::of(plugin("-DROOM=64").path());
    let other = PrivateCopy::of(plugin("-DROOM=9000").path());
    let path = copy.path().to_str().expect("our paths are plain");
    let workload = Recipe::c("host").make().start(&[path, "now"]);
    fs::rename(other.path(), copy.path()).expect("a file of ours can be replaced");
    profile(&workload, "1.5").assert_complete(&PLUGIN);
}

/// Two plugins that the dynamic linker maps at the same address in turn, and their inner functions.
fn swapped_plugins(rooms: [&str; 2]) -> [(String, &'static str); 2] {
    let plugin = |name: &str, room: &str, inner: &'static str| {
        let recipe = Recipe::c("plugin").named(&format!("{inner}_{name}.so"));
        let flags = format!("{room} -DINNER={inner}");
        let recipe = recipe.compiled(&flags);
        let plugin = recipe.shared().make();
        let path = plugin.path().to_str().expect("our paths are plain");
        (path.to_owned(), inner)
    };
    let [one, other] = rooms;
    let name = format!("{}_{}", &one["-DROOM=".len()..], &other["-DROOM=".len()..]);
    [
        plugin(&name, one, "of_the_one"),
        plugin(&name, other, "of_the_other"),
    ]
}

/// Panics unless nearly all calls of plugins have the name of the one or of the other, each at least this share of them.
#[track_caller]
fn assert_told_apart(folded: &Folded, inner: [&str; 2], least: f64) {
    let called = |stack: &Stack| stack.has("call_plugin");
    let [one, other] = inner.map(|inner| folded.share_among(called, |stack| stack.has(inner)));
    assert!(
        one + other > 0.9 && one > least && other > least,
        "{one:.3} and {other:.3} in {folded}"
    );
    let both = folded.weight(|stack| stack.has(inner[0]) && stack.has(inner[1]));
    assert_eq!(both, 0, "stacks have both in {folded}");
}

/// Answers for an address are kept from one firing to the next, and must not outlive the mapping.
/// Both libraries return to the same addresses.
#[kernel_test]
fn libraries_mapped_at_the_same_address_in_turn_are_unwound_and_named() {
    let plugins = swapped_plugins(["-DROOM=5000", "-DROOM=9000"]);
    let [(small, _), (large, _)] = &plugins;
    let workload = Recipe::c("swap").make().start(&[small, large]);
    let folded = profile(&workload, "3");
    let complete = folded
        .share(|stack| stack.mark().is_none() && stack.begins_at_start() && stack.has("main"));
    // Each swap needs tables anew, which takes milliseconds of the time.
    assert!(complete > 0.95, "{complete:.3} are complete in {folded}");
    // Frames of 9000 bytes take longer to fill.
    assert_told_apart(&folded, plugins.map(|(_, inner)| inner), 0.1);
}

/// The bytes of both libraries are the same but for names, so that nothing but the mapping tells them apart.
#[kernel_test]
fn equal_libraries_at_one_address_have_each_its_own_names() {
    let plugins = swapped_plugins(["-DROOM=8", "-DROOM=8"]);
    let inner = plugins.each_ref().map(|(_, inner)| *inner);
    for flags in ["-f -U -F 997", "-f -F 997 -a"] {
        let [(one, _), (other, _)] = &plugins;
        let workload = Recipe::c("swap").make().start(&[one, other]);
        let mut invocation = Invocation::new(flags).flag("-d", "2");
        if !flags.contains("-a") {
            invocation = invocation.flag("-p", workload.pid());
        }
        let run = invocation.run().expect_code(0);
        assert_told_apart(&run.folded(), inner, 0.35);
    }
}

#[kernel_test]
fn a_deleted_program_is_unwound() {
    let copy = PrivateCopy::of(Recipe::c("chain").make().path());
    let workload = start(copy.path(), &["40"]);
    fs::remove_file(copy.path()).expect("a file of ours can be removed");
    profile(&workload, "1.5").assert_complete(&TWELVE);
}

#[kernel_test]
fn a_replaced_program_is_unwound() {
    let copy = PrivateCopy::of(Recipe::c("chain").make().path());
    let other = Recipe::c("chain").compiled("-DROOM=9000").make();
    let other = PrivateCopy::of(other.path());
    let workload = start(copy.path(), &["40"]);
    fs::rename(other.path(), copy.path()).expect("a file of ours can be replaced");
    profile(&workload, "1.5").assert_complete(&TWELVE);
}

#[kernel_test]
fn a_forked_child_is_unwound_by_its_parents_tables() {
    let folded = profile_command("branch", "700", 0);
    // The clock that ends each loop is not what this is about.
    let steady = Folded {
        stacks: folded
            .only(|stack| !stack.mentions("clock_gettime"))
            .cloned()
            .collect(),
    };
    let chain = ["main", "in_child", "child_work", "burn"];
    assert_soon_complete(&steady, "child_work", &chain);
    assert_soon_complete(&steady, "before_fork", &["main", "before_fork", "burn"]);
}

#[kernel_test]
fn a_process_is_unwound_after_exec() {
    // The next one at the same addresses, with other frames.
    let fixed = |stem| Recipe::c(stem).compiled("-fno-pie").linked("-no-pie");
    let next = fixed("chain").compiled("-DROOM=3000").make();
    let next = next.path().to_str().expect("our paths are plain");
    let workload = fixed("become").make().start(&[next]);
    let folded = profile_around(&workload, "3");
    assert_soon_complete(&folded, "first", &TWELVE);
    assert_soon_complete(&folded, "before_exec", &["main", "before_exec", "burn"]);
}

#[kernel_test]
fn a_thread_is_unwound_from_its_first_function() {
    let workload = Recipe::c("threaded").make().start(&[]);
    let folded = profile(&workload, "1.5");
    for stack in &folded.stacks {
        assert_eq!(stack.mark(), None, "{:?} in {folded}", stack.frames);
        let start = stack.position("thread_main");
        // The functions of the C library that make and start a thread.
        assert!(
            start.is_some_and(|start| (2..=4).contains(&start)),
            "{:?} in {folded}",
            stack.frames
        );
        assert!(
            stack.ends_along(&["thread_main", "thread_work", "burn"]),
            "{:?} in {folded}",
            stack.frames
        );
    }
    assert!(folded.any(|stack| stack.leaf() == "burn"), "{folded}");
}

#[kernel_test]
fn a_command_is_unwound_from_its_start() {
    // It ends with 1, as it was told of no other program to become; that is the command's own code.
    let folded = profile_command("relay", "1500", 1);
    let there = |stack: &Stack| stack.has("before_exec");
    assert!(folded.share(there) > NEARLY_ALL, "{folded}");
    let complete = folded.share_among(there, Stack::begins_at_start);
    // Of a second and a half, the moments before it is known and after its end are less than this.
    assert!(complete > 0.98, "{complete:.3} are complete in {folded}");
}
