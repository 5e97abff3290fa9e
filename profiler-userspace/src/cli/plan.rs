//! From flags to a plan: every rule that connects two flags, and every default.
//!
//! In: flags that are right one by one. Out: a [`Plan`], or a sentence about flags that do not go
//! together. Never: looks at the machine; whether stdout is a terminal is passed in.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow, bail, ensure};

use super::event_spec::EventSpec;
use super::flags::{LookArgs, NameArgs, OutputArgs};
use super::off_cpu::WaitSelection;
use super::record::{RecordArgs, SamplingArgs, ScopeArgs, StackArgs};
use super::value::{self, Ids, shell_word};
use crate::debuginfod::Servers;
use crate::output::sink::DEFAULT_FILE;
use crate::output::{Format, Style};
use crate::plan::{
    Capture, CgroupTarget, Children, CommandUser, Event, Matching, MemoryLimits, Output, Plan,
    Service, Target, Verbosity,
};
use crate::probe::{Probe, Wakers};
use crate::profile::LabelFrames;
use crate::profile::fold::{FoldStyle, visible};
use crate::raw_recording;
use crate::symbolize::{Demangling, Naming};

mod events;
mod refusal;

/// A number without unit and flag is more likely a PID where it would mean more than an hour: someone
/// left out -p, or `-p $(pgrep NAME)` found two.
const LONGEST_BARE_NUMBER: Duration = Duration::from_secs(3600);

/// Makes the plan. `service`: where windows are sent, if they are.
pub(super) fn build(
    args: RecordArgs,
    stdout_is_terminal: bool,
    service: Option<Service>,
) -> Result<Plan> {
    let RecordArgs {
        words,
        command,
        scope,
        sampling,
        off_cpu,
        calls,
        stacks,
        output,
        chart,
        window,
        select,
        names,
        kernel_lines,
        look,
        live,
        running,
    } = args;
    let asked = off_cpu.asked()?;
    let (mut probe, beside) = match asked {
        WaitSelection::Nothing => (Probe::OnCpu, None),
        WaitSelection::Alone(waits) => {
            let asked = match waits.wakers {
                Wakers::None => "--off-cpu",
                Wakers::Alone => "--wakeup",
                Wakers::Above => "--off-wake",
            };
            refusal::with_off_cpu(asked, &sampling, &scope, &stacks)?;
            (Probe::OffCpu(waits), None)
        }
        WaitSelection::Beside(waits) => {
            refusal::with_waits_beside(&waits, &scope, &stacks)?;
            (Probe::OnCpu, Some(waits))
        }
        WaitSelection::Wall(wall) => {
            refusal::with_wall(&scope, &stacks)?;
            (Probe::Wall(wall), None)
        }
    };
    if let Some((flag, of_calls)) = calls.probe()? {
        ensure!(
            probe == Probe::OnCpu && beside.is_none(),
            "{flag} does not go with --off-cpu, --off-wake, --wakeup or --wall; record twice"
        );
        refusal::perf_event(flag, &sampling)?;
        refusal::with_place("what a thread begins", &sampling, &scope)?;
        ensure!(
            of_calls != Probe::Allocations || !stacks.kernel_stacks_only,
            "--alloc samples calls in user mode, which have no kernel stacks; leave out -K"
        );
        probe = of_calls;
    }
    let specs = events::specs(&sampling)?;
    if let Probe::Wall(_) = probe {
        ensure!(
            specs.iter().all(EventSpec::is_cpu_time),
            "with --wall, -e must be a clock or cycles; leave it out"
        );
        ensure!(
            specs.len() < 2,
            "--wall takes one event; keep one -e, or record twice"
        );
    }
    refusal::with_event_specs(&specs, &sampling, &scope, &stacks)?;
    let duration = duration(&words, &sampling, &scope)?;
    ensure!(
        !running.quiet || running.verbose == 0,
        "-q prints less and -v prints more; keep one of them"
    );
    let unwritten = match (&service, live) {
        (Some(_), true) => bail!("a service has no live view; leave out --live"),
        (Some(_), false) => Some(&refusal::SERVICE),
        (None, true) => Some(&refusal::LIVE),
        (None, false) => None,
    };
    let outputs = match unwritten {
        Some(unwritten) => unwritten
            .refuse(&output, window, &chart, kernel_lines, &off_cpu)
            .map(|()| vec![Vec::new(); specs.len().max(1)])?,
        None => events::outputs(&specs, &output, stdout_is_terminal)?,
    };
    let mut events = events::events(&probe, &specs, &sampling, outputs)?;
    if let Some(waits) = beside {
        let event = events::beside(waits, off_cpu.outputs_beside(), &mut events)?;
        events.push(event);
    }
    if window.is_some() {
        refusal::with_window(&events, &chart)?;
    }
    if running.max_overhead.is_some() {
        refusal::with_max_overhead(&events)?;
        events.iter_mut().for_each(|event| event.varies = true);
    }
    let outputs = || events.iter().flat_map(|event| &event.outputs);
    chart.check(outputs(), &look)?;
    refusal::with_chart(&events, &chart)?;
    let selection = select.selection();
    refusal::of_selection(&selection, &stacks, &events, live)?;
    let is_drawn = live || outputs().any(Output::is_drawn);
    let style = Style {
        chart: chart.flamechart,
        ..style(&look, &output, is_drawn)?
    };
    let target = target(&scope, &command)?;
    ensure!(
        running.as_user.is_none() || !command.is_empty(),
        "--as-user is for a command to run; put -- COMMAND at the end"
    );
    let children = children(&target, scope.children)?;
    let all_memory = running.max_memory.map(|mib| u64::from(mib) << 20);
    let capture = capture(&stacks, &events, chart.flamechart)?;
    check_source(&output, outputs())?;
    let servers = servers(names.debuginfod.as_deref())?;
    let usual = naming_for(names, &output).within(all_memory);
    ensure!(
        !(kernel_lines && stacks.user_stacks_only),
        "--kernel-lines is for kernel stacks, and -U leaves them out; keep one of them"
    );
    Ok(Plan {
        target,
        children,
        launch: Some(command).filter(|command| !command.is_empty()),
        run_as: running
            .as_user
            .map(|name| name.map_or(CommandUser::Caller, CommandUser::Named)),
        cpus: scope.cpu.map(|cpus| cpus.0),
        events,
        duration,
        window,
        live,
        service,
        resolution: chart.recorded(),
        opens: opens(&output, is_drawn)?,
        capture,
        title: look.title,
        selection,
        servers,
        naming: Naming {
            kernel_lines,
            joins_lines: usual.joins_lines && !kernel_lines,
            ..usual
        },
        style,
        source: output.source,
        colors: look.colors,
        verbosity: Verbosity {
            quiet: running.quiet,
            verbose: running.verbose,
        },
        memory: memory(running.map_memory, running.max_unwind_memory).within(all_memory),
        max_overhead: running.max_overhead,
    })
}

fn memory(map_mib: Option<u32>, unwind_mib: Option<u32>) -> MemoryLimits {
    let usual = MemoryLimits::default();
    let bytes = |mib: u32| u64::from(mib) << 20;
    MemoryLimits {
        map_bytes: map_mib.map_or(usual.map_bytes, bytes),
        unwind_bytes: unwind_mib.map_or(usual.unwind_bytes, bytes),
        all_bytes: None,
    }
}

fn target(scope: &ScopeArgs, command: &[OsString]) -> Result<Target> {
    let pids = distinct(&scope.pid);
    let tids = distinct(&scope.tid);
    let wanted = Matching {
        names: scope.name.clone(),
        programs: scope.exe.clone(),
    };
    if !(wanted.names.is_empty() && wanted.programs.is_empty()) {
        ensure!(
            !scope.all && pids.is_empty() && tids.is_empty() && scope.cgroups.patterns().is_empty(),
            "-n and --exe find processes, -p, -t and -a name them, --cgroup and its like choose all in there; keep one kind"
        );
        return Ok(Target::Matching(wanted));
    }
    let wanted = scope.cgroups.patterns();
    if !wanted.is_empty() {
        ensure!(
            !scope.all && pids.is_empty() && tids.is_empty(),
            "--cgroup, --container, --unit and --pod choose processes by cgroup, -p, -t and -a name them; keep one kind"
        );
        return Ok(Target::Cgroups(CgroupTarget {
            wanted,
            pids: Vec::new(),
        }));
    }
    match (scope.all, pids.is_empty(), tids.is_empty()) {
        (true, true, true) => Ok(Target::All),
        (false, false, true) => Ok(Target::Processes(pids)),
        (false, true, false) => Ok(Target::Threads(tids)),
        (false, true, true) if !command.is_empty() => Ok(Target::Launched),
        (false, true, true) => Ok(Target::All),
        (true, ..) => bail!(
            "-a is the whole machine, -p and -t are parts of it; keep one of them (to mark kernel frames, as \
             bcc's -a does: --annotate)"
        ),
        (false, false, false) => {
            bail!("-p samples whole processes, -t single threads; record twice to have both")
        }
    }
}

fn children(target: &Target, asked: bool) -> Result<Children> {
    match (target, asked) {
        (Target::Processes(_) | Target::Matching(_), true) => Ok(Children::All),
        (Target::Matching(_) | Target::Launched, false) => Ok(Children::ToCome),
        (_, false) => Ok(Children::None),
        (Target::Launched, true) => {
            bail!("a command is sampled with its children; leave out --children")
        }
        (Target::All, true) => bail!("the whole machine has all children; leave out --children"),
        (Target::Cgroups(_), true) => {
            bail!(
                "children are in the cgroup of their parent, so they are sampled; leave out --children"
            )
        }
        (Target::Threads(_), true) => {
            bail!(
                "-t samples single threads; for a process with its children use -p and --children"
            )
        }
    }
}

fn distinct(lists: &[Ids]) -> Vec<u32> {
    let mut ids = Vec::new();
    for &id in lists.iter().flat_map(|list| &list.0) {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

fn duration(
    words: &[OsString],
    sampling: &SamplingArgs,
    scope: &ScopeArgs,
) -> Result<Option<Duration>> {
    let word = match (words, sampling.duration) {
        ([], flag) => return Ok(flag),
        ([word], None) => word.to_string_lossy(),
        ([_], Some(_)) => {
            bail!("the duration is given twice, with -d and without; keep one of them")
        }
        (words, _) => bail!("{}", stray(words, scope)),
    };
    let duration = value::duration(&word).map_err(|sentence| anyhow!("`{word}`: {sentence}"))?;
    let bare = word.bytes().all(|byte| byte.is_ascii_digit());
    ensure!(
        !bare || duration <= LONGEST_BARE_NUMBER,
        "`{word}` could be a PID or a duration; write -p {word}, with commas between several, or \
         -d {word} for that many seconds"
    );
    Ok(Some(duration))
}

fn stray(words: &[OsString], scope: &ScopeArgs) -> String {
    let words: Vec<_> = words
        .iter()
        .map(|word| shell_word(&word.to_string_lossy()))
        .collect();
    let rule = if scope.pid.is_empty() && scope.tid.is_empty() {
        "a command to run goes behind `--`"
    } else {
        "IDs need commas between them, as `pgrep -d,` prints them"
    };
    format!(
        "one duration is enough, but here are `{}`; {rule}",
        words.join(" ")
    )
}

fn capture(stacks: &StackArgs, events: &[Event], is_chart: bool) -> Result<Capture> {
    ensure!(
        !(stacks.user_stacks_only && stacks.kernel_stacks_only),
        "-U leaves out kernel stacks and -K user stacks, which leaves nothing; without both flags, both are \
         recorded"
    );
    ensure!(
        !(stacks.kernel_stacks_only && stacks.call_graph.is_some()),
        "--call-graph says how user stacks are walked, and -K leaves them out; keep one of them"
    );
    let outputs = events.iter().flat_map(|event| &event.outputs);
    // Rendered later, a raw recording would show threads and CPUs although nobody asked for them.
    let has_raw = outputs.clone().any(|output| output.format().is_none());
    let wants =
        |of: fn(Format) -> bool| !has_raw && outputs.clone().any(|o| o.format().is_some_and(of));
    let is_on_cpu = events.iter().all(|event| event.probe == Probe::OnCpu);
    Ok(Capture {
        user_stacks: !stacks.kernel_stacks_only,
        call_graph: stacks.call_graph.unwrap_or_default(),
        kernel_stacks: !stacks.user_stacks_only,
        include_idle: stacks.include_idle,
        include_self: stacks.include_self,
        per_thread: stacks.per_thread
            || wants(Format::shows_threads)
            || is_chart && wants(Format::can_be_chart),
        per_cpu: stacks.per_cpu || is_on_cpu && wants(Format::shows_cpus),
        label_frames: LabelFrames {
            threads: stacks.per_thread,
            cpus: stacks.per_cpu,
        },
        root_per: stacks.root_per,
        runtimes: !stacks.no_runtimes,
        guess: !stacks.no_guess,
    })
}

pub(super) fn servers(given: Option<&str>) -> Result<Servers> {
    let Some(given) = given else {
        return Ok(Servers::IfSet);
    };
    if given.is_empty() {
        return Ok(Servers::Usual);
    }
    let servers = Servers::Named(given.to_owned());
    ensure!(
        !servers.addresses().is_empty(),
        "--debuginfod={} has no URL of a server; a URL begins with https:// or http://",
        visible(given)
    );
    Ok(servers)
}

pub(super) fn naming(names: NameArgs) -> Naming {
    Naming {
        debug_directories: names.debug_dir,
        demangling: match (names.simplify, names.no_demangle) {
            (true, _) => Demangling::Simplified,
            (_, true) => Demangling::Off,
            (false, false) => Demangling::Full,
        },
        inlined: names.inline,
        lines: names.lines,
        joins_lines: false,
        interpreter_frames: names.interpreter_frames,
        addresses: names.addresses,
        places: false,
        kernel_lines: false,
        memory: names.max_symbol_memory.unwrap_or_default(),
    }
}

/// How code is named for these outputs.
pub(super) fn naming_for(names: NameArgs, output: &OutputArgs) -> Naming {
    let lines = names.lines || output.text.is_of_lines();
    let has_source = !output.source.is_empty();
    Naming {
        lines: lines || has_source,
        // Source is shown beside functions.
        joins_lines: has_source && !lines,
        ..naming(names)
    }
}

/// Refuses source where nothing shows it.
pub(super) fn check_source<'a>(
    output: &OutputArgs,
    outputs: impl IntoIterator<Item = &'a Output>,
) -> Result<()> {
    let shows = |format: Format| {
        format == Format::HTML || format == Format::TEXT && output.text.is_of_lines()
    };
    let mut formats = outputs.into_iter().map(Output::format);
    ensure!(
        output.source.is_empty() || formats.any(|format| format.is_some_and(shows)),
        "--source shows source in .html and --report=lines, and neither is written; add -o NAME.html, or give it to \
         `flame-bpf render`"
    );
    Ok(())
}

/// The outputs at these paths, which `flag` gave.
fn places(paths: &[PathBuf], flag: &str) -> Result<Vec<Output>> {
    let mut outputs: Vec<Output> = Vec::new();
    let mut places: Vec<PathBuf> = Vec::new();
    for path in paths {
        let place = without_dots(path);
        ensure!(
            !places.contains(&place),
            "{flag} {} is given twice",
            path.display()
        );
        places.push(place);
        outputs.push(if path == Path::new("-") {
            Output::Stdout(Format::FOLDED)
        } else if is_raw_recording(path) {
            Output::RawRecording { path: path.clone() }
        } else {
            Output::File {
                path: path.clone(),
                format: Format::from_path(path)?,
            }
        });
    }
    Ok(outputs)
}

pub(super) fn outputs(output: &OutputArgs, stdout_is_terminal: bool) -> Result<Vec<Output>> {
    let mut outputs = places(&output.output, "-o")?;
    let folded = Output::Stdout(Format::FOLDED);
    if output.folded && !outputs.contains(&folded) {
        outputs.push(folded);
    }
    if output.text.is_on_stdout(&outputs) {
        let taken = outputs
            .iter()
            .any(|output| matches!(output, Output::Stdout(_)));
        ensure!(
            !taken,
            "stdout can take folded stacks or the report, not both; write one of them to a file, as -o NAME.txt does"
        );
        outputs.push(Output::Stdout(Format::TEXT));
    }
    if outputs.is_empty() {
        outputs.push(if stdout_is_terminal {
            Output::File {
                path: PathBuf::from(DEFAULT_FILE),
                format: Format::SVG,
            }
        } else {
            Output::Stdout(Format::FOLDED)
        });
    }
    Ok(outputs)
}

/// Whether the name asks for a raw recording.
fn is_raw_recording(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case(raw_recording::EXTENSION))
}

/// `./a.svg` and `a.svg` are the same file.
fn without_dots(path: &Path) -> PathBuf {
    path.components()
        .filter(|part| *part != Component::CurDir)
        .collect()
}

/// Whether a picture is opened that is written.
pub(super) fn opens(output: &OutputArgs, is_drawn: bool) -> Result<bool> {
    ensure!(
        is_drawn || !output.open,
        "--open opens .svg and .html, and none is written; add -o {DEFAULT_FILE}"
    );
    Ok(output.open)
}

pub(super) fn style(look: &LookArgs, output: &OutputArgs, is_drawn: bool) -> Result<Style> {
    let defaults = Style::default();
    let style = Style {
        subtitle: look.subtitle.clone(),
        width: look.width,
        height: look.height.unwrap_or(defaults.height),
        minwidth: look.minwidth.unwrap_or(defaults.minwidth),
        inverted: look.inverted,
        reverse: look.reverse,
        order: look.order,
        classic: look.classic,
        fold: FoldStyle {
            delimited: output.delimited,
            annotate: output.annotate,
        },
        text: output.text.style(),
        ..defaults
    };
    style.check()?;
    if let Some(flag) = look.first_flag() {
        ensure!(
            is_drawn,
            "{flag} changes a flame graph, and none is written; add -o {DEFAULT_FILE}, or give it to \
             `flame-bpf render`"
        );
    }
    Ok(style)
}

#[cfg(test)]
mod tests;
