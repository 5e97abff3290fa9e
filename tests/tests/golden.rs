//! The bytes of every format, compared with files that a person has checked.
//!
//! In: one profile, written by hand to be as awkward as real ones are. Out: a difference, if any.
//! `cargo xtask bless` accepts what is written now; `git diff` then shows what that means.

use std::path::PathBuf;
use std::time::Duration;

use flame_bpf::output::{self, Format, MinWidth, Style};
use flame_bpf::profile::fold::FoldStyle;
use flame_bpf::profile::{Frame, FrameKind, FrameProfile, Profile, Sample, Unit, Window};
use flame_bpf_tests::golden::compare;
use flame_bpf_tests::stacks::{self, Stacks};
use flame_bpf_tests::{Graph, PageData, in_windows};
use profiler_common::abi::{RuntimeKind, ThreadState};

/// Names that programs have and names that they could have to do harm.
fn profile() -> Profile {
    use FrameKind::{Kernel, Mark, Process, User};
    let frame = |name: &str, kind| Frame {
        name: name.to_owned(),
        kind,
    };
    let shell = || frame("sh", Process);
    let main = || frame("main", User);
    let work = || frame("work(int, char const*)", User);
    let syscall = || frame("entry_SYSCALL_64_after_hwframe", Kernel);
    let stacks = [
        (vec![shell(), main(), work()], 40),
        (
            vec![
                shell(),
                main(),
                work(),
                syscall(),
                frame("vfs_read", Kernel),
            ],
            25,
        ),
        // The same stack again, as another window or an inlined caller of the same name makes it.
        (vec![shell(), main(), work()], 2),
        // Sorted as text, this would part `main` from what it called.
        (vec![shell(), frame("main(int)", User)], 4),
        (vec![shell(), main()], 1),
        // Cut short in user space, and in the kernel.
        (
            vec![shell(), frame("[truncated]", Mark), work(), syscall()],
            3,
        ),
        (
            vec![
                shell(),
                main(),
                frame("[truncated]", Mark),
                frame("do_exit", Kernel),
            ],
            2,
        ),
        // No user part, so nothing to be parted from.
        (
            vec![
                frame("kworker/0:1", Process),
                frame("worker_thread", Kernel),
            ],
            6,
        ),
        (
            vec![
                shell(),
                frame("[libc.so.6+0x2a1ca]", User),
                frame("[unknown]", User),
            ],
            5,
        ),
        // Labels, of a sample with frames and of one without.
        (
            vec![
                Frame::cpu(1),
                frame("Web Content", Process),
                Frame::thread(77, Some("pool-1")),
                main(),
            ],
            3,
        ),
        (
            vec![
                Frame::cpu(1),
                frame("Worker 12", Process),
                Frame::thread(77, Some("pool-1")),
            ],
            1,
        ),
        // Rust and C++, demangled.
        (
            vec![
                frame("rustc", Process),
                frame("<alloc::vec::Vec<T> as core::ops::Drop>::drop", User),
                frame("core::ptr::drop_in_place<[u8; 8]>", User),
                frame("operator new(unsigned long)", User),
            ],
            8,
        ),
        // Names that someone could choose in order to be seen elsewhere, or not at all.
        (
            vec![frame("a;b\nc 1", Process), frame("\u{1b}[2J\u{7}", User)],
            2,
        ),
        (
            vec![
                frame("# no comment", Process),
                frame("-", User),
                frame("sneaky_[k]", User),
            ],
            2,
        ),
        (
            vec![
                frame("<script>alert('x & y')</script>", Process),
                frame("]]>\"--><!--", User),
            ],
            2,
        ),
        (
            vec![
                frame("", Process),
                frame("\u{fffe}\u{202e}evil", User),
                frame("größe 日本", User),
            ],
            2,
        ),
    ];
    let unit = Unit::Events("cycles".to_owned());
    let mut profile = FrameProfile::new(Profile::new(unit, Window::default()));
    for (group, (stack, weight)) in (0..).zip(stacks) {
        profile.group(group);
        profile.push(&stack, weight * 1_000, weight);
    }
    profile.into_profile()
}

fn written(format: Format, style: &Style) -> String {
    let mut bytes = Vec::new();
    output::write(&profile(), format, style, &mut bytes).expect("a vector takes everything");
    String::from_utf8(bytes).expect("both formats are UTF-8")
}

/// Sizes and offsets of what crosses the boundary to the kernel half: a change to the layout is then
/// always a visible difference.
#[test]
fn the_layout_of_kernel_structures_is_as_in_the_golden() {
    use profiler_common::abi;
    use std::fmt::Write as _;

    let mut text = String::new();
    for layout in abi::BOUNDARY {
        writeln!(
            text,
            "{} size {} align {}",
            layout.name, layout.size, layout.align
        )
        .expect("a string takes all");
        for (name, offset, size) in layout.fields {
            writeln!(text, "  {name} at {offset}, {size} bytes").expect("a string takes all");
        }
    }
    for (name, fields, assumed) in abi::KERNEL_LAYOUTS {
        for field in *fields {
            let paths: Vec<String> = field.paths.iter().map(|path| path.join(".")).collect();
            let absent = field
                .absent
                .map(|absent| format!(", or {absent}"))
                .unwrap_or_default();
            writeln!(
                text,
                "{name}.{} is {}{absent}",
                field.name,
                paths.join(", or ")
            )
            .expect("a string takes all");
        }
        for assumed in *assumed {
            let (path, distance) = (assumed.path.join("."), assumed.distance);
            writeln!(
                text,
                "{name} assumes {path} to be {} + {distance}",
                assumed.field
            )
            .expect("a string takes all");
        }
    }
    for &counter in abi::Counter::ALL {
        text.push_str(&format!(
            "counter {} is {}\n",
            counter as usize,
            counter.name()
        ));
    }
    compare("abi.txt", &text);
}

#[test]
fn folded_text_is_as_in_the_golden_in_every_style() {
    for (name, delimited, annotate) in [
        ("plain.folded", false, false),
        ("annotated.folded", false, true),
        ("delimited.folded", true, false),
        ("delimited-annotated.folded", true, true),
    ] {
        let style = Style {
            fold: FoldStyle {
                delimited,
                annotate,
            },
            ..Style::default()
        };
        compare(name, &written(Format::FOLDED, &style));
    }
}

/// The SVG, one element per line, with the frames that it carries in place of its script, which browsers check.
fn readable(svg: &str) -> String {
    let graph = Graph::parse(svg).expect("a graph");
    let (picture, script) = svg.split_once("<script>").expect("a script");
    assert!(script.ends_with("</script></svg>\n"));
    let mut text = picture.replace("><", ">\n<");
    text.push_str(&format!(
        "\n<!-- texts {:?}, settings {:?} -->\n",
        graph.texts, graph.settings
    ));
    for frame in &graph.frames {
        let indent = "  ".repeat(frame.depth);
        text.push_str(&format!(
            "{indent}{:?} {} {:?} {}",
            frame.name, frame.own, frame.kind, frame.color
        ));
        if let Some((start, end)) = frame.time {
            text.push_str(&format!(" from {start} to {end} ns"));
        }
        text.push('\n');
    }
    text
}

#[test]
fn a_flame_graph_is_as_in_the_golden() {
    let style = Style {
        title: "PID 1 <init> & co., cycles at 99 Hz for 10 s".to_owned(),
        notes:
            "a title\nrecorded: 108 samples\nLOST: 2 samples: --buffer 2M keeps them\n\"<&>\" -->"
                .to_owned(),
        ..Style::default()
    };
    compare("flame.svg", &readable(&written(Format::SVG, &style)));
}

#[test]
fn a_flame_chart_is_as_in_the_golden() {
    let style = Style {
        title: "PID 1, cycles at 99 Hz for 1 s".to_owned(),
        chart: true,
        ..Style::default()
    };
    let windows = |place: usize| match place {
        // The same in three windows, of which the last has more.
        0 => 1,
        1 => 2,
        2 => 0,
        _ => 2,
    };
    let profile = in_windows(profile(), 4, Duration::from_millis(250), windows);
    let mut bytes = Vec::new();
    output::write(&profile, Format::SVG, &style, &mut bytes).expect("a vector takes everything");
    let svg = String::from_utf8(bytes).expect("SVG is UTF-8");
    compare("chart.svg", &readable(&svg));
}

#[test]
fn a_reversed_icicle_with_every_option_is_as_in_the_golden() {
    let style = Style {
        title: "Where the time went]]>".to_owned(),
        subtitle: Some("a subtitle with <markup> & \u{0}".to_owned()),
        width: Some(800),
        height: 20,
        minwidth: MinWidth::Percent(2.0),
        colors: "aqua".parse().expect("a palette"),
        inverted: true,
        reverse: true,
        fold: FoldStyle {
            delimited: true,
            annotate: true,
        },
        ..Style::default()
    };
    compare("icicle.svg", &readable(&written(Format::SVG, &style)));
}

/// The viewer is the same in all pages.
#[test]
fn the_data_of_a_page_is_as_in_the_golden() {
    let style = Style {
        title: "PID 1 <init> & co.</title>".to_owned(),
        subtitle: Some("a subtitle with <markup> & \u{0}".to_owned()),
        notes: "recorded: 108 samples\nLOST: 2\n</script>".to_owned(),
        ..Style::default()
    };
    compare("page.txt", &columns(&written(Format::HTML, &style)));
}

/// The data of a page, a column a line.
fn columns(page: &str) -> String {
    use std::fmt::Write as _;

    let data = PageData::read(page);
    let mut text = serde_json::to_string_pretty(&data.header).expect("it was JSON");
    text.push('\n');
    for (name, column) in data.columns.iter().flatten() {
        writeln!(text, "{name} {column:?}").expect("a string takes all");
    }
    text
}

/// A frame of every kind, all of one name.
fn profile_of_all_kinds() -> Profile {
    use FrameKind::{Inlined, Interpreted, Jit, Kernel, Mark, Process, User};
    let frame = |kind| Frame {
        name: "work".to_owned(),
        kind,
    };
    let mut profile = FrameProfile::new(Profile::new(Unit::Samples, Window::default()));
    let kinds = [User, Jit, Inlined, Kernel, Mark];
    let kinds = kinds
        .into_iter()
        .chain(RuntimeKind::ALL.map(Interpreted))
        .map(|kind| (kind, ThreadState::Running));
    let states = [
        ThreadState::Ran,
        ThreadState::Runnable,
        ThreadState::Blocked,
        ThreadState::Woken,
    ];
    let all: Vec<_> = kinds.chain(states.map(|state| (Kernel, state))).collect();
    for (weight, (kind, _)) in all.iter().enumerate() {
        let stack = [Frame::cpu(1), frame(Process), frame(User), frame(*kind)];
        profile.group(weight as u32);
        profile.push(&stack, weight as u64 + 1, 1);
    }
    let mut profile = profile.into_profile();
    let samples = profile.samples().to_vec();
    profile.clear();
    for (sample, (_, thread_state)) in samples.into_iter().zip(all) {
        profile.push(Sample {
            thread_state,
            ..sample
        });
    }
    profile
}

#[test]
fn frames_of_every_kind_are_as_in_the_golden() {
    for (extension, annotate) in Format::all()
        .map(|format| (format.extension(), false))
        .chain([("folded", true)])
    {
        let path = PathBuf::from(format!("kinds.{extension}"));
        let format = Format::from_path(&path).expect("it is a format");
        let style = Style {
            fold: FoldStyle {
                annotate,
                ..FoldStyle::default()
            },
            ..Style::default()
        };
        let mut bytes = Vec::new();
        output::write(&profile_of_all_kinds(), format, &style, &mut bytes)
            .expect("a vector takes everything");
        let text = || String::from_utf8(bytes.clone()).expect("the format is text");
        match (extension, annotate) {
            ("folded", true) => compare("kinds-annotated.folded", &text()),
            ("svg", _) => compare("kinds.svg", &readable(&text())),
            ("html", _) => compare("kinds.page.txt", &columns(&text())),
            ("pb.gz", _) => compare("kinds.pprof.txt", &listed(&stacks::of_pprof(&bytes))),
            ("json.gz", _) => compare("kinds.firefox.json", &stacks::unzipped_text(&bytes)),
            ("otlp", _) => compare(
                "kinds.otlp.txt",
                &(listed(&stacks::of_otlp(&bytes)) + &stacks::attributes_of_otlp(&bytes).concat()),
            ),
            ("parquet", _) => {
                let rows = stacks::rows_of_parquet(&bytes);
                let rows = rows.iter().map(|row| format!("{row:?}\n"));
                compare("kinds.parquet.txt", &rows.collect::<String>());
            }
            _ => compare(&path.to_string_lossy(), &text()),
        }
    }
}

fn listed(stacks: &Stacks) -> String {
    let line = |(stack, weight): (&Vec<String>, &u64)| format!("{} {weight}\n", stack.join(";"));
    stacks.iter().map(line).collect()
}
