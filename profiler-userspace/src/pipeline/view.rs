//! The third step: how a profile is shown.
//!
//! In: a symbolized profile, and what was asked for. Out: the same weights, on stacks that end where readers expect it, and
//! the style of its graphs. Never: chooses by anything but what the profile itself says.

use crate::output::{Palette, Style};
use crate::probe;
use crate::profile::{OffCpuView, Origin, Profile, Unit, off_cpu};

/// The profile as outputs show it.
pub(crate) fn viewed(mut profile: Profile, origin: Origin, view: Option<OffCpuView>) -> Profile {
    profile.origin = origin;
    match view {
        Some(view) => off_cpu::view(profile, view),
        None => profile,
    }
}

/// Everything that lasts is counted when it is over.
const ENDS: &str = "what lasted stands in the window in which it ended";

/// How outputs look: as asked, and else as suits the profile.
pub(crate) fn style(
    asked: &Style,
    colors: Option<Palette>,
    (title, notes): (String, String),
    profile: &Profile,
) -> Style {
    let view = probe::View::from(profile);
    let in_chart = (asked.chart && profile.unit == Unit::Nanoseconds).then_some(ENDS);
    let subtitle = || {
        let all: Vec<&str> = view.subtitle().into_iter().chain(in_chart).collect();
        (!all.is_empty()).then(|| all.join("; "))
    };
    Style {
        title,
        notes,
        colors: colors.unwrap_or(view.palette()),
        subtitle: asked.subtitle.clone().or_else(subtitle),
        ..asked.clone()
    }
}
