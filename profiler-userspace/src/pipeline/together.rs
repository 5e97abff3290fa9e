//! Inputs as one profile.
//!
//! In: inputs as they are read. Out: one profile with names, and what there is to say of all. Recordings of one kind are added
//! up before they are named, so that memory and time grow with what is different in them.

use crate::pipeline::pieces::{Content, InputSamples, Told};
use crate::pipeline::symbolize::Symbolizer;
use crate::profile::fold::visible;
use crate::profile::{Merging, Profile};
use crate::raw_recording::{Facts, Merged};
use crate::report::findings::Finding;
use crate::text::number::counted;
use anyhow::{Context as _, Result};

/// Inputs that were read so far.
#[derive(Default)]
pub(super) struct Together {
    told: Vec<(usize, Told)>,
    recordings: Vec<Recordings>,
    profile: Option<Merging>,
}

/// Recordings that count the same, and are shown alike.
struct Recordings {
    facts: Box<Facts>,
    source: Option<String>,
    merged: Merged,
}

impl Together {
    /// Adds an input, by its number among all.
    pub(super) fn add(&mut self, number: usize, piece: InputSamples) -> Result<()> {
        let InputSamples {
            told,
            content,
            source,
        } = piece;
        self.told.push((number, told));
        match content {
            Content::Recording(facts, merged) => {
                self.add_recording(facts, source, merged);
                Ok(())
            }
            Content::Profile(mut profile) => {
                if let Some(source) = source {
                    profile.set_source(&source);
                }
                self.add_profile(profile)
            }
        }
    }

    fn add_recording(&mut self, facts: Box<Facts>, source: Option<String>, merged: Merged) {
        let alike = |known: &&mut Recordings| {
            let of = |facts: &Facts| {
                let Facts { unit, .. } = facts;
                (unit.clone(), facts.off_cpu, facts.activity, facts.period_ns)
            };
            known.source == source && of(&known.facts) == of(&facts)
        };
        match self.recordings.iter_mut().find(alike) {
            Some(known) => {
                known.facts.started = known.facts.started.min(facts.started);
                known.merged.add(merged);
            }
            None => self.recordings.push(Recordings {
                facts,
                source,
                merged,
            }),
        }
    }

    fn add_profile(&mut self, profile: Profile) -> Result<()> {
        match &mut self.profile {
            Some(all) => all.merge(&profile)?,
            None => self.profile = Some(Merging::new(profile)),
        }
        Ok(())
    }

    /// All of them.
    ///
    /// # Errors
    /// When they cannot be shown together.
    pub(super) fn finish(mut self, symbolizer: &Symbolizer<'_>) -> Result<(Profile, Told)> {
        let mut on_names = Vec::new();
        for recordings in std::mem::take(&mut self.recordings) {
            let Recordings {
                facts,
                source,
                merged,
            } = recordings;
            let content = Content::Recording(facts, merged);
            let (profile, findings) = content.named(source.as_deref(), symbolizer);
            on_names.extend(findings);
            self.add_profile(profile)?;
        }
        let profile = self.profile.context("there is no input")?.into_profile();
        self.told.sort_by_key(|(number, _)| *number);
        let mut told = all_told(self.told.into_iter().map(|(_, told)| told));
        told.summary.findings.extend(on_names);
        Ok((profile, told))
    }
}

/// Of more inputs than so many, only what is missing is told of each.
const FEW: usize = 8;

/// Labels of what is missing in an input.
pub(super) const MISSING: [&str; 3] = ["LOST", "MISSING", "not shown"];

/// All that is said of several inputs together.
fn all_told(mut all: impl ExactSizeIterator<Item = Told>) -> Told {
    let others = all.len().saturating_sub(1);
    let mut told = all.next().unwrap_or_default();
    if others == 0 {
        return told;
    }
    told.title = format!("{}, and {others} more", told.title);
    told.summary.title = visible(&told.title).into_owned();
    let findings = &mut told.summary.findings;
    let mut left_out = 0;
    for other in all {
        let mut of_other = other.summary.findings;
        if others >= FEW {
            let all = of_other.len();
            of_other.retain(|finding| MISSING.contains(&&*finding.label));
            left_out += all - of_other.len();
        }
        if others < FEW || !of_other.is_empty() {
            findings.push(Finding::new("and", other.summary.title));
            findings.append(&mut of_other);
        }
        told.about.push_str(&other.about);
        told.missing.push_str(&other.missing);
    }
    if left_out > 0 {
        let (facts, inputs) = (
            counted(left_out as u64, "fact"),
            counted(others as u64, "other input"),
        );
        let text = format!("{facts} that {inputs} say of themselves: render one alone to see them");
        findings.push(Finding::new("left out", text));
    }
    told
}
