//! Looking at some of a thread's waits, and weighing these so that they stand for all.
//!
//! In: when the thread's waits began, and how often one is to be looked at. Out: whether this one is, and what it
//! weighs. Pure.
//!
//! A wait is looked at with the probability gap ÷ period, where the gap is the mean one between the beginnings of the
//! thread's last waits; so a thread costs no more than about one look a period, however often it waits, and threads that
//! seldom wait are seen whole. The gap is known before the wait begins, so that the choice has nothing to do with how
//! long it will be; weighed with the inverse of the probability, waits add up to what they all took, on average (Horvitz
//! and Thompson, "A generalization of sampling without replacement from a finite universe", 1952). The last gap alone
//! would do, too, but a long wait right behind a short one would then hardly ever be looked at, and weigh all the more.
//!
//! All that costs more than a look-up, for a thread that comes and goes many thousand times a second. So of such a thread's waits
//! some are left out by a first draw, before anything else is read: half of them, or half of that half, and so on. Gaps are then
//! those between waits that pass.

/// The shortest gap that is told from others, in nanoseconds: no thread comes and goes faster, and the weight of one
/// wait stays within what can be believed.
const SHORTEST_NS: u64 = 1 << 10;

/// How much of the mean is the last gap: one in so many.
const MEMORY: u64 = 8;

/// The longest period, in nanoseconds, that may be asked for: one second.
pub const LONGEST_PERIOD_NS: u64 = 1_000_000_000;

/// How many bits a mean gap or a period has at most, which is no longer than [`LONGEST_PERIOD_NS`].
const TIME_BITS: u32 = 30;

/// How often a thread's waits are halved at most by the first draw. One in sixteen must soon tell if the thread waits longer now.
const MAX_HALVINGS: u32 = 4;

/// Whether a wait of a thread whose waits are halved so often passes the first draw; `random` is any number.
#[inline(always)]
pub const fn passes_first_draw(halvings: u32, random: u32) -> bool {
    random & ((1 << halvings) - 1) == 0
}

/// How often the waits of a thread are halved from now on, of which one had this chance; `gap` is the last one.
#[inline(always)]
pub const fn halvings_after(chance: Chance, gap: u64) -> u32 {
    let (mean, period, halvings) = (chance.gap(), chance.period(), chance.halvings());
    if gap >= period {
        // It hardly ever waits now.
        0
    } else if mean * 16 < period && halvings < MAX_HALVINGS {
        halvings + 1
    } else if mean * 4 > period && halvings > 0 {
        halvings - 1
    } else {
        halvings
    }
}

/// The chance that a wait had of being looked at: how often the first draw halved, the mean gap, and the period that decided. All are
/// kept with the wait, because they may be others by the time that it ends. All zeros: it was sure to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Chance(pub u64);

impl Chance {
    /// That of a wait with this mean gap, where a wait is looked at about every `period`; zero: always.
    #[inline(always)]
    pub const fn new(gap: u64, period: u64, halvings: u32) -> Self {
        Self((halvings as u64) << (2 * TIME_BITS) | period << TIME_BITS | gap)
    }

    /// The mean gap, in nanoseconds.
    #[inline(always)]
    pub const fn gap(self) -> u64 {
        self.0 & ((1 << TIME_BITS) - 1)
    }

    /// The period, in nanoseconds; zero where every wait was looked at.
    #[inline(always)]
    pub const fn period(self) -> u64 {
        self.0 >> TIME_BITS & ((1 << TIME_BITS) - 1)
    }

    /// How often the first draw halved.
    #[inline(always)]
    pub const fn halvings(self) -> u32 {
        (self.0 >> (2 * TIME_BITS)) as u32
    }

    /// The mean gap, where the first draw halves so often now.
    #[inline(always)]
    pub const fn gap_when(self, halvings: u32) -> u64 {
        let (now, then) = (halvings & 0xf, self.halvings() & 0xf);
        if now > then {
            self.gap() << (now - then)
        } else {
            // Where it halves less, gaps have become longer.
            self.gap()
        }
    }

    /// Whether a wait that passed the first draw is looked at; `random` is any number of 32 bits, all equally likely.
    #[inline(always)]
    pub const fn hits(self, random: u32) -> bool {
        let (gap, period) = (self.gap(), self.period());
        // Neither product leaves 64 bits: periods have 30.
        gap >= period || (random as u64).wrapping_mul(period) < gap << 32
    }

    /// Weight of a wait of `spent` nanoseconds that was looked at.
    #[inline(always)]
    pub const fn weight(self, spent: u64) -> u64 {
        let (gap, period) = (self.gap(), self.period());
        let of_left = if gap == 0 || gap >= period {
            spent
        } else {
            // In two parts, so that no product leaves 64 bits for waits of up to some months.
            (spent / gap)
                .wrapping_mul(period)
                .wrapping_add((spent % gap).wrapping_mul(period) / gap)
        };
        of_left << (self.halvings() & 0xf)
    }
}

/// The mean gap at the beginning of a wait, between the shortest and the whole period; `mean` is what it was at the
/// wait before, perhaps with another period. `before` and `now` are when that began and when this one does, in nanoseconds;
/// zero for a thread that was not seen to wait before, whose gap is presumed to be `first`, at most the period. The whole period means
/// that its first wait is looked at.
#[inline(always)]
pub const fn mean_gap(mean: u64, before: u64, now: u64, period: u64, first: u64) -> u64 {
    if before == 0 || mean == 0 {
        return first;
    }
    let gap = now.wrapping_sub(before);
    let gap = if gap < period { gap } else { period };
    let mean = mean - mean / MEMORY + gap / MEMORY;
    if mean < SHORTEST_NS {
        SHORTEST_NS
    } else if mean > period {
        period
    } else {
        mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn wait_weights_add_up_to_the_true_time_on_average(
            mean in 1..LONGEST_PERIOD_NS,
            before in 1..u64::MAX / 2,
            since in 0..3_000_000u64,
            period in 1_000..=LONGEST_PERIOD_NS,
            spent in 1..100_000_000_000u64,
            halvings in 0..=MAX_HALVINGS,
        ) {
            let gap = mean_gap(mean, before, before + since, period, period);
            let chance = Chance::new(gap, period, halvings);
            prop_assert_eq!(
                (chance.gap(), chance.period(), chance.halvings()),
                (gap, period, halvings)
            );
            let left = (0..1 << MAX_HALVINGS).filter(|&random| passes_first_draw(halvings, random)).count();
            prop_assert_eq!(left << halvings, 1 << MAX_HALVINGS);
            prop_assert_eq!(chance.weight(spent), Chance::new(gap, period, 0).weight(spent) << halvings);
            let chance = Chance::new(gap, period, 0);
            // Evenly through all numbers there are.
            let (steps, mut looked) = (1 << 16, 0u64);
            for step in 0..steps {
                looked += u64::from(chance.hits(step << 16));
            }
            let share = looked as f64 / f64::from(steps);
            let mean = chance.weight(spent) as f64 * share;
            // A share is known to one step.
            let tolerance = spent as f64 * (period as f64 / gap as f64 / f64::from(steps)).max(1e-3) + 2.0;
            prop_assert!((mean - spent as f64).abs() <= tolerance, "{mean} for {spent}");
        }

        #[test]
        fn rare_waits_are_all_recorded(
            since in 0..u64::MAX / 2,
            period in SHORTEST_NS..=LONGEST_PERIOD_NS,
            spent in any::<u64>(),
            random in any::<u32>(),
        ) {
            let mut gap = 0;
            for before in [0, 77, 77, 77] {
                gap = mean_gap(gap, before, 77 + period + since, period, period);
                // Integer divisions lose remainders, so the mean stays a little below the period.
                prop_assert!(gap > period - 2 * MEMORY);
            }
            let sure = Chance::new(period, period, 0);
            prop_assert!(sure.hits(random));
            prop_assert_eq!(sure.weight(spent), spent);
            prop_assert_eq!(Chance(0).weight(spent), spent);
        }
    }

    #[test]
    fn a_thread_that_waits_constantly_is_recorded_once_a_period() {
        let (period, mut gap, mut now) = (1_000_000, 0, 1);
        let mut expected = 0.0;
        for turn in 0..100_000_u64 {
            let before = now;
            // Short and long gaps in turn.
            now += if turn % 2 == 0 { 2_000 } else { 18_000 };
            gap = mean_gap(gap, before, now, period, period);
            assert!(gap <= period);
            expected += gap as f64 / period as f64;
        }
        let looks = expected * period as f64 / now as f64;
        assert!((0.9..1.1).contains(&looks), "{looks} looks a period");
        // Both kinds of waits have much the same chance.
        assert!((8_000..12_000).contains(&gap), "{gap}");
    }

    #[test]
    fn a_thread_that_waits_very_often_is_left_to_the_first_draw_and_found_again() {
        let (period, mut now, mut before) = (100_000_000, 1, 0);
        let (mut chance, mut halvings) = (Chance(0), 0);
        let mut leave = |now: u64, halvings: u32| {
            let gap = mean_gap(chance.gap_when(halvings), before, now, period, period);
            chance = Chance::new(gap, period, halvings);
            let after = halvings_after(chance, now - before);
            before = now;
            (chance, after)
        };
        for turn in 0..4_000_u32 {
            now += 50_000;
            if passes_first_draw(halvings, turn) {
                (_, halvings) = leave(now, halvings);
            }
        }
        assert_eq!(halvings, MAX_HALVINGS);
        let (chance, _) = leave(now + 800_000, halvings);
        // Gaps are those between waits that passed.
        assert!(
            (600_000..1_000_000).contains(&chance.gap()),
            "{}",
            chance.gap()
        );
        // One long gap, and every wait counts again.
        assert_eq!(leave(now + 2 * period, halvings).1, 0);
    }

    #[test]
    fn waits_without_a_period_are_all_looked_at_and_weigh_what_they_take() {
        let mut gap = 0;
        // The period goes away, and comes back.
        for (before, period) in [
            (0, 1_000_000),
            (5, 1_000_000),
            (5, 0),
            (5, 0),
            (5, 1_000_000),
        ] {
            gap = mean_gap(gap, before, 2_005, period, period);
            let chance = Chance::new(gap, period, 0);
            if period == 0 {
                assert!(chance.hits(u32::MAX));
                assert_eq!(chance.weight(77), 77);
            }
        }
        // As if it had not waited before.
        assert_eq!(gap, 1_000_000);
    }

    #[test]
    fn of_threads_that_were_not_seen_some_are_looked_at() {
        let (period, first) = (100_000_000, 1_562_500);
        let chance = Chance::new(mean_gap(0, 0, 5, period, first), period, 0);
        assert!(chance.hits(0) && !chance.hits(u32::MAX / 32));
        assert_eq!(chance.weight(1_000), 64_000);
    }

    #[test]
    fn clock_jumps_make_no_huge_weights() {
        assert_eq!(mean_gap(0, 0, 5, 1_000_000, 1_000_000), 1_000_000);
        assert_eq!(
            mean_gap(8_000, 100, 99, 1_000_000, 1_000_000),
            7_000 + 125_000
        );
        assert_eq!(
            mean_gap(SHORTEST_NS, 100, 100, 1_000_000, 1_000_000),
            SHORTEST_NS
        );
        assert_eq!(
            Chance::new(SHORTEST_NS, 1_024_000, 0).weight(1_000),
            1_000_000
        );
        let least = Chance::new(SHORTEST_NS, LONGEST_PERIOD_NS, 0);
        assert!(!least.hits(u32::MAX));
        assert!(least.hits(0));
    }
}
