//! Stripped programs: told of in the balance, and named from debug files, also from servers.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use flame_bpf_tests::{Folded, Invocation, Program, Run, Workload, kernel_turn, require, tool};
use tempfile::tempdir;

const CHAIN: [&str; 5] = ["main", "work_round", "alpha", "alpha_inner", "burn"];

fn record(workload: &Workload, invocation: Invocation) -> Run {
    invocation
        .flag("-p", workload.pid())
        .run()
        .expect_no_panic()
        .expect_code(0)
}

fn invocation() -> Invocation {
    Invocation::new("-f -F 997 -d 2")
}

fn is_named(folded: &Folded) -> bool {
    folded.any(|stack| stack.has_chain(&CHAIN)) && folded.share(|stack| stack.has("burn")) > 0.9
}

/// What `strip` takes from a program, in a folder.
fn debug_file(program: &Program, folder: &Path) -> PathBuf {
    let debug = folder.join("made.debug");
    let made = Command::new("objcopy")
        .arg("--only-keep-debug")
        .args([program.path(), &debug])
        .status()
        .expect("objcopy can be started");
    assert!(made.success());
    debug
}

/// The build ID of a program, where the compiler gives one.
fn build_id(program: &Path) -> Result<String, String> {
    tool("readelf")?;
    let output = Command::new("readelf")
        .arg("--notes")
        .arg(program)
        .output()
        .map_err(|error| error.to_string())?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(|line| Some(line.trim().strip_prefix("Build ID: ")?.to_owned()))
        .ok_or_else(|| "this compiler gives programs no build ID".to_owned())
}

#[test]
fn a_stripped_program_is_told_of_with_its_share_and_a_remedy() {
    let _turn = require!(kernel_turn());
    let workload = Program::c("shares").stripped().start(&[]);
    record(&workload, invocation())
        .expect_stderr("of the samples have nameless frames in shares, which was stripped")
        .expect_stderr("--debug-dir");
}

#[test]
fn names_come_from_a_directory_of_debug_files() {
    let _turn = require!(kernel_turn());
    let program = Program::c("shares");
    let id = require!(build_id(program.path()));
    let folder = tempdir().expect("a temporary folder can be made");
    let debug = debug_file(&program, folder.path());
    let by_id = folder.path().join(".build-id").join(&id[..2]);
    fs::create_dir_all(&by_id).expect("a temporary folder can be written");
    fs::rename(debug, by_id.join(format!("{}.debug", &id[2..]))).expect("a file can be moved");
    let workload = program.stripped().start(&[]);
    let run = record(&workload, invocation().path("--debug-dir", folder.path()));
    assert!(is_named(&run.folded()), "{}", run.folded());
    assert!(!run.stderr.contains("stripped"), "{}", run.stderr);
}

/// Answers every request for this build with these bytes; says where it listens.
fn serve(id: &str, bytes: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("a listener has an address");
    let wanted = format!("GET /buildid/{id}/debuginfo ");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = String::new();
            let mut lines = BufReader::new(stream.try_clone().expect("a socket can be shared"));
            while lines.read_line(&mut request).is_ok_and(|read| read > 2) {}
            let (status, body): (_, &[u8]) = match request.starts_with(&wanted) {
                true => ("200 OK", &bytes),
                false => ("404 Not Found", b""),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            // Whoever hangs up has heard enough.
            stream.write_all(head.as_bytes()).ok();
            stream.write_all(body).ok();
        }
    });
    format!("http://{address}")
}

#[test]
fn names_come_from_a_debuginfod_server_and_then_from_the_cache() {
    let _turn = require!(kernel_turn());
    let program = Program::c("shares");
    let id = require!(build_id(program.path()));
    let folder = tempdir().expect("a temporary folder can be made");
    let debug = fs::read(debug_file(&program, folder.path())).expect("it was just made");
    let cache = folder.path().join("cache");
    let wrapper = format!("env DEBUGINFOD_CACHE_PATH={}", cache.display());
    let workload = program.stripped().start(&[]);
    let address = serve(&id, debug);
    let asking = invocation()
        .wrapped(&wrapper)
        .arg(format!("--debuginfod={address}"));
    let first = record(&workload, asking).expect_stderr("fetched a debug file");
    assert!(is_named(&first.folded()), "{}", first.folded());
    // Nobody listens at this address, and nobody needs to.
    let set = format!("{wrapper} DEBUGINFOD_URLS=http://127.0.0.1:1");
    let second = record(&workload, invocation().wrapped(&set));
    assert!(is_named(&second.folded()), "{}", second.folded());
    assert!(!second.stderr.contains("Fetched"), "{}", second.stderr);
}
