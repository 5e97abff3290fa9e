//! Verdict on each step of `init.sh`.
//!
//! In: the log of one machine. Out: each step's name, and what is wrong with it if something is. Shares and presence count,
//! never numbers of samples: an emulated machine runs at no speed in particular.

use super::log::{Log, Step};

/// Expected result of a step.
struct Expected {
    step: &'static str,
    exit: i32,
    shape: Shape,
}

/// Expected shape of its folded stacks.
enum Shape {
    /// Some stack holds these frames.
    Holds(&'static str),
    /// For each of these, some stack holds it.
    HoldsAll(&'static [&'static str]),
    /// Some stack holds these frames; weights are times or bytes.
    Waits(&'static str),
    /// The workload `shares`: nearly all stacks hold its root frames, and its chains come in their order.
    Shares,
    /// The workload `chain`: every stack leads from the process's start along [`TWELVE`], and many to its end.
    Complete,
    /// The workload `chain`: nearly all stacks lead along all of [`TWELVE`]. What is below `main` is not looked at.
    Whole,
    /// The workload `chain`: most stacks have this mark, and all have no other frames than those of [`TWELVE`], in their
    /// order.
    Marked(&'static str),
}

/// Where all the work of `shares` is done.
const WORK: &str = ";main;work_round;";

/// The samples that may be outside of it, in percent: before the first round, and between two.
const MISSED: u64 = 5;

/// Frames under [`WORK`], by falling share.
const CHAINS: [&str; 3] = ["alpha", "beta", "gamma_outer"];

/// The functions of the workload `chain`, from root to leaf.
const TWELVE: [&str; 14] = [
    "main", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth",
    "tenth", "eleventh", "twelfth", "burn",
];

/// The most functions between a process's first and its `main`.
const BETWEEN: usize = 3;

/// A step that ends well.
const fn expected(step: &'static str, shape: Shape) -> Expected {
    Expected {
        step,
        exit: 0,
        shape,
    }
}

const STEPS: &[Expected] = &[
    expected("process", Shape::Shares),
    expected("machine", Shape::Holds(WORK)),
    // With idle CPUs in it, and one of the two is idle.
    expected("kernel-stacks", Shape::Holds(";do_idle;")),
    expected("kernel-text", Shape::Holds(";do_idle;")),
    expected("labels", Shape::Holds(WORK)),
    expected("namespace", Shape::Holds(WORK)),
    expected("cgroup", Shape::Shares),
    expected("tables", Shape::Complete),
    expected("no-tables", Shape::Marked("[no frame pointer]")),
    expected("pointers", Shape::Whole),
    expected("tracepoint", Shape::Holds(WORK)),
    // Of the first; the others are in files, and their balances are looked at.
    expected("events", Shape::Holds(WORK)),
    expected("tracepoints", Shape::Holds(WORK)),
    expected("function", Shape::Holds(";tenth;eleventh;twelfth")),
    // Asleep since before, so that both programs are needed to see it.
    expected("off-cpu", Shape::Waits(";waiter;wait_never;")),
    // The samples on stdout; the waits are in a file, and their balance is looked at.
    expected("both", Shape::Holds(";spinner;burn")),
    expected("wall", Shape::Waits(";waiter;wait_never;")),
    // The one half from the one program, the other from the other.
    expected("off-wake", Shape::Waits(";giver;start_thread;")),
    expected("wakeup", Shape::Waits(";start_thread;giver;")),
    expected("syscalls", Shape::Holds(";wait_sleep;")),
    expected("latency", Shape::Waits(";wait_sleep;")),
    expected("io", Shape::Waits(";wait_pipe;")),
    expected("locks", Shape::Waits(";wait_lock;")),
    // The command's own, passed on.
    Expected {
        exit: 7,
        ..expected("launch", Shape::Holds(";main;late;"))
    },
    expected("alloc", Shape::Waits(";main;printf;")),
    expected(
        "interpreted",
        Shape::HoldsAll(&[
            ";work ((command line):1)_[lua]",
            ";work ((command line):1)_[luajit]",
            ";main::work_[perl]",
            ";work_[php]",
            ";Object#work_[rb]",
            ";work_[py]",
        ]),
    ),
];

/// Programs that are loaded to be run in passing and are not listed, with the step that cannot pass without them: the kernel's
/// own names of its functions come from one, their code from another, the depth of a PID namespace from a third.
const IN_PASSING: &[(&str, &str)] = &[
    ("name_symbol", "kernel-stacks"),
    ("own_cgroup", "cgroup"),
    ("own_level", "namespace"),
    ("read_text", "kernel-text"),
];

/// Programs that are loaded from some version on alone: where mappings have locks of their own.
const LATER: &[(&str, (u32, u32))] = &[("fault_locks", (6, 4)), ("fault_unlocks", (6, 4))];

/// Whether a kernel is too old for a program.
fn is_too_old(kernel: Option<&str>, program: &str) -> bool {
    let version = kernel.and_then(|kernel| {
        let mut numbers = kernel.split('.').map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    let since = LATER.iter().find(|(later, _)| *later == program);
    since.is_some_and(|(_, since)| version.is_some_and(|version: (u32, u32)| version < *since))
}

/// The name of each check.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    ["programs"]
        .into_iter()
        .chain(STEPS.iter().map(|expected| expected.step))
}

/// Judges a machine; `programs` are those that the BPF object holds. One result for each of [`names`], in that order.
pub(super) fn judge(log: &Log, programs: &[String]) -> Vec<Result<(), String>> {
    let steps: Vec<_> = STEPS.iter().map(|expected| expected.find(log)).collect();
    let passed = |name: &str| {
        let mut all = STEPS.iter().zip(&steps);
        all.any(|(expected, verdict)| expected.step == name && verdict.is_ok())
    };
    let verified = log.verified();
    let missing: Vec<&str> = programs
        .iter()
        .map(String::as_str)
        .filter(|name| {
            let listed = verified.iter().any(|loaded| loaded.program == *name);
            let run = IN_PASSING
                .iter()
                .any(|(program, step)| program == name && passed(step));
            !listed && !run && !is_too_old(log.kernel.as_deref(), name)
        })
        .collect();
    let loaded = if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("no step loaded {}", missing.join(", ")))
    };
    [loaded].into_iter().chain(steps).collect()
}

impl Expected {
    fn find(&self, log: &Log) -> Result<(), String> {
        let step = log.steps.iter().find(|step| step.name == self.step);
        self.judge(step.ok_or("the machine never came to it")?)
    }

    fn judge(&self, step: &Step) -> Result<(), String> {
        let Some(exit) = step.exit else {
            return Err("it did not end".to_owned());
        };
        if exit != self.exit {
            let last = step.errors.last().map_or("nothing", String::as_str);
            return Err(format!(
                "exit code {exit} instead of {}, and it said: {last}",
                self.exit
            ));
        }
        let recorded = balance(&step.errors)?;
        let stacks = folded(&step.out);
        let total: u64 = stacks.iter().map(|(_, weight)| weight).sum();
        let counted = !matches!(self.shape, Shape::Waits(_));
        if recorded == 0 || (counted && total != recorded) {
            return Err(format!(
                "{recorded} samples recorded and {total} in the stacks"
            ));
        }
        self.shape.judge(&stacks, total)
    }
}

impl Shape {
    fn judge(&self, stacks: &[(&str, u64)], total: u64) -> Result<(), String> {
        let holding = |frames: &str| -> u64 {
            let holding = stacks.iter().filter(|(stack, _)| stack.contains(frames));
            holding.map(|(_, weight)| weight).sum()
        };
        match self {
            Self::Holds(frames) | Self::Waits(frames) if holding(frames) > 0 => Ok(()),
            Self::Holds(frames) | Self::Waits(frames) => Err(format!("no stack holds {frames}")),
            Self::HoldsAll(all) => match all.iter().find(|frames| holding(frames) == 0) {
                Some(frames) => Err(format!("no stack holds {frames}")),
                None => Ok(()),
            },
            Self::Shares => {
                let work = holding(WORK);
                if work * 100 < total * (100 - MISSED) {
                    return Err(format!("only {work} of {total} samples are in {WORK}"));
                }
                let shares = CHAINS.map(|chain| holding(&format!("{WORK}{chain};")));
                if !shares.is_sorted_by(|one, next| one > next) || shares.contains(&0) {
                    return Err(format!("{CHAINS:?} should fall, and are {shares:?}"));
                }
                Ok(())
            }
            Self::Complete => {
                if let Some((stack, _)) = stacks.iter().find(|(stack, _)| !is_complete(stack)) {
                    return Err(format!(
                        "{stack} does not lead from the start along the chain"
                    ));
                }
                at_least(30, total, "led to its end", holding(&TWELVE.join(";")))
            }
            Self::Whole => at_least(90, total, "hold it", holding(&TWELVE.join(";"))),
            Self::Marked(mark) => {
                let strange = stacks.iter().find(|(stack, _)| !is_honest(stack, mark));
                if let Some((stack, _)) = strange {
                    return Err(format!("{stack} holds what was not called there"));
                }
                at_least(50, total, "are marked", holding(&format!(";{mark};")))
            }
        }
    }
}

fn at_least(percent: u64, total: u64, what: &str, weight: u64) -> Result<(), String> {
    if weight * 100 >= total * percent {
        Ok(())
    } else {
        Err(format!("only {weight} of {total} samples {what}"))
    }
}

/// Whether a stack leads from the process's first function along [`TWELVE`], as far as it goes.
fn is_complete(stack: &str) -> bool {
    let frames: Vec<&str> = stack.split(';').skip(1).collect();
    let Some(main) = frames.iter().position(|frame| *frame == TWELVE[0]) else {
        return false;
    };
    let chain = &frames[main..];
    frames[0] == "_start" && (1..=1 + BETWEEN).contains(&main) && TWELVE.starts_with(chain)
}

/// Whether a stack has, but for a mark at its root, only frames of [`TWELVE`], in their order.
fn is_honest(stack: &str, mark: &str) -> bool {
    let mut left = TWELVE.iter();
    stack
        .split(';')
        .skip(1)
        .skip_while(|frame| *frame == mark)
        .all(|frame| left.any(|function| *function == frame))
}

/// The stacks among the lines, with their weights.
fn folded(lines: &[String]) -> Vec<(&str, u64)> {
    let read = |line: &'_ String| -> Option<u64> { line.rsplit_once(' ')?.1.parse().ok() };
    lines
        .iter()
        .filter_map(|line| Some((line.rsplit_once(' ')?.0, read(line)?)))
        .collect()
}

/// How many samples the first of those recorded that have a balance, if every firing of each ended in exactly one place.
/// Where there are several, the lines of each begin with its name and a blank.
fn balance(errors: &[String]) -> Result<u64, String> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for (whose, counter) in errors
        .iter()
        .filter_map(|line| line.split_once("counter: "))
    {
        match all.iter_mut().find(|(known, _)| *known == whose) {
            Some((_, counters)) => counters.push(counter),
            None => all.push((whose, vec![counter])),
        }
    }
    let mut first = None;
    for (whose, counters) in &all {
        let recorded = balance_of(counters).map_err(|wrong| format!("{whose}{wrong}"))?;
        first.get_or_insert(recorded);
    }
    first.ok_or_else(|| "it printed no counters".to_owned())
}

fn balance_of(counters: &[&str]) -> Result<u64, String> {
    let (mut fired, mut recorded, mut others) = (None, None, 0);
    for counter in counters {
        let Some((name, value)) = counter.rsplit_once(' ') else {
            continue;
        };
        let value: u64 = value
            .parse()
            .map_err(|_| format!("a counter is no number: {counter}"))?;
        match name {
            "fired" => fired = Some(value),
            "recorded" => recorded = Some(value),
            _ if name.starts_with("filtered-") || name.starts_with("lost-") => others += value,
            _ => (),
        }
    }
    let (Some(fired), Some(recorded)) = (fired, recorded) else {
        return Err("it does not say how often it fired".to_owned());
    };
    if fired == recorded + others {
        Ok(recorded)
    } else {
        Err(format!(
            "{fired} firings, of which {recorded} were recorded and {others} filtered or lost"
        ))
    }
}

#[cfg(test)]
mod tests;
