//! Our own palettes: which colour a frame has.
//!
//! In: a profile. Out: a colour for each name of a frame, always the same for the same profile.

use super::ANNOTATED;
use crate::output::Palette;
use crate::profile::{Frame, FrameId, FrameKind, Profile, fold, waits, wall};
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

/// The colour of a mark that says what a thread did, or what is not known of it.
fn mark(frame: &Frame) -> Color {
    match waits::thread_state(frame) {
        ThreadState::Runnable => RUNNABLE,
        ThreadState::Blocked => BLOCKED,
        _ if frame.name == wall::NOT_SAMPLED => RAN,
        _ => MARK,
    }
}

/// The colours of a palette of ours; none for any other.
pub(super) fn map(palette: Palette, profile: &Profile) -> Option<PaletteMap> {
    match palette {
        Palette::LAND => Some(all(profile, land)),
        Palette::COLD => Some(by_half(profile)),
        Palette::WALL => Some(by_time(profile)),
        _ => None,
    }
}

fn all(profile: &Profile, color: impl Fn(&Frame) -> Option<Color>) -> PaletteMap {
    let mut colors = PaletteMap::default();
    for frame in profile.frames() {
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
        FrameKind::Mark => Some(MARK),
        FrameKind::Process | FrameKind::Label | FrameKind::User => None,
    }
}

/// Colours of what waits: programs light, the kernel darker.
fn cold(frame: &Frame) -> Color {
    let (shade, tint) = spread(&frame.name);
    match frame.kind {
        FrameKind::Mark => mark(frame),
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
        FrameKind::Mark => mark(frame),
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
fn by_time(profile: &Profile) -> PaletteMap {
    mixed(profile, |stack| {
        let leaf = stack.last().map(|leaf| profile.frame(*leaf));
        [
            (
                stack,
                leaf.map_or(ThreadState::Running, waits::thread_state),
            ),
            NOTHING,
        ]
    })
}

/// Cold as far as a frame's threads waited, warm as far as they ended waits, which the frames above a separator tell.
fn by_half(profile: &Profile) -> PaletteMap {
    mixed(profile, |stack| {
        let is_separator = |frame: &FrameId| waits::is_separator(profile.frame(*frame));
        let separator = stack.iter().position(is_separator);
        let (wait, woke) = stack.split_at(separator.unwrap_or(stack.len()));
        [(wait, ThreadState::Blocked), (woke, ThreadState::Running)]
    })
}

/// A part of a stack, and what its thread did.
type Part<'a> = (&'a [FrameId], ThreadState);

/// No part.
const NOTHING: Part<'_> = (&[], ThreadState::Running);

/// Colours by what threads did for how long, told by the parts of their stacks.
fn mixed<'a>(profile: &'a Profile, parts: impl Fn(&'a [FrameId]) -> [Part<'a>; 2]) -> PaletteMap {
    let mut times: HashMap<String, (&Frame, Time)> = HashMap::new();
    for sample in profile.samples() {
        for (part, thread_state) in parts(&sample.stack) {
            let frames: HashSet<_> = part.iter().collect();
            for &frame in frames {
                let frame = profile.frame(frame);
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
            FrameKind::Mark => mark(frame),
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
    use crate::profile::{Sample, Unit, Window};

    fn profile(stacks: &[(&[(&str, FrameKind)], u64)]) -> Profile {
        let mut profile = Profile::new(Unit::Nanoseconds, Window::default());
        for (frames, weight) in stacks {
            let stack = frames
                .iter()
                .map(|&(name, kind)| {
                    let name = name.to_owned();
                    profile.intern(Frame { name, kind })
                })
                .collect();
            profile.push(Sample {
                stack,
                weight: *weight,
                count: 1,
            });
        }
        profile
    }

    #[test]
    fn a_frame_is_as_warm_as_its_threads_ran() {
        let (main, run, wait) = (
            ("main", FrameKind::User),
            ("work", FrameKind::User),
            ("ksys_read", FrameKind::Kernel),
        );
        let blocked = (waits::BLOCKED, FrameKind::Mark);
        let ready = (waits::RUNNABLE, FrameKind::Mark);
        let profile = profile(&[
            (&[main, run], 50),
            (&[main, wait, blocked], 50),
            (&[main, run, ready], 0),
        ]);
        let colors = map(Palette::WALL, &profile).expect("it is ours");
        let of = |name: &str| colors.get(name).expect("every frame has a colour");
        let is_warm = |color: Color| color.r > color.b + 50;
        let is_cold = |color: Color| color.b > color.r + 50;
        assert!(is_warm(of("work")), "{:?}", of("work"));
        assert!(is_cold(of("ksys_read_[k]")), "{:?}", of("ksys_read_[k]"));
        let mixed = of("main");
        assert!(!is_warm(mixed) && !is_cold(mixed), "{mixed:?}");
        assert_eq!(of(waits::RUNNABLE), RUNNABLE);
        assert_eq!(of(waits::BLOCKED), BLOCKED);
    }

    #[test]
    fn who_ends_waits_is_warm() {
        let (sh, wait, mark) = (
            ("sh", FrameKind::Process),
            ("pipe_read", FrameKind::Kernel),
            (waits::WOKEN_BY, FrameKind::Mark),
        );
        let (cat, wake) = (("cat", FrameKind::Process), ("put", FrameKind::User));
        let profile = profile(&[
            (&[sh, wait, mark, wake, cat], 50),
            (&[sh, wait, mark, wake, sh], 50),
            // Not a separator, but a function of that name.
            (&[cat, (waits::WOKEN_BY, FrameKind::User)], 0),
        ]);
        let colors = map(Palette::COLD, &profile).expect("it is ours");
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
    fn off_the_cpu_all_is_cold() {
        let profile = profile(&[(
            &[
                ("sh", FrameKind::Process),
                ("main", FrameKind::User),
                ("schedule", FrameKind::Kernel),
            ],
            1,
        )]);
        let colors = map(Palette::COLD, &profile).expect("it is ours");
        for name in ["sh", "main", "schedule_[k]"] {
            let color = colors.get(name).expect("every frame has a colour");
            assert!(color.b > color.r, "{name}: {color:?}");
        }
    }
}
