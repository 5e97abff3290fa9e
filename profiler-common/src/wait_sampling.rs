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

/// The shortest gap that is told from others, in nanoseconds: no thread comes and goes faster, and the weight of one
/// wait stays within what can be believed.
const SHORTEST_NS: u64 = 1 << 10;

/// How much of the mean is the last gap: one in so many.
const MEMORY: u64 = 8;

/// The longest period, in nanoseconds, that may be asked for: one second.
pub const LONGEST_PERIOD_NS: u64 = 1_000_000_000;

/// The mean gap at the beginning of a wait, between the shortest and the whole period; `mean` is what it was at the
/// wait before. `before` and `now` are when that began and when this one does, in nanoseconds; zero for a thread that was
/// not seen to wait before.
#[inline(always)]
pub const fn mean_gap(mean: u64, before: u64, now: u64, period: u64) -> u64 {
    if before == 0 || mean == 0 {
        return period;
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

/// Whether a wait with this mean gap is looked at; `random` is any number of 32 bits, all equally likely.
#[inline(always)]
pub const fn is_looked_at(gap: u64, period: u64, random: u32) -> bool {
    // Neither product leaves 64 bits: periods have 30.
    gap >= period || (random as u64).wrapping_mul(period) < gap << 32
}

/// Weight of a sampled wait of `spent` nanoseconds. A mean gap of zero: it was sure to be sampled.
#[inline(always)]
pub const fn weight(spent: u64, gap: u64, period: u64) -> u64 {
    if gap == 0 || gap >= period {
        return spent;
    }
    // In two parts, so that no product leaves 64 bits for waits of up to some months.
    (spent / gap)
        .wrapping_mul(period)
        .wrapping_add((spent % gap).wrapping_mul(period) / gap)
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
        ) {
            let gap = mean_gap(mean.min(period), before, before + since, period);
            // Evenly through all numbers there are.
            let (steps, mut looked) = (1 << 16, 0u64);
            for step in 0..steps {
                looked += u64::from(is_looked_at(gap, period, step << 16));
            }
            let share = looked as f64 / f64::from(steps);
            let mean = weight(spent, gap, period) as f64 * share;
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
                gap = mean_gap(gap, before, 77 + period + since, period);
                // Integer divisions lose remainders, so the mean stays a little below the period.
                prop_assert!(gap > period - 2 * MEMORY);
            }
            prop_assert!(is_looked_at(period, period, random));
            prop_assert_eq!(weight(spent, period, period), spent);
            prop_assert_eq!(weight(spent, 0, period), spent);
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
            gap = mean_gap(gap, before, now, period);
            assert!(gap <= period);
            expected += gap as f64 / period as f64;
        }
        let looks = expected * period as f64 / now as f64;
        assert!((0.9..1.1).contains(&looks), "{looks} looks a period");
        // Both kinds of waits have much the same chance.
        assert!((8_000..12_000).contains(&gap), "{gap}");
    }

    #[test]
    fn clock_jumps_make_no_huge_weights() {
        assert_eq!(mean_gap(0, 0, 5, 1_000_000), 1_000_000);
        assert_eq!(mean_gap(8_000, 100, 99, 1_000_000), 7_000 + 125_000);
        assert_eq!(mean_gap(SHORTEST_NS, 100, 100, 1_000_000), SHORTEST_NS);
        assert_eq!(weight(1_000, SHORTEST_NS, 1_024_000), 1_000_000);
        assert!(!is_looked_at(SHORTEST_NS, LONGEST_PERIOD_NS, u32::MAX));
        assert!(is_looked_at(SHORTEST_NS, LONGEST_PERIOD_NS, 0));
    }
}
