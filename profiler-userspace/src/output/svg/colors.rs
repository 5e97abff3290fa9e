//! Our palettes: which colour a frame has, and what that means.
//!
//! In: a profile's view. Out: a [`FrameStyle`] for each frame of its tree, always the same for the same view. Hues tell kinds
//! of code, or what threads did; a name's hash tells neighbours apart.

use super::color::Color;
use super::tree::drawn;
use crate::output::Palette;
use crate::profile::{Frame, FrameId, FrameKind, TreeSample, View};
use profiler_common::abi::ThreadState;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// A line of the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Meaning {
    Process,
    Program,
    Inlined,
    Jit,
    Interpreted,
    Kernel,
    OnCpu,
    Blocked,
    Runnable,
    Waker,
    Mark,
}

impl Meaning {
    /// Name that readers see.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Process => "process, thread",
            Self::Program => "program",
            Self::Inlined => "inlined",
            Self::Jit => "JIT",
            Self::Interpreted => "runtime",
            Self::Kernel => "kernel",
            Self::OnCpu => "on a CPU",
            Self::Blocked => "blocked",
            Self::Runnable => "waiting for a CPU",
            Self::Waker => "ends the wait",
            Self::Mark => "mark",
        }
    }

    /// Swatch beside the label: the middle of its colours.
    pub(super) fn sample(self) -> Color {
        let (hue, saturation, lightness) = match self {
            Self::Process => PROCESS,
            Self::Program => PROGRAM,
            Self::Inlined => INLINED,
            Self::Jit => JIT,
            Self::Interpreted => INTERPRETED,
            Self::Kernel => KERNEL,
            Self::OnCpu | Self::Waker => WARM,
            Self::Blocked => COLD,
            Self::Runnable => return RUNNABLE,
            Self::Mark => return MARK,
        };
        Color::from_hsl(
            f64::from(hue),
            f64::from(saturation) / 100.0,
            f64::from(lightness) / 100.0,
        )
    }
}

/// Hue in degrees, saturation and lightness in percent.
type Tone = (u16, u16, u16);

const PROCESS: Tone = (46, 34, 76);
const PROGRAM: Tone = (28, 88, 66);
const JIT: Tone = (112, 52, 64);
const INTERPRETED: Tone = (166, 46, 62);
const INLINED: Tone = (284, 58, 78);
const KERNEL: Tone = (207, 72, 70);
const WARM: Tone = (34, 88, 66);
const WARM_KERNEL: Tone = (24, 68, 60);
const COLD: Tone = (196, 55, 76);
const COLD_KERNEL: Tone = (214, 62, 66);

/// A colour, and what it means; nothing in palettes of one hue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameStyle {
    pub(super) color: Color,
    pub(super) meaning: Option<Meaning>,
}

impl FrameStyle {
    fn new(color: Color, meaning: Meaning) -> Self {
        Self {
            color: color.readable(),
            meaning: Some(meaning),
        }
    }
}

/// The look of frames that stand for what is not known.
pub(super) fn unknown() -> FrameStyle {
    FrameStyle::new(MARK, Meaning::Mark)
}

const MARK: Color = Color::new(166, 166, 162);

/// The colour of the root, which is none of the frames.
pub(super) const ROOT: Color = Color::new(232, 232, 232);

/// The colour of the mark of what could have run, and had no CPU.
const RUNNABLE: Color = Color::new(160, 210, 90);

/// The colour of the mark of what was blocked, and of what it waited for.
const BLOCKED: Color = Color::new(150, 180, 220);

/// The colour of the mark of what ran.
const RAN: Color = Color::new(235, 190, 120);

/// The look of a synthetic frame: what a thread did, or what is not known of it.
fn mark(kind: FrameKind) -> FrameStyle {
    match kind {
        FrameKind::State(ThreadState::Runnable) => FrameStyle::new(RUNNABLE, Meaning::Runnable),
        FrameKind::State(ThreadState::Blocked | ThreadState::Woken) => {
            FrameStyle::new(BLOCKED, Meaning::Blocked)
        }
        FrameKind::State(ThreadState::Ran | ThreadState::Running) => {
            FrameStyle::new(RAN, Meaning::OnCpu)
        }
        _ => unknown(),
    }
}

/// The look of each of a tree's names.
pub(super) fn looks(palette: Palette, view: &View, names: &[Frame]) -> Vec<FrameStyle> {
    let (times, meanings) = match palette {
        Palette::COLD => (
            by_half(view),
            [Meaning::Waker, Meaning::Blocked, Meaning::Runnable],
        ),
        Palette::WALL => (
            by_time(view),
            [Meaning::OnCpu, Meaning::Blocked, Meaning::Runnable],
        ),
        _ => return names.iter().map(|frame| of_kind(palette, frame)).collect(),
    };
    let look = |frame: &Frame| match frame.kind {
        FrameKind::Mark | FrameKind::State(_) => mark(frame.kind),
        _ => {
            let time = times.get(frame).copied().unwrap_or_default();
            FrameStyle::new(time.color(frame), time.most(meanings))
        }
    };
    names.iter().map(look).collect()
}

/// The colour of a frame alone, whose threads ran and waited for so long.
pub(super) fn of_frame(palette: Palette, frame: &Frame, [ran, waited]: [f64; 2]) -> Color {
    match palette {
        _ if matches!(frame.kind, FrameKind::Mark | FrameKind::State(_)) => mark(frame.kind).color,
        Palette::COLD => cold(frame).readable(),
        Palette::WALL => {
            let time = Time([ran, waited, 0.0].map(|part| part.round() as u64));
            time.color(frame).readable()
        }
        _ => of_kind(palette, frame).color,
    }
}

/// Looks that depend on nothing but a frame: of one hue, or a hue for each kind of code.
fn of_kind(palette: Palette, frame: &Frame) -> FrameStyle {
    let (tone, spread, meaning) = match frame.kind {
        FrameKind::Process | FrameKind::Label => (PROCESS, 6, Meaning::Process),
        FrameKind::User => (PROGRAM, 14, Meaning::Program),
        FrameKind::Jit => (JIT, 12, Meaning::Jit),
        FrameKind::Interpreted(_) => (INTERPRETED, 8, Meaning::Interpreted),
        FrameKind::Inlined => (INLINED, 12, Meaning::Inlined),
        FrameKind::Kernel => (KERNEL, 9, Meaning::Kernel),
        FrameKind::Mark | FrameKind::State(_) => return mark(frame.kind),
    };
    let name = match frame.kind.short() {
        Some(short) => Cow::Owned(format!("{}_[{short}]", frame.name)),
        None => Cow::Borrowed(&*frame.name),
    };
    match palette.hue() {
        Some((hue, spread)) => FrameStyle {
            color: tint(&name, (hue, 70, 66), spread).readable(),
            meaning: None,
        },
        None => FrameStyle::new(tint(&name, tone, spread), meaning),
    }
}

/// A colour near this tone, its hue within so many degrees; always the same for a name.
fn tint(name: &str, (hue, saturation, lightness): Tone, spread: u16) -> Color {
    let (shade, tint) = spread_of(name);
    let part = |number: u8| f64::from(number) / 255.0 * 2.0 - 1.0;
    Color::from_hsl(
        f64::from(hue) + part(tint) * f64::from(spread),
        f64::from(saturation) / 100.0,
        f64::from(lightness) / 100.0 + part(shade) * 0.07,
    )
}

/// Colours of what waits: programs light, the kernel darker.
fn cold(frame: &Frame) -> Color {
    match frame.kind {
        FrameKind::Kernel => tint(&frame.name, COLD_KERNEL, 6),
        _ => tint(&frame.name, COLD, 8),
    }
}

/// Colours of what runs: programs yellow to red, the kernel in orange and brown.
fn warm(frame: &Frame) -> Color {
    match frame.kind {
        FrameKind::Kernel => tint(&frame.name, WARM_KERNEL, 6),
        _ => tint(&frame.name, WARM, 12),
    }
}

/// How much of the time that a frame stands for its threads ran, were blocked, and waited for a CPU.
#[derive(Clone, Copy, Default)]
struct Time([u64; 3]);

impl Time {
    fn add(&mut self, thread_state: ThreadState, weight: u64) {
        let place = match thread_state {
            ThreadState::Running | ThreadState::Ran => 0,
            ThreadState::Blocked | ThreadState::Woken => 1,
            ThreadState::Runnable => 2,
        };
        self.0[place] = self.0[place].saturating_add(weight);
    }

    /// The mean of a frame's three colours.
    fn color(self, frame: &Frame) -> Color {
        let colors = [warm(frame), cold(frame), RUNNABLE];
        let whole: u128 = self.0.iter().map(|&part| u128::from(part)).sum();
        let mean = |channel: fn(&Color) -> u8| {
            let sum: u128 = colors
                .iter()
                .zip(self.0)
                .map(|(color, part)| u128::from(channel(color)) * u128::from(part))
                .sum();
            u8::try_from(sum / whole.max(1)).unwrap_or(u8::MAX)
        };
        Color::new(
            mean(|color| color.r),
            mean(|color| color.g),
            mean(|color| color.b),
        )
    }

    /// The one of the three that is most of it.
    fn most<T: Copy>(self, of: [T; 3]) -> T {
        let [ran, blocked, runnable] = self.0;
        match (ran >= blocked, ran >= runnable, blocked >= runnable) {
            (true, true, _) => of[0],
            (_, _, true) => of[1],
            _ => of[2],
        }
    }
}

/// Times of frames.
type Times<'a> = HashMap<Cow<'a, Frame>, Time>;

/// Warm as far as a frame's threads ran, cold as far as they were blocked, green as far as they waited for a CPU.
fn by_time(view: &View) -> Times<'_> {
    times(view, |sample| (sample.thread_state, sample.thread_state))
}

/// Cold as far as a frame's threads waited, warm as far as they ended waits.
fn by_half(view: &View) -> Times<'_> {
    times(view, |_| (ThreadState::Blocked, ThreadState::Running))
}

/// For how long threads did what. `states`: what that of a sample did, and what who ended its wait did.
fn times(view: &View, states: impl Fn(&TreeSample) -> (ThreadState, ThreadState)) -> Times<'_> {
    let tree = view.tree();
    let mut times = Times::new();
    let mut add = |frames: HashSet<FrameId>, thread_state, weight: u64| {
        for frame in frames {
            let time = times.entry(drawn(tree.frame(frame))).or_default();
            // A frame without weight has a colour, too.
            time.add(thread_state, weight.max(1));
        }
    };
    for sample in tree.samples() {
        let (own, others) = states(sample);
        let count = |node| tree.callers(node).count();
        let behind = count(sample.node) - count(sample.own);
        let mut frames = tree.callers(sample.node);
        let of_others: HashSet<FrameId> = frames.by_ref().take(behind).collect();
        match own == others {
            true => add(
                of_others.into_iter().chain(frames).collect(),
                own,
                sample.weight,
            ),
            false => {
                add(of_others, others, sample.weight);
                add(frames.collect(), own, sample.weight);
            }
        }
    }
    times
}

/// Two numbers that are always the same for a name, and spread over names.
fn spread_of(name: &str) -> (u8, u8) {
    // FNV-1a: all that is needed here is that names spread.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let [.., shade, tint] = (hash >> 16).to_be_bytes();
    (shade, tint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{FrameProfile, Profile, Sample, Unit, Waker, Window};
    use crate::profile::{OffCpuView, Wakers, marks};

    /// Stacks of frames, what their threads did, and who ended their waits.
    type Stack<'a> = (
        &'a [(&'a str, FrameKind)],
        ThreadState,
        &'a [(&'a str, FrameKind)],
        u64,
    );

    fn view(stacks: &[Stack<'_>], wakers: Wakers) -> View {
        let mut frames = FrameProfile::new(Profile::new(Unit::Nanoseconds, Window::default()));
        let frame = |&(name, kind): &(&str, FrameKind)| Frame::new(name, kind);
        let all = |stack: &[_]| stack.iter().map(frame).collect::<Vec<Frame>>();
        for (group, (stack, _, waker, weight)) in (0..).zip(stacks) {
            frames.group(2 * group);
            frames.push(&all(stack), *weight, 1);
            frames.group(2 * group + 1);
            frames.push(&all(waker), 0, 1);
        }
        let annotated = frames.into_profile();
        let mut profile = annotated.clone();
        profile.clear();
        for ((_, thread_state, waker, _), pair) in stacks.iter().zip(annotated.samples().chunks(2))
        {
            let Sample {
                labels,
                user,
                kernel,
                ..
            } = pair[1];
            let woke = (!waker.is_empty()).then(|| {
                profile.waker(Waker {
                    labels,
                    user,
                    kernel,
                    interrupt: false,
                })
            });
            profile.push(Sample {
                thread_state: *thread_state,
                waker: woke,
                window: crate::profile::WindowIndex::default(),
                ..pair[0]
            });
        }
        profile.off_cpu = Some(OffCpuView {
            scheduler: true,
            reasons: false,
            kernel: true,
            ran: true,
            wakers,
        });
        View::new(&profile)
    }

    fn color(palette: Palette, view: &View, name: &str) -> Color {
        let mut frames = view.tree().frames().map(|(frame, _)| frame);
        let frame = frames.find(|frame| frame.name == name);
        let frame = drawn(frame.expect("it is in the view")).into_owned();
        looks(palette, view, &[frame])[0].color
    }

    #[test]
    fn a_frame_is_colored_by_how_much_its_threads_ran() {
        let (main, run, wait) = (
            ("main", FrameKind::User),
            ("work", FrameKind::User),
            ("ksys_read", FrameKind::Kernel),
        );
        let stacks: [Stack<'_>; 3] = [
            (&[main, run], ThreadState::Running, &[], 50),
            (&[main, wait], ThreadState::Blocked, &[], 50),
            (&[main, run], ThreadState::Runnable, &[], 0),
        ];
        let view = view(&stacks, Wakers::None);
        let of = |name: &str| color(Palette::WALL, &view, name);
        let is_warm = |color: Color| u16::from(color.r) > u16::from(color.b) + 50;
        let is_cold = |color: Color| u16::from(color.b) > u16::from(color.r) + 50;
        assert!(is_warm(of("work")), "{:?}", of("work"));
        assert!(is_cold(of("ksys_read")), "{:?}", of("ksys_read"));
        let mixed = of("main");
        assert!(!is_warm(mixed) && !is_cold(mixed), "{mixed:?}");
        assert_eq!(of(marks::RUNNABLE), RUNNABLE);
        assert_eq!(of(marks::BLOCKED), BLOCKED);
    }

    #[test]
    fn wakers_have_warm_colors() {
        let (sh, wait) = (("sh", FrameKind::Process), ("pipe_read", FrameKind::Kernel));
        let (cat, wake) = (("cat", FrameKind::Process), ("put", FrameKind::User));
        let stacks: [Stack<'_>; 2] = [
            (&[sh, wait], ThreadState::Woken, &[cat, wake], 50),
            (&[sh, wait], ThreadState::Woken, &[sh, wake], 50),
        ];
        let view = view(&stacks, Wakers::Above);
        let of = |name: &str| color(Palette::COLD, &view, name);
        for (name, is_warm) in [("pipe_read", false), ("put", true), ("cat", true)] {
            let color = of(name);
            let (red, blue) = (u16::from(color.r), u16::from(color.b));
            assert_eq!(red > blue + 50, is_warm, "{name}: {color:?}");
            assert_eq!(blue > red + 50, !is_warm, "{name}: {color:?}");
        }
        assert_ne!(of("sh"), of("cat"));
    }

    #[test]
    fn off_cpu_frames_have_cold_colors() {
        let stack: Stack<'_> = (
            &[
                ("sh", FrameKind::Process),
                ("main", FrameKind::User),
                ("schedule", FrameKind::Kernel),
            ],
            ThreadState::Blocked,
            &[],
            1,
        );
        let view = view(&[stack], Wakers::None);
        for name in ["sh", "main", "schedule"] {
            let color = color(Palette::COLD, &view, name);
            assert!(color.b > color.r, "{name}: {color:?}");
        }
    }
}
