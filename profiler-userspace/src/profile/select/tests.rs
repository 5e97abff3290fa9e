use super::*;
use crate::profile::cgroup::{Cgroup, CgroupPart, CgroupPattern};
use crate::profile::fold::{self, FoldStyle, parse};
use crate::profile::{Frame, FrameKind, FrameProfile, Unit, Window};
use proptest::prelude::*;

fn text(profile: &Profile) -> String {
    fold::text(profile, FoldStyle::default())
}

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts
        .iter()
        .map(|text| Pattern::parse(text).unwrap())
        .collect()
}

fn hide(texts: &[&str]) -> Selection {
    Selection {
        hide: patterns(texts),
        ..Selection::default()
    }
}

fn root_at(texts: &[&str]) -> Selection {
    Selection {
        root_at: patterns(texts),
        ..Selection::default()
    }
}

fn processes(text: &str) -> Selection {
    Selection {
        processes: Who::parse(text).unwrap(),
        ..Selection::default()
    }
}

fn cgroup(pattern: CgroupPattern) -> Selection {
    Selection {
        cgroups: vec![pattern],
        ..Selection::default()
    }
}

/// The second CPU.
fn cpu() -> Selection {
    Selection {
        cpus: vec![1],
        ..Selection::default()
    }
}

const STACKS: &str = "\
    bash;main;read_line;malloc 10\n\
    bash;main;eval;eval;eval;fork_[k] 20\n\
    bash;main;eval;malloc 5\n\
    sshd;main;auth;malloc 40\n\
    sshd;main;idle_[k] 25\n";

fn selected(selection: &Selection) -> (String, Vec<(Reason, u64)>) {
    let profile = parse(STACKS.as_bytes(), Unit::Samples).unwrap();
    let selected = selection.of(profile).unwrap();
    let left_out = selected
        .left_out
        .iter()
        .map(|left_out| (left_out.reason, left_out.weight));
    (text(&selected.profile), left_out.collect())
}

#[test]
fn focus_keeps_whole_stacks_that_hold_a_match() {
    let (text, left_out) = selected(&Selection {
        focus: patterns(&["^eval$", "auth"]),
        ..Selection::default()
    });
    assert_eq!(
        text,
        "bash;main;eval;eval;eval;fork 20\nbash;main;eval;malloc 5\nsshd;main;auth;malloc 40\n"
    );
    assert_eq!(left_out, [(Reason::Focus, 35)]);
}

#[test]
fn ignore_leaves_out_stacks_that_hold_a_match_focus_or_not() {
    let (text, left_out) = selected(&Selection {
        focus: patterns(&["malloc"]),
        ignore: patterns(&["sshd"]),
        ..Selection::default()
    });
    assert_eq!(
        text,
        "bash;main;eval;malloc 5\nbash;main;read_line;malloc 10\n"
    );
    assert_eq!(left_out, [(Reason::Focus, 45), (Reason::Ignore, 40)]);
}

#[test]
fn hidden_frames_are_gone_and_no_weight_is() {
    let profile = parse(STACKS.as_bytes(), Unit::Samples).unwrap();
    let selected = hide(&["^main$", "malloc", "auth"]).of(profile).unwrap();
    assert_eq!(
        text(&selected.profile),
        "bash;eval 5\nbash;eval;eval;eval;fork 20\nbash;read_line 10\nsshd 40\nsshd;idle 25\n"
    );
    assert_eq!((selected.hidden, selected.left_out), (100, Vec::new()));
}

#[test]
fn stacks_begin_at_the_outermost_match_whosever_they_are() {
    let root_at = |pattern| selected(&root_at(&[pattern]));
    let (text, left_out) = root_at("^eval$");
    assert_eq!(text, "eval;eval;eval;fork 20\neval;malloc 5\n");
    assert_eq!(left_out, [(Reason::RootAt, 75)]);
    assert_eq!(root_at("malloc").0, "malloc 55\n");
    assert_eq!(root_at("fork").0, "fork 20\n");
}

#[test]
fn a_function_that_calls_itself_is_one_frame() {
    let (text, left_out) = selected(&Selection {
        collapse_recursion: true,
        focus: patterns(&["fork"]),
        ..Selection::default()
    });
    assert_eq!(text, "bash;main;eval;fork 20\n");
    assert_eq!(left_out, [(Reason::Focus, 80)]);
}

#[test]
fn inlined_functions_are_hidden_and_rooted_at_by_themselves() {
    let mut frames = FrameProfile::new(Profile::new(Unit::Samples, Window::default()));
    let stack = [
        Frame::new("app", FrameKind::Process),
        Frame::new("main", FrameKind::User),
        Frame::new("outer", FrameKind::Inlined),
        Frame::new("inner", FrameKind::Inlined),
    ];
    frames.push(&stack, 7, 7);
    let profile = frames.into_profile();
    let shown = |selection: Selection| text(&selection.of(profile.clone()).unwrap().profile);
    assert_eq!(shown(hide(&["outer"])), "app;main;inner_[i] 7\n");
    assert_eq!(shown(hide(&["main"])), "app;outer;inner_[i] 7\n");
    assert_eq!(shown(root_at(&["outer"])), "outer;inner_[i] 7\n");
}

/// A profile of two processes, one of which has two threads.
fn owned() -> Profile {
    let mut frames = FrameProfile::new(Profile::new(Unit::Samples, Window::default()));
    let stack = [Frame::new("work", FrameKind::User)];
    for (comm, pid, tid, cpu, weight) in [
        ("java", 7, 7, 0, 1),
        ("C2 Compiler", 7, 8, 1, 2),
        ("java2", 9, 9, 1, 4),
    ] {
        let labels = Labels {
            comm: Some(comm.to_owned()),
            pid: Some(pid),
            tid: Some(tid),
            cpu: Some(cpu),
            ..Labels::default()
        };
        frames.push_of(labels, &stack, weight, weight);
    }
    frames.into_profile()
}

#[test]
fn samples_are_selected_by_cgroup() {
    let mut frames = FrameProfile::new(Profile::new(Unit::Samples, Window::default()));
    let stack: [Frame; 0] = [];
    for (path, weight) in [
        (Some("/a.slice/nginx.service"), 1),
        (Some("/b"), 2),
        (None, 4),
    ] {
        let labels = Labels {
            comm: Some("x".to_owned()),
            cgroup: path.map(|path| Cgroup::of_path(path).into()),
            ..Labels::default()
        };
        frames.push_of(labels, &stack, weight, weight);
    }
    let mut profile = frames.into_profile();
    let selected = |pattern: CgroupPattern| {
        let selected = cgroup(pattern).of(profile.clone()).unwrap();
        (selected.profile.total_weight(), selected.left_out[0].reason)
    };
    assert_eq!(selected(CgroupPattern::unit("nginx")), (1, Reason::Cgroup));
    assert_eq!(
        selected(CgroupPattern::Path("/".to_owned())),
        (3, Reason::Cgroup)
    );
    profile.root_per(CgroupPart::Unit);
    assert_eq!(text(&profile), "[no unit];x 6\nnginx.service;x 1\n");
    assert!(cgroup(CgroupPattern::unit("nginx")).of(owned()).is_err());
}

#[test]
fn processes_and_threads_are_named_by_id_or_by_their_whole_name() {
    let weight = |selection: Selection| selection.of(owned()).unwrap().profile.total_weight();
    let process = |text| weight(processes(text));
    // All threads of the process, one of which is called so.
    assert_eq!(
        [
            process("java"),
            process("java.*"),
            process("9"),
            process("9, 7"),
            process("1")
        ],
        [3, 7, 4, 7, 0]
    );
    let named = |text| {
        let mut frames = FrameProfile::new(Profile::new(Unit::Samples, Window::default()));
        let labels = Labels {
            process: Some("java Main".to_owned()),
            comm: Some("pool-1".to_owned()),
            ..Labels::default()
        };
        let stack: [Frame; 0] = [];
        frames.push_of(labels, &stack, 1, 1);
        let selected = processes(text).of(frames.into_profile()).unwrap();
        selected.profile.total_weight()
    };
    assert_eq!(
        ["java", "java Main", "pool-1", "Main"].map(named),
        [1, 1, 1, 0]
    );
    let thread = |text| {
        weight(Selection {
            threads: Who::parse(text).unwrap(),
            ..Selection::default()
        })
    };
    assert_eq!([thread("java"), thread("8"), thread("C2 .*")], [1, 2, 2]);
    assert_eq!(weight(cpu()), 6);
}

#[test]
fn owners_that_have_no_labels_are_refused() {
    let profile = || parse(STACKS.as_bytes(), Unit::Samples).unwrap();
    let of = |selection: Selection| selection.of(profile()).unwrap_err().to_string();
    assert_eq!(of(processes("1")), "the profile has no process IDs");
    let expected = "the profile has no CPUs; record with --per-cpu";
    assert_eq!(of(cpu()), expected);
}

#[test]
fn a_wrong_pattern_is_explained_in_a_line() {
    for wrong in ["(", "a{99999999}", "[z-a]", "\\"] {
        let problem = Pattern::parse(wrong).unwrap_err();
        assert!(
            problem.starts_with("not a regular expression: "),
            "{problem}"
        );
        assert!(!problem.contains('\n'), "{problem}");
        assert!(Who::parse(wrong).is_err());
    }
}

proptest! {
    #[test]
    fn the_weight_of_a_profile_is_what_is_shown_and_what_was_left_out(
        folded in "([ab];)([a-d]_\\[[kji]\\];|[a-d];){0,6}[a-d] [1-9]\n(a;b;b;b 3\n){0,1}",
        focus in prop::option::of("[a-d]"),
        ignore in prop::option::of("[a-d]"),
        hide in prop::option::of("[a-d]"),
        root_at in prop::option::of("[a-d]"),
        collapse_recursion: bool,
    ) {
        let list = |text: Option<String>| text.iter().map(|text| Pattern::parse(text).unwrap()).collect();
        let selection = Selection {
            focus: list(focus),
            ignore: list(ignore),
            hide: list(hide),
            root_at: list(root_at),
            collapse_recursion,
            ..Selection::default()
        };
        let profile = parse(folded.as_bytes(), Unit::Samples).unwrap();
        let (weight, count) = (profile.total_weight(), profile.total_count());
        let selected = selection.of(profile).unwrap();
        let left_out: u64 = selected.left_out.iter().map(|left_out| left_out.weight).sum();
        prop_assert_eq!(selected.profile.total_weight() + left_out, weight);
        let left_out: u64 = selected.left_out.iter().map(|left_out| left_out.count).sum();
        prop_assert_eq!(selected.profile.total_count() + left_out, count);
    }
}

#[test]
fn owners_are_hidden_and_rooted_at_as_frames_are() {
    let threads = "worker-0;run;work 5\nworker-1;run;work 6\nmain;run 1\n";
    let selected = |selection: Selection| {
        let selected = selection
            .of(parse(threads.as_bytes(), Unit::Samples).unwrap())
            .unwrap();
        (text(&selected.profile), selected.hidden)
    };
    let hide = hide(&["worker-.*"]);
    assert_eq!(
        selected(hide.clone()),
        ("main;run 1\nrun;work 11\n".to_owned(), 11)
    );
    let root_at = root_at(&["worker-0", "^work$"]);
    assert_eq!(
        selected(root_at.clone()),
        ("work 6\nworker-0;run;work 5\n".to_owned(), 0)
    );
    let both = Selection {
        hide: hide.hide,
        ..root_at
    };
    assert_eq!(selected(both), ("work 11\n".to_owned(), 11));
}

#[test]
fn of_what_runtimes_run_native_and_kernel_time_is_that_of_the_innermost_function() {
    let stacks = "py;main;eval;handle_[py];match 30\npy;main;eval;handle_[py];match;read_[k] 20\n\
        py;main;eval;handle_[py];eval;parse_[py] 5\npy;main;init 7\nnode;start;tick_[j];add_[i];memcpy 3\n";
    let profile = parse(stacks.as_bytes(), Unit::Samples).unwrap();
    let selection = Selection {
        runtime_only: true,
        ..Selection::default()
    };
    let selected = selection.of(profile).unwrap();
    let expected = "node;tick;add_[i] 3\npy;handle 50\npy;handle;parse 5\n";
    assert_eq!(text(&selected.profile), expected);
    let [left_out] = selected.left_out[..] else {
        panic!("{:?}", selected.left_out);
    };
    assert_eq!((left_out.reason, left_out.weight), (Reason::Native, 7));
}
