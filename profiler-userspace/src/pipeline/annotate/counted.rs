//! Weights of all functions of a profile whose addresses are known, and the choice among these functions.
//!
//! In: a profile whose named locations have places. Out: one function, and what was counted at each of its addresses.
//! Pure.

use crate::profile::fold::visible;
use crate::profile::select::Pattern;
use crate::profile::{FrameKind, Location, MappingIndex, Profile, Sample};
use anyhow::{Result, bail, ensure};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Other functions that are named beside the one that is shown.
const MAX_OTHERS: usize = 5;

/// A place that code lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Home {
    /// An object. Addresses are as in its file.
    Object(MappingIndex),
    /// The kernel. Addresses are counted from the beginning of the function.
    Kernel,
    /// Memory of a process, by its ID and start, that a runtime made code in. Addresses are the process's.
    Process { pid: u32, start: u64 },
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) home: Home,
}

/// Weights of a function.
#[derive(Default)]
pub(super) struct Counted {
    /// In it, and in what it called.
    pub(super) total: u64,
    /// In it alone.
    pub(super) itself: u64,
    /// By address: in the instruction there, and in that and what it called.
    pub(super) addresses: BTreeMap<u64, [u64; 2]>,
}

/// Home of a location: which process is known by the sample alone.
#[derive(Clone, Copy)]
enum Within {
    Object(MappingIndex),
    Kernel,
    Process,
}

/// A location in a function: the number of its name, its home, and its address there.
type LocationKey = (u32, Within, u64);

/// All functions of a profile that have addresses.
pub(super) fn functions(profile: &Profile) -> Vec<(Key, Counted)> {
    let mut names: HashMap<String, u32> = HashMap::new();
    let known: Vec<Option<LocationKey>> = (profile.locations().iter())
        .map(|location| {
            // Of a place in something named, the address is one more: 0 is none.
            let (within, address) = match (location.kind, location.mapping) {
                (_, _) if location.address == 0 => return None,
                (FrameKind::Kernel, _) => (Within::Kernel, location.address - 1),
                (FrameKind::Jit, None) => (Within::Process, location.address - 1),
                (FrameKind::User | FrameKind::Inlined, Some(mapping)) => {
                    (Within::Object(mapping), location.address)
                }
                _ => return None,
            };
            let function = profile.lines_at(location).last()?.function;
            let next = names.len() as u32;
            let name = &profile.function_at(function).name;
            let number = *names.entry(name.clone()).or_insert(next);
            Some((number, within, address))
        })
        .collect();
    let mut all: HashMap<(u32, Home), Counted> = HashMap::new();
    for sample in profile.samples() {
        count(profile, sample, &known, &mut all);
    }
    let mut by_number: Vec<&String> = names.keys().collect();
    by_number.sort_unstable_by_key(|name| names[*name]);
    let key = |(name, home): (u32, Home)| Key {
        name: by_number[name as usize].clone(),
        home,
    };
    all.into_iter()
        .map(|(function, counted)| (key(function), counted))
        .collect()
}

/// Adds a sample to all functions of its stacks.
fn count(
    profile: &Profile,
    sample: &Sample,
    known: &[Option<LocationKey>],
    all: &mut HashMap<(u32, Home), Counted>,
) {
    let labels = profile.labels_at(sample.labels);
    let add = |sum: &mut u64| *sum = sum.saturating_add(sample.weight);
    let (mut met, mut met_at) = (HashSet::new(), HashSet::new());
    // Time in the kernel is of the instruction that asked for it, but not its own.
    let leaf = sample.kernel.or(sample.user);
    for stack in [sample.kernel, sample.user].into_iter().flatten() {
        let locations = profile.stack_at(stack).locations().enumerate();
        for (depth, location) in locations {
            let Some((name, within, address)) = known[location.0 as usize] else {
                continue;
            };
            let home = match (within, labels.pid) {
                (Within::Object(mapping), _) => Home::Object(mapping),
                (Within::Kernel, _) => Home::Kernel,
                (Within::Process, Some(pid)) => Home::Process {
                    pid,
                    start: labels.start,
                },
                (Within::Process, None) => continue,
            };
            let counted = all.entry((name, home)).or_default();
            if met.insert((name, home)) {
                add(&mut counted.total);
            }
            let [itself, total] = counted.addresses.entry(address).or_default();
            if met_at.insert((name, home, address)) {
                add(total);
            }
            if depth == 0 && Some(stack) == leaf {
                add(itself);
                add(&mut counted.itself);
            }
        }
    }
}

impl Counted {
    /// The weight of all instructions.
    pub(super) fn of_instructions(&self) -> u64 {
        let own = self.addresses.values().map(|[itself, _]| *itself);
        own.fold(0, u64::saturating_add)
    }
}

/// The function that is meant, and a line on others that are as well.
pub(super) fn choose(
    mut all: Vec<(Key, Counted)>,
    wanted: &str,
    (profile, unnamed): (&Profile, &str),
) -> Result<(Key, Counted, Option<String>)> {
    ensure!(
        !all.is_empty(),
        "there is no code in this recording whose addresses are known; raw recordings (-o NAME.fbpf) keep them"
    );
    all.sort_by(|(key, counted), (other, of_other)| {
        let weight = |counted: &Counted| Reverse((counted.itself, counted.total));
        (weight(counted), key).cmp(&(weight(of_other), other))
    });
    let is_exact = all.iter().any(|(key, _)| key.name == wanted);
    // `operator[]` is a name and no regular expression.
    let pattern = Pattern::parse(wanted).ok();
    let is_meant = |name: &str| match &pattern {
        _ if is_exact => name == wanted,
        Some(pattern) => pattern.is_met_by(name),
        None => name.contains(wanted),
    };
    let meant: Vec<usize> = (0..all.len())
        .filter(|at| is_meant(&all[*at].0.name))
        .collect();
    let Some((&first, others)) = meant.split_first() else {
        let hottest: Vec<String> = (all.iter().take(MAX_OTHERS))
            .map(|(key, _)| format!("`{}`", visible(&key.name)))
            .collect();
        if let Some(name) = of_runtime(profile, is_meant) {
            bail!(
                "`{}` is named by its runtime's memory, which tells no addresses; have the runtime write a map, as \
                 `node --perf-basic-prof` and `jcmd PID Compiler.perfmap` do, and record with --no-runtimes",
                visible(name)
            );
        }
        bail!(
            "no function of this recording whose addresses are known matches `{}`: it may have been compiled into \
             another, which `render --inline` shows; the hottest are {}{unnamed}",
            visible(wanted),
            hottest.join(", ")
        );
    };
    let home = |home| match home {
        Home::Object(mapping) => {
            visible(&profile.mappings()[mapping.0 as usize].module).into_owned()
        }
        Home::Kernel => "kernel".to_owned(),
        Home::Process { pid, .. } => format!("PID {pid}"),
    };
    let named: Vec<String> = (others.iter().take(MAX_OTHERS))
        .map(|at| &all[*at].0)
        .map(|key| format!("{} ({})", visible(&key.name), home(key.home)))
        .collect();
    let more = match others.len().saturating_sub(named.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let others =
        (!named.is_empty()).then(|| format!("it matches also: {}{more}", named.join(", ")));
    let (key, counted) = all.swap_remove(first);
    Ok((key, counted, others))
}

/// A function that a runtime's memory names, if one is meant.
fn of_runtime(profile: &Profile, is_meant: impl Fn(&str) -> bool) -> Option<&str> {
    let is_interpreted = |location: &&Location| matches!(location.kind, FrameKind::Interpreted(_));
    let all = profile.locations().iter().filter(is_interpreted);
    let lines = all.filter_map(|location| profile.lines_at(location).last());
    let mut names = lines.map(|line| &*profile.function_at(line.function).name);
    names.find(|name| is_meant(name))
}
