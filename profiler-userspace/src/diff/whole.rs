//! Everything that was counted on both sides, for each second.
//!
//! In: profiles with windows. Out: by how much their whole changed, and whether that is beyond noise; whatever is compared,
//! this is never a share. Nothing where nobody knows how long a recording took.

use super::model::{Quantity, Verdict};
use super::rows::{base, factors, quantity_of_time};
use super::stats::ALPHA;
use super::stats::estimate::{Estimate, Measure, Sides, Thing};
use super::stats::series::Series;
use crate::profile::{Profile, Unit};

/// Change of everything.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Whole {
    /// Quantity of the values: for each second.
    pub quantity: Quantity,
    /// Values of both sides, and their error.
    pub estimate: Estimate,
    /// Verdict on the change: more, less, noise, or no claim.
    pub verdict: Verdict,
}

impl Whole {
    /// By how much it grew, as a part of what it was before, and between what that lies.
    pub fn relative(&self) -> Option<[f64; 3]> {
        let before = self.estimate.values[0];
        let (change, half) = (self.estimate.change(), self.estimate.half_width(ALPHA));
        (before > 0.0).then(|| [change, change - half, change + half].map(|value| value / before))
    }
}

/// That of both sides, which have times.
pub(super) fn whole(profiles: &[Vec<Profile>; 2], unit: &Unit) -> Whole {
    let quantity = quantity_of_time(profiles.iter().flatten(), unit);
    let series = [0, 1].map(|side| {
        let lengths: Vec<Vec<f64>> = (profiles[side].iter())
            .map(|profile| base(profile, quantity))
            .collect();
        let samples = profiles[side].iter().map(Profile::total_count).sum();
        Series::new(&lengths, samples)
    });
    let sides = Sides::new(series, Measure::Rate);
    let values = [0, 1].map(|side| -> Vec<f64> {
        let of_profile = |profile: &Profile| {
            let mut weights = vec![0.0; profile.windows.len()];
            for sample in profile.samples() {
                weights[sample.window.0 as usize] += sample.weight as f64;
            }
            let factors = factors(profile, unit, quantity);
            let scaled = weights.into_iter().zip(factors);
            scaled
                .map(|(weight, factor)| weight * factor)
                .collect::<Vec<f64>>()
        };
        profiles[side].iter().flat_map(of_profile).collect()
    });
    let estimate = sides.estimate(Thing {
        values: [&values[0], &values[1]],
        samples: [0, 1].map(|side| profiles[side].iter().map(Profile::total_count).sum()),
    });
    let verdict = match (sides.can_tell(), estimate.p() < ALPHA) {
        (false, _) => Verdict::NoClaim,
        (true, false) => Verdict::Noise,
        (true, true) if estimate.change() > 0.0 => Verdict::More,
        (true, true) => Verdict::Less,
    };
    Whole {
        quantity,
        estimate,
        verdict,
    }
}
