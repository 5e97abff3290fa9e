//! An annotation, from a recording that is made for it if none is named.
//!
//! In: what to annotate. Out: text. The recording lies in a folder of its own, for this user alone, and goes with it.

use super::{Outcome, run};
use crate::pipeline;
use crate::plan::{Annotating, Output, Plan, Recorded};
use anyhow::{Context as _, Result};
use std::path::Path;

/// The annotation; none if there was nothing to record, which has been said.
pub fn annotate(asked: &Annotating) -> Result<Option<String>> {
    let plan = match &asked.recorded {
        Recorded::File(file) => return pipeline::annotate(asked, file).map(Some),
        Recorded::Now(plan) => plan,
    };
    let folder = tempfile::tempdir().context("cannot make a folder for the recording")?;
    let file = folder.path().join("annotated.fbpf");
    run(&writing(plan, &file), || Ok(()))
        .map(|outcome| outcome != Outcome::Done(super::ABORTED) && file.exists())?
        .then(|| pipeline::annotate(asked, &file))
        .transpose()
}

/// The plan with all that it writes in this file.
fn writing(plan: &Plan, file: &Path) -> Plan {
    let mut plan = plan.clone();
    for event in &mut plan.events {
        event.outputs = vec![Output::RawRecording {
            path: file.to_owned(),
        }];
    }
    plan
}
