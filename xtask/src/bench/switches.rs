//! What looking at waits takes from programs that switch all the time.
//!
//! In: two that hand each other the turn on one CPU. Out: nanoseconds for each switch: bare, and while waits are recorded
//! of them, or of somebody else. As in [`slowdown`](super::slowdown), each run is compared with the bare ones just before
//! and after it, and time in which something else had the CPU does not count.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::figure::{Figure, Table, Unit};
use super::program::Stack;
use super::recording::{Process, Step};
use super::tool::{find, is_libbpf, said};
use super::{Bench, machine, patience};

/// What the two do, and the number by which the program knows it.
const KINDS: [(&str, u32); 2] = [("through pipes", 1), ("by a futex", 2)];

/// One goes and one comes: the turn goes there and back.
const SWITCHES_A_TURN: f64 = 2.0;

/// What recorders need to begin: some compile first, and none says when it is ready in a way that all have.
const SETTLING: Duration = Duration::from_millis(1500);

/// One way to record waits.
struct Recorder {
    name: &'static str,
    program: std::path::PathBuf,
    arguments: Vec<&'static str>,
    /// How a process is named.
    of: &'static str,
}

fn recorders(bench: &Bench) -> Vec<Recorder> {
    let ours = |name, more: &[&'static str]| Recorder {
        name,
        program: bench.flame_bpf.clone(),
        arguments: [&["--off-cpu", "-q", "-o", "waits.folded"], more].concat(),
        of: "-p",
    };
    let mut recorders = vec![
        ours("flame-bpf", &[]),
        ours("flame-bpf, fp", &["--call-graph", "fp"]),
        ours("flame-bpf, sampled", &["--switch-sample", "1ms"]),
    ];
    let peers: [(&str, &str, &[&str]); 3] = [
        (
            "libbpf-tools",
            "offcputime",
            &["--stack-storage-size=16384"],
        ),
        (
            "bcc",
            "offcputime-bpfcc",
            &["-f", "--stack-storage-size=16384"],
        ),
        (
            "perf",
            "perf",
            &["record", "-q", "-e", "sched:sched_switch", "-g"],
        ),
    ];
    for (name, program, arguments) in peers {
        let found = find(program).filter(|path| name != "libbpf-tools" || is_libbpf(path));
        recorders.extend(found.map(|program| Recorder {
            name,
            program,
            arguments: arguments.to_vec(),
            of: "-p",
        }));
    }
    recorders
}

/// Takes the section's figures.
pub(super) fn measure(bench: &Bench) -> Result<Table> {
    let seconds = if bench.quick { 0.3 } else { 3.0 };
    let cpu = machine::cpus() - 1;
    let mut program = bench.programs.switches(cpu)?;
    let mut recorders = recorders(bench);
    let mut table = Table::new("What a switch between threads loses");
    for (does, kind) in KINDS {
        let turns = turns_for(&mut program, kind, seconds)?;
        for (whom, pid) in [
            ("recorded", program.pid()),
            ("not recorded", std::process::id()),
        ] {
            let (mut bare, mut taken) =
                (Figure::default(), vec![Figure::default(); recorders.len()]);
            let mut fails = vec![false; recorders.len()];
            let each = |seconds: f64| seconds * 1e9 / (turns as f64 * SWITCHES_A_TURN);
            for _ in 0..bench.runs {
                for ((recorder, taken), fails) in recorders.iter().zip(&mut taken).zip(&mut fails) {
                    if *fails {
                        continue;
                    }
                    let before = program.work(kind, turns)?;
                    match recorded(recorder, pid, || program.work(kind, turns)) {
                        Ok(time) => {
                            bare.add(each(f64::midpoint(before, program.work(kind, turns)?)));
                            taken.add(each(time));
                        }
                        Err(reason) => {
                            patience::check()?;
                            table.note(format!("Not compared with {}: {reason:#}.", recorder.name));
                            *fails = true;
                        }
                    }
                }
            }
            // What fails once is not tried again.
            let mut figures = vec![("bare", bare)];
            let mut works = fails.into_iter().map(|fails| !fails);
            let tried = std::mem::take(&mut recorders).into_iter().zip(taken);
            for (recorder, taken) in tried.filter(|_| works.next() == Some(true)) {
                figures.push((recorder.name, taken));
                recorders.push(recorder);
            }
            // Ours is what the others are compared with.
            if let [bare, ours, ..] = figures.as_mut_slice() {
                std::mem::swap(bare, ours);
            }
            table.compare(
                &format!("a switch {does}, {whom}"),
                Unit::Nanoseconds,
                figures,
            );
        }
    }
    table.note(format!(
        "{seconds} s of handing over on CPU {cpu}; of the two that hand over through pipes, one process is recorded."
    ));
    Ok(table)
}

/// How many turns take about so many seconds.
fn turns_for(program: &mut Stack, kind: u32, seconds: f64) -> Result<u64> {
    const TRIAL: u32 = 20_000;
    program.work(kind, TRIAL.into())?;
    let trial = program.work(kind, TRIAL.into())?;
    Ok((f64::from(TRIAL) * seconds / trial) as u64)
}

/// What `work` returns while the waits of a process are being recorded.
fn recorded(recorder: &Recorder, pid: u32, mut work: impl FnMut() -> Result<f64>) -> Result<f64> {
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let pid = pid.to_string();
    let step = Step {
        program: recorder.program.clone().into(),
        arguments: recorder
            .arguments
            .iter()
            .chain([&recorder.of, &&*pid])
            .map(Into::into)
            .collect(),
    };
    let mut process = Process::start(&step, folder.path())?;
    patience::pause(SETTLING)?;
    if process.has_ended()? {
        anyhow::bail!("it does not run here{}", said(folder.path()));
    }
    let time = work()?;
    process.interrupt()?;
    patience::pause(Duration::from_millis(100))?;
    Ok(time)
}
