//! CPU time and memory of a command that runs to its end.
//!
//! In: a command line and a folder to run it in. Out: figures of all its runs. What it prints stays in the folder as `out`.

use std::path::Path;

use anyhow::Result;

use super::command::{Usage, run};
use super::figure::{Figure, Table, Unit};
use super::peer::find;
use super::{Bench, interrupt};

/// CPU time and memory that a command took.
#[derive(Clone)]
pub(super) struct Measured {
    /// As in the tables.
    pub(super) name: &'static str,
    /// In milliseconds.
    pub(super) cpu: Figure,
    /// In MiB.
    pub(super) peak: Figure,
}

impl Measured {
    /// Runs a command as often as is wanted.
    ///
    /// # Errors
    /// When it fails.
    pub(super) fn new(
        bench: &Bench,
        folder: &Path,
        name: &'static str,
        line: &str,
    ) -> Result<Self> {
        let (mut cpu, mut peak) = (Figure::default(), Figure::default());
        for _ in 0..bench.runs {
            interrupt::check()?;
            let Usage {
                cpu_s, peak_mib, ..
            } = run(&format!("{line} > out"), folder)?;
            cpu.add(cpu_s * 1000.0);
            peak.add(peak_mib);
        }
        Ok(Self { name, cpu, peak })
    }

    /// Another program, if it is installed and wanted.
    ///
    /// # Errors
    /// When it fails.
    pub(super) fn peer(
        bench: &Bench,
        folder: &Path,
        name: &'static str,
        line: &str,
    ) -> Result<Option<Self>> {
        match bench.alone || find(name).is_none() {
            true => Ok(None),
            false => Self::new(bench, folder, name, line).map(Some),
        }
    }

    /// Adds CPU time and memory of several, ours first, to a table.
    pub(super) fn compare(table: &mut Table, what: &str, all: &[Self]) {
        let of = |figure: fn(&Self) -> &Figure| {
            let each = all.iter().map(move |one| (one.name, figure(one).clone()));
            each.collect::<Vec<_>>()
        };
        let (cpu, peak) = (format!("{what}: CPU"), format!("{what}: peak"));
        table.compare(&cpu, Unit::Milliseconds, of(|one| &one.cpu));
        table.compare(&peak, Unit::Mebibytes, of(|one| &one.peak));
    }
}
