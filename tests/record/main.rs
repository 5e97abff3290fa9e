//! Records what a walk along an interpreter's chain reads, of an interpreter that is installed here.
//!
//! In: `NAME FILE [--root FOLDER] INTERPRETER [ARGUMENT…]`, as `cargo xtask record-memory` gives them. NAME is a runtime's and
//! whatever tells this recording from others: `cpython-3.13`. FOLDER is another system's, in which the interpreter is run.
//! Out: FILE, which [`flame_bpf_tests::recorded`] describes.
//!
//! The program is `workloads/LANGUAGE/recorded.*`. It says which chain of calls it is in, and a recording that shows another is
//! none. Registers are read by gdb.
#![allow(clippy::print_stdout, reason = "what was recorded is the output")]

mod stopped;

use std::fs;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use flame_bpf_tests::recorded::Recording;
use stopped::{Interpreter, Stopped};

/// How often the program is stopped, where it was stopped on its way into a function or out of one.
const ATTEMPTS: usize = 20;

/// The runtimes by the names of recordings, and their programs.
const PROGRAMS: [(&str, &str); 6] = [
    ("cpython", "python/recorded.py"),
    ("perl", "perl/recorded.pl"),
    ("php", "php/recorded.php"),
    ("ruby", "ruby/recorded.rb"),
    ("luajit", "lua/recorded.lua"),
    ("lua", "lua/recorded.lua"),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match record(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn record(arguments: &[String]) -> Result<()> {
    let [name, file, command @ ..] = arguments else {
        bail!("usage: NAME FILE [--root FOLDER] INTERPRETER [ARGUMENT…]");
    };
    let (root, command) = match command {
        [flag, root, rest @ ..] if flag == "--root" => (Some(root.as_str()), rest),
        rest => (None, rest),
    };
    let runtime = name.split('-').next().unwrap_or_default();
    let program = PROGRAMS.into_iter().find(|(known, _)| *known == runtime);
    let (_, program) = program.with_context(|| {
        let known = PROGRAMS.map(|(known, _)| known).join(", ");
        format!("{name} begins with no runtime's name; these are {known}")
    })?;
    let interpreter = Interpreter::start(program, root, command)?;
    let mut reason = String::new();
    for _ in 0..ATTEMPTS {
        let (version, recording) = Stopped::new(&interpreter)?.record()?;
        match agrees(&recording, &interpreter.chain) {
            Ok(()) => {
                // The recording shows the same when it is read again.
                let text = recording.to_string();
                let again = Recording::parse(&text)?.replay();
                ensure!(
                    again.lines == recording.shows,
                    "the recording shows something else when it is replayed: {:#?}, not {:#?}",
                    again.lines,
                    recording.shows
                );
                let head = format!("# {version}, {name}. Made by `cargo xtask record-memory`.\n");
                fs::write(file, head + &text).with_context(|| format!("cannot write {file}"))?;
                println!(
                    "{name}: {version}, {} words, {} bytes, {}",
                    recording.process.memory.len() / 8,
                    text.len(),
                    interpreter.chain.join(";")
                );
                return Ok(());
            }
            Err(error) => reason = error,
        }
    }
    bail!("{name} was stopped {ATTEMPTS} times, and each time not as the program says: {reason}");
}

/// Whether the functions shown are those that the program says, by their names or by their lines.
fn agrees(recording: &Recording, chain: &[String]) -> Result<(), String> {
    let shown = recording.shows.iter().rev();
    let functions: Vec<&str> = shown
        .filter_map(|line| Some(line.strip_prefix("function ")?.split_once(": ")?.1))
        .collect();
    let is_it = |shown: &str, said: &str| {
        let (name, place) = shown.rsplit_once(" (").unwrap_or((shown, ""));
        let line = place.rsplit_once(':').map_or("", |(_, line)| line);
        name == said || line.strip_suffix(')') == Some(said)
    };
    let same = functions.len() == chain.len()
        && functions
            .iter()
            .zip(chain)
            .all(|(shown, said)| is_it(shown, said));
    if same && !recording.shows.iter().any(|line| line == "broken") {
        return Ok(());
    }
    Err(format!("{chain:?}, but shown is {:?}", recording.shows))
}
