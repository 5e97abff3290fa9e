//! The third step: how a profile is shown.
//!
//! In: a symbolized profile, and what was asked for. Out: the same weights, on stacks that end where readers expect it, and
//! the style of its graphs. Never: chooses by anything but what the profile itself says.

use crate::output::{Palette, Style};
use crate::probe;
use crate::profile::{OffCpuView, Origin, Profile, off_cpu};

/// The profile as outputs show it.
pub(crate) fn viewed(mut profile: Profile, origin: Origin, view: Option<OffCpuView>) -> Profile {
    profile.origin = origin;
    match view {
        Some(view) => off_cpu::view(profile, view),
        None => profile,
    }
}

/// How outputs look: as asked, and else as suits the profile.
pub(crate) fn style(
    asked: &Style,
    colors: Option<Palette>,
    (title, notes): (String, String),
    profile: &Profile,
) -> Style {
    let view = probe::View::from(profile);
    let subtitle = || view.subtitle().map(str::to_owned);
    Style {
        title,
        notes,
        colors: colors.unwrap_or(view.palette()),
        subtitle: asked.subtitle.clone().or_else(subtitle),
        ..asked.clone()
    }
}
