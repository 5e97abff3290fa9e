//! Cost of writing each format.
//!
//! In: a million samples of a hundred thousand stacks, as folded text, a line for each sample. Out: CPU time and memory to
//! make each format of it, beside what inferno, flamegraph.pl and `go tool pprof` take for theirs. Never looks at the
//! pictures.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result};

use super::Bench;
use super::command::run;
use super::figure::Table;
use super::numbers::Numbers;

/// How many samples there are.
const SAMPLES: u32 = 1_000_000;

/// How many stacks.
const STACKS: u32 = 100_000;

/// How many functions.
const FUNCTIONS: u32 = 6_000;

/// The formats, by what names of their files end in.
const FORMATS: [&str; 9] = [
    "folded",
    "svg",
    "html",
    "txt",
    "pb.gz",
    "otlp",
    "speedscope.json",
    "json.gz",
    "json",
];

/// Takes the section's figures.
pub(super) fn measure(bench: &Bench) -> Result<Table> {
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let folder = folder.path();
    write_samples(&folder.join("in.folded")).context("cannot write samples")?;
    let ours = |input: &str, output: &str| {
        let program = bench.flame_bpf.display();
        format!("exec '{program}' render -q {input} -o {output}")
    };
    run(&ours("in.folded", "in.pb.gz"), folder)?;
    let mut table = Table::new("Writing 1,000,000 samples of 100,000 stacks");
    let inferno = bench.peer("inferno-flamegraph", "inferno-flamegraph in.folded");
    let perl = bench.peer("flamegraph.pl", "flamegraph.pl in.folded");
    let pprof = bench.peer("go", "go tool pprof -proto -output=pprof in.pb.gz");
    for format in FORMATS {
        let line = ours("in.folded", &format!("out.{format}"));
        let mut all = vec![("flame-bpf", line)];
        all.extend(inferno.clone());
        // The others beside what they write, too.
        all.extend(perl.clone().filter(|_| format == "svg"));
        all.extend(pprof.clone().filter(|_| format == "pb.gz"));
        bench.run_each(folder, &mut table, &format!(".{format}"), &all)?;
    }
    table.note(
        "From folded text with a line for each sample; `go tool pprof -proto` from and to pprof. CPU time in user and \
         kernel mode from start to end of the process; memory resident in it at its largest.",
    );
    Ok(table)
}

/// Writes the samples: each stack at least once, and few of them most of the time, as programs are.
fn write_samples(path: &Path) -> Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let mut numbers = Numbers::new(1);
    for sample in 0..SAMPLES {
        let stack = match sample < STACKS {
            true => sample,
            false => numbers.below(numbers.clone().below(STACKS) + 1),
        };
        // Neighbours have their first half in common.
        let mut first = Numbers::new(u64::from(stack / 37) + 1);
        let mut then = Numbers::new(u64::from(stack) + 1_000_000);
        let half = 2 + first.below(9);
        write!(out, "worker{}", stack % 4)?;
        for level in 0..2 * half {
            let numbers = if level < half { &mut first } else { &mut then };
            write!(out, ";fn_{:04}", numbers.below(FUNCTIONS))?;
        }
        out.write_all(b" 1\n")?;
    }
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn there_are_as_many_samples_and_stacks_as_the_table_says() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("in.folded");
        write_samples(&path).expect("it can be written");
        let text = std::fs::read_to_string(path).expect("it is text");
        let stacks: HashSet<&str> = text.lines().collect();
        assert_eq!(text.lines().count(), SAMPLES as usize);
        assert_eq!(stacks.len(), STACKS as usize);
    }
}
