//! Profiles that nobody recorded, with the worst names that there are.
//!
//! In: a seed and a unit. Out: a profile, and what every format has to say of it.

use std::time::{Duration, SystemTime};

use fastrand::Rng;
use flame_bpf::profile::normalized::{LocationIndex, NormalizedStack, NormalizedStackIndex};
use flame_bpf::profile::{
    Activity, FrameKind, Function, Labels, Line, Location, Mapping, Origin, Profile, Sample, Unit,
    Window, WindowIndex, WindowTotals,
};
use profiler_common::abi::{Fallbacks, StackEnd, ThreadState};

/// Names that break what does not expect them.
pub const WORST: &[&str] = &[
    "",
    " ",
    "main",
    "a;b",
    "x 3",
    "\n",
    "\r\n\t",
    "\0",
    "\u{1b}[2J\u{7}",
    "\"'`\\",
    "</script><img src=x onerror=alert(1)>",
    "]]>--><!--",
    "&lt;&#0;%s%n${}",
    "\u{202e}evil\u{2066}",
    "\u{fffe}\u{feff}\u{2028}\u{2029}",
    "größe 日本 👩‍👩‍👧",
    "<alloc::vec::Vec<T> as core::ops::Drop>::drop",
    "operator new[](unsigned long)",
    "[unknown]",
    "[truncated]",
    "[tid 7]",
    "-",
    "# ",
    "_[k]",
    "__proto__",
    "constructor",
    "null",
    "-1e308",
];

/// A frame of a stack: its name, and whether it is the kernel's, made at run time, or inlined.
pub type MadeUpFrame = (String, FrameKind);

/// A sample of a made-up profile: a stack and its weight.
#[derive(Clone, Debug)]
pub struct MadeUpSample {
    /// Root first.
    pub frames: Vec<MadeUpFrame>,
    /// How many of source, CPU, thread's name and thread are known.
    pub labels: usize,
    /// How much.
    pub weight: u64,
}

/// A profile, and what is in it.
#[derive(Clone, Debug)]
pub struct MadeUp {
    /// The profile.
    pub profile: Profile,
    /// Its samples.
    pub samples: Vec<MadeUpSample>,
}

impl MadeUp {
    /// The profile of a seed.
    pub fn new(seed: u64, unit: Unit) -> Self {
        let second = Duration::from_secs(1);
        let window = Window {
            start: Duration::ZERO,
            end: 4 * second,
        };
        let mut profile = Profile::new(unit, window);
        profile.origin = Origin {
            started: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)),
            period_ns: Some(1_000_000),
            activity: Activity::Running,
            ..Origin::default()
        };
        profile.windows = (0..4)
            .map(|number| WindowTotals {
                window: Window {
                    start: number * second,
                    end: (number + 1) * second,
                },
                firings: 1_000,
                ..WindowTotals::default()
            })
            .collect();
        let mut maker = Maker {
            rng: Rng::with_seed(seed),
            profile,
            locations: Vec::new(),
        };
        (0..40).for_each(|_| maker.location());
        let samples = (0..60).map(|_| maker.sample()).collect();
        Self {
            profile: maker.profile,
            samples,
        }
    }

    /// The sum of all weights.
    pub fn total(&self) -> u64 {
        self.samples.iter().map(|sample| sample.weight).sum()
    }
}

struct Maker {
    rng: Rng,
    profile: Profile,
    /// With their frames, the outermost first.
    locations: Vec<(LocationIndex, Vec<MadeUpFrame>)>,
}

impl Maker {
    fn name(&mut self) -> String {
        match self.rng.u8(0..40) {
            0 => "long".repeat(1 << 14),
            1..10 => (0..self.rng.u8(0..9)).map(|_| self.rng.char(..)).collect(),
            _ => self
                .rng
                .choice(WORST)
                .copied()
                .unwrap_or_default()
                .to_owned(),
        }
    }

    fn location(&mut self) {
        let kind = match self.rng.u8(0..4) {
            0 => FrameKind::Kernel,
            1 => FrameKind::Jit,
            _ => FrameKind::User,
        };
        let mapping = self.rng.bool().then(|| {
            let (path, module) = (self.name(), self.name());
            self.profile.mapping(Mapping {
                path: path.into(),
                module,
                build_id: [1, 2, 3].into(),
                range: 0..1 << 20,
                ..Mapping::default()
            })
        });
        let depth = if self.rng.bool() { 1 } else { 3 };
        let names: Vec<String> = (0..depth).map(|_| self.name()).collect();
        let lines: Vec<Line> = (names.iter().rev())
            .map(|name| Line {
                function: self.profile.function(Function {
                    name: name.clone(),
                    ..Function::default()
                }),
                line: 0,
            })
            .collect();
        let lines = self.profile.lines(lines);
        let location = self.profile.location(Location {
            mapping,
            address: self.rng.u64(0..1 << 20),
            kind,
            lines,
        });
        let kinds = std::iter::once(kind).chain(std::iter::repeat(FrameKind::Inlined));
        self.locations
            .push((location, names.into_iter().zip(kinds).collect()));
    }

    /// A stack of locations of the kernel, or of none, with its frames.
    fn stack(&mut self, is_kernel: bool) -> (Option<NormalizedStackIndex>, Vec<MadeUpFrame>) {
        let fit = |frames: &[MadeUpFrame]| (frames[0].1 == FrameKind::Kernel) == is_kernel;
        let all = self.locations.iter().filter(|(_, frames)| fit(frames));
        let wanted = self.rng.usize(0..6);
        let mut chosen = self.rng.choose_multiple(all, wanted);
        self.rng.shuffle(&mut chosen);
        if chosen.is_empty() {
            return (None, Vec::new());
        }
        let end = if self.rng.bool() {
            StackEnd::Root
        } else {
            StackEnd::Truncated
        };
        let mark =
            (end == StackEnd::Truncated).then(|| ("[truncated]".to_owned(), FrameKind::Mark));
        let frames = chosen.iter().flat_map(|(_, frames)| frames.clone());
        let frames = mark.into_iter().chain(frames).collect();
        let stack = NormalizedStack {
            locations: chosen.iter().rev().map(|(location, _)| *location).collect(),
            end,
            fallbacks: Fallbacks::NONE,
        };
        (Some(self.profile.stack(&stack)), frames)
    }

    fn sample(&mut self) -> MadeUpSample {
        let number = self.rng.u32(1..4);
        let name = self.rng.choice(WORST).copied().unwrap_or_default();
        let process = self.rng.choice(WORST).copied().unwrap_or_default();
        let labels = Labels {
            process: self.rng.bool().then(|| process.to_owned()),
            comm: Some(name.to_owned()),
            pid: Some(number),
            start: 0,
            tid: self.rng.bool().then_some(number),
            cpu: self.rng.bool().then_some(number),
            cgroup: None,
            context: None,
            source: self.rng.bool().then(|| name.to_owned()),
        };
        let optional = [
            labels.tid.is_some(),
            labels.cpu.is_some(),
            labels.source.is_some(),
        ];
        let known = 1 + optional.into_iter().filter(|is_known| *is_known).count();
        let (user, mut frames) = self.stack(false);
        let (kernel, of_kernel) = self.stack(true);
        frames.extend(of_kernel);
        let is_waiting = self.rng.u8(0..8) == 0;
        let thread_state = match is_waiting {
            true => {
                frames.push((
                    "[runnable]".to_owned(),
                    FrameKind::State(ThreadState::Runnable),
                ));
                ThreadState::Runnable
            }
            false => ThreadState::Running,
        };
        let count = self.rng.u64(1..1_000);
        let weight = match &self.profile.unit {
            Unit::Samples => count,
            // More than 32 bits hold, in all.
            Unit::Events(_) => self.rng.u64(1..1 << 33),
            // Whole microseconds, which is what text shows.
            Unit::Nanoseconds => 1_000 * self.rng.u64(1..1 << 20),
        };
        let labels = self.profile.labels(labels);
        self.profile.push(Sample {
            labels,
            user,
            kernel,
            thread_state,
            reason: None,
            waker: None,
            window: WindowIndex(self.rng.u32(0..4)),
            weight,
            count,
        });
        MadeUpSample {
            frames,
            labels: known,
            weight,
        }
    }
}
