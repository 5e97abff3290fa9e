//! The law by which a recording keeps to what it may cost.
//!
//! In: what each event cost in a step and what goes with none of them, and what all may. Out: the rate of each event in the next step, as
//! a share of the rate that was asked for. Pure.
//!
//! A rate goes down as far as it takes in one step, and up slowly. Between four fifths of what may be spent and all of it, it stays.
//! CPU time that was spent too much in one step is saved in the next ones, so that the sum is kept and not only the last step; time
//! that was not spent may be spent within [`MEMORY_S`].
//!
//! Events have equal parts, and what one does not need is for the others: so a cheap one keeps its rate beside an expensive one. What goes
//! with no rate is saved on them only as far as [`RATES_SHARE`] allows: at the lowest rates it would cost the same.

/// For so long CPU time that was not spent is kept, and within so long too much of it is saved again, in seconds.
const MEMORY_S: f64 = 5.0;

/// No more than was due in so many seconds is ever saved again: what one burst took may not keep the rate down for hours.
const MAX_SAVED_S: f64 = 60.0;

/// The rate falls to no less than this share of itself in a step.
const STEEPEST_FALL: f64 = 0.25;

/// The rate rises to no more than this multiple of itself in a step.
const STEEPEST_RISE: f64 = 1.25;

/// From this share of what may be spent on, the rate does not rise.
const ENOUGH: f64 = 0.8;

/// A change by less than this share is not worth one.
const MIN_CHANGE: f64 = 0.05;

/// So much of what may be spent is left to the rates, whatever all else takes.
pub const RATES_SHARE: f64 = 0.5;

/// The control of one recording's rates.
#[derive(Clone, Debug, PartialEq)]
pub struct Control {
    /// CPU seconds that may be spent in a second.
    budget: f64,
    rates: Vec<Rate>,
    /// CPU seconds that were spent beyond the budget; below 0 those that are left.
    debt: f64,
}

/// The rate of one event.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rate {
    /// The least one.
    floor: f64,
    /// Now: above 0, at most 1.
    now: f64,
}

/// Cost of an event in a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spent {
    /// CPU time that goes with its rate, in seconds.
    pub seconds: f64,
    /// Whether its last change is long enough ago for another.
    pub may_change: bool,
}

impl Control {
    /// At the full rates. `budget`: CPU seconds a second; `floors`: the least rate of each event, of its full one.
    pub fn new(budget: f64, floors: impl IntoIterator<Item = f64>) -> Self {
        let rate = |floor: f64| Rate {
            floor: floor.clamp(f64::MIN_POSITIVE, 1.0),
            now: 1.0,
        };
        Self {
            budget,
            rates: floors.into_iter().map(rate).collect(),
            debt: 0.0,
        }
    }

    /// The rates now, each as a share of the full one.
    pub fn rates(&self) -> Vec<f64> {
        self.rates.iter().map(|rate| rate.now).collect()
    }

    /// Whether each event has its least rate.
    pub fn is_at_its_least(&self) -> bool {
        self.rates.iter().all(|rate| rate.now == rate.floor)
    }

    /// Takes in what each event took in a step of `seconds`, and what went with none of them, `fixed`; returns whether there is
    /// another rate from now on.
    pub fn step(&mut self, spent: &[Spent], fixed: f64, seconds: f64) -> bool {
        let may_spend = self.budget * seconds;
        let kept = self.budget * MEMORY_S;
        let all: f64 = spent.iter().map(|spent| spent.seconds).sum();
        let debt = self.debt + all + fixed - may_spend;
        self.debt = debt.clamp(-kept, self.budget * MAX_SAVED_S);
        // A debt is paid back in time, but what is left is for bursts, not for a higher rate.
        let repaid = self.debt.max(0.0) * seconds / MEMORY_S;
        let allowed = (may_spend - repaid).max(may_spend * RATES_SHARE);
        let full = |(rate, spent): (&Rate, &Spent)| spent.seconds / rate.now;
        let allowed = level(allowed, self.rates.iter().zip(spent).map(full).collect());
        let mut is_another = false;
        for (rate, spent) in self.rates.iter_mut().zip(spent) {
            is_another |= rate.step(*spent, allowed);
        }
        is_another
    }
}

/// Where so much may be spent and each of some would take so much, the most that one may take.
fn level(mut allowed: f64, mut wanted: Vec<f64>) -> f64 {
    wanted.sort_unstable_by(f64::total_cmp);
    let mut others = wanted.len();
    for wanted in wanted {
        if others == 1 || wanted * others as f64 >= allowed {
            break;
        }
        allowed -= wanted;
        others -= 1;
    }
    allowed / others.max(1) as f64
}

impl Rate {
    fn step(&mut self, spent: Spent, allowed: f64) -> bool {
        let wanted = self.wanted(spent.seconds, allowed).clamp(self.floor, 1.0);
        let is_end = wanted == self.floor || wanted == 1.0;
        let change = (wanted - self.now).abs();
        if !spent.may_change || change == 0.0 || (!is_end && change < MIN_CHANGE * self.now) {
            return false;
        }
        self.now = wanted;
        true
    }

    fn wanted(&self, spent: f64, allowed: f64) -> f64 {
        if spent > allowed {
            self.now * (allowed / spent).max(STEEPEST_FALL)
        } else if spent < allowed * ENOUGH {
            let middle = allowed * f64::midpoint(ENOUGH, 1.0);
            self.now * (middle / spent).min(STEEPEST_RISE)
        } else {
            self.now
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(budget: f64, floor: f64) -> Control {
        Control::new(budget, [floor])
    }

    fn spent(seconds: f64) -> Spent {
        Spent {
            seconds,
            may_change: true,
        }
    }

    /// A machine on which a second at the full rates takes so long, and so long whatever the rates. Returns what each second took.
    fn run(control: &mut Control, seconds: usize, full: &[f64], fixed: f64) -> Vec<f64> {
        let step = |_| {
            let rates = control.rates();
            let each: Vec<Spent> = (full.iter().zip(rates))
                .map(|(full, rate)| spent(full * rate))
                .collect();
            control.step(&each, fixed, 1.0);
            each.iter().map(|spent| spent.seconds).sum::<f64>() + fixed
        };
        (0..seconds).map(step).collect()
    }

    proptest! {
        #[test]
        fn rates_keep_to_their_bounds_in_bounded_steps(
            budget in 0.001..0.5f64,
            floors in prop::collection::vec(0.0001..0.5f64, 1..4),
            steps in prop::collection::vec(
                (prop::collection::vec((0.0..2.0f64, any::<bool>()), 3), 0.0..2.0f64, 0.1..3.0f64),
                1..60,
            ),
        ) {
            let mut control = Control::new(budget, floors.clone());
            for (each, fixed, seconds) in steps {
                let before = control.rates();
                let each: Vec<Spent> = (each.into_iter().take(floors.len()))
                    .map(|(seconds, may_change)| Spent { seconds, may_change })
                    .collect();
                let said = control.step(&each, fixed, seconds);
                let rates = control.rates();
                prop_assert_eq!(said, rates != before);
                for (number, (&rate, &before)) in rates.iter().zip(&before).enumerate() {
                    let (floor, spent) = (floors[number], each[number]);
                    prop_assert!(rate >= floor && rate <= 1.0);
                    prop_assert!(rate >= before * STEEPEST_FALL * 0.999 || rate == floor);
                    prop_assert!(rate <= before * STEEPEST_RISE * 1.001);
                    prop_assert!(spent.may_change || rate == before);
                    if spent.may_change && spent.seconds > budget * seconds * (1.0 + MIN_CHANGE) {
                        prop_assert!(rate < before || rate == floor, "{} {}", before, rate);
                    }
                }
            }
        }

        #[test]
        fn whatever_the_machine_the_budget_is_kept_and_rates_come_to_rest(
            budget in 0.002..0.2f64,
            full in prop::collection::vec(0.0..3.0f64, 1..4),
            share in 0.0..0.45f64,
        ) {
            let mut control = Control::new(budget, full.iter().map(|_| 1e-6));
            // The first second takes what it takes, and no more than a minute saves it.
            run(&mut control, 200, &full, budget * share);
            let after = run(&mut control, 100, &full, budget * share);
            let mean = after.iter().sum::<f64>() / 100.0;
            prop_assert!(mean <= budget * 1.05, "{} of {}", mean, budget);
            // It does not waste half of what it may spend.
            let is_full = control.rates().iter().all(|rate| *rate == 1.0);
            prop_assert!(mean >= budget * 0.5 || is_full, "{} of {}", mean, budget);
            let changes = after.windows(2).filter(|pair| pair[0] != pair[1]);
            prop_assert!(changes.count() <= 10 * full.len(), "{:?}", after);
        }

        #[test]
        fn an_idle_machine_does_not_drive_the_rate(budget in 0.001..0.1f64, idle in 0..600usize) {
            let mut control = one(budget, 0.001);
            run(&mut control, idle, &[budget * 0.05], 0.0);
            prop_assert_eq!(control.rates(), [1.0]);
            // However long it was idle, a burst is answered within seconds.
            let busy = run(&mut control, 10, &[budget * 20.0], 0.0);
            prop_assert!(busy[9] <= budget, "{:?}", busy);
        }

        #[test]
        fn a_burst_is_saved_again(budget in 0.005..0.1f64, burst in 1.0..20.0f64) {
            let mut control = one(budget, 1e-6);
            let full = [budget * 0.9];
            let mut all = run(&mut control, 5, &full, 0.0);
            all.extend(run(&mut control, 1, &full, budget * burst));
            let long = 20 * burst as usize + 40;
            all.extend(run(&mut control, long, &full, 0.0));
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            prop_assert!(mean <= budget, "{} of {}", mean, budget);
        }

        #[test]
        fn nothing_is_given_up_for_what_goes_with_no_rate(
            budget in 0.005..0.1f64,
            cheap in 0.01..0.24f64,
            fixed in 0.0..5.0f64,
        ) {
            // A clock, and waits that are looked at whatever they cost.
            let mut control = Control::new(budget, [0.05, 1e-6]);
            run(&mut control, 300, &[budget * cheap, budget * 50.0], budget * fixed);
            let rates = control.rates();
            prop_assert_eq!(rates[0], 1.0, "{:?}", rates);
            prop_assert!(rates[1] < 0.021, "{:?}", rates);
        }
    }

    #[test]
    fn a_cost_near_the_budget_changes_nothing() {
        let mut control = one(0.01, 0.01);
        for seconds in [0.008, 0.0099, 0.0085, 0.01] {
            assert!(!control.step(&[spent(seconds)], 0.0, 1.0));
        }
    }

    #[test]
    fn those_that_want_less_leave_it_to_others() {
        for (wanted, most) in [
            (&[][..], 12.0),
            (&[1.0], 12.0),
            (&[100.0], 12.0),
            (&[1.0, 100.0], 11.0),
            (&[100.0, 100.0], 6.0),
            (&[1.0, 2.0, 100.0], 9.0),
            (&[1.0, 6.0, 100.0], 5.5),
            (&[1.0, 2.0, 3.0], 9.0),
        ] {
            assert_eq!(level(12.0, wanted.to_vec()), most, "{wanted:?}");
        }
    }
}
