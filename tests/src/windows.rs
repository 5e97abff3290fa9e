//! Profiles that are divided into windows.

use std::time::Duration;

use flame_bpf::profile::{Profile, Sample, Window, WindowIndex, WindowTotals};

/// The same profile, each of whose samples, in their order, is of the window that `window_of` says of its place. There are
/// `count` windows, each so long.
pub fn in_windows(
    mut profile: Profile,
    count: u32,
    length: Duration,
    window_of: impl Fn(usize) -> u32,
) -> Profile {
    let samples = profile.samples().to_vec();
    profile.clear();
    for (place, sample) in samples.into_iter().enumerate() {
        let window = WindowIndex(window_of(place));
        profile.push(Sample { window, ..sample });
    }
    let totals = |number| WindowTotals {
        window: Window {
            start: length * number,
            end: length * (number + 1),
        },
        ..WindowTotals::default()
    };
    profile.windows = (0..count).map(totals).collect();
    profile.window.end = length * count;
    profile
}
