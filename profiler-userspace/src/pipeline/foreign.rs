//! Profiles of other tools, and what there is to say of them.
//!
//! In: an input of another tool. Out: a profile and findings, or an error that names the input.

#[cfg(test)]
mod tests;

use crate::input::{Error, File, Reading, Wanted};
use crate::profile::Profile;
use crate::profile::fold::visible;
use crate::report::findings::{Finding, Summary};
use crate::text::number::{amount, counted};
use anyhow::{Context as _, Result};

/// A profile of another tool, and what there is to say of it.
pub(crate) struct Foreign {
    pub(crate) profile: Profile,
    pub(crate) summary: Summary,
    /// Where it comes from, a fact to a line.
    pub(crate) about: String,
}

/// Reads an input of that name.
pub(crate) fn read(name: &str, file: File<'_>, wanted: &Wanted<'_>) -> Result<Foreign> {
    let kind = file.kind;
    let reading = file.read(wanted);
    let what = match &reading {
        Err(Error::Unknown(_)) => format!("cannot read {name}"),
        _ => format!("cannot read {name}: read as {}", kind.name()),
    };
    let Reading { profile, notes } = reading.context(what)?;
    let weight = profile.unit.shown(profile.total_weight());
    let recorded = format!(
        "{}: {} in {}",
        kind.name(),
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
    Ok(Foreign {
        profile,
        about: format!("input: {title} is {}\n", kind.name()),
        summary: Summary { title, findings },
    })
}
