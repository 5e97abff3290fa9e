//! One thing on both sides: its change, and how much of that may be noise.
//!
//! In: a thing's weight by window, and its samples. Out: values, their difference, its standard error and probability.
//! Never: a smaller error than independent samples would have; this also covers what one side does not have at all.

use super::series::{Group, Ratio, Series};
use super::student;

/// Meaning of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// A part of everything.
    Share,
    /// Weight for each second.
    Rate,
}

/// Sampling units: drawn at random, each with all its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clusters {
    /// Windows: this says whether the recordings differ, not why.
    Windows,
    /// Recordings: this sees what differs from run to run.
    Recordings,
    /// Single samples, as if they were independent, which they are not.
    Samples,
}

/// Both sides of a comparison.
#[derive(Clone, Debug)]
pub struct Sides {
    /// Series before, and after.
    pub series: [Series; 2],
    /// Meaning of their values.
    pub measure: Measure,
    /// Sampling units.
    pub clusters: Clusters,
    recordings: [Vec<Group>; 2],
}

/// A thing on both sides.
#[derive(Clone, Copy, Debug)]
pub struct Thing<'a> {
    /// Its weight in each window of a side.
    pub values: [&'a [f64]; 2],
    /// How many samples it has on each side.
    pub samples: [u64; 2],
}

/// A thing's change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Its share or rate, before and after.
    pub values: [f64; 2],
    /// How many samples there are of it, before and after.
    pub samples: [u64; 2],
    /// The standard error of the difference.
    pub error: f64,
    /// The degrees of freedom of that.
    pub freedom: f64,
}

impl Estimate {
    /// The difference.
    pub fn change(&self) -> f64 {
        self.values[1] - self.values[0]
    }

    /// How probable at least such a difference is where nothing changed.
    pub fn p(&self) -> f64 {
        let change = self.change();
        match (change.abs() > 0.0, self.error > 0.0) {
            (false, _) => 1.0,
            (true, false) => 0.0,
            (true, true) => student::two_sided(change / self.error, self.freedom),
        }
    }

    /// Half of the width of the interval around the difference that leaves out `alpha`.
    pub fn half_width(&self, alpha: f64) -> f64 {
        student::quantile(alpha, self.freedom) * self.error
    }
}

impl Sides {
    /// Sides of what is measured so; what is drawn follows from how many recordings there are, and what they say.
    pub fn new(series: [Series; 2], measure: Measure) -> Self {
        let clusters = match [series[0].count(), series[1].count()] {
            [1, 1] if series.iter().all(Series::varies) => Clusters::Windows,
            [1, 1] => Clusters::Samples,
            _ => Clusters::Recordings,
        };
        let recordings = [series[0].recordings(), series[1].recordings()];
        Self {
            series,
            measure,
            clusters,
            recordings,
        }
    }

    /// Whether it can be said what is noise.
    pub fn can_tell(&self) -> bool {
        self.clusters != Clusters::Samples
    }

    /// A thing's change.
    pub fn estimate(&self, thing: Thing<'_>) -> Estimate {
        let totals = [0, 1].map(|side| self.series[side].total().max(f64::MIN_POSITIVE));
        let sums = thing.values.map(|values| values.iter().sum::<f64>());
        let values = [0, 1].map(|side| sums[side] / totals[side]);
        let floors = self.floors(sums, totals, thing.samples);
        let (error, freedom) = match self.clusters {
            Clusters::Samples => ((floors[0] + floors[1]).sqrt(), f64::INFINITY),
            Clusters::Windows => both([0, 1].map(|side| self.widest(side, thing, floors[side]))),
            Clusters::Recordings => self.run_to_run(thing, floors),
        };
        Estimate {
            values,
            samples: thing.samples,
            error,
            freedom,
        }
    }

    /// The variances that independent samples would have.
    fn floors(&self, sums: [f64; 2], totals: [f64; 2], samples: [u64; 2]) -> [f64; 2] {
        let pooled = (sums[0] + sums[1]) / (totals[0] + totals[1]);
        let count = (samples[0] + samples[1]).max(1) as f64;
        let usual = (sums[0] + sums[1]) / count;
        [0, 1].map(|side| match self.measure {
            Measure::Share => {
                let all = self.series[side].samples().max(1.0);
                (pooled * (1.0 - pooled)).max(0.0) / all
            }
            // Arrivals at random, each of the usual weight.
            Measure::Rate => pooled * usual / totals[side],
        })
    }

    /// The largest variance over all lengths of windows.
    fn widest(&self, side: usize, thing: Thing<'_>, floor: f64) -> Ratio {
        let lengths = self.series[side].lengths().iter();
        let ratios = lengths.filter_map(|groups| Ratio::of(groups, thing.values[side]));
        let widest = ratios.max_by(|a, b| a.variance.total_cmp(&b.variance));
        at_least(widest, floor)
    }

    /// From how recordings of a side differ. One that is alone is taken to vary as those of the other side do.
    fn run_to_run(&self, thing: Thing<'_>, floors: [f64; 2]) -> (f64, f64) {
        let ratios = [0, 1].map(|side| Ratio::of(&self.recordings[side], thing.values[side]));
        let alone = |many: Ratio, one: usize| {
            let recordings = self.recordings[1 - one].len() as f64;
            let many = at_least(Some(many), floors[1 - one]);
            let within = match self.series[one].varies() {
                true => self.widest(one, thing, floors[one]).variance,
                false => floors[one],
            };
            let one = (many.variance * recordings).max(within);
            ((many.variance + one).sqrt(), many.freedom)
        };
        match ratios {
            [Some(_), Some(_)] => both([0, 1].map(|side| at_least(ratios[side], floors[side]))),
            [Some(many), None] => alone(many, 1),
            [None, Some(many)] => alone(many, 0),
            // All but one recording of each side are empty.
            [None, None] => ((floors[0] + floors[1]).sqrt(), 1.0),
        }
    }
}

fn at_least(ratio: Option<Ratio>, floor: f64) -> Ratio {
    match ratio {
        Some(ratio) => Ratio {
            variance: ratio.variance.max(floor),
            ..ratio
        },
        None => Ratio {
            variance: floor,
            freedom: 1.0,
        },
    }
}

/// The standard error of a difference, and its degrees of freedom after Welch and Satterthwaite.
fn both([a, b]: [Ratio; 2]) -> (f64, f64) {
    let variance = a.variance + b.variance;
    let parts = a.variance.powi(2) / a.freedom + b.variance.powi(2) / b.freedom;
    let freedom = match parts > 0.0 {
        true => variance.powi(2) / parts,
        false => a.freedom + b.freedom,
    };
    (variance.sqrt(), freedom)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(windows: usize, each: f64) -> Sides {
        let series = Series::new(&[vec![each; windows]], (each * windows as f64) as u64);
        Sides::new([series.clone(), series], Measure::Share)
    }

    fn thing<'a>(values: [&'a [f64]; 2]) -> Thing<'a> {
        Thing {
            values,
            samples: values.map(|values| values.iter().sum::<f64>() as u64),
        }
    }

    #[test]
    fn what_is_steady_and_changes_is_no_noise() {
        let sides = sides(20, 1000.0);
        let estimate = sides.estimate(thing([&[100.0; 20], &[130.0; 20]]));
        assert!((estimate.change() - 0.03).abs() < 1e-12);
        assert!(estimate.p() < 1e-6, "{estimate:?}");
        let half = estimate.half_width(0.05);
        assert!((0.004..0.008).contains(&half), "{half}");
    }

    #[test]
    fn the_error_is_never_that_of_fewer_doubts_than_independent_samples_leave() {
        let sides = sides(20, 50.0);
        // It is not there before, so its variance between windows is 0 then.
        let estimate = sides.estimate(thing([&[0.0; 20], &[0.5; 20]]));
        let pooled: f64 = 0.005;
        let floor = (pooled * (1.0 - pooled) * 2.0 / 1000.0).sqrt();
        assert!((estimate.error - floor).abs() < 1e-12, "{estimate:?}");
        let same = sides.estimate(thing([&[0.5; 20], &[0.5; 20]]));
        assert!((same.p() - 1.0).abs() < 1e-12 && same.error > 0.0);
    }

    #[test]
    fn what_comes_in_bursts_is_noise() {
        let sides = sides(20, 1000.0);
        let (mut a, mut b) = ([0.0; 20], [0.0; 20]);
        a[3] = 900.0;
        b[5] = 900.0;
        b[6] = 900.0;
        let estimate = sides.estimate(thing([&a, &b]));
        assert!(estimate.p() > 0.2, "{estimate:?}");
    }

    #[test]
    fn few_windows_leave_independent_samples_and_no_claim() {
        assert!(!sides(9, 1000.0).can_tell());
        assert!(sides(10, 1000.0).can_tell());
    }

    #[test]
    fn one_recording_against_several_varies_as_these_do() {
        let many = vec![vec![1e6], vec![1e6], vec![1e6], vec![1e6]];
        let series = [
            Series::new(&many, 4_000_000),
            Series::new(&many[..1], 1_000_000),
        ];
        let sides = Sides::new(series, Measure::Share);
        assert_eq!(sides.clusters, Clusters::Recordings);
        let runs = [1.00e5, 1.02e5, 0.98e5, 1.00e5];
        let close = sides.estimate(thing([&runs, &[1.03e5]]));
        assert!(close.p() > 0.05, "{close:?}");
        assert!((close.freedom - 3.0).abs() < 1e-9);
        let far = sides.estimate(thing([&runs, &[1.3e5]]));
        assert!(far.p() < 0.01, "{far:?}");
    }

    #[test]
    fn rates_are_compared_where_loads_differ() {
        let series = |seconds: f64| Series::new(&[vec![seconds; 20]], 2000);
        let sides = Sides::new([series(1.0), series(2.0)], Measure::Rate);
        let estimate = sides.estimate(thing([&[100.0; 20], &[200.0; 20]]));
        assert!(estimate.change().abs() < 1e-9, "{estimate:?}");
        assert!((estimate.values[0] - 100.0).abs() < 1e-9);
    }
}
