//! Our own palettes: which colour a frame has.
//!
//! In: a profile's view. Out: a colour for each name of a frame, always the same for the same view.

use super::ANNOTATED;
use crate::output::Palette;
use crate::profile::{Frame, FrameId, FrameKind, View, ViewSample, fold};
use inferno::flamegraph::color::{Color, PaletteMap};
use profiler_common::abi::ThreadState;
use std::collections::{HashMap, HashSet};

/// The colour of frames that stand for what is not known.
const MARK: Color = Color {
    r: 190,
    g: 190,
    b: 190,
};

/// The colour of the mark of what could have run, and had no CPU.
const RUNNABLE: Color = Color {
    r: 160,
    g: 210,
    b: 90,
};

/// The colour of the mark of what was blocked, and of what it waited for.
const BLOCKED: Color = Color {
    r: 150,
    g: 180,
    b: 220,
};

/// The colour of the mark of what ran.
const RAN: Color = Color {
    r: 235,
    g: 190,
    b: 120,
};

/// The colour of a synthetic frame: what a thread did, or what is not known of it.
fn mark(kind: FrameKind) -> Color {
    match kind {
        FrameKind::State(ThreadState::Runnable) => RUNNABLE,
        FrameKind::State(ThreadState::Blocked | ThreadState::Woken) => BLOCKED,
        FrameKind::State(ThreadState::Ran | ThreadState::Running) => RAN,
        _ => MARK,
    }
}

/// The colours of a palette of ours; none for any other.
pub(super) fn map(palette: Palette, view: &View) -> Option<PaletteMap> {
    match palette {
        Palette::LAND => Some(all(view, land)),
        Palette::COLD => Some(by_half(view)),
        Palette::WALL => Some(by_time(view)),
        _ => None,
    }
}

fn all(view: &View, color: impl Fn(&Frame) -> Option<Color>) -> PaletteMap {
    let mut colors = PaletteMap::default();
    for frame in view.frames() {
        if let Some(color) = color(frame) {
            colors.insert(fold::frame_name(frame, ANNOTATED), color);
        }
    }
    colors
}

/// Colours for all frames that are not a program's own, which are drawn warm.
fn land(frame: &Frame) -> Option<Color> {
    match frame.kind {
        FrameKind::Kernel => Some(kernel_color(&frame.name)),
        FrameKind::Jit => Some(made_color(&frame.name)),
        FrameKind::Inlined => Some(inlined_color(&frame.name)),
        FrameKind::Mark | FrameKind::State(_) => Some(MARK),
        FrameKind::Process | FrameKind::Label | FrameKind::User => None,
    }
}

/// Colours of what waits: programs light, the kernel darker.
fn cold(frame: &Frame) -> Color {
    let (shade, tint) = spread(&frame.name);
    match frame.kind {
        FrameKind::Mark | FrameKind::State(_) => mark(frame.kind),
        FrameKind::Kernel => Color {
            r: 70 + shade / 4,
            g: 120 + shade / 4,
            b: 195 + tint / 6,
        },
        _ => Color {
            r: 120 + shade / 5,
            g: 185 + shade / 5,
            b: 215 + tint / 7,
        },
    }
}

/// Colours of what runs: programs yellow to red, the kernel in orange and brown.
fn warm(frame: &Frame) -> Color {
    let (shade, tint) = spread(&frame.name);
    match frame.kind {
        FrameKind::Mark | FrameKind::State(_) => mark(frame.kind),
        FrameKind::Kernel => Color {
            r: 205 + tint / 6,
            g: 110 + shade / 4,
            b: 40 + shade / 5,
        },
        _ => Color {
            r: 215 + tint / 7,
            g: 120 + shade / 3,
            b: 40 + shade / 5,
        },
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

    /// The mean of the three colours.
    fn mix(self, colors: [Color; 3]) -> Color {
        let whole: u128 = self.0.iter().map(|&part| u128::from(part)).sum();
        let mean = |channel: fn(&Color) -> u8| {
            let sum: u128 = colors
                .iter()
                .zip(self.0)
                .map(|(color, part)| u128::from(channel(color)) * u128::from(part))
                .sum();
            u8::try_from(sum / whole.max(1)).unwrap_or(u8::MAX)
        };
        Color {
            r: mean(|color| color.r),
            g: mean(|color| color.g),
            b: mean(|color| color.b),
        }
    }
}

/// Warm as far as a frame's threads ran, cold as far as they were blocked, green as far as they waited for a CPU.
fn by_time(view: &View) -> PaletteMap {
    mixed(view, |sample| {
        let ViewSample {
            stack,
            thread_state,
            ..
        } = sample;
        [(stack, *thread_state), NOTHING]
    })
}

/// Cold as far as a frame's threads waited, warm as far as they ended waits.
fn by_half(view: &View) -> PaletteMap {
    mixed(view, |sample| {
        let (wait, woke) = sample.stack.split_at(sample.own);
        [(wait, ThreadState::Blocked), (woke, ThreadState::Running)]
    })
}

/// A part of a stack, and what its thread did.
type Part<'a> = (&'a [FrameId], ThreadState);

/// No part.
const NOTHING: Part<'_> = (&[], ThreadState::Running);

/// Colours by what threads did for how long, told by the parts of their stacks.
fn mixed<'a>(view: &'a View, parts: impl Fn(&'a ViewSample) -> [Part<'a>; 2]) -> PaletteMap {
    let mut times: HashMap<String, (&Frame, Time)> = HashMap::new();
    for sample in view.samples() {
        for (part, thread_state) in parts(sample) {
            let frames: HashSet<_> = part.iter().collect();
            for &frame in frames {
                let frame = view.frame(frame);
                let name = fold::frame_name(frame, ANNOTATED).into_owned();
                let (_, time) = times.entry(name).or_insert((frame, Time::default()));
                // Whatever weighs nothing has a colour, too.
                time.add(thread_state, sample.weight.max(1));
            }
        }
    }
    let mut colors = PaletteMap::default();
    for (name, (frame, time)) in times {
        let color = match frame.kind {
            FrameKind::Mark | FrameKind::State(_) => mark(frame.kind),
            _ => time.mix([warm(frame), cold(frame), RUNNABLE]),
        };
        colors.insert(name, color);
    }
    colors
}

/// Two numbers that are always the same for a name, and spread over names.
fn spread(name: &str) -> (u8, u8) {
    // FNV-1a: all that is needed here is that names spread.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let [.., shade, tint] = (hash >> 16).to_be_bytes();
    (shade, tint)
}

/// One of many blues, always the same for a name.
fn kernel_color(name: &str) -> Color {
    let (shade, tint) = spread(name);
    Color {
        r: 70 + shade / 3,
        g: 150 + shade / 4,
        b: 205 + tint / 6,
    }
}

/// One of many greens, for code that a runtime made.
fn made_color(name: &str) -> Color {
    let (shade, tint) = spread(name);
    Color {
        r: 60 + shade / 3,
        g: 190 + tint / 5,
        b: 60 + shade / 3,
    }
}

/// One of many violets, for functions that were compiled into others.
fn inlined_color(name: &str) -> Color {
    let (shade, tint) = spread(name);
    Color {
        r: 170 + shade / 5,
        g: 120 + shade / 4,
        b: 200 + tint / 5,
    }
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
        let frame = |&(name, kind): &(&str, FrameKind)| Frame {
            name: name.to_owned(),
            kind,
        };
        let all = |stack: &[_]| stack.iter().map(frame).collect::<Vec<Frame>>();
        for (stack, _, waker, weight) in stacks {
            frames.push(&all(stack), *weight, 1);
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
        let colors = map(Palette::WALL, &view).expect("it is ours");
        let of = |name: &str| colors.get(name).expect("every frame has a colour");
        let is_warm = |color: Color| color.r > color.b + 50;
        let is_cold = |color: Color| color.b > color.r + 50;
        assert!(is_warm(of("work")), "{:?}", of("work"));
        assert!(is_cold(of("ksys_read_[k]")), "{:?}", of("ksys_read_[k]"));
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
        let colors = map(Palette::COLD, &view).expect("it is ours");
        let of = |name: &str| colors.get(name).expect("every frame has a colour");
        for (name, is_warm) in [("pipe_read_[k]", false), ("put", true), ("cat", true)] {
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
        let colors = map(Palette::COLD, &view).expect("it is ours");
        for name in ["sh", "main", "schedule_[k]"] {
            let color = colors.get(name).expect("every frame has a colour");
            assert!(color.b > color.r, "{name}: {color:?}");
        }
    }
}
