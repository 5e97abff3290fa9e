//! Selection of the part of a profile that is shown, between names and looks.
//!
//! In: a profile as it is viewed, and what is wanted of it. Out: that, and what was left out and why, for the summary.
//! Nothing is left out without being said.

use crate::profile::fold::visible;
use crate::profile::select::{LeftOut, Pattern, Reason, Selected, Selection, Who};
use crate::profile::{Profile, Unit};
use crate::report::findings::Finding;
use crate::text::number::{amount, share};
use anyhow::{Result, ensure};

/// The wanted part of a profile, and what there is to say of the rest.
///
/// # Errors
/// When nothing is left, or owners are named by labels that the profile does not have.
pub(crate) fn select(profile: Profile, selection: &Selection) -> Result<(Profile, Vec<Finding>)> {
    if selection.is_all() {
        return Ok((profile, Vec::new()));
    }
    let (unit, all) = (profile.unit.clone(), profile.total_weight());
    let Selected {
        profile,
        left_out,
        hidden,
    } = selection.of(profile)?;
    let left_out: Vec<String> = left_out
        .iter()
        .map(|left_out| described(left_out, selection, &unit, all))
        .collect();
    ensure!(
        !profile.samples().is_empty(),
        "nothing is left to show: {}",
        left_out.join("; ")
    );
    let kept = profile.total_weight();
    let mut findings = vec![Finding::new(
        "shown",
        format!(
            "{} of {}",
            weighed(&unit, kept, all),
            amount(unit.shown(all), unit.noun())
        ),
    )];
    findings.extend(
        left_out
            .into_iter()
            .map(|text| Finding::new("not shown", text)),
    );
    if hidden > 0 {
        let (weight, patterns) = (weighed(&unit, hidden, all), patterns(&selection.hide));
        let text = format!("frames in stacks of {weight}: --hide {patterns}");
        findings.push(Finding::new("hidden", text));
    }
    Ok((profile, findings))
}

/// `12 samples (3.4%)`.
fn weighed(unit: &Unit, weight: u64, all: u64) -> String {
    format!(
        "{} ({})",
        amount(unit.shown(weight), unit.noun()),
        share(weight as f64, all as f64)
    )
}

fn described(left_out: &LeftOut, selection: &Selection, unit: &Unit, all: u64) -> String {
    let why = match left_out.reason {
        Reason::Process => format!("not of --process {}", owners(&selection.processes)),
        Reason::Thread => format!("not of --thread {}", owners(&selection.threads)),
        Reason::Cpu => {
            let cpus: Vec<_> = selection.cpus.iter().map(ToString::to_string).collect();
            format!("not of --cpu {}", cpus.join(","))
        }
        Reason::Cgroup => {
            let wanted = selection.cgroups.iter();
            let wanted: Vec<_> = wanted
                .map(|it| visible(&it.to_string()).into_owned())
                .collect();
            format!("not in {}", wanted.join(" or "))
        }
        Reason::Focus => format!("no frame matches --focus {}", patterns(&selection.focus)),
        Reason::Ignore => format!("a frame matches --ignore {}", patterns(&selection.ignore)),
        Reason::RootAt => format!(
            "no frame matches --root-at {}",
            patterns(&selection.root_at)
        ),
        Reason::Native => "no frame is of a runtime, which --runtime-only asks for".to_owned(),
    };
    format!("{}: {why}", weighed(unit, left_out.weight, all))
}

fn patterns(patterns: &[Pattern]) -> String {
    let texts: Vec<_> = patterns
        .iter()
        .map(|pattern| visible(pattern.text()))
        .collect();
    texts.join(" or ")
}

fn owners(owners: &[Who]) -> String {
    let name = |who: &Who| match who {
        Who::Id(id) => id.to_string(),
        Who::Name(pattern) => visible(pattern.name()).into_owned(),
    };
    let names: Vec<_> = owners.iter().map(name).collect();
    names.join(" or ")
}
