//! The law by which a recording keeps to what it may cost.
//!
//! In: what each step cost, and what it may. Out: the rate of the next step, as a share of the rate that was asked for. Pure.
//!
//! The rate goes down as far as it takes in one step, and up slowly. Between four fifths of what may be spent and all of it, it stays.
//! CPU time that was spent too much in one step is saved in the next ones, so that the sum is kept and not only the last step; time
//! that was not spent may be spent within [`MEMORY_S`].

/// For so long CPU time that was not spent is kept, and within so long too much of it is saved again, in seconds.
const MEMORY_S: f64 = 5.0;

/// No more than was due in so many seconds is ever saved again: what one burst took may not keep the rate down for hours.
const MOST_SAVED_S: f64 = 60.0;

/// The rate falls to no less than this share of itself in a step.
const STEEPEST_FALL: f64 = 0.25;

/// The rate rises to no more than this multiple of itself in a step.
const STEEPEST_RISE: f64 = 1.25;

/// From this share of what may be spent on, the rate does not rise.
const ENOUGH: f64 = 0.8;

/// A change by less than this share is not worth one.
const LEAST_CHANGE: f64 = 0.05;

/// The control of one recording's rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Control {
    /// CPU seconds that may be spent in a second.
    budget: f64,
    /// The least rate.
    floor: f64,
    /// The rate now: above 0, at most 1.
    rate: f64,
    /// CPU seconds that were spent beyond the budget; below 0 those that are left.
    debt: f64,
}

/// CPU time that a step took, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// The part that goes with the rate.
    pub scaling: f64,
    /// The part that does not, such as reading the unwind tables of programs that were not seen before.
    pub fixed: f64,
}

impl Control {
    /// At the full rate. `budget`: CPU seconds a second; `floor`: the least rate, of the full one.
    pub fn new(budget: f64, floor: f64) -> Self {
        Self {
            budget,
            floor: floor.clamp(f64::MIN_POSITIVE, 1.0),
            rate: 1.0,
            debt: 0.0,
        }
    }

    /// The rate now, as a share of the full one.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Takes in what a step of `seconds` took; returns the rate from now on if it is another. `may_change`: whether the last change
    /// is long enough ago for one.
    pub fn step(&mut self, spent: Spent, seconds: f64, may_change: bool) -> Option<f64> {
        let may_spend = self.budget * seconds;
        let kept = self.budget * MEMORY_S;
        let debt = self.debt + spent.scaling + spent.fixed - may_spend;
        self.debt = debt.clamp(-kept, self.budget * MOST_SAVED_S);
        // A debt is paid back in time, but what is left is for bursts, not for a higher rate.
        let repaid = self.debt.max(0.0) * seconds / MEMORY_S;
        let allowed = (may_spend - repaid).max(0.0);
        let wanted = self.wanted(spent.scaling, allowed);
        let wanted = wanted.clamp(self.floor, 1.0);
        let is_end = wanted == self.floor || wanted == 1.0;
        let change = (wanted - self.rate).abs();
        if !may_change || change == 0.0 || (!is_end && change < LEAST_CHANGE * self.rate) {
            return None;
        }
        self.rate = wanted;
        Some(wanted)
    }

    fn wanted(&self, scaling: f64, allowed: f64) -> f64 {
        if scaling > allowed {
            self.rate * (allowed / scaling).max(STEEPEST_FALL)
        } else if scaling < allowed * ENOUGH {
            let middle = allowed * f64::midpoint(ENOUGH, 1.0);
            self.rate * (middle / scaling).min(STEEPEST_RISE)
        } else {
            self.rate
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A machine on which a second at the full rate takes so long, and so long whatever the rate.
    fn run(control: &mut Control, seconds: usize, full: f64, fixed: f64) -> Vec<f64> {
        let step = |_| {
            let scaling = full * control.rate();
            control.step(Spent { scaling, fixed }, 1.0, true);
            scaling + fixed
        };
        (0..seconds).map(step).collect()
    }

    proptest! {
        #[test]
        fn the_rate_keeps_to_its_bounds_in_bounded_steps(
            budget in 0.001..0.5f64,
            floor in 0.0001..0.5f64,
            steps in prop::collection::vec((0.0..2.0f64, 0.0..2.0f64, 0.1..3.0f64, any::<bool>()), 1..60),
        ) {
            let mut control = Control::new(budget, floor);
            for (scaling, fixed, seconds, may_change) in steps {
                let before = control.rate();
                let said = control.step(Spent { scaling, fixed }, seconds, may_change);
                let rate = control.rate();
                prop_assert_eq!(said, (rate != before).then_some(rate));
                prop_assert!(rate >= floor && rate <= 1.0);
                prop_assert!(rate >= before * STEEPEST_FALL * 0.999 || rate == floor);
                prop_assert!(rate <= before * STEEPEST_RISE * 1.001);
                prop_assert!(may_change || rate == before);
                if may_change && scaling > budget * seconds * (1.0 + LEAST_CHANGE) {
                    prop_assert!(rate < before || rate == floor, "{} {}", before, rate);
                }
            }
        }

        #[test]
        fn whatever_the_machine_the_budget_is_kept_and_the_rate_comes_to_rest(
            budget in 0.002..0.2f64,
            full in 0.0..3.0f64,
            share in 0.0..0.6f64,
        ) {
            let mut control = Control::new(budget, 1e-6);
            // The first second takes what it takes, and no more than a minute saves it.
            run(&mut control, 200, full, budget * share);
            let after = run(&mut control, 100, full, budget * share);
            let mean = after.iter().sum::<f64>() / 100.0;
            prop_assert!(mean <= budget * 1.05, "{} of {}", mean, budget);
            // It does not waste half of what it may spend.
            prop_assert!(mean >= budget * 0.5 || control.rate() == 1.0, "{} of {}", mean, budget);
            let changes = after.windows(2).filter(|pair| pair[0] != pair[1]);
            prop_assert!(changes.count() <= 10, "{:?}", after);
        }

        #[test]
        fn an_idle_machine_does_not_drive_the_rate(budget in 0.001..0.1f64, idle in 0..600usize) {
            let mut control = Control::new(budget, 0.001);
            run(&mut control, idle, budget * 0.05, 0.0);
            prop_assert_eq!(control.rate(), 1.0);
            // However long it was idle, a burst is answered within seconds.
            let busy = run(&mut control, 10, budget * 20.0, 0.0);
            prop_assert!(busy[9] <= budget, "{:?}", busy);
        }

        #[test]
        fn a_burst_is_saved_again(budget in 0.005..0.1f64, burst in 1.0..20.0f64) {
            let mut control = Control::new(budget, 1e-6);
            let mut all = run(&mut control, 5, budget * 0.9, 0.0);
            all.extend(run(&mut control, 1, budget * 0.9, budget * burst));
            let long = 20 * burst as usize + 40;
            all.extend(run(&mut control, long, budget * 0.9, 0.0));
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            prop_assert!(mean <= budget, "{} of {}", mean, budget);
        }
    }

    #[test]
    fn a_cost_near_the_budget_changes_nothing() {
        let mut control = Control::new(0.01, 0.01);
        for spent in [0.008, 0.0099, 0.0085, 0.01] {
            let spent = Spent {
                scaling: spent,
                fixed: 0.0,
            };
            assert_eq!(control.step(spent, 1.0, true), None);
        }
    }
}
