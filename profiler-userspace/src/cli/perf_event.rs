//! The names of events: perf's, so that habits keep working.
//!
//! In: what was typed behind `-e`. Out: an [`PerfEvent`] under its canonical name, or a sentence that
//! lists the nearest names. Never: asks whether this machine has the event.
//!
//! The numbers are those of `perf_event_open`, see `include/uapi/linux/perf_event.h` in the kernel.

use std::borrow::Cow;

use crate::plan::PerfEvent;
use crate::plan::PerfEventKind::{self, Hardware, HardwareCache, Raw, Software};

/// Canonical name, other names for it, family, number.
type EventNames = (&'static str, &'static [&'static str], PerfEventKind, u64);

/// Left out: `dummy` and `bpf-output`, which never count anything.
const NAMED: &[EventNames] = &[
    ("cycles", &["cpu-cycles"], Hardware, 0),
    ("instructions", &[], Hardware, 1),
    ("cache-references", &[], Hardware, 2),
    ("cache-misses", &[], Hardware, 3),
    ("branches", &["branch-instructions"], Hardware, 4),
    ("branch-misses", &[], Hardware, 5),
    ("bus-cycles", &[], Hardware, 6),
    (
        "stalled-cycles-frontend",
        &["idle-cycles-frontend"],
        Hardware,
        7,
    ),
    (
        "stalled-cycles-backend",
        &["idle-cycles-backend"],
        Hardware,
        8,
    ),
    ("ref-cycles", &[], Hardware, 9),
    ("cpu-clock", &[], Software, 0),
    ("task-clock", &[], Software, 1),
    ("page-faults", &["faults"], Software, 2),
    ("context-switches", &["cs"], Software, 3),
    ("cpu-migrations", &["migrations"], Software, 4),
    ("minor-faults", &[], Software, 5),
    ("major-faults", &[], Software, 6),
    ("alignment-faults", &[], Software, 7),
    ("emulation-faults", &[], Software, 8),
    ("cgroup-switches", &[], Software, 11),
];

const LOAD: u64 = 0;
const STORE: u64 = 1;
const PREFETCH: u64 = 2;

/// Canonical name, other names for it, number, and the operations that the kernel can count.
type Cache = (&'static str, &'static [&'static str], u64, &'static [u64]);

const CACHES: &[Cache] = &[
    (
        "L1-dcache",
        &["l1-d", "l1d", "L1-data"],
        0,
        &[LOAD, STORE, PREFETCH],
    ),
    (
        "L1-icache",
        &["l1-i", "l1i", "L1-instruction"],
        1,
        &[LOAD, PREFETCH],
    ),
    ("LLC", &["L2"], 2, &[LOAD, STORE, PREFETCH]),
    ("dTLB", &["d-tlb", "Data-TLB"], 3, &[LOAD, STORE, PREFETCH]),
    ("iTLB", &["i-tlb", "Instruction-TLB"], 4, &[LOAD]),
    ("branch", &["bpu", "btb", "bpc"], 5, &[LOAD]),
    ("node", &[], 6, &[LOAD, STORE, PREFETCH]),
];

/// An operation of a cache: its number, whether only misses are counted, and the suffixes that stand for it,
/// the canonical one first.
type CacheOp = (u64, bool, &'static [&'static str]);

const CACHE_OPS: &[CacheOp] = &[
    (
        LOAD,
        false,
        &["-loads", "-load", "-read", "-load-refs", "-refs"],
    ),
    (
        LOAD,
        true,
        &[
            "-load-misses",
            "-loads-misses",
            "-read-misses",
            "-load-miss",
            "-misses",
            "-miss",
        ],
    ),
    (
        STORE,
        false,
        &["-stores", "-store", "-write", "-store-refs"],
    ),
    (
        STORE,
        true,
        &[
            "-store-misses",
            "-stores-misses",
            "-write-misses",
            "-store-miss",
        ],
    ),
    (
        PREFETCH,
        false,
        &["-prefetches", "-prefetch", "-prefetch-refs"],
    ),
    (
        PREFETCH,
        true,
        &["-prefetch-misses", "-prefetches-misses", "-prefetch-miss"],
    ),
];

/// More near matches than this are noise.
const NEAR_MATCHES: usize = 3;

/// Jaro-Winkler similarity, from 0 to 1, below which names have nothing to do with each other.
const NEAR: f64 = 0.75;

/// Reads the name of an event.
///
/// # Errors
/// A sentence for a name that stands for no event we can sample.
pub(super) fn parse(name: &str) -> Result<PerfEvent, String> {
    named(name)
        .or_else(|| cache(name))
        .or_else(|| raw(name))
        .ok_or_else(|| refusal(name))
}

fn named(name: &str) -> Option<PerfEvent> {
    let &(canonical, _, kind, config) = NAMED
        .iter()
        .find(|(canonical, aliases, ..)| *canonical == name || aliases.contains(&name))?;
    Some(PerfEvent::new(canonical, kind, config))
}

fn cache(name: &str) -> Option<PerfEvent> {
    for &(cache, aliases, number, ops) in CACHES {
        for alias in std::iter::once(&cache).chain(aliases) {
            let Some((head, tail)) = name.split_at_checked(alias.len()) else {
                continue;
            };
            if !head.eq_ignore_ascii_case(alias) {
                continue;
            }
            for &(op, missed, suffixes) in CACHE_OPS {
                if ops.contains(&op)
                    && suffixes
                        .iter()
                        .any(|suffix| suffix.eq_ignore_ascii_case(tail))
                {
                    return Some(PerfEvent {
                        name: Cow::Owned(format!("{cache}{}", suffixes[0])),
                        kind: HardwareCache,
                        config: number | op << 8 | u64::from(missed) << 16,
                    });
                }
            }
        }
    }
    None
}

/// `r` and hexadecimal digits: the number that the processor's manual gives.
fn raw(name: &str) -> Option<PerfEvent> {
    let digits = name.strip_prefix('r')?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    Some(PerfEvent {
        name: Cow::Owned(name.to_owned()),
        kind: Raw,
        config: u64::from_str_radix(digits, 16).ok()?,
    })
}

fn refusal(name: &str) -> String {
    if name.contains(',') {
        let each: Vec<String> = name.split(',').map(|one| format!("-e {one}")).collect();
        return format!("each event takes its own -e: {}", each.join(" "));
    }
    if name.contains('/') {
        return "flame-bpf does not know names of PMUs; write the event's number from the processor's manual as rNNN, in \
                hexadecimal"
            .to_owned();
    }
    if let Some((perf_event, modifiers)) = name.split_once(':') {
        return if parse(perf_event).is_ok() {
            format!(
                "modifiers such as `:{modifiers}` are not supported; use -e {perf_event}, with -U for user \
                 stacks only or -K for kernel stacks only"
            )
        } else {
            "a tracepoint is written CATEGORY:NAME, such as sched:sched_switch".to_owned()
        };
    }
    let near = near(name);
    if near.is_empty() {
        "no such event; `flame-bpf --help` lists them".to_owned()
    } else {
        format!("no such event; similar: {}", near.join(", "))
    }
}

fn near(name: &str) -> Vec<String> {
    let wanted = name.to_ascii_lowercase();
    let mut scored: Vec<(f64, String)> = names()
        .map(|known| {
            (
                strsim::jaro_winkler(&wanted, &known.to_ascii_lowercase()),
                known,
            )
        })
        .filter(|(score, _)| *score >= NEAR)
        .collect();
    scored.sort_by(|left, right| right.0.total_cmp(&left.0));
    scored
        .into_iter()
        .take(NEAR_MATCHES)
        .map(|(_, known)| known)
        .collect()
}

/// All canonical names.
fn names() -> impl Iterator<Item = String> {
    let named = NAMED.iter().map(|(name, ..)| (*name).to_owned());
    let caches = CACHES.iter().flat_map(|&(cache, _, _, ops)| {
        let of_this = CACHE_OPS.iter().filter(|(op, ..)| ops.contains(op));
        of_this.map(move |(_, _, suffixes)| format!("{cache}{}", suffixes[0]))
    });
    named.chain(caches)
}

/// The paragraph of `--help` that lists what there is, made from the tables so that it stays true.
pub(super) fn list() -> String {
    let of = |wanted: PerfEventKind| {
        let rows = NAMED.iter().filter(|(_, _, kind, _)| *kind == wanted);
        rows.map(|(name, aliases, ..)| match aliases {
            [] => (*name).to_owned(),
            _ => format!("{name} ({})", aliases.join(", ")),
        })
        .collect::<Vec<_>>()
        .join(", ")
    };
    let caches: Vec<&str> = CACHES.iter().map(|(name, ..)| *name).collect();
    format!(
        "Events of the processor, where it has counters:\n{}; of its caches: {} with -loads, \
         -load-misses, -stores, -store-misses, -prefetches or -prefetch-misses; rNNN for the number \
         in its manual.\n\nEvents of the kernel, everywhere:\n{}.",
        of(Hardware),
        caches.join(", "),
        of(Software),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_names_and_aliases_mean_what_they_mean_to_perf() {
        for (typed, kind, config, canonical) in [
            ("cycles", Hardware, 0, "cycles"),
            ("cpu-cycles", Hardware, 0, "cycles"),
            ("branch-misses", Hardware, 5, "branch-misses"),
            ("ref-cycles", Hardware, 9, "ref-cycles"),
            ("cs", Software, 3, "context-switches"),
            ("faults", Software, 2, "page-faults"),
            ("cgroup-switches", Software, 11, "cgroup-switches"),
            (
                "L1-dcache-load-misses",
                HardwareCache,
                0x1_0000,
                "L1-dcache-load-misses",
            ),
            ("l1d-loads", HardwareCache, 0, "L1-dcache-loads"),
            (
                "LLC-store-misses",
                HardwareCache,
                0x1_0102,
                "LLC-store-misses",
            ),
            ("llc-misses", HardwareCache, 0x1_0002, "LLC-load-misses"),
            ("dTLB-prefetches", HardwareCache, 0x203, "dTLB-prefetches"),
            ("branch-loads", HardwareCache, 5, "branch-loads"),
            ("node-stores", HardwareCache, 0x106, "node-stores"),
            ("r1A8", Raw, 0x1a8, "r1A8"),
        ] {
            let perf_event = parse(typed).unwrap_or_else(|refusal| panic!("{typed}: {refusal}"));
            assert_eq!(
                (perf_event.kind, perf_event.config, &*perf_event.name),
                (kind, config, canonical),
                "{typed}"
            );
        }
    }

    #[test]
    fn every_listed_name_parses_to_itself() {
        let mut configs = std::collections::HashSet::new();
        for name in names() {
            let perf_event = parse(&name).unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
            assert_eq!(perf_event.name, name);
            assert!(
                configs.insert((perf_event.kind as u32, perf_event.config)),
                "{name} repeats a number"
            );
        }
        assert!(configs.len() > 40);
    }

    #[test]
    fn impossible_cache_events_are_refused() {
        for name in [
            "iTLB-stores",
            "branch-store-misses",
            "L1-icache-stores",
            "L1-dcache",
            "é-loads",
        ] {
            assert!(parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_misspelt_event_lists_similar_ones() {
        for (typed, meant) in [
            ("page-fault", "page-faults"),
            ("cyles", "cycles"),
            ("Instructions", "instructions"),
            ("cpuclock", "cpu-clock"),
            ("contextswitches", "context-switches"),
            ("llc-load-mises", "LLC-load-misses"),
        ] {
            let refusal = parse(typed).unwrap_err();
            assert!(
                refusal.contains(&format!("similar: {meant}")),
                "{typed}: {refusal}"
            );
        }
        assert!(parse("zzz").unwrap_err().contains("--help"));
    }

    #[test]
    fn unsupported_perf_notations_are_answered_with_a_remedy() {
        assert!(parse("cycles:u").unwrap_err().contains("-e cycles"));
        assert!(
            parse("cycles,instructions")
                .unwrap_err()
                .contains("-e cycles -e instructions")
        );
        assert!(parse("cpu/perf_event=0x3c/").unwrap_err().contains("rNNN"));
        assert!(
            parse("sched:sched_switch")
                .unwrap_err()
                .contains("tracepoint")
        );
        for not_a_number in ["r", "rxyz", "r11112222333344445"] {
            assert!(parse(not_a_number).is_err(), "{not_a_number}");
        }
    }
}
