//! The functions that PHP runs, between native and kernel frames: whose truth is known, in every way in which they come to
//! run, deep ones, short-lived ones, and those of a FastCGI worker.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use flame_bpf_tests::{
    ALL_BUT_A_FEW, Interpreter, Invocation, NEARLY_ALL, Stack, annotated, kernel_test, profile,
    require, source, tool,
};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::tempdir;

/// Without the machine's own extensions, which may change how code runs.
const PHP: Interpreter = Interpreter {
    command: "php",
    arguments: &["-n"],
    folder: "php",
    suffix: "_[php]",
};

/// The functions of PHP's in a stack, from the root, without where those without a name are defined, which since 8.4 is in
/// the names of closures.
fn functions(stack: &Stack) -> Vec<String> {
    let names = PHP
        .functions(stack)
        .map(|frame| match frame.split_once(" (") {
            Some((name, _)) => name,
            None if frame.starts_with("{closure:") => "Work\\{closure}",
            None => frame,
        });
    names.map(str::to_owned).collect()
}

#[kernel_test]
fn shares_of_php_functions_are_as_measured() {
    require!(tool("php"));
    let folded = PHP.check_shares("shares.php");
    let chain = ["measured", "short_phase", "array_map"];
    assert!(folded.any(|stack| stack.has_chain(&chain)), "{folded}");
    // The interpreter's loop is shown only if it is asked for, or runs nothing: when it is about to return.
    let without = folded.share(|stack| !stack.has("execute_ex"));
    assert!(without > ALL_BUT_A_FEW, "{without} in {folded}");
}

#[kernel_test]
fn every_stack_of_php_is_a_chain_that_the_program_allows() {
    require!(tool("php"));
    PHP.check_chains("chains.php", 4.0, functions);
}

#[kernel_test]
fn fifty_random_stops_are_as_php_says() {
    require!(tool("php"));
    PHP.check_chains("stops.php", 5.0, functions);
}

#[kernel_test]
fn php_closures_that_are_made_and_dropped_never_have_each_other_s_lines() {
    require!(tool("php"));
    let workload = PHP.start("dropped.php", &[]);
    let folded = annotated(&workload, 3.0);
    let mut told = 0;
    for stack in &folded.stacks {
        let closures = PHP
            .functions(stack)
            .filter(|frame| frame.contains("{closure"));
        let lines: Vec<&str> = closures
            .filter_map(|frame| Some(frame.trim_end_matches([')', '}']).rsplit_once(':')?.1))
            .collect();
        if let [made, tells] = lines[..] {
            assert_eq!(made, tells, "{stack:?}");
            told += stack.weight;
        }
    }
    assert!(told > folded.total() / 4, "{told} in {folded}");
}

#[kernel_test]
fn the_stack_of_a_php_fiber_is_whole() {
    require!(tool("php"));
    let folded = annotated(&PHP.start("fiber.php", &[]), 3.0);
    let inside = |stack: &Stack| stack.mentions("inside");
    assert!(folded.share(inside) > 0.5, "{folded}");
    // Where its native stack ends is read when the first walk comes to it.
    let cut = folded.share(|stack| inside(stack) && stack.has("[no unwind info]"));
    assert!(cut < 0.2, "{cut:.3} is cut in {folded}");
}

#[kernel_test]
fn nine_hundred_php_functions_are_whole_and_five_thousand_are_marked() {
    require!(tool("php"));
    PHP.check_depths("deep.php", "descend");
}

#[kernel_test]
fn php_that_runs_for_20_ms_has_its_names() {
    let php = require!(tool("php"));
    let folded = PHP.run(&php, "-f -F 1997", "short.php");
    assert!(folded.any(|stack| stack.has("brief_work")), "{folded}");
}

#[kernel_test]
fn lines_are_those_that_run_in_php() {
    require!(tool("php"));
    let workload = PHP.start("lines.php", &[]);
    let folded = profile("-f -F 997 -d 1 --lines", &workload).folded();
    let on_line = folded.share(|stack| stack.mentions("lines.php:8"));
    assert!(on_line > NEARLY_ALL, "{on_line} in {folded}");
    assert!(
        folded.any(|stack| stack.mentions("lines.php:13")),
        "{folded}"
    );
}

#[kernel_test]
fn php_s_own_frames_are_shown_if_they_are_asked_for() {
    require!(tool("php"));
    let workload = PHP.start("lines.php", &[]);
    let all = profile("-f -F 997 -d 1 --interpreter-frames", &workload).folded();
    let loops = all.share(|stack| {
        stack.has_chain(&["<file>", "burn", "execute_ex"]) || stack.has("execute_ex")
    });
    assert!(loops > NEARLY_ALL, "{all}");
    let native = profile("-f -F 997 -d 1 --no-runtimes", &workload).folded();
    assert!(!native.any(|stack| stack.has("burn")), "{native}");
    assert!(native.any(|stack| stack.has("execute_ex")), "{native}");
}

/// A FastCGI server, which is killed with its workers when this is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        kill_process_group(Pid::from_child(&self.0), Signal::KILL).ok();
        self.0.wait().ok();
    }
}

/// A record of the FastCGI protocol (version 1, request 1).
fn fast_cgi(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("contents are short");
    let [high, low] = length.to_be_bytes();
    [&[1, kind, 0, 1, high, low, 0, 0], content].concat()
}

/// Asks a FastCGI server for a script.
fn ask(socket: &Path, script: &str) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    let parameters: Vec<u8> = [("SCRIPT_FILENAME", script), ("REQUEST_METHOD", "GET")]
        .into_iter()
        .flat_map(|(name, value)| {
            let length = |text: &str| u8::try_from(text.len()).expect("parameters are short");
            let lengths = [length(name), length(value)];
            [&lengths[..], name.as_bytes(), value.as_bytes()].concat()
        })
        .collect();
    // A responder; its parameters and their end; nothing to read.
    let request = [
        fast_cgi(1, &[0, 1, 0, 0, 0, 0, 0, 0]),
        fast_cgi(4, &parameters),
        fast_cgi(4, &[]),
        fast_cgi(5, &[]),
    ];
    stream.write_all(&request.concat())?;
    Ok(stream)
}

#[kernel_test]
fn a_fast_cgi_worker_shows_the_functions_of_its_requests() {
    let fpm = [
        "php-fpm",
        "php-fpm8.4",
        "php-fpm8.3",
        "php-fpm8.2",
        "php-fpm8.1",
    ];
    let Some(fpm) = fpm.into_iter().find_map(|name| tool(name).ok()) else {
        require!(Err::<(), _>("php-fpm is not installed".to_owned()));
        return;
    };
    let folder = tempdir().expect("a temporary folder can be made");
    let (socket, settings) = (folder.path().join("socket"), folder.path().join("fpm.conf"));
    let text = format!(
        "[global]\nerror_log = /dev/null\n[www]\nuser = root\ngroup = root\nlisten = {}\npm = static\npm.max_children = 1\n",
        socket.display()
    );
    fs::write(&settings, text).expect("a file can be written");
    let page = folder.path().join("page.php");
    fs::copy(source("php/page.php"), &page).expect("a file can be copied");
    let mut command = Command::new(fpm);
    command.args(["-n", "-F", "-R", "-y"]).arg(&settings);
    let server = command.stderr(Stdio::null()).process_group(0).spawn();
    let _server = Server(server.expect("it is installed"));
    let mut running = Invocation::new("-f -a -F 997 --annotate").start();
    running.wait_until_attached();
    let begin = Instant::now();
    let page = page.to_str().expect("the path is text");
    let mut answer = loop {
        match ask(&socket, page) {
            Ok(stream) => break stream,
            Err(error) => assert!(begin.elapsed() < Duration::from_secs(20), "{error}"),
        }
        thread::sleep(Duration::from_millis(20));
    };
    answer
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a time limit can be set");
    // It takes CPU time, which on a busy machine is more than as many seconds.
    answer
        .read_to_end(&mut Vec::new())
        .expect("the server closes when it has answered");
    running.signal(Signal::INT);
    let folded = running.finish().expect_code(0).folded();
    let chain = ["<file>", "Page::render"].map(str::to_owned);
    let renders = |stack: &Stack| functions(stack).starts_with(&chain);
    let weight: u64 = folded.only(renders).map(|stack| stack.weight).sum();
    assert!(weight > 50, "{weight} samples in {folded}");
    let share = folded.share_among(|stack| !functions(stack).is_empty(), renders);
    assert!(share > NEARLY_ALL, "{share} in {folded}");
}

/// With the compiler that OPcache has; `all_functions` compiles before the first call.
const COMPILED: Interpreter = Interpreter {
    arguments: &[
        "-n",
        "-dzend_extension=opcache",
        "-dopcache.enable_cli=1",
        "-dopcache.jit=1205",
        "-dopcache.jit_buffer_size=64M",
    ],
    ..PHP
};

#[kernel_test]
fn php_functions_that_its_compiler_made_are_shown() {
    require!(tool("php"));
    let compiled = COMPILED.start("lines.php", &[]);
    let folded = profile("-f -U -F 997 -d 1 --annotate", &compiled).folded();
    let is_compiled = folded.any(|stack| stack.mentions("[anon"));
    require!(is_compiled.then_some(()).ok_or("this PHP does not compile"));
    let shown = folded.share(|stack| functions(stack) == ["<file>", "burn"]);
    assert!(shown > NEARLY_ALL, "{folded}");
}
