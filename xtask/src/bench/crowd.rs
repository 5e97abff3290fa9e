//! Profilers beside what production runs: a browser, interpreters, a codec, compilers.
//!
//! In: those of them that are installed. Out: CPU time and memory of a whole run beside them, how
//! long after its end the profile is there, and how many stacks flame-bpf itself says were cut.
//! Never says what a peer's stacks are worth.

mod cut;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::command::{Running, last_message};
use super::figure::{Table, Unit};
use super::peer::{self, Profiler, Request};
use super::{Bench, interrupt, large, machine};
use crate::files;
use crate::workspace::in_path;

/// The folder of the programs' sources, among the workloads and in the folder of programs.
const FOLDER: &str = "crowd";

/// A unit that compilers compile.
const UNIT: &str = "unit.c";

/// The name, a program that must be there, and the command line.
const MEMBERS: [(&str, &str, &str); 5] = [
    (
        "chromium",
        "chromium",
        "exec chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
         --disable-component-update --disable-sync --remote-debugging-port=0 --user-data-dir=chromium \
         \"file://$PWD/page.html\"",
    ),
    ("node", "node", "exec node objects.js"),
    ("java", "java", "exec java Maps.java"),
    ("python", "python3", "exec python3 sums.py"),
    (
        "ffmpeg",
        "ffmpeg",
        "exec ffmpeg -loglevel quiet -re -f lavfi -i testsrc2=size=640x360:rate=30 -c:v libx264 -preset fast -f null -",
    ),
];

/// A compiler at work, as long as it lives.
const COMPILES: &str = "while gcc -O2 -c unit.c -o /dev/null; do :; done";

/// The first seconds, beside programs.
const FIRST: Request = Request {
    rate: 997,
    seconds: Some(3),
    cpu: None,
};

/// Time until programs that begin run evenly.
const SETTLING: Duration = Duration::from_secs(8);

/// Copies the programs' sources.
pub(super) fn build(sources: &Path, folder: &Path) -> Result<()> {
    let folder = folder.join(FOLDER);
    copy_all(&sources.join(FOLDER), &folder)?;
    files::write(&folder.join(UNIT), large::unit())
}

fn copy_all(from: &Path, to: &Path) -> Result<()> {
    for file in files::list(from)? {
        files::copy(
            &file,
            &to.join(file.file_name().context("a file has a name")?),
        )?;
    }
    Ok(())
}

/// Takes the section's figures.
pub(super) fn measure(bench: &Bench) -> Result<Table> {
    let mut table = Table::new("Beside what production runs");
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    copy_all(&bench.programs.folder().join(FOLDER), folder.path())?;
    beside_programs(bench, folder.path(), &mut table)?;
    beside_compilers(bench, folder.path(), &mut table)?;
    table.note(
        "CPU time in user and kernel mode, of all processes up to the graph, or to text where a peer draws none; memory resident \
         in the largest of them, without BPF maps; how much later than asked for all of that is done.",
    );
    Ok(table)
}

fn beside_programs(bench: &Bench, folder: &Path, table: &mut Table) -> Result<()> {
    let mut members = Vec::new();
    for (name, program, line) in MEMBERS {
        if in_path(program).is_some() {
            members.push((name, Running::start(line, folder)?));
        }
    }
    interrupt::pause(SETTLING)?;
    let mut present = Vec::new();
    for (name, member) in &members {
        match member.has_ended()? {
            true => table.note(format!("{name} has ended early{}.", last_message(folder))),
            false => present.push(*name),
        }
    }
    table.note(format!("Beside: {}.", present.join(", ")));
    if present.is_empty() {
        return Ok(());
    }
    compare(bench, table, &bench.all(), FIRST, "beside programs, 997 Hz")?;
    table.note(format!(
        "{:.2} % of samples in user code have no root, by flame-bpf's own marks.",
        cut(bench)?
    ));
    let ours = |name, more: &str| peer::flame_bpf_of_waits(name, &bench.flame_bpf, more);
    let mut waits = vec![
        ours("flame-bpf", "-a"),
        ours("flame-bpf, fp", "-a --call-graph fp"),
    ];
    waits.extend(peer::offcputime().filter(|_| !bench.alone));
    let waits: Vec<_> = waits.iter().map(|one| (one.name, one)).collect();
    let request = Request {
        seconds: Some(5),
        ..Request::default()
    };
    compare(bench, table, &waits, request, "waits beside programs")
}

/// The share of stacks without a root in the first seconds.
fn cut(bench: &Bench) -> Result<f64> {
    const PROFILE: &str = "profile.json";
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let more = format!("-a -o {PROFILE}");
    peer::flame_bpf("flame-bpf", &bench.flame_bpf, &more).record(FIRST, folder.path())?;
    let json = fs::read_to_string(folder.path().join(PROFILE)).context("there is no profile")?;
    cut::share(&json)
}

fn beside_compilers(bench: &Bench, folder: &Path, table: &mut Table) -> Result<()> {
    let compilers = (0..machine::cpus()).map(|_| Running::start(COMPILES, folder));
    let _compilers: Vec<Running> = compilers.collect::<Result<_>>()?;
    for rate in [19, 199] {
        let request = Request {
            rate,
            seconds: Some(20),
            cpu: None,
        };
        let beside = format!("beside compilers, {rate} Hz");
        compare(bench, table, &bench.all(), request, &beside)?;
    }
    Ok(())
}

fn compare(
    bench: &Bench,
    table: &mut Table,
    profilers: &[(&'static str, &Profiler)],
    request: Request,
    beside: &str,
) -> Result<()> {
    let seconds = request.seconds.unwrap_or_default();
    let [cpu, peak, late] = bench.each(profilers, |profiler| {
        let folder = tempfile::tempdir().context("cannot make a folder")?;
        let began = Instant::now();
        let used = profiler.record(request, folder.path())?;
        let late = began
            .elapsed()
            .saturating_sub(Duration::from_secs(seconds.into()));
        Ok([used.cpu_s, used.peak_mib, late.as_secs_f64()])
    })?;
    let what = |figure: &str| format!("{seconds} s {beside}: {figure}");
    table.compare(&what("own CPU time"), Unit::Seconds, cpu);
    table.compare(&what("peak memory"), Unit::Mebibytes, peak);
    table.compare(&what("done later by"), Unit::Seconds, late);
    Ok(())
}
