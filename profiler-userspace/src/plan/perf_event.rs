//! Events, and how often they are sampled. Plain data.

use std::borrow::Cow;

/// Which event makes the probe fire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PerfEventChoice {
    /// [`PerfEvent::CYCLES`] where the machine has a performance counter for them, else
    /// [`PerfEvent::CPU_CLOCK`].
    Auto,
    /// This one and no other.
    Named(PerfEvent),
}

/// An event that `perf_event_open` can count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfEvent {
    /// The name that outputs show, such as `cpu-clock`: the canonical one, whatever alias was typed.
    pub name: Cow<'static, str>,
    /// The family, which decides what `config` means.
    pub kind: PerfEventKind,
    /// `perf_event_attr.config`.
    pub config: u64,
}

/// The families of events: the values of `perf_event_attr.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum PerfEventKind {
    /// Counted by the processor, under a name that the kernel translates.
    Hardware = 0,
    /// Counted by the kernel.
    Software = 1,
    /// Counted by the processor: what a cache did.
    HardwareCache = 3,
    /// Counted by the processor, under the number in its manual.
    Raw = 4,
}

impl PerfEvent {
    /// Processor cycles: the default where there is a performance counter.
    pub const CYCLES: Self = Self::new("cycles", PerfEventKind::Hardware, 0);
    /// A timer on each CPU: the default elsewhere.
    pub const CPU_CLOCK: Self = Self::new("cpu-clock", PerfEventKind::Software, 0);
    /// A timer that runs while the sampled task does.
    pub const TASK_CLOCK: Self = Self::new("task-clock", PerfEventKind::Software, 1);

    /// An event under its canonical name.
    pub const fn new(name: &'static str, kind: PerfEventKind, config: u64) -> Self {
        Self {
            name: Cow::Borrowed(name),
            kind,
            config,
        }
    }

    fn is(&self, other: &Self) -> bool {
        (self.kind, self.config) == (other.kind, other.config)
    }

    /// Whether this is a timer, whose period is in nanoseconds.
    pub fn is_clock(&self) -> bool {
        self.is(&Self::CPU_CLOCK) || self.is(&Self::TASK_CLOCK)
    }

    /// Whether this is a fault, or a kind of them: `PERF_COUNT_SW_PAGE_FAULTS`, `…_MIN`, `…_MAJ`, `…_ALIGNMENT_FAULTS`
    /// and `…_EMULATION_FAULTS` of `include/uapi/linux/perf_event.h`.
    pub fn is_fault(&self) -> bool {
        self.kind == PerfEventKind::Software && matches!(self.config, 2 | 5 | 6 | 7 | 8)
    }

    /// Whether a graph of this event shows where CPU time went.
    pub fn is_cpu_time(&self) -> bool {
        self.is_clock() || self.is(&Self::CYCLES)
    }

    /// How often to sample this event unless told otherwise: [`DEFAULT_HZ`], except for what the
    /// kernel counts one by one (page faults, context switches): there every occurrence is kept,
    /// since they are few enough, and a rate would have to guess at how many each sample stands for.
    pub fn default_sampling(&self) -> Sampling {
        if self.kind == PerfEventKind::Software && !self.is_clock() {
            Sampling::Period(1)
        } else {
            Sampling::Frequency(DEFAULT_HZ)
        }
    }
}

/// Samples a second and CPU unless told otherwise. Not 100, so as not to march in step with
/// programs that do something every 10 ms.
pub const DEFAULT_HZ: u64 = 99;

/// The kernel fires its timer events this often at most, and silently stretches shorter periods
/// (`perf_swevent_start_hrtimer` in `kernel/events/core.c`), which would falsify weights.
const SHORTEST_CLOCK_PERIOD_NS: u64 = 10_000;

/// How often the probe fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// About this many times a second on each CPU; more than 0. The kernel adjusts the period.
    Frequency(u64),
    /// Once every so many occurrences (nanoseconds for a clock); more than 0.
    Period(u64),
}

impl Sampling {
    /// Whether the kernel would really sample `event` this often, where it allows `limit_hz`
    /// (the number in `/proc/sys/kernel/perf_event_max_sample_rate`).
    ///
    /// # Errors
    /// A rate above the kernel's limit, and a timer faster than the kernel's timers go.
    pub fn check(self, perf_event: &PerfEvent, limit_hz: u64) -> Result<(), SamplingError> {
        let clock_hz = 1_000_000_000 / SHORTEST_CLOCK_PERIOD_NS;
        match self {
            Self::Frequency(asked_hz) if asked_hz > limit_hz => {
                Err(SamplingError::AboveLimit { asked_hz, limit_hz })
            }
            Self::Frequency(asked_hz) if perf_event.is_clock() && asked_hz > clock_hz => {
                Err(SamplingError::ClockRate {
                    perf_event: perf_event.name.clone(),
                    asked_hz,
                    clock_hz,
                })
            }
            Self::Period(asked_ns)
                if perf_event.is_clock() && asked_ns < SHORTEST_CLOCK_PERIOD_NS =>
            {
                Err(SamplingError::ClockPeriod {
                    perf_event: perf_event.name.clone(),
                    asked_ns,
                })
            }
            Self::Frequency(_) | Self::Period(_) => Ok(()),
        }
    }
}

/// The setting of the kernel's that limits rates, by default to 100,000 Hz. The kernel lowers it when firings take long.
pub const MAX_RATE: &str = "kernel.perf_event_max_sample_rate";

/// Why an event cannot be sampled as often as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SamplingError {
    /// The kernel refuses such a rate.
    #[error(
        "{asked_hz} Hz is above the {limit_hz} Hz that this kernel allows; ask for -F {limit_hz} or \
         less, or raise the limit: sysctl -w {MAX_RATE}={asked_hz}"
    )]
    AboveLimit {
        /// The rate asked for.
        asked_hz: u64,
        /// The kernel's limit.
        limit_hz: u64,
    },
    /// The kernel would accept the rate and not keep it.
    #[error(
        "{asked_hz} Hz is more than {perf_event} can do: the kernel's timer events fire at most \
         {clock_hz} times a second; ask for -F {clock_hz} or less"
    )]
    ClockRate {
        /// The clock's name.
        perf_event: Cow<'static, str>,
        /// The rate asked for.
        asked_hz: u64,
        /// The rate that can be had.
        clock_hz: u64,
    },
    /// The kernel would accept the period and not keep it.
    #[error(
        "a period of {asked_ns} is too short for {perf_event}, whose periods are nanoseconds: the kernel's \
         timer events fire at most every {SHORTEST_CLOCK_PERIOD_NS}; ask for \
         -c {SHORTEST_CLOCK_PERIOD_NS} or more"
    )]
    ClockPeriod {
        /// The clock's name.
        perf_event: Cow<'static, str>,
        /// The period asked for.
        asked_ns: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_above_the_kernels_limit_names_the_command_that_raises_it() {
        let sampling = Sampling::Frequency(5000);
        assert_eq!(sampling.check(&PerfEvent::CYCLES, 5000), Ok(()));
        let refusal = sampling
            .check(&PerfEvent::CYCLES, 4999)
            .unwrap_err()
            .to_string();
        assert!(
            refusal.contains("sysctl -w kernel.perf_event_max_sample_rate=5000"),
            "{refusal}"
        );
        assert!(refusal.contains("4999 Hz"), "{refusal}");
    }

    #[test]
    fn a_clock_period_that_the_kernel_would_stretch_is_refused() {
        let unlimited = u64::MAX;
        for (sampling, accepted) in [
            (Sampling::Frequency(100_000), true),
            (Sampling::Frequency(100_001), false),
            (Sampling::Period(10_000), true),
            (Sampling::Period(9_999), false),
        ] {
            assert_eq!(
                sampling.check(&PerfEvent::CPU_CLOCK, unlimited).is_ok(),
                accepted,
                "{sampling:?}"
            );
            assert_eq!(
                sampling.check(&PerfEvent::CYCLES, unlimited),
                Ok(()),
                "{sampling:?}"
            );
        }
    }

    #[test]
    fn software_events_are_counted_one_by_one() {
        let page_faults = PerfEvent::new("page-faults", PerfEventKind::Software, 2);
        assert_eq!(page_faults.default_sampling(), Sampling::Period(1));
        for timed in [
            PerfEvent::CYCLES,
            PerfEvent::CPU_CLOCK,
            PerfEvent::TASK_CLOCK,
        ] {
            assert_eq!(timed.default_sampling(), Sampling::Frequency(99));
        }
    }
}
