//! What it takes to make unwind tables of a program's objects and to put them into the kernel.
//!
//! In: programs with small and with very large libraries. Out: the time from their files to tables in the kernel, rows a
//! second, and bytes a row, as flame-bpf itself tells them.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::figure::{Figure, Table, Unit};
use super::{Bench, interrupt};

/// What is run, and what is large about it. rustc itself, and not the chooser of toolchains that may be found under its
/// name.
fn commands() -> Result<[(&'static str, Vec<String>); 3]> {
    let asked = Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()
        .context("cannot start rustc")?;
    let rustc = format!(
        "{}/bin/rustc",
        String::from_utf8_lossy(&asked.stdout).trim()
    );
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    Ok([
        ("true", words(&["/bin/true"])),
        ("python3", words(&["python3", "-c", "pass"])),
        (
            "rustc (libLLVM, librustc_driver)",
            vec![rustc, "--version".to_owned()],
        ),
    ])
}

/// What flame-bpf reports of the tables of one recording.
struct Report {
    rows: f64,
    bytes: f64,
    milliseconds: f64,
}

/// Takes the section's figures.
pub(super) fn measure(bench: &Bench) -> Result<Table> {
    let mut table = Table::new("From files to unwind tables in the kernel");
    for (name, command) in commands()? {
        let (mut time, mut each) = (Figure::default(), Figure::default());
        let mut last = None;
        for _ in 0..bench.runs {
            let report = record(bench, &command)?;
            time.add(report.milliseconds);
            each.add(report.milliseconds * 1e6 / report.rows);
            last = Some(report);
        }
        let Some(report) = last else { continue };
        table.compare(name, Unit::Milliseconds, [("", time)]);
        table.compare(
            &format!("{name}: each row"),
            Unit::Nanoseconds,
            [("", each)],
        );
        table.note(format!(
            "{name}: {} rows in slabs of {:.1} MiB together, {:.2} million rows a second.",
            report.rows,
            report.bytes / f64::from(1 << 20),
            report.rows / report.milliseconds / 1000.0,
        ));
    }
    Ok(table)
}

fn record(bench: &Bench, command: &[String]) -> Result<Report> {
    interrupt::check()?;
    let done = Command::new(&bench.flame_bpf)
        .args(["-v", "-F", "997", "-o", "/dev/null", "--"])
        .args(command)
        .stdin(Stdio::null())
        .output()
        .context("cannot start flame-bpf")?;
    let text = String::from_utf8_lossy(&done.stderr);
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("unwind tables: "))
        .with_context(|| format!("flame-bpf said nothing of unwind tables, but: {text}"))?;
    // Such as `6 of objects, 70,264 rows, 1,048,576 bytes in the kernel, made in 28.3 ms; …`.
    let number = |before: &str| -> Option<f64> {
        let (head, _) = line.split_once(before)?;
        let digits: String = head
            .rsplit(' ')
            .next()?
            .chars()
            .filter(|letter| *letter != ',')
            .collect();
        digits.parse().ok()
    };
    let report = Report {
        rows: number(" rows").context("no number of rows")?,
        bytes: number(" bytes").context("no number of bytes")?,
        milliseconds: number(" ms").context("no time")?,
    };
    ensure!(report.rows > 0.0, "no rows were made: {line}");
    Ok(report)
}
