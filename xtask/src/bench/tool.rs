//! The profilers: which are installed, and how each is asked for the same thing.
//!
//! In: a rate, a duration, perhaps a CPU. Out: command lines. All sample the whole machine by the same clock; those that store
//! stacks in a table get one that is large enough, so that none is fast by losing samples.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::patience;
use super::recording::{Process, SAID, Step};

/// What a recorder prints goes to this file in its folder.
pub(super) const PRINTED: &str = "printed";

/// What comes out in the end, where something draws.
pub(super) const GRAPH: &str = "flame.svg";

/// What samply leaves.
const SAVED: &str = "profile.json.gz";

/// bcc's own default, and more than enough here; libbpf-tools keeps 1,024 stacks unless told.
const STACKS: &str = "--stack-storage-size=16384";

/// A profiler, with what draws its graph.
pub(super) struct Tool {
    /// As in the tables.
    pub(super) name: &'static str,
    /// With what draws its graph, or with the word that nothing does.
    pub(super) full_name: String,
    kind: Kind,
    program: PathBuf,
    /// Turns what was recorded into the graph, for a shell.
    drawing: Option<String>,
}

/// A peer that is not compared with.
pub(super) struct Absent {
    /// As in the tables.
    pub(super) name: String,
    /// Why, and what would change that.
    pub(super) reason: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    FlameBpf,
    FlameBpfPointers,
    /// Of one process.
    FlameBpfOf(u32),
    Perf,
    PerfDwarf,
    PerfWithoutStacks,
    Samply,
    Lightswitch,
    Bpftrace,
    Libbpf,
    Bcc,
}

/// What is asked of a recorder.
#[derive(Clone, Copy)]
pub(super) struct Order {
    /// Samples a second on each CPU.
    pub(super) rate: u32,
    /// How long; until it is interrupted where there is no number.
    pub(super) seconds: Option<u32>,
    /// Only there; everywhere where there is none.
    pub(super) cpu: Option<usize>,
}

/// What turns text into a graph.
struct Drawing {
    name: &'static str,
    collapse_perf: &'static str,
    collapse_bpftrace: Option<&'static str>,
    draw: &'static str,
}

const DRAWINGS: [Drawing; 2] = [
    Drawing {
        name: "inferno",
        collapse_perf: "inferno-collapse-perf",
        collapse_bpftrace: None,
        draw: "inferno-flamegraph",
    },
    Drawing {
        name: "FlameGraph",
        collapse_perf: "stackcollapse-perf.pl",
        collapse_bpftrace: Some("stackcollapse-bpftrace.pl"),
        draw: "flamegraph.pl",
    },
];

/// The peers that are installed, and those that are not.
pub(super) fn peers() -> (Vec<Tool>, Vec<Absent>) {
    let drawing = DRAWINGS
        .iter()
        .find(|drawing| find(drawing.draw).is_some() && find(drawing.collapse_perf).is_some());
    let (mut found, mut absent) = (Vec::new(), Vec::new());
    if drawing.is_none() {
        absent.push(Absent {
            name: "the peers' graphs".to_owned(),
            reason: "nothing draws them, so theirs is the cost of the text alone; `cargo install inferno` does"
                .to_owned(),
        });
    }
    let candidates = [
        (Kind::Perf, "perf record -g", "perf", "linux-perf"),
        (Kind::PerfDwarf, "perf, dwarf", "perf", "linux-perf"),
        (Kind::Samply, "samply", "samply", ""),
        (Kind::Lightswitch, "lightswitch", "lightswitch", ""),
        (
            Kind::Libbpf,
            "libbpf-tools",
            "profile",
            "libbpf-tools, where it holds profile,",
        ),
        (Kind::Bcc, "bcc", "profile-bpfcc", "bpfcc-tools"),
        (Kind::Bpftrace, "bpftrace", "bpftrace", "bpftrace"),
    ];
    for (kind, name, program, package) in candidates {
        let drawing = drawing.and_then(|drawing| Some((drawing.name, drawing.of(kind)?)));
        match find(program).filter(|path| kind != Kind::Libbpf || is_libbpf(path)) {
            Some(program) => found.push(Tool {
                name,
                full_name: match drawing {
                    Some((by, _)) => format!("{name} + {by}"),
                    None if kind == Kind::Samply => format!("{name} (for a browser)"),
                    None if kind == Kind::Lightswitch => name.to_owned(),
                    None => format!("{name} (text)"),
                },
                kind,
                program,
                drawing: drawing.map(|(_, script)| script),
            }),
            None => absent.push(Absent {
                name: name.to_owned(),
                reason: match kind {
                    Kind::Samply => {
                        "it is not installed; `cargo install samply` does that".to_owned()
                    }
                    Kind::Lightswitch => {
                        "it is not installed; its releases are on GitHub, javierhonduco/lightswitch"
                            .to_owned()
                    }
                    _ => format!("it is not installed; Debian's package {package} brings it"),
                },
            }),
        }
    }
    (found, absent)
}

impl Drawing {
    fn of(&self, kind: Kind) -> Option<String> {
        let folded = match kind {
            Kind::FlameBpf
            | Kind::FlameBpfPointers
            | Kind::FlameBpfOf(_)
            | Kind::PerfWithoutStacks
            | Kind::Samply
            | Kind::Lightswitch => return None,
            Kind::Perf | Kind::PerfDwarf => {
                format!("perf script -i perf.data | {} |", self.collapse_perf)
            }
            Kind::Bpftrace => format!("{} {PRINTED} |", self.collapse_bpftrace?),
            Kind::Libbpf | Kind::Bcc => format!("< {PRINTED}"),
        };
        Some(match kind {
            Kind::Libbpf | Kind::Bcc => format!("{} {folded} > {GRAPH}", self.draw),
            _ => format!("{folded} {} > {GRAPH}", self.draw),
        })
    }
}

impl Tool {
    /// The flame-bpf at `program`.
    pub(super) fn flame_bpf(program: &Path) -> Self {
        Self {
            name: "flame-bpf",
            full_name: "flame-bpf".to_owned(),
            kind: Kind::FlameBpf,
            program: program.to_owned(),
            drawing: None,
        }
    }

    /// As [`flame_bpf`](Self::flame_bpf), following frame pointers alone.
    pub(super) fn flame_bpf_by_pointers(program: &Path) -> Self {
        Self {
            name: "flame-bpf, fp",
            full_name: "flame-bpf, frame pointers".to_owned(),
            kind: Kind::FlameBpfPointers,
            ..Self::flame_bpf(program)
        }
    }

    /// As [`flame_bpf`](Self::flame_bpf), recording one process: of all others it takes the interrupts alone, and a look at
    /// who they are.
    pub(super) fn flame_bpf_of(program: &Path, pid: u32) -> Self {
        Self {
            name: "interrupts alone",
            full_name: "flame-bpf, another process".to_owned(),
            kind: Kind::FlameBpfOf(pid),
            ..Self::flame_bpf(program)
        }
    }

    /// perf as it interrupts, but walks no stack: what the interrupts alone cost.
    pub(super) fn without_stacks(&self) -> Option<Self> {
        (self.kind == Kind::Perf).then(|| Self {
            name: "perf record, no stacks",
            full_name: "perf record, no stacks".to_owned(),
            kind: Kind::PerfWithoutStacks,
            program: self.program.clone(),
            drawing: None,
        })
    }

    /// Whether it counts in BPF programs.
    pub(super) fn uses_bpf(&self) -> bool {
        !matches!(
            self.kind,
            Kind::Perf | Kind::PerfDwarf | Kind::PerfWithoutStacks | Kind::Samply
        )
    }

    /// Whether it can keep to one CPU.
    pub(super) fn keeps_to_a_cpu(&self) -> bool {
        !matches!(self.kind, Kind::Bpftrace | Kind::Samply | Kind::Lightswitch)
    }

    /// The command that records.
    pub(super) fn record(&self, order: Order) -> Step {
        let rate = order.rate.to_string();
        let seconds = order.seconds.map(|seconds| seconds.to_string());
        let cpu = order.cpu.map(|cpu| format!("-C{cpu}"));
        let mut words: Vec<&str> = match self.kind {
            Kind::FlameBpf | Kind::FlameBpfPointers => {
                vec!["-a", "-q", "-e", "cpu-clock", "-o", GRAPH, "-F", &rate]
            }
            Kind::FlameBpfOf(_) => vec!["-q", "-e", "cpu-clock", "-o", GRAPH, "-F", &rate],
            // Without -N it copies objects to a cache in the home folder; it does so once, not each time.
            Kind::Perf | Kind::PerfDwarf | Kind::PerfWithoutStacks => vec![
                "record",
                "-q",
                "-a",
                "-N",
                "-e",
                "cpu-clock",
                "-k",
                "mono",
                "-o",
                "perf.data",
                "-F",
                &rate,
            ],
            // Names come when the profile is looked at, and nobody looks.
            Kind::Samply => vec!["record", "-a", "-s", "-n", "-o", SAVED, "-r", &rate],
            // It draws by itself, and takes rates that are prime and below a thousand.
            Kind::Lightswitch => vec!["--profile-name", GRAPH, "--sample-freq", &rate],
            Kind::Libbpf | Kind::Bcc => vec!["-f", STACKS, "-F", &rate],
            Kind::Bpftrace => vec!["-e"],
        };
        words.extend(cpu.as_deref());
        let process = match self.kind {
            Kind::FlameBpfOf(pid) => Some(format!("-p{pid}")),
            _ => None,
        };
        words.extend(process.as_deref());
        let script = format!(
            "profile:hz:{rate} {{ @[kstack, ustack, comm] = count(); }} {}",
            seconds
                .as_deref()
                .map(|seconds| format!("interval:s:{seconds} {{ exit(); }}"))
                .unwrap_or_default()
        );
        match self.kind {
            Kind::Perf => words.push("-g"),
            Kind::PerfDwarf => words.extend(["--call-graph", "dwarf,16384"]),
            Kind::FlameBpfPointers => words.extend(["--call-graph", "fp"]),
            _ => {}
        }
        match (self.kind, seconds.as_deref()) {
            (Kind::Bpftrace, _) => words.push(&script),
            (_, None) => {}
            (
                Kind::FlameBpf | Kind::FlameBpfPointers | Kind::FlameBpfOf(_) | Kind::Samply,
                Some(seconds),
            ) => words.extend(["-d", seconds]),
            (Kind::Lightswitch, Some(seconds)) => words.extend(["-D", seconds]),
            (Kind::Perf | Kind::PerfDwarf | Kind::PerfWithoutStacks, Some(seconds)) => {
                words.extend(["--", "sleep", seconds]);
            }
            (Kind::Libbpf | Kind::Bcc, Some(seconds)) => words.push(seconds),
        }
        Step {
            program: self.program.clone().into(),
            arguments: words.into_iter().map(OsString::from).collect(),
        }
    }

    /// The command that draws what was recorded, if the recorder does not, and something can.
    pub(super) fn draw(&self) -> Option<Step> {
        let script = match (&self.drawing, self.kind) {
            (Some(script), _) => script,
            (None, Kind::Perf | Kind::PerfDwarf) => {
                &format!("perf script -i perf.data > {PRINTED}")
            }
            (None, _) => return None,
        };
        Some(Step {
            program: "sh".into(),
            arguments: vec!["-c".into(), script.into()],
        })
    }

    /// When its first sample was taken, in seconds of the monotonic clock; of a recorder that notes times.
    pub(super) fn first_sample(&self, folder: &Path) -> Result<f64> {
        let done = Command::new(&self.program)
            .args(["script", "--ns", "-F", "time", "-i", "perf.data"])
            .current_dir(folder)
            .stderr(Stdio::null())
            .output()
            .context("cannot start perf")?;
        let text = String::from_utf8_lossy(&done.stdout);
        let times = text
            .lines()
            .filter_map(|line| line.trim().trim_end_matches(':').parse::<f64>().ok());
        times
            .min_by(f64::total_cmp)
            .context("perf recorded no sample")
    }

    /// Runs for a second, to see whether it does.
    pub(super) fn try_out(&self) -> Result<()> {
        let folder = tempfile::tempdir().context("cannot make a folder")?;
        let order = Order {
            rate: 997,
            seconds: Some(1),
            cpu: None,
        };
        for step in [Some(self.record(order)), self.draw()]
            .into_iter()
            .flatten()
        {
            Process::start(&step, folder.path())?.finish()?;
        }
        patience::check()?;
        self.check(folder.path())
    }

    /// Whether the folder holds what it was asked for.
    pub(super) fn check(&self, folder: &Path) -> Result<()> {
        let draws = matches!(
            self.kind,
            Kind::FlameBpf | Kind::FlameBpfPointers | Kind::FlameBpfOf(_) | Kind::Lightswitch
        );
        if draws || self.drawing.is_some() {
            let graph = fs::read_to_string(folder.join(GRAPH)).unwrap_or_default();
            ensure!(
                graph.trim_end().ends_with("</svg>"),
                "{} drew no graph{}",
                self.name,
                said(folder)
            );
        } else if self.kind != Kind::PerfWithoutStacks {
            let file = if self.kind == Kind::Samply {
                SAVED
            } else {
                PRINTED
            };
            let printed = fs::metadata(folder.join(file)).map_or(0, |about| about.len());
            ensure!(printed > 0, "{} printed nothing{}", self.name, said(folder));
        }
        Ok(())
    }
}

/// The last words of what ran in the folder.
pub(super) fn said(folder: &Path) -> String {
    let text = fs::read(folder.join(SAID)).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().rfind(|line| !line.trim().is_empty());
    last.map_or_else(String::new, |line| format!(" (it said: {})", line.trim()))
}

/// Where a program is. Root's tools are often not on a user's `PATH`.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    env::split_paths(&path)
        .chain(usual)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// `profile` is a common name.
pub(super) fn is_libbpf(path: &Path) -> bool {
    Command::new(path)
        .arg("--help")
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|done| String::from_utf8_lossy(&done.stdout).contains("--stack-storage-size"))
}
