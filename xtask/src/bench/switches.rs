//! Cost of recording waits, for programs that switch all the time.
//!
//! In: two that hand each other the turn on one CPU. Out: nanoseconds for each switch: bare, and while waits are recorded
//! of them, or of somebody else. Each run is compared with the bare ones just before and after it. Never counts time in
//! which something else had the CPU.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::command::{Running, last_message};
use super::figure::{Figure, Table, Unit};
use super::workload::Kind;
use super::{Bench, interrupt, machine};
use crate::workspace::in_path;

/// Ways of the two to hand over, and the numbers by which the program knows them.
const KINDS: [(&str, u32); 2] = [("through pipes", 1), ("by a futex", 2)];

/// One goes and one comes: the turn goes there and back.
const SWITCHES_A_TURN: f64 = 2.0;

/// How long they hand each other the turn.
const SECONDS: f64 = 3.0;

/// Time that recorders need to begin: none says when it is ready in a way that all have.
const SETTLING: Duration = Duration::from_millis(1500);

/// The name, the program and its arguments before `-p PID`; none of a program stands for flame-bpf.
const RECORDERS: [(&str, Option<&str>, &str); 5] = [
    ("flame-bpf", None, ""),
    ("flame-bpf, fp", None, "--call-graph fp"),
    ("flame-bpf, sampled", None, "--switch-sample 1ms"),
    // By itself it keeps 1,024 stacks, and is fast by losing the others.
    (
        "libbpf-tools",
        Some("offcputime"),
        "--stack-storage-size=16384",
    ),
    (
        "perf",
        Some("perf"),
        "record -q -e sched:sched_switch -g -o perf.data",
    ),
];

/// Takes the section's figures.
pub(super) fn measure(bench: &Bench) -> Result<Table> {
    let cpu = machine::cpus() - 1;
    let mut program = bench.programs.start(Kind::Switch, cpu)?;
    let mut table = Table::new("What a switch between threads loses");
    for (does, kind) in KINDS {
        let turns = program.turns_for(kind, SECONDS, 20_000)?;
        let each = |took: f64| took * 1e9 / (turns as f64 * SWITCHES_A_TURN);
        let pids = [
            ("recorded", program.pid()),
            ("not recorded", std::process::id()),
        ];
        for (whom, pid) in pids {
            let mut bare = Figure::default();
            let mut figures: Vec<(&str, Figure)> = Vec::new();
            for (name, peer, arguments) in RECORDERS {
                let path = match peer {
                    None => Some(bench.flame_bpf.clone()),
                    Some(peer) => in_path(peer).filter(|_| !bench.alone),
                };
                let Some(path) = path else { continue };
                let mut taken = Figure::default();
                for _ in 0..bench.runs {
                    let before = program.work(kind, turns)?;
                    let mut work = || program.work(kind, turns);
                    let during = match recorded(peer.is_none(), &path, arguments, pid, &mut work) {
                        Ok(during) => during,
                        Err(reason) => {
                            interrupt::check()?;
                            table.note(format!("Not compared with {name}: {reason:#}."));
                            break;
                        }
                    };
                    taken.add(each(during));
                    bare.add(each(f64::midpoint(before, work()?)));
                }
                if !taken.is_empty() {
                    figures.push((name, taken));
                }
            }
            figures.insert(1.min(figures.len()), ("bare", bare));
            let what = format!("a switch {does}, {whom}");
            table.compare(&what, Unit::Nanoseconds, figures);
        }
    }
    table.note(format!(
        "{SECONDS} s of handing over on CPU {cpu}; of the two that hand over through pipes, one process is recorded."
    ));
    Ok(table)
}

/// Result of `work` while the waits of a process are being recorded.
fn recorded(
    ours: bool,
    program: &Path,
    arguments: &str,
    pid: u32,
    work: &mut impl FnMut() -> Result<f64>,
) -> Result<f64> {
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let first = if ours {
        "--off-cpu -q -o waits.folded"
    } else {
        ""
    };
    let line = format!("exec '{}' {first} {arguments} -p {pid}", program.display());
    let mut process = Running::start(&line, folder.path())?;
    interrupt::pause(SETTLING)?;
    ensure!(
        !process.has_ended()?,
        "it does not run here{}",
        last_message(folder.path())
    );
    let time = work()?;
    process.interrupt()?;
    interrupt::pause(Duration::from_millis(100))?;
    Ok(time)
}
