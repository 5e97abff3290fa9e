//! Profiles of other tools, and what there is to say of them.
//!
//! In: an input of another tool. Out: a profile and findings, or an error that names the input.

#[cfg(test)]
mod tests;

use crate::input::{self, Error, File, ReadOptions, Reading};
use crate::profile::Profile;
use crate::profile::fold::visible;
use crate::report::findings::{Finding, Summary};
use crate::store::Table;
use crate::text::number::{amount, counted};
use anyhow::Result;
use std::fs;

/// A profile of another tool, and what there is to say of it.
pub(crate) struct Foreign {
    pub(crate) profile: Profile,
    pub(crate) summary: Summary,
    /// Where it comes from, a fact to a line.
    pub(crate) about: String,
}

/// Reads an input of that name.
pub(crate) fn read(name: &str, file: File<'_>, options: &ReadOptions<'_>) -> Result<Foreign> {
    let kind = file.kind.name;
    let reading = file
        .read(options)
        .map_err(|error| unreadable(name, kind, error))?;
    Ok(told(name, kind, reading))
}

/// Reads the tables of a folder of that name as one input. None is in memory with another.
pub(crate) fn read_tables(
    name: &str,
    tables: &[Table],
    options: &ReadOptions<'_>,
) -> Result<Foreign> {
    let mut open = |number: usize| Ok(fs::read(&tables[number].path)?.into());
    let reading = input::read_files(tables.len(), &mut open, options);
    let reading = reading.map_err(|(number, error)| {
        let name = tables[number].path.display().to_string();
        unreadable(&visible(&name), TABLES, error)
    })?;
    Ok(told(name, TABLES, reading))
}

/// The kind of tables in sentences.
const TABLES: &str = "Parquet";

/// An error with the name of the input that it is of, and how that was read.
fn unreadable(name: &str, kind: &str, error: Error) -> anyhow::Error {
    let what = match &error {
        Error::Unknown(_) => format!("cannot read {name}"),
        _ => format!("cannot read {name}: read as {kind}"),
    };
    anyhow::Error::new(error).context(what)
}

fn told(name: &str, kind: &str, Reading { profile, notes }: Reading) -> Foreign {
    let weight = profile.unit.shown(profile.total_weight());
    let recorded = format!(
        "{kind}: {} in {}",
        amount(weight, &visible(profile.unit.noun())),
        counted(profile.samples().len() as u64, "sampled stack")
    );
    let title = visible(name).into_owned();
    let mut comments = title.clone();
    let mut findings = vec![Finding::new("input", recorded)];
    for (label, text) in notes {
        match label {
            // Those that we wrote are findings.
            "comment" => comments = comments + "\n" + &text,
            label => findings.push(Finding::new(label, visible(&text))),
        }
    }
    findings.extend(Summary::parse(&comments).findings);
    Foreign {
        profile,
        about: format!("input: {title} is {kind}\n"),
        summary: Summary { title, findings },
    }
}
