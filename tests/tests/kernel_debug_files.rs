//! Stripped programs: named in the summary, and named from debug files, also from servers. Lines of the kernel from
//! there, too.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use flame_bpf_tests::{
    Folded, Invocation, NEARLY_ALL, Program, Run, Workload, kernel_test, require, tool,
};
use tempfile::tempdir;

const CHAIN: [&str; 5] = ["main", "work_round", "alpha", "alpha_inner", "burn"];

fn record(workload: &Workload, invocation: Invocation) -> Run {
    invocation.flag("-p", workload.pid()).run().expect_code(0)
}

fn invocation() -> Invocation {
    Invocation::new("-f -F 997 -d 1")
}

fn is_named(folded: &Folded) -> bool {
    folded.any(|stack| stack.has_chain(&CHAIN))
        && folded.share(|stack| stack.has("burn")) > NEARLY_ALL
}

/// The debug information that `strip` takes from a program, as a file in a folder.
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

#[kernel_test]
fn a_stripped_program_is_reported_with_its_share_and_a_remedy() {
    let workload = Program::c("shares").stripped().start(&[]);
    record(&workload, invocation())
        .expect_stderr("of leaves, in shares (stripped); ")
        .expect_stderr("--debuginfod");
}

#[kernel_test]
fn names_come_from_a_directory_of_debug_files() {
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
            // A client that hangs up has read enough.
            stream.write_all(head.as_bytes()).ok();
            stream.write_all(body).ok();
        }
    });
    format!("http://{address}")
}

#[kernel_test]
fn names_come_from_a_debuginfod_server_and_then_from_the_cache() {
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
    let first = record(&workload, asking).expect_stderr("fetched: 1 debug file");
    assert!(is_named(&first.folded()), "{}", first.folded());
    // There is no server at this address, and none is needed.
    let set = format!("{wrapper} DEBUGINFOD_URLS=http://127.0.0.1:1");
    let second = record(&workload, invocation().wrapped(&set));
    assert!(is_named(&second.folded()), "{}", second.folded());
    assert!(!second.stderr.contains("fetched"), "{}", second.stderr);
}

/// The build ID of the kernel that runs.
fn running_build() -> Result<String, String> {
    let notes = fs::read("/sys/kernel/notes").map_err(|error| format!("no notes: {error}"))?;
    // A name of four bytes, a description of so many, and the kind; `NT_GNU_BUILD_ID` of `elf.h`.
    let begins = |at: usize| {
        let [head, name] = [notes.get(at..at + 12)?, notes.get(at + 12..at + 16)?];
        let length = usize::from(head[4]);
        let is_it = head[0] == 4 && head[8] == 3 && name == b"GNU\0";
        is_it
            .then(|| notes.get(at + 16..at + 16 + length))
            .flatten()
    };
    let id = (0..notes.len()).step_by(4).find_map(begins);
    let id = id.ok_or("the kernel does not say which build it is")?;
    Ok(id.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The functions of the kernel itself, by how far they are from where it begins.
fn kernel_functions() -> Result<BTreeMap<u64, Vec<String>>, String> {
    let list = fs::read_to_string("/proc/kallsyms").map_err(|error| error.to_string())?;
    let symbols = list.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let is_code = words.next()?.eq_ignore_ascii_case("t");
        // Those of modules have another word behind.
        let name = words.next().filter(|name| !name.contains('\t'))?;
        Some((address, is_code, name))
    });
    let symbols: Vec<_> = symbols.collect();
    let place = |wanted: &str| {
        let found = symbols.iter().find(|(_, _, name)| *name == wanted);
        found.map_or(0, |(address, ..)| *address)
    };
    let text = place("_text")..place("_etext");
    if text.start == 0 || text.is_empty() {
        return Err("the kernel hides where it lies".to_owned());
    }
    let mut functions: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for (address, is_code, name) in symbols {
        if is_code && text.contains(&address) {
            let names = functions.entry(address - text.start).or_default();
            names.push(name.to_owned());
        }
    }
    Ok(functions)
}

/// A kernel of that build with functions in the same places, each in a line of its own.
fn made_kernel(
    id: &str,
    functions: &BTreeMap<u64, Vec<String>>,
    folder: &Path,
) -> Result<Vec<u8>, String> {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for name in functions.values().flatten() {
        *times.entry(name).or_default() += 1;
    }
    let mut source = String::new();
    for (place, names) in functions {
        let once = names.iter().find(|name| times[name.as_str()] == 1);
        let label = once.map_or_else(String::new, |name| {
            format!("{name}: .type {name},@function; ")
        });
        let _ = writeln!(source, ".org {place:#x}; {label}nop");
    }
    fs::write(folder.join("kernel.s"), source).expect("a temporary folder can be written");
    let output = Command::new("gcc")
        .current_dir(folder)
        .args([
            "-g",
            "-nostdlib",
            "-static",
            "-no-pie",
            "-o",
            "vmlinux",
            "kernel.s",
        ])
        .args(["-Wl,-Ttext=0xffffffff81000000", "-Wl,-e,0"])
        .arg(format!("-Wl,--build-id=0x{id}"))
        .output()
        .map_err(|error| format!("gcc: {error}"))?;
    if !output.status.success() {
        return Err(format!("gcc: {}", String::from_utf8_lossy(&output.stderr)));
    }
    fs::read(folder.join("vmlinux")).map_err(|error| error.to_string())
}

#[kernel_test]
fn lines_of_the_kernel_come_from_a_debuginfod_server() {
    let id = require!(running_build());
    let functions = require!(kernel_functions());
    let folder = tempdir().expect("a temporary folder can be made");
    let kernel = require!(made_kernel(&id, &functions, folder.path()));
    let cache = folder.path().join("cache");
    let wrapper = format!("env DEBUGINFOD_CACHE_PATH={}", cache.display());
    let dd = require!(tool("dd"));
    let copy = ["if=/dev/zero", "of=/dev/null", "bs=64k", "count=100000"];
    let record = |servers: &str| {
        Invocation::new("-f -K -F 997 --kernel-lines")
            .wrapped(&wrapper)
            .arg(servers)
            .command(&dd, &copy)
            .run()
            .expect_code(0)
    };
    let address = serve(&id, kernel);
    let run = record(&format!("--debuginfod={address}")).expect_stderr("fetched: 1 debug file, ");
    let lines: Vec<&Vec<String>> = functions.values().collect();
    let (mut with_lines, mut right, mut all) = (0, 0, 0);
    let folded = run.folded();
    for frame in folded.stacks.iter().flat_map(|stack| &stack.frames[1..]) {
        all += 1;
        let Some((name, line)) = frame.split_once(" (kernel.s:") else {
            continue;
        };
        let line: usize = line
            .trim_end_matches(')')
            .parse()
            .expect("a line is a number");
        with_lines += 1;
        right += usize::from(lines[line - 1].iter().any(|known| known == name));
    }
    // A few lie where the kernel changed its own code, or in modules.
    assert!(
        with_lines * 10 > all * 9,
        "{with_lines} of {all} have lines: {folded}"
    );
    assert!(
        right * 100 > with_lines * 99,
        "{right} of {with_lines} are right: {folded}"
    );
    // From then on from the cache.
    let again = record("--debuginfod=http://127.0.0.1:1");
    assert!(again.folded().any(|stack| stack.mentions(" (kernel.s:")));
    assert!(!again.stderr.contains("fetched"), "{}", again.stderr);
}
