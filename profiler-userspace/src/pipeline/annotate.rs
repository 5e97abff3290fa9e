//! Conducts an annotation: one native function of a recording, instruction by instruction.
//!
//! In: a recording and a function's name. Out: text. Weights are the recording's; code is that of the object that was
//! recorded, by its build ID, and where that is not here, that is what there is to say.
//! Never: code of another build.

use crate::clock::Between;
use crate::code::listing::{self, Stretch};
use crate::debuginfod::{Client, Limits};
use crate::input::Time;
use crate::object::BuildId;
use crate::object::{Elf, ElfAddress, Fetch, Image, RegularFile};
use crate::output::{Annotation, Instruction, InstructionPlace};
use crate::pipeline::pieces::{self, Asked};
use crate::pipeline::source::Directories;
use crate::pipeline::symbolize::Symbolizer;
use crate::pipeline::together::Together;
use crate::plan::Annotating;
use crate::profile::fold::visible;
use crate::profile::select::Pattern;
use crate::profile::{Mapping, MappingIndex, Profile};
use crate::report::print;
use crate::symbolize::{self, Naming, ObjectFrame};
use crate::text::number::{amount, share};
use anyhow::{Result, bail, ensure};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::time::SystemTime;

/// Other functions that are named beside the one that is shown.
const MOST_OTHERS: usize = 5;

/// The label of findings on code without names.
const UNNAMED: &str = "unnamed";

/// A function in an object: the name, and what it lies in.
type Key = (String, MappingIndex);

/// Weights of a function.
#[derive(Default)]
struct Counted {
    /// In it, and in what it called.
    total: u64,
    /// In it alone.
    itself: u64,
    /// By address in the object: in the instruction there, and in that and what it called.
    addresses: BTreeMap<u64, [u64; 2]>,
}

/// The annotation as text.
///
/// # Errors
/// When the recording cannot be read, when no native function of it meets the name, or when there is no code to show.
pub fn annotate(asked: &Annotating) -> Result<String> {
    let directories = Directories::open(&asked.source)?;
    let naming = Naming {
        // One name for each address; lines come when it is known which function.
        lines: false,
        inlined: false,
        ..asked.naming.clone()
    };
    let (profile, unnamed) = read(asked, &naming)?;
    let all = functions(&profile);
    let (key, others) = choose(&all, &asked.function, (&profile, &unnamed))?;
    let counted = &all[&key];
    let (name, mapping) = (&key.0, &profile.mappings()[key.1.0 as usize]);
    let (file, elf) = open(mapping, &profile)?;
    let Ok(image) = Image::read(&file.file) else {
        bail!(
            "{} is no object for this machine's instructions, which are all that can be shown",
            visible(&mapping.path.display().to_string())
        );
    };
    let addresses: Vec<u64> = counted.addresses.keys().copied().collect();
    let stretches = listing::stretches(&image, &elf, &addresses);
    ensure!(
        !stretches.is_empty(),
        "nothing says where the code of `{}` begins and ends: {} has neither unwind tables nor symbols for it",
        visible(name),
        visible(&mapping.module)
    );
    let namer = Namer {
        mapping,
        file: &file,
        asked,
    };
    let names = namer.targets(&stretches)?;
    let places = namer.places(&stretches, name)?;
    let mut annotation = Annotation {
        total: counted.total,
        ..Annotation::default()
    };
    let mut outside = counted.total_of(|_| true);
    for stretch in &stretches {
        let mut rows: Vec<Instruction> = (stretch.text(&names).into_iter())
            .map(|listed| Instruction {
                place: places.get(&listed.address).cloned(),
                address: listed.address,
                text: listed.text,
                ..Instruction::default()
            })
            .collect();
        for (address, [itself, total]) in &counted.addresses {
            if let Some(place) = stretch.place(*address) {
                rows[place].itself += itself;
                rows[place].total += total;
                outside = outside.saturating_sub(*itself);
            }
        }
        annotation.stretches.push(rows);
    }
    if asked.naming.lines && places.is_empty() {
        print(
            "flame-bpf: no lines are known of it: debug information is missing (compile with -g, or --debuginfod)\n",
        );
    }
    let lines = places.values().map(|place| (&place.file, place.line));
    let found = directories.find_lines(lines, profile.origin.started);
    if let Some(finding) = found.finding {
        print(&format!("flame-bpf: {}: {}\n", finding.label, finding.text));
    }
    annotation.source = found.text.map(|text| (*text).clone()).unwrap_or_default();
    annotation.head = head(&profile, (&key, counted), mapping, outside);
    annotation.head.extend(others);
    Ok(annotation.text())
}

/// The profile of the recording, and what there is to say of code without names.
fn read(asked: &Annotating, naming: &Naming) -> Result<(Profile, String)> {
    let between = Between {
        from: asked.from,
        to: asked.to,
    };
    let time = |began: SystemTime| between.of(began);
    let time: Time<'_> = &time;
    let symbolizer = Symbolizer::new(naming, &asked.servers, false);
    let files = Asked {
        files: std::slice::from_ref(&asked.file),
        time: (asked.from.is_some() || asked.to.is_some()).then_some(time),
        times: &[],
        windows: 1,
        cgroups: &[],
        sample_type: None,
        root_per: None,
        lines: false,
        quiet: false,
    };
    let mut together = Together::default();
    pieces::each(files, &mut |number, piece| together.add(number, piece))?;
    let (profile, told) = together.finish(&symbolizer)?;
    let unnamed = told.summary.findings.into_iter();
    let unnamed = unnamed.filter(|finding| finding.label == UNNAMED);
    let unnamed = unnamed.map(|finding| format!("; {UNNAMED}: {}", finding.text));
    Ok((profile, unnamed.collect()))
}

/// All native functions of a profile, and what was counted in them.
fn functions(profile: &Profile) -> HashMap<Key, Counted> {
    let key_of = |index: usize| -> Option<(Key, u64)> {
        let location = &profile.locations()[index];
        let mapping = location.mapping.filter(|_| location.address > 0)?;
        let function = profile.lines_at(location).last()?.function;
        let name = profile.function_at(function).name.clone();
        location
            .kind
            .is_user()
            .then_some(((name, mapping), location.address))
    };
    let keys: Vec<Option<(Key, u64)>> = (0..profile.locations().len()).map(key_of).collect();
    let mut all: HashMap<Key, Counted> = HashMap::new();
    for sample in profile.samples() {
        let Some(user) = sample.user else {
            continue;
        };
        let locations = &profile.stack_at(user).locations;
        let mut met: HashSet<&Key> = HashSet::new();
        let mut met_at: HashSet<(&Key, u64)> = HashSet::new();
        for (depth, location) in locations.iter().enumerate() {
            let Some((key, address)) = &keys[location.0 as usize] else {
                continue;
            };
            if !all.contains_key(key) {
                all.insert(key.clone(), Counted::default());
            }
            let counted = all.get_mut(key).expect("it was added");
            let add = |sum: &mut u64| *sum = sum.saturating_add(sample.weight);
            if met.insert(key) {
                add(&mut counted.total);
            }
            let [itself, total] = counted.addresses.entry(*address).or_default();
            if met_at.insert((key, *address)) {
                add(total);
            }
            // Time in the kernel is of the instruction that asked for it, but not its own.
            if depth == 0 && sample.kernel.is_none() {
                add(itself);
                add(&mut counted.itself);
            }
        }
    }
    all
}

impl Counted {
    /// The weight of instructions at some addresses.
    fn total_of(&self, is_wanted: impl Fn(u64) -> bool) -> u64 {
        let wanted = self
            .addresses
            .iter()
            .filter(|(address, _)| is_wanted(**address));
        wanted.fold(0, |sum, (_, [itself, _])| sum.saturating_add(*itself))
    }
}

/// The function that is meant, and a line on others that are as well.
fn choose(
    all: &HashMap<Key, Counted>,
    wanted: &str,
    (profile, unnamed): (&Profile, &str),
) -> Result<(Key, Option<String>)> {
    ensure!(
        !all.is_empty(),
        "there is no native code in this recording whose addresses are known; raw recordings (-o NAME.fbpf) keep them"
    );
    let is_exact = all.keys().any(|(name, _)| name == wanted);
    // `operator[]` is a name and no regular expression.
    let pattern = Pattern::parse(wanted).ok();
    let is_meant = |name: &str| match &pattern {
        _ if is_exact => name == wanted,
        Some(pattern) => pattern.is_met_by(name),
        None => name.contains(wanted),
    };
    let mut meant: Vec<(&Key, &Counted)> = (all.iter())
        .filter(|((name, _), _)| is_meant(name))
        .collect();
    meant.sort_by_key(|(key, counted)| {
        (
            std::cmp::Reverse((counted.itself, counted.total)),
            (*key).clone(),
        )
    });
    let module = |key: &Key| visible(&profile.mappings()[key.1.0 as usize].module).into_owned();
    let Some((first, others)) = meant.split_first() else {
        let mut hottest: Vec<(&Key, &Counted)> = all.iter().collect();
        hottest.sort_by_key(|(key, counted)| (std::cmp::Reverse(counted.itself), (*key).clone()));
        let hottest: Vec<String> = (hottest.iter().take(MOST_OTHERS))
            .map(|((name, _), _)| format!("`{}`", visible(name)))
            .collect();
        bail!(
            "no native function of this recording matches `{}`: it may have been compiled into another, which \
             `render --inline` shows; the hottest are {}{unnamed}",
            visible(wanted),
            hottest.join(", ")
        );
    };
    let named: Vec<String> = (others.iter().take(MOST_OTHERS))
        .map(|(key, _)| format!("{} ({})", visible(&key.0), module(key)))
        .collect();
    let more = match others.len().saturating_sub(named.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let others =
        (!named.is_empty()).then(|| format!("it matches also: {}{more}", named.join(", ")));
    Ok((first.0.clone(), others))
}

/// The object that was recorded.
fn open(mapping: &Mapping, profile: &Profile) -> Result<(RegularFile, Elf)> {
    let path = visible(&mapping.path.display().to_string()).into_owned();
    let hex: String = mapping
        .build_id
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let build = match hex.is_empty() {
        true => String::new(),
        false => format!(" with build ID {hex}"),
    };
    let absent = |why: &str| {
        anyhow::anyhow!(
            "the code of {path}{build} is not here: {why}; run this where it was recorded, or put that file there"
        )
    };
    let file = RegularFile::open_within(Path::new("/"), &mapping.path)
        .map_err(|error| absent(&error.to_string()))?;
    let Some(elf) = Elf::read(&file.file) else {
        return Err(absent("the file is no object"));
    };
    let own = elf
        .build_id
        .as_ref()
        .map(BuildId::bytes)
        .unwrap_or_default();
    if own != &*mapping.build_id {
        return Err(absent("the file is another build"));
    }
    if own.is_empty() {
        // All that proves anything then.
        let written = file
            .file
            .metadata()
            .and_then(|status| status.modified())
            .ok();
        let is_older = written
            .zip(profile.origin.started)
            .is_some_and(|(written, began)| written <= began);
        ensure!(
            is_older,
            "{path} has no build ID and was written after the recording began, so it may be another build; link with \
             -Wl,--build-id and record again"
        );
    }
    Ok((file, elf))
}

/// Asks for names in an object.
struct Namer<'a> {
    mapping: &'a Mapping,
    file: &'a RegularFile,
    asked: &'a Annotating,
}

impl Namer<'_> {
    fn name(&self, addresses: &[u64], naming: &Naming) -> Result<Vec<Vec<ObjectFrame>>> {
        let client = Client::new(
            self.asked.servers.addresses(),
            Limits::from_environment(),
            |_| (),
        );
        let fetch = client.as_ref().map(|client| |id: &BuildId| client.find(id));
        let fetch = fetch.as_ref().map(|fetch| fetch as &Fetch<'_>);
        let addresses: Vec<ElfAddress> = addresses.iter().copied().map(ElfAddress).collect();
        let file = self.file.again()?;
        Ok(symbolize::name_object(file, &self.mapping.path, &addresses, naming, fetch).0)
    }

    /// The names of what the code calls and jumps to elsewhere.
    fn targets(&self, stretches: &[Stretch]) -> Result<HashMap<u64, String>> {
        let mut targets: Vec<u64> = stretches.iter().flat_map(Stretch::targets).collect();
        targets.sort_unstable();
        targets.dedup();
        let naming = Naming {
            lines: false,
            inlined: false,
            ..self.asked.naming.clone()
        };
        let names = self.name(&targets, &naming)?;
        let named = targets.into_iter().zip(names);
        Ok(named
            .filter_map(|(target, frames)| Some((target, frames.first()?.name.clone())))
            .collect())
    }

    /// Where each instruction of a function comes from, as far as that was asked for and is known.
    fn places(
        &self,
        stretches: &[Stretch],
        function: &str,
    ) -> Result<HashMap<u64, InstructionPlace>> {
        if !self.asked.naming.lines {
            return Ok(HashMap::new());
        }
        let addresses: Vec<u64> = stretches.iter().flat_map(Stretch::begins).collect();
        let naming = Naming {
            inlined: true,
            ..self.asked.naming.clone()
        };
        let names = self.name(&addresses, &naming)?;
        let place = |(address, frames): (u64, Vec<ObjectFrame>)| {
            let innermost = frames.last().filter(|frame| frame.line > 0)?;
            let is_inlined = frames.len() > 1 && innermost.name != function;
            Some((
                address,
                InstructionPlace {
                    inlined: if is_inlined {
                        innermost.name.clone()
                    } else {
                        String::new()
                    },
                    file: std::sync::Arc::clone(&innermost.file),
                    line: innermost.line,
                },
            ))
        };
        Ok(addresses.into_iter().zip(names).filter_map(place).collect())
    }
}

/// Lines above the instructions.
fn head(
    profile: &Profile,
    (key, counted): (&Key, &Counted),
    mapping: &Mapping,
    outside: u64,
) -> Vec<String> {
    let all = profile.total_weight();
    let unit = &profile.unit;
    let weight = |weight: u64| amount(unit.shown(weight), unit.noun());
    let of_all = |weight: u64| share(weight as f64, all as f64);
    let mut head = vec![
        format!("{} in {}", key.0, mapping.path.display()),
        format!(
            "{}, {} of all; {} itself; shares are of the first",
            weight(counted.total),
            of_all(counted.total),
            weight(counted.itself),
        ),
    ];
    if outside > 0 {
        head.push(format!(
            "{} at addresses whose code has no known bounds and is not shown",
            weight(outside)
        ));
    }
    head
}
