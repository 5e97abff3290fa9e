//! Conducts an annotation: one function of a recording, instruction by instruction.
//!
//! In: a recording and a function's name. Out: text. Weights are the recording's; code is that of the object or the kernel
//! that was recorded, by its build ID, or of the process if it still runs or left a dump, and where that is not here, that is what
//! there is to say.
//! Never: code of another build.

mod counted;
mod kernel;
mod made;

use crate::clock::Between;
use crate::code::listing::{self, Stretch};
use crate::debuginfod::{Client, Limits};
use crate::input::Time;
use crate::object::BuildId;
use crate::object::{Elf, ElfAddress, Fetch, Image, RegularFile};
use crate::output::{Annotation, Instruction, SourceLocation};
use crate::pipeline::pieces::{self, InputRequest};
use crate::pipeline::source::Directories;
use crate::pipeline::symbolize::Symbolizer;
use crate::pipeline::together::{MISSING, Together};
use crate::plan::{Annotating, Recorded};
use crate::profile::fold::visible;
use crate::profile::{Mapping, Profile};
use crate::report::findings::Finding;
use crate::report::names::on_fetching;
use crate::report::print;
use crate::symbolize::{self, Naming, ObjectFrame, running_kernel};
use crate::text::number::{amount, share};
use anyhow::{Result, bail, ensure};
use counted::{Counted, Home, Key, choose};
use std::collections::HashMap;
use std::path::Path;
use std::time::SystemTime;

/// Said where lines were asked for and there are none.
const NO_LINES: &str = "no lines are known of it";

/// The label of findings on code without names.
const UNNAMED: &str = "unnamed";

/// The annotation as text, from a raw recording: the one that was asked for, or that was made for it.
///
/// # Errors
/// When the recording cannot be read, when no native function of it meets the name, or when there is no code to show.
pub fn annotate(asked: &Annotating, file: &Path) -> Result<String> {
    let directories = Directories::open(&asked.source, &asked.servers)?;
    let naming = Naming {
        // One name for each address; lines come when it is known which function.
        lines: false,
        inlined: false,
        places: true,
        ..asked.naming.clone()
    };
    let (profile, unnamed) = read(asked, file, &naming)?;
    let all = counted::functions(&profile);
    let (key, counted, others) = choose(all, &asked.function, (&profile, &unnamed))?;
    let mut code = match key.home {
        Home::Object(mapping) => {
            let mapping = &profile.mappings()[mapping.0 as usize];
            of_object(asked, &key.name, mapping, &counted, &profile)?
        }
        Home::Kernel => {
            let is_now = matches!(asked.recorded, Recorded::Now(_));
            of_kernel(asked, &key.name, &counted, &profile, is_now)?
        }
        Home::Process { pid, start } => match &asked.jitdump {
            Some(dump) => made::read_dumped(&key.name, pid, &counted, dump)?,
            None => made::read(&key.name, (pid, start), &counted)?,
        },
    };
    if asked.naming.lines && code.places.is_empty() {
        print(&format!("flame-bpf: {}\n", code.without_lines));
    }
    let lines = code.places.values().map(|place| (&place.file, place.line));
    let found = directories.find_lines(lines, code.object.as_ref(), profile.origin.started);
    if let Some(finding) = found.finding {
        print(&format!("flame-bpf: {}: {}\n", finding.label, finding.text));
    }
    let mut annotation = Annotation {
        total: counted.total,
        source: found.text.map(|text| (*text).clone()).unwrap_or_default(),
        ..Annotation::default()
    };
    let mut outside = counted.of_instructions();
    for stretch in &code.stretches {
        let mut rows: Vec<Instruction> = (stretch.text(&code.names).into_iter())
            .map(|listed| Instruction {
                place: code.places.remove(&listed.address),
                address: listed.address,
                text: listed.text,
                ..Instruction::default()
            })
            .collect();
        for (address, [itself, total]) in &counted.addresses {
            if let Some(place) = stretch.place(code.base.saturating_add(*address)) {
                rows[place].itself += itself;
                rows[place].total += total;
                outside = outside.saturating_sub(*itself);
            }
        }
        annotation.stretches.push(rows);
    }
    annotation.head = head(&profile, (&key, &counted), &code.of, outside);
    annotation.head.extend(others);
    Ok(annotation.text())
}

/// The code of a function.
struct Code {
    /// Name of what it lies in.
    of: String,
    /// The build of the object that it lies in.
    object: Option<BuildId>,
    stretches: Vec<Stretch>,
    /// Where the addresses that were counted begin.
    base: u64,
    /// The names of what it calls and jumps to elsewhere.
    names: HashMap<u64, String>,
    /// Where each instruction comes from, as far as that was asked for and is known.
    places: HashMap<u64, SourceLocation>,
    /// A sentence on why that may not be known.
    without_lines: String,
}

/// The code of a function in an object.
fn of_object(
    asked: &Annotating,
    name: &str,
    mapping: &Mapping,
    counted: &Counted,
    profile: &Profile,
) -> Result<Code> {
    let (file, elf) = open(mapping, profile)?;
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
    Ok(Code {
        of: mapping.path.display().to_string(),
        object: BuildId::new(&mapping.build_id),
        names: namer.targets(&stretches)?,
        places: namer.places(&stretches, name)?,
        stretches,
        base: 0,
        without_lines: format!(
            "{NO_LINES}: debug information is missing (compile with -g, or --debuginfod)"
        ),
    })
}

/// The code of a function of the kernel.
fn of_kernel(
    asked: &Annotating,
    name: &str,
    counted: &Counted,
    profile: &Profile,
    is_now: bool,
) -> Result<Code> {
    let code = kernel::read(name, counted, profile, is_now)?;
    let addresses: Vec<u64> = code.stretch.begins().collect();
    let (places, without_lines) = match asked.naming.lines {
        true => with_servers(asked, |fetch| {
            kernel::places(name, &addresses, &asked.naming, fetch)
        }),
        false => Default::default(),
    };
    Ok(Code {
        of: "the kernel".to_owned(),
        object: running_kernel(),
        names: code.targets(),
        places,
        base: code.begin,
        stretches: vec![code.stretch],
        without_lines: without_lines.unwrap_or_else(|| NO_LINES.to_owned()),
    })
}

/// Hands a way to fetch files, if servers are to be asked.
fn with_servers<T>(asked: &Annotating, ask: impl FnOnce(Option<&Fetch<'_>>) -> T) -> T {
    let client = Client::new(
        asked.servers.addresses(),
        Limits::from_environment(),
        |_| (),
    );
    let fetch = client.as_ref().map(|client| |id: &BuildId| client.find(id));
    let answer = ask(fetch.as_ref().map(|fetch| fetch as &Fetch<'_>));
    if let Some(client) = &client {
        for finding in on_fetching(&client.fetched(), &client.failures()) {
            print(&format!("flame-bpf: {}: {}\n", finding.label, finding.text));
        }
    }
    answer
}

/// The profile of the recording, and what there is to say of code without names.
fn read(asked: &Annotating, file: &Path, naming: &Naming) -> Result<(Profile, String)> {
    let between = Between {
        from: asked.from,
        to: asked.to,
    };
    let time = |began: SystemTime| between.of(began);
    let time: Time<'_> = &time;
    let symbolizer = Symbolizer::new(naming, &asked.servers, false);
    let files = InputRequest {
        files: &[file.to_owned()],
        time: (asked.from.is_some() || asked.to.is_some()).then_some(time),
        windows: 1,
        ..InputRequest::default()
    };
    let mut together = Together::default();
    pieces::each(files, &mut |number, piece| together.add(number, piece))?;
    let (profile, told) = together.finish(&symbolizer)?;
    print(&told.missing);
    // A recording that is made now has said it at its end.
    if matches!(asked.recorded, Recorded::File(_)) {
        print(&missing(&told.summary.findings));
    }
    let unnamed = told.summary.findings.into_iter();
    let unnamed = unnamed.filter(|finding| finding.label == UNNAMED);
    let unnamed = unnamed.map(|finding| format!("; {UNNAMED}: {}", finding.text));
    Ok((profile, unnamed.collect()))
}

/// Text of the samples that the recording lacks, a line for each reason; empty if it has all.
fn missing(findings: &[Finding]) -> String {
    let missing = findings
        .iter()
        .filter(|finding| MISSING.contains(&&*finding.label));
    missing
        .map(|finding| format!("flame-bpf: {}: {}\n", finding.label, finding.text))
        .collect()
}

/// The object that was recorded.
fn open(mapping: &Mapping, profile: &Profile) -> Result<(RegularFile, Elf)> {
    let path = visible(&mapping.path.display().to_string()).into_owned();
    let hex = mapping.build_id_hex();
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
        let addresses: Vec<ElfAddress> = addresses.iter().copied().map(ElfAddress).collect();
        let file = self.file.again()?;
        let path = &self.mapping.path;
        let name = |fetch: Option<&Fetch<'_>>| {
            symbolize::name_object(file, path, &addresses, naming, fetch)
        };
        Ok(with_servers(self.asked, name).0)
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
    ) -> Result<HashMap<u64, SourceLocation>> {
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
                SourceLocation {
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
    of: &str,
    outside: u64,
) -> Vec<String> {
    let all = profile.total_weight();
    let unit = &profile.unit;
    let weight = |weight: u64| amount(unit.shown(weight), unit.noun());
    let of_all = |weight: u64| share(weight as f64, all as f64);
    let mut head = vec![
        format!("{} in {of}", key.name),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_a_recording_lacks_are_told() {
        let all = [
            Finding::new("recorded", "90 samples"),
            Finding::new("LOST", "10 samples; use --map-memory 64"),
            Finding::new("MISSING", "5 samples"),
        ];
        assert_eq!(
            missing(&all),
            "flame-bpf: LOST: 10 samples; use --map-memory 64\nflame-bpf: MISSING: 5 samples\n"
        );
        assert_eq!(missing(&[Finding::new("lost", "nothing")]), "");
    }
}
