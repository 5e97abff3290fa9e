//! Cost of inputs that are much larger than what a run records.
//!
//! In: inputs made here, the same in each run but for the raw recordings, which are of this machine. Out: CPU time, memory and
//! bytes written for what people make of them, beside inferno and `go tool pprof` where they are installed. Never looks at
//! the pictures.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::Bench;
use super::command::run;
use super::figure::{Table, Unit};
use super::numbers::Numbers;

/// How many stacks a large input has.
const STACKS: u32 = 1_000_000;

/// How many a usual one has.
const DEFAULT_STACKS: u32 = 58_000;

/// Frames of each stack behind the command: one for each bit of its number.
const DEPTH: u32 = 20;

/// How many functions there are.
const FUNCTIONS: u32 = 20_000;

/// Stacks of the text that `perf script` would print.
const PRINTED: u32 = 300_000;

/// How many raw recordings there are, and how many of them differ.
const RECORDINGS: usize = 300;
const DIFFERENT: usize = 10;

/// All that is measured, in the table's order: what it is called, our arguments behind `render` or `diff`, the file that they
/// write, and the program that people would take, with its line.
const ALL: &str = "\
300 recordings, SVG | render raw/*.fbpf | a.svg
300 recordings, pprof | render raw/*.fbpf | a.pb.gz | go | go tool pprof -proto -output=peer raw/*.pb.gz
perf script, SVG | render in.perf | b.svg | inferno-collapse-perf | inferno-collapse-perf in.perf
58,000 stacks, SVG | render usual.folded | c.svg | inferno-flamegraph | inferno-flamegraph usual.folded
1,000,000 stacks, SVG | render one.folded | d.svg | inferno-flamegraph | inferno-flamegraph one.folded
1,000,000 stacks, HTML | render one.folded | e.html
1,000,000 stacks, text | render one.folded | f.txt
1,000,000 stacks, pprof | render one.folded | g.pb.gz
1,000,000 stacks, folded | render one.folded | h.folded
diff of two such, SVG | diff one.folded other.folded | i.svg | inferno-diff-folded | inferno-diff-folded one.folded other.folded
diff of two such, text | diff one.folded other.folded | j.txt";

/// Takes the section's figures.
pub(super) fn measure(bench: &Bench) -> Result<Table> {
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let folder = folder.path();
    write_inputs(folder).context("cannot write inputs")?;
    record(bench, folder)?;
    let mut table = Table::new("Large inputs");
    for work in ALL.lines() {
        let cells: Vec<&'static str> = work.split(" | ").collect();
        let [name, arguments, output, ref peer @ ..] = cells[..] else {
            bail!("{work} is no row");
        };
        let program = bench.flame_bpf.display();
        let line = format!("exec '{program}' {arguments} -q -o {output}");
        let mut all = vec![("flame-bpf", line)];
        if let [program, line] = peer {
            all.extend(bench.peer(program, line));
        }
        bench.run_each(folder, &mut table, name, &all)?;
        let written = mebibytes(&folder.join(output))?;
        let written = [("flame-bpf", [written].into_iter().collect())];
        table.compare(&format!("{name}: written"), Unit::Mebibytes, written);
    }
    table.note(
        "CPU time in user and kernel mode from start to end of the process; memory resident in it at its largest.",
    );
    Ok(table)
}

fn mebibytes(path: &Path) -> Result<f64> {
    let file = fs::metadata(path).with_context(|| format!("{} was not written", path.display()))?;
    Ok(file.len() as f64 / f64::from(1 << 20))
}

/// Records this machine, as raw recordings and as pprof of each.
fn record(bench: &Bench, folder: &Path) -> Result<()> {
    fs::create_dir(folder.join("raw"))?;
    let load = bench.programs.loads(0..1)?;
    let program = bench.flame_bpf.display();
    for number in 0..DIFFERENT {
        run(
            &format!(
                "exec '{program}' -a -F 997 -d 1 -q -o raw/{number}.fbpf -o raw/{number}.pb.gz"
            ),
            folder,
        )?;
    }
    drop(load);
    for number in DIFFERENT..RECORDINGS {
        for end in ["fbpf", "pb.gz"] {
            let file = |number: usize| folder.join(format!("raw/{number}.{end}"));
            fs::copy(file(number % DIFFERENT), file(number))?;
        }
    }
    Ok(())
}

fn write_inputs(folder: &Path) -> std::io::Result<()> {
    let file = |name: &str| File::create(folder.join(name)).map(BufWriter::new);
    folded(STACKS, 1, file("one.folded")?)?;
    folded(STACKS, 2, file("other.folded")?)?;
    folded(DEFAULT_STACKS, 1, file("usual.folded")?)?;
    printed(file("in.perf")?)
}

/// Functions of a stack, the root first: each bit of its number tells two callees of one caller apart.
fn frames(stack: u32) -> impl Iterator<Item = u32> {
    (0..DEPTH).map(move |level| {
        let path = u64::from(stack >> (DEPTH - 1 - level)) | 1 << (level + 32);
        Numbers::new(path).below(FUNCTIONS)
    })
}

/// Writes stacks as folded text, each once. Few of them have most of the weight, as programs do; which, the seed says.
fn folded(stacks: u32, seed: u64, mut out: impl Write) -> std::io::Result<()> {
    let mut numbers = Numbers::new(seed);
    for stack in 0..stacks {
        write!(out, "worker{}", stack % 4)?;
        for function in frames(stack) {
            write!(out, ";library::module::name_{function:05}")?;
        }
        let weight = 1 + stacks / (1 + numbers.below(stacks));
        writeln!(out, " {weight}")?;
    }
    out.flush()
}

/// Writes samples as `perf script` prints them, of a tenth as many stacks.
fn printed(mut out: impl Write) -> std::io::Result<()> {
    let mut numbers = Numbers::new(3);
    for sample in 0..PRINTED {
        let stack = numbers.below(PRINTED / 10);
        writeln!(
            out,
            "worker{} {:>7} {}.{:06}:   10101010 cpu-clock:u: ",
            stack % 4,
            1000 + stack % 4,
            sample / 1000,
            sample % 1000 * 1000
        )?;
        let mut all: Vec<u32> = frames(stack).collect();
        all.reverse();
        for function in all {
            writeln!(
                out,
                "\t{:>16x} library::module::name_{function:05}+0x{:x} (/usr/lib/native-linux-gnu/liblibrary.so.1)",
                0x7f00_0000_0000_u64 + u64::from(function) * 64,
                function % 64
            )?;
        }
        writeln!(out)?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn stacks_are_all_different() {
        let mut text = Vec::new();
        folded(DEFAULT_STACKS, 1, &mut text).expect("a vector takes all");
        let text = String::from_utf8(text).expect("it is text");
        let stacks: HashSet<&str> = text
            .lines()
            .filter_map(|line| Some(line.rsplit_once(' ')?.0))
            .collect();
        assert_eq!(stacks.len(), DEFAULT_STACKS as usize);
    }
}
