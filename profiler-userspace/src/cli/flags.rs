//! Flags that recording and `render` share: outputs, names, looks.
//!
//! In: nothing. Out: the flags, as clap reads them, and their help.

use super::text::TextArgs;
use super::value;
use crate::output::{CalleeOrder, MinWidth, Palette};
use crate::profile::cgroup::{CgroupPart, CgroupPattern};
use crate::profile::select::{Pattern, Selection, Who};
use crate::symbolize::SymbolMemory;
use std::path::PathBuf;

/// The heading of what selects.
pub(super) const SELECTING: &str = "Selecting, after recording; raw recordings keep everything";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(super) struct OutputArgs {
    /// Write .svg, .html, .txt, .folded (or `-`), .pb.gz (pprof), .speedscope.json, .json.gz, .otlp, .json, .parquet or .fbpf. Repeatable
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Vec<PathBuf>,
    /// Write folded stacks to stdout, as -o - does
    #[arg(short, long)]
    pub(super) folded: bool,
    /// Open the first .svg or .html in your browser, also under sudo
    #[arg(long)]
    pub(super) open: bool,
    /// Put a frame `-` between user and kernel frames
    #[arg(long)]
    pub(super) delimited: bool,
    /// Mark frames in folded text: kernel (_[k]), JIT-compiled (_[j]), interpreted (_[py])
    #[arg(long)]
    pub(super) annotate: bool,
    /// Show source from DIR, the top of its tree, in .html and --report=lines; `debuginfod` asks servers. Repeatable
    #[arg(long, value_name = "DIR")]
    pub(super) source: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) text: TextArgs,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = SELECTING)]
pub(super) struct SelectArgs {
    /// Show only samples with a frame that matches: function, source file, module or process. Repeatable: any
    #[arg(long, value_name = "REGEX", value_parser = Pattern::parse)]
    pub(super) focus: Vec<Pattern>,
    /// Leave out samples with a frame that matches. Repeatable
    #[arg(long, value_name = "REGEX", value_parser = Pattern::parse)]
    pub(super) ignore: Vec<Pattern>,
    /// Leave out frames that match; what they called stays, and all weight. Repeatable
    #[arg(long, value_name = "REGEX", value_parser = Pattern::parse)]
    pub(super) hide: Vec<Pattern>,
    /// Begin stacks at the outermost frame that matches; leave out samples without one
    #[arg(long, value_name = "REGEX", value_parser = Pattern::parse)]
    pub(super) root_at: Vec<Pattern>,
    /// Show only these processes, by PID or by a pattern for the whole name. Repeatable
    #[arg(long, value_name = "PID,...|REGEX", value_parser = value::Owners::parse)]
    pub(super) process: Vec<value::Owners>,
    /// Show only these threads, by TID (with --per-thread) or by a pattern for the whole name. Repeatable
    #[arg(long, value_name = "TID,...|REGEX", value_parser = value::Owners::parse)]
    pub(super) thread: Vec<value::Owners>,
    /// Show a function that calls itself as one frame
    #[arg(long)]
    pub(super) collapse_recursion: bool,
    /// Show only interpreted and JIT-compiled functions; native and kernel time is that of the innermost of them
    #[arg(long)]
    pub(super) runtime_only: bool,
}

// Not a doc comment: in a recording these choose what is sampled, elsewhere what is shown.
#[derive(Debug, clap::Args)]
pub(super) struct CgroupArgs {
    /// Only what runs in this cgroup and below, also later: a path as `systemd-cgls` has it. Repeatable
    #[arg(long, value_name = "PATH", value_parser = value::cgroup)]
    cgroup: Vec<String>,
    /// Only this container (docker, containerd, cri-o, podman, LXC, nspawn), by name or beginning of the ID. Repeatable
    #[arg(long, value_name = "ID|NAME", value_parser = value::cgroup)]
    container: Vec<String>,
    /// Only this unit of systemd, such as nginx.service. Repeatable
    #[arg(long, value_name = "NAME", value_parser = value::cgroup)]
    unit: Vec<String>,
    /// Only this pod of Kubernetes, by name, namespace/name or UID. Repeatable
    #[arg(long, value_name = "NAME|UID", value_parser = value::cgroup)]
    pod: Vec<String>,
}

impl CgroupArgs {
    /// The cgroups that are asked for.
    pub(super) fn patterns(&self) -> Vec<CgroupPattern> {
        let paths = self.cgroup.iter().cloned().map(CgroupPattern::Path);
        let containers = self.container.iter().cloned();
        let units = self.unit.iter().map(|unit| CgroupPattern::unit(unit));
        let pods = self.pod.iter().cloned().map(CgroupPattern::Pod);
        paths
            .chain(containers.map(CgroupPattern::Container))
            .chain(units)
            .chain(pods)
            .collect()
    }
}

/// The part of cgroups that is named.
pub(super) fn cgroup_part(text: &str) -> Option<CgroupPart> {
    match text {
        "container" => Some(CgroupPart::Container),
        "unit" => Some(CgroupPart::Unit),
        "pod" => Some(CgroupPart::Pod),
        "cgroup" => Some(CgroupPart::Cgroup),
        _ => None,
    }
}

impl SelectArgs {
    /// The selection that the flags ask for, on any CPU.
    pub(super) fn selection(self) -> Selection {
        let all = |owners: Vec<value::Owners>| -> Vec<Who> {
            owners.into_iter().flat_map(|owners| owners.0).collect()
        };
        Selection {
            processes: all(self.process),
            threads: all(self.thread),
            cpus: Vec::new(),
            cgroups: Vec::new(),
            focus: self.focus,
            ignore: self.ignore,
            hide: self.hide,
            root_at: self.root_at,
            collapse_recursion: self.collapse_recursion,
            runtime_only: self.runtime_only,
        }
    }
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Names")]
pub(super) struct NameArgs {
    /// Look for debug files in DIR first (same layout as /usr/lib/debug). Repeatable
    #[arg(long, value_name = "DIR")]
    pub(super) debug_dir: Vec<PathBuf>,
    /// Fetch missing debug files from URLS [default: DEBUGINFOD_URLS; without a value, also /etc/debuginfod]
    #[arg(
        long, value_name = "URLS", num_args = 0..=1, require_equals = true, default_missing_value = "",
        hide_default_value = true
    )]
    pub(super) debuginfod: Option<String>,
    /// Show inlined functions as frames of their own (_[i] in folded text)
    #[arg(long)]
    pub(super) inline: bool,
    /// Show file and line of user frames, also those that profiles of other tools have
    #[arg(long)]
    pub(super) lines: bool,
    /// Show the interpreters' own frames, too, such as _PyEval_EvalFrameDefault
    #[arg(long)]
    pub(super) interpreter_frames: bool,
    /// Show each address that has no name, not the function it lies in
    #[arg(long)]
    pub(super) addresses: bool,
    /// Omit template and generic arguments: std::vector::push_back
    #[arg(long, conflicts_with = "no_demangle")]
    pub(super) simplify: bool,
    /// Keep mangled names: _ZN4core3fmt5write17h01234567E
    #[arg(long)]
    pub(super) no_demangle: bool,
    /// Limit the memory for symbolizing, 64 or more; larger debug information is read in parts [default: 256]
    #[arg(long, value_name = "MIB", value_parser = value::symbol_memory)]
    pub(super) max_symbol_memory: Option<SymbolMemory>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Look of the flame graph")]
pub(super) struct LookArgs {
    /// Title [default: what was sampled, event, rate, duration and host]
    #[arg(long, value_name = "TEXT")]
    pub(super) title: Option<String>,
    /// Second line under the title
    #[arg(long, value_name = "TEXT")]
    pub(super) subtitle: Option<String>,
    /// Width of the image [default: as wide as the window]
    #[arg(long, alias = "image-width", value_name = "PIXELS", value_parser = value::pixels)]
    pub(super) width: Option<u32>,
    /// Height of each frame [default: 16]
    #[arg(long, value_name = "PIXELS", value_parser = value::pixels)]
    pub(super) height: Option<u32>,
    /// Join frames narrower than this, in pixels or as a share such as 0.5%; 0 keeps all in files of any size [default: 0.5]
    #[arg(long, value_name = "PIXELS")]
    pub(super) minwidth: Option<MinWidth>,
    /// Palette, such as hot or aqua [default: land; cold for waits, wall with --wall]
    #[arg(long, aliases = ["color", "palette"], value_name = "NAME", long_help = colors_help())]
    pub(super) colors: Option<Palette>,
    /// Grow downward, as icicles do
    #[arg(long)]
    pub(super) inverted: bool,
    /// Merge stacks from the leaves, to see who calls the busiest functions
    #[arg(long)]
    pub(super) reverse: bool,
    /// Order what a frame called by name or weight, the heaviest first [default: name; weight with --inverted or --reverse]
    #[arg(long, value_name = "name|weight")]
    pub(super) order: Option<CalleeOrder>,
    /// Draw the SVG that FlameGraph draws, by inferno; pages are as always
    #[arg(long, conflicts_with = "order")]
    pub(super) classic: bool,
}

impl LookArgs {
    /// One of the flags that were given, if any was.
    pub(super) fn first_flag(&self) -> Option<&'static str> {
        first_given([
            ("--title", self.title.is_some()),
            ("--subtitle", self.subtitle.is_some()),
            ("--width", self.width.is_some()),
            ("--height", self.height.is_some()),
            ("--minwidth", self.minwidth.is_some()),
            ("--colors", self.colors.is_some()),
            ("--inverted", self.inverted),
            ("--reverse", self.reverse),
            ("--order", self.order.is_some()),
            ("--classic", self.classic),
        ])
    }
}

/// The first of some flags that was given, if any was.
pub(super) fn first_given<const N: usize>(
    flags: [(&'static str, bool); N],
) -> Option<&'static str> {
    flags
        .into_iter()
        .find_map(|(flag, given)| given.then_some(flag))
}

fn colors_help() -> String {
    let names: Vec<_> = Palette::names().collect();
    format!(
        "Palette [default: {}; {} for waits, {} with --wall]: {}",
        Palette::default(),
        Palette::COLD,
        Palette::WALL,
        names.join(", ")
    )
}
