//! The balance in words: what was sampled, what was lost and what would have kept it, what it cost.
//!
//! In: numbers. Out: sentences, for stderr and for the outputs that can carry them.

use crate::profile::normalized::NormalizedProfile;
use crate::profile::wall::Sums;
use crate::unwind::loader::Loaded;
use profiler_common::abi::{Class, Counter, Counters, StackEnd};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// What the profiler itself used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// CPU time of this process.
    pub(crate) cpu: Duration,
    /// The most memory that was ever resident, in bytes.
    pub(crate) peak_bytes: u64,
    /// What the BPF maps took, in bytes.
    pub(crate) map_bytes: u64,
}

impl Cost {
    /// What was used up to now.
    pub(crate) fn now(map_bytes: u64) -> Self {
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find_map(|line| {
            let kib: u64 = line
                .strip_prefix("VmHWM:")?
                .trim()
                .strip_suffix(" kB")?
                .parse()
                .ok()?;
            Some(kib * 1024)
        });
        Self {
            cpu: Duration::new(
                u64::try_from(cpu.tv_sec).unwrap_or(0),
                u32::try_from(cpu.tv_nsec).unwrap_or(0),
            ),
            peak_bytes: peak.unwrap_or(0),
            map_bytes,
        }
    }
}

/// Over how many stacks, user and kernel, and how many processes a profile spreads.
pub(crate) fn extent(normalized: &NormalizedProfile, processes: usize) -> String {
    format!(
        "{} of {}",
        counted(normalized.stacks().len() as u64, "distinct stack"),
        counted(processes as u64, "process")
    )
}

/// Everything that a finished recording can say of itself.
pub(crate) struct Health<'a> {
    /// What was sampled, as in a title.
    pub(crate) subject: &'a str,
    /// What one firing is called.
    pub(crate) noun: &'a str,
    /// The time of all firings, in nanoseconds, if that is what was recorded.
    pub(crate) waited: Option<u64>,
    /// The kernel half's counters.
    pub(crate) counters: &'a Counters,
    /// What they spread over.
    pub(crate) extent: &'a str,
    /// How many samples' user stacks ended in each way.
    pub(crate) ends: &'a BTreeMap<StackEnd, u64>,
    /// How many samples' user stacks were fp_fallback in part.
    pub(crate) fp_fallback: u64,
    /// Whether idle CPUs could have been recorded, had it been asked for.
    pub(crate) idle_is_offered: bool,
    /// What else went less than well, in sentences.
    pub(crate) remarks: &'a [String],
}

impl Health<'_> {
    /// What was recorded, lost and left out: the part that belongs into outputs.
    pub(crate) fn balance(&self) -> String {
        let recorded = self.counters.sum(Class::Recorded);
        let mut text = format!(
            "{}: {}{} in {}.",
            self.subject,
            counted(recorded, self.noun),
            self.waited.map_or_else(String::new, |ns| format!(
                ", {:.3} s together,",
                Duration::from_nanos(ns).as_secs_f64()
            )),
            self.extent,
        );
        let lost = self.counters.sum(Class::Lost);
        if lost == 0 {
            text.push_str(" Nothing was lost.");
        } else {
            for &counter in Counter::ALL
                .iter()
                .filter(|counter| counter.class() == Class::Lost)
            {
                let count = self.counters.get(counter);
                if count > 0 {
                    let _ = write!(
                        text,
                        " LOST: {}.",
                        lost_sentence(counter, counted(count, self.noun))
                    );
                }
            }
        }
        let filtered: Vec<String> = Counter::ALL
            .iter()
            .filter(|counter| {
                counter.class() == Class::Filtered && self.counters.get(**counter) > 0
            })
            .map(|&counter| {
                format!(
                    "{} {}",
                    grouped(self.counters.get(counter)),
                    self.filter_phrase(counter)
                )
            })
            .collect();
        if !filtered.is_empty() {
            let _ = write!(text, " Left out, as asked: {}.", filtered.join(", "));
        }
        text.push_str(&self.open_waits());
        text.push_str(&self.untold());
        text.push_str(&self.ends());
        for remark in self.remarks {
            let _ = write!(text, " {remark}");
        }
        text
    }

    /// Waits of which the recording saw one end only, or none.
    fn open_waits(&self) -> String {
        let mut text = String::new();
        let before = self.counters.get(Counter::WaitingBefore);
        if before > 0 {
            let waits = counted(before, self.noun);
            let _ = write!(
                text,
                " {waits} had begun before, and count from the beginning."
            );
        }
        let reckoned = self.counters.get(Counter::EndReckoned);
        if reckoned > 0 {
            let waits = counted(reckoned, self.noun);
            let _ = write!(
                text,
                " {waits} ended unseen, and count up to when the scheduler says."
            );
        }
        let still = self.counters.get(Counter::StillWaiting);
        if still > 0 {
            let waits = counted(still, self.noun);
            let _ = write!(text, " {waits} had not ended, and count up to the end.");
        }
        text
    }

    /// News that found the queue full. Most of them come again; those of a process that has ended do not.
    fn untold(&self) -> String {
        let dropped =
            self.counters.get(Counter::MappingsUntold) + self.counters.get(Counter::NoticesDropped);
        if dropped == 0 {
            return String::new();
        }
        format!(
            " {}, of what lies where in a process, found their queue full, so some of its frames may be [unknown]; a lower -F makes fewer.",
            counted(dropped, "notice")
        )
    }

    fn ends(&self) -> String {
        let all: u64 = self.ends.values().sum();
        let mut text = String::new();
        let mut say = |end: StackEnd, tail: &str| {
            let count = self.ends.get(&end).copied().unwrap_or(0);
            if count > 0 {
                let _ = write!(text, " {} of the user stacks {tail}.", share(count, all));
            }
        };
        say(
            StackEnd::NoFramePointer,
            "were followed as far as frame pointers go (callers in code built without them are missing)",
        );
        say(StackEnd::Unreadable, "end at memory that could not be read");
        say(
            StackEnd::Truncated,
            "go on beyond 1,024 frames (marked [truncated])",
        );
        say(
            StackEnd::Compat,
            "are of 32-bit programs, which are not walked",
        );
        say(
            StackEnd::NoRow,
            "end before their root, in code without unwind instructions",
        );
        say(
            StackEnd::BadRow,
            "end at unwind instructions that cannot be followed",
        );
        say(
            StackEnd::Implausible,
            "end where unwind instructions led to no caller",
        );
        say(
            StackEnd::NotLoaded,
            "end in objects whose unwind instructions were not loaded yet",
        );
        if self.fp_fallback > 0 {
            let _ = write!(
                text,
                " {} of the user stacks lead by frame pointer through code without unwind instructions, where a caller may be missing.",
                share(self.fp_fallback, all)
            );
        }
        text
    }

    fn filter_phrase(&self, counter: Counter) -> &'static str {
        match counter {
            Counter::FilteredIdle if self.idle_is_offered => "while idle (-I keeps them)",
            Counter::FilteredIdle => "while idle",
            Counter::FilteredTarget => "of other tasks",
            Counter::FilteredNamespace => "outside this PID namespace",
            Counter::FilteredUserMode => "in user mode (-K)",
            Counter::FilteredNoUserStack => "without a user stack (-U)",
            Counter::FilteredThreadKind => "of the other kind of threads",
            Counter::FilteredState => "in other states",
            Counter::FilteredBlockTime => "shorter or longer (-m, -M)",
            Counter::FilteredSwitchSample => "for which others stand (--switch-sample)",
            Counter::FilteredFileKind => "about other kinds of files (--io-kind)",
            other => other.name(),
        }
    }
}

/// What it cost, by the counters of all probes.
pub(crate) fn cost(counters: &[Counters], cost: &Cost) -> String {
    // Off the CPU, the program runs twice for each wait, and once where both threads are targets.
    let runs = |counters: &Counters| match counters.get(Counter::Entered) {
        0 => counters.sum(Class::Fired),
        entered => entered,
    };
    let runs: u64 = counters.iter().map(runs).sum();
    let ns: u64 = counters
        .iter()
        .map(|counters| counters.get(Counter::RunTime))
        .sum();
    let each = ns.checked_div(runs).unwrap_or(0);
    format!(
        "Cost: {:.3} s in the kernel ({:.1} µs each time), {:.2} s of CPU and {} of memory here, {} in BPF maps.",
        Duration::from_nanos(ns).as_secs_f64(),
        each as f64 / 1000.0,
        cost.cpu.as_secs_f64(),
        mebibytes(cost.peak_bytes),
        mebibytes(cost.map_bytes),
    )
}

/// What there is to say of all of the threads' time, by the counters of the samples that tell where it went on a CPU.
pub(crate) fn wall_remarks(sums: &Sums, samples: &Counters) -> Vec<String> {
    let mut remarks = vec![format!(
        "{} ran for {}, were blocked for {}, and waited for a CPU for {}.",
        counted(sums.threads as u64, "thread"),
        seconds(sums.ran),
        seconds(sums.blocked),
        seconds(sums.runnable),
    )];
    let recorded = samples.sum(Class::Recorded);
    let mut sampled = format!("Where they ran is told by {}", counted(recorded, "sample"));
    if sums.not_sampled > Duration::ZERO {
        let _ = write!(
            sampled,
            ", of which there are none for {} in threads that ran little",
            seconds(sums.not_sampled)
        );
    }
    remarks.push(sampled + ".");
    let lost = Counter::ALL
        .iter()
        .filter(|counter| counter.class() == Class::Lost && samples.get(**counter) > 0);
    for &counter in lost {
        let count = counted(samples.get(counter), "sample");
        remarks.push(format!("LOST: {}.", lost_sentence(counter, count)));
    }
    if sums.strays > 0 {
        remarks.push(format!(
            "{} of threads whose time on a CPU was not seen are left out.",
            counted(sums.strays, "sample")
        ));
    }
    if sums.idle.0 > 0 {
        remarks.push(format!(
            "Left out, as asked: {} that slept throughout, for {} together (--no-idle-threads).",
            counted(sums.idle.0 as u64, "thread"),
            seconds(sums.idle.1)
        ));
    }
    remarks
}

/// Every counter by name, for verbose output. `whose`: which probe's, with a blank behind it, where there is
/// another.
pub(crate) fn counters(counters: &Counters, whose: &str) -> String {
    let mut text = String::new();
    for &counter in Counter::ALL {
        let (name, count) = (counter.name(), counters.get(counter));
        let _ = writeln!(text, "{whose}counter: {name} {count}");
    }
    text
}

/// What there is to say of unwind tables, in sentences: only what someone can do something about.
pub(crate) fn unwind_remarks(loaded: &Loaded) -> Vec<String> {
    let mut remarks = Vec::new();
    if loaded.evicted > 0 || loaded.refused > 0 {
        remarks.push(format!(
            "Unwind tables did not all fit into {}: {} made room for others, {} found none; a larger --max-unwind-memory holds them.",
            mebibytes(loaded.bytes),
            loaded.evicted,
            loaded.refused,
        ));
    }
    if loaded.too_large > 0 {
        remarks.push(format!(
            "{} more code or unwind instructions than are believed of any; frame pointers were followed there. `flame-bpf show-unwind FILE` says whether a file is one of them.",
            match loaded.too_large {
                1 => "1 object claims".to_owned(),
                many => format!("{} objects claim", grouped(many as u64)),
            }
        ));
    }
    if loaded.left_out > 0 || loaded.rules_refused > 0 {
        remarks.push(format!(
            "{} of code and {} of unwinding found no room in the index of objects.",
            counted(loaded.left_out as u64, "part"),
            counted(loaded.rules_refused as u64, "rule"),
        ));
    }
    remarks
}

/// The unwind tables, for verbose output.
pub(crate) fn tables(loaded: &Loaded) -> String {
    format!(
        "unwind tables: {} of objects, {} rows, {} bytes in the kernel, made in {:.1} ms; {} files without; {} evicted\n",
        loaded.tables,
        grouped(loaded.rows as u64),
        grouped(loaded.bytes),
        loaded.time.as_secs_f64() * 1000.0,
        loaded.no_table,
        loaded.evicted,
    )
}

/// Where user stacks were cut short, for verbose output: by reason and module of the last frame.
pub(crate) fn cut_short(counts: &BTreeMap<(StackEnd, String), u64>) -> String {
    let mut text = String::new();
    for ((end, module), count) in counts {
        let mark = end.mark().unwrap_or_default();
        let _ = writeln!(text, "cut short: {count} in {module} {mark}");
    }
    text
}

fn lost_sentence(counter: Counter, samples: String) -> String {
    match counter {
        Counter::LostStackStore => format!(
            "{samples}, because new stacks came faster than they could be drained; a larger --map-memory or a lower -F keeps them"
        ),
        Counter::LostTallyTable => format!(
            "{samples}, because distinct samples came faster than they could be drained; a larger --map-memory or a lower -F keeps them"
        ),
        Counter::LostSleeperTable => format!(
            "{samples}, because more threads were off the CPU, or within a call, than there is room for; a larger --map-memory keeps them"
        ),
        Counter::LostReentered => format!(
            "{samples}, because another was just being taken on the same CPU, and was interrupted; with fewer threads to watch (-t) there are fewer of them"
        ),
        Counter::LostPair => format!(
            "{samples}, whose ends were not seen; a larger --map-memory, or recording alone, may keep them"
        ),
        other => format!("{samples} ({})", other.name()),
    }
}

/// `1 sample`, `2,000 samples`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let plural = match (count, noun.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{} {noun}{plural}", grouped(count))
}

/// A number with its thousands grouped.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub(crate) fn share(part: u64, all: u64) -> String {
    let percent = part as f64 * 100.0 / all.max(1) as f64;
    if percent < 0.1 {
        "<0.1%".to_owned()
    } else {
        format!("{percent:.1}%")
    }
}

/// A time for people.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

/// A number of bytes for people.
pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests;
