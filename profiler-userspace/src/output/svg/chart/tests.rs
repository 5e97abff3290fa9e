use super::super::axis;
use super::*;
use crate::profile::{
    Frame, FrameKind, FrameProfile, Labels, LabelsIndex, Sample, Unit, Window, WindowIndex,
    WindowTotals,
};
use proptest::prelude::*;

/// A profile of windows of 50 ms, each with stacks and weights.
fn profile(windows: &[Vec<(&str, u64)>]) -> Profile {
    let mut frames = FrameProfile::new(Profile::new(Unit::Samples, Window::default()));
    let mut places = Vec::new();
    for (window, stacks) in windows.iter().enumerate() {
        for (stack, weight) in stacks {
            let frame = |name: &str| Frame::new(name, FrameKind::User);
            let stack: Vec<Frame> = stack.split(';').map(frame).collect();
            frames.group(window as u32);
            frames.push(&stack, *weight, 1);
            places.push(WindowIndex(window as u32));
        }
    }
    let mut profile = frames.into_profile();
    profile.change_samples(|place, sample| {
        let window = places[place];
        Some(Sample { window, ..sample })
    });
    profile.windows = (0..windows.len() as u32)
        .map(|window| WindowTotals::nth(Duration::from_millis(50), window))
        .collect();
    profile
}

/// Depth, name, begin and end in milliseconds, weight.
fn frames(tree: &Tree, chart: &Chart) -> Vec<(u32, String, u64, u64, u64)> {
    let frames = tree.nodes.iter().zip(&chart.weights);
    frames
        .map(|(node, weight)| {
            let ms = |ns: u64| ns / 1_000_000;
            let name = tree.name(node).to_owned();
            let (left, right) = (ms(node.left), ms(node.left + node.weight));
            (node.depth, name, left, right, *weight)
        })
        .collect()
}

fn drawn(windows: &[Vec<(&str, u64)>]) -> Vec<(u32, String, u64, u64, u64)> {
    let (tree, chart) = super::tree(&profile(windows), &Style::default()).expect("it has windows");
    frames(&tree, &chart)
}

fn frame(
    depth: u32,
    name: &str,
    (left, right): (u64, u64),
    weight: u64,
) -> (u32, String, u64, u64, u64) {
    (depth, name.to_owned(), left, right, weight)
}

#[test]
fn phases_stand_one_behind_the_other() {
    let (first, second) = (("main;first;work", 5), ("main;second;work", 5));
    let windows = [vec![first], vec![first], vec![second], vec![second]];
    let expected = [
        frame(0, "all", (0, 200), 20),
        frame(1, "main", (0, 200), 20),
        frame(2, "first", (0, 100), 10),
        frame(3, "work", (0, 100), 10),
        frame(2, "second", (100, 200), 10),
        frame(3, "work", (100, 200), 10),
    ];
    assert_eq!(drawn(&windows), expected);
}

#[test]
fn what_goes_on_stands_at_the_border() {
    let windows = [
        vec![("main;a", 5), ("main;b", 5)],
        vec![("main;a", 5), ("main;c", 5)],
    ];
    let expected = [
        frame(0, "all", (0, 100), 20),
        frame(1, "main", (0, 100), 20),
        frame(2, "b", (0, 25), 5),
        frame(2, "a", (25, 75), 10),
        frame(2, "c", (75, 100), 5),
    ];
    assert_eq!(drawn(&windows), expected);
}

#[test]
fn windows_without_samples_are_empty_space() {
    let windows = [vec![("main", 1)], vec![], vec![("main", 3)]];
    let expected = [
        frame(0, "all", (0, 150), 4),
        frame(1, "main", (0, 50), 1),
        frame(1, "main", (100, 150), 3),
    ];
    assert_eq!(drawn(&windows), expected);
}

#[test]
fn a_profile_without_windows_is_no_chart() {
    let mut profile = profile(&[vec![("main", 1)]]);
    profile.windows.clear();
    let refused = super::tree(&profile, &Style::default());
    assert!(matches!(refused, Err(Error::NoWindows)));
}

#[test]
fn too_many_frames_make_windows_longer() {
    let windows: Vec<Vec<(&str, u64)>> = (0..64)
        .map(|window| match window % 2 {
            0 => vec![("a;b;c", 1), ("d;e", 2)],
            _ => vec![("f;g", 1), ("h;i;j", 2)],
        })
        .collect();
    let profile = profile(&windows);
    let style = Style::default();
    let (all, _) = within(&profile, &style, usize::MAX).expect("it has windows");
    let (fewer, chart) = within(&profile, &style, all.nodes.len() / 2).expect("it has windows");
    assert!(fewer.nodes.len() <= all.nodes.len() / 2);
    assert!(chart.windows.len() < 64, "{} windows", chart.windows.len());
    assert!(chart.resolution >= Duration::from_millis(100));
    assert_eq!(chart.weights[0], 64 * 3);
}

#[test]
fn deep_stacks_are_no_recursion() {
    let names: Vec<String> = (0..20_000).map(|level| format!("f{level}")).collect();
    let deep = names.join(";");
    let windows = [vec![(&*deep, 1)], vec![(&*deep, 1)]];
    assert_eq!(drawn(&windows).len(), 20_001);
}

proptest! {
    #[test]
    fn weight_in_is_weight_out_and_frames_are_within_their_callers(
        windows in prop::collection::vec(
            prop::collection::vec(("[ab](;[abc]){0,4}", 1_u64..1000), 0..5), 1..9)
    ) {
        let borrowed: Vec<Vec<(&str, u64)>> = windows
            .iter()
            .map(|stacks| stacks.iter().map(|(stack, weight)| (&**stack, *weight)).collect())
            .collect();
        let (tree, chart) = super::tree(&profile(&borrowed), &Style::default()).unwrap();
        let all: u64 = windows.iter().flatten().map(|(_, weight)| weight).sum();
        prop_assert_eq!(chart.weights[0], all);
        prop_assert_eq!(chart.own.iter().sum::<u64>(), all);
        prop_assert_eq!(chart.windows.iter().map(|span| span.weight).sum::<u64>(), all);
        prop_assert_eq!(tree.nodes.iter().map(|node| node.own).sum::<u64>(), tree.total());
        let mut path: Vec<usize> = Vec::new();
        for (index, node) in tree.nodes.iter().enumerate() {
            path.truncate(node.depth as usize);
            if let Some(caller) = path.last().map(|&caller| &tree.nodes[caller]) {
                prop_assert!(node.left >= caller.left);
                prop_assert!(node.left + node.weight <= caller.left + caller.weight);
            }
            path.push(index);
        }
        // Those of a level are in order, and do not overlap.
        let mut ends = [0; 16];
        for node in &tree.nodes {
            let end = &mut ends[node.depth as usize];
            prop_assert!(node.left >= *end, "{node:?}");
            *end = node.left + node.weight;
        }
    }
}

#[test]
fn a_frame_is_told_with_the_windows_that_it_is_in() {
    let windows = [vec![("a", 1), ("b", 3)], vec![("b", 4)]];
    let (tree, chart) = super::tree(&profile(&windows), &Style::default()).expect("it has windows");
    let b = &tree.nodes[2];
    assert_eq!(tree.name(b), "b");
    let around = chart.around(b.left, b.left + b.weight);
    assert_eq!(
        (around.start, around.end, around.weight),
        (0, 100_000_000, 8)
    );
    assert_eq!(axis::clock(around.end), "0.100 s");
}

/// The profile with each sample owned by the process of this number.
fn owned(mut profile: Profile, pids: &[u32]) -> Profile {
    let of = |pid: &u32| Labels {
        process: Some("sh".to_owned()),
        pid: Some(*pid),
        ..Labels::default()
    };
    label(&mut profile, pids.iter().map(of));
    profile
}

/// Gives each sample labels.
fn label(profile: &mut Profile, all: impl Iterator<Item = Labels>) {
    let all: Vec<LabelsIndex> = all.map(|labels| profile.labels(labels)).collect();
    profile.change_samples(|place, sample| {
        let labels = all[place];
        Some(Sample { labels, ..sample })
    });
}

#[test]
fn each_process_has_a_lane_with_all_of_the_time() {
    let windows = [vec![("main;x", 2), ("main;y", 2)], vec![("main;x", 3)]];
    let profile = owned(profile(&windows), &[7, 8, 7]);
    let (tree, chart) = super::tree(&profile, &Style::default()).expect("it has windows");
    let frame = |depth, name, right, weight| frame(depth, name, (0, right), weight);
    assert_eq!(
        frames(&tree, &chart),
        [
            frame(0, "all", 100, 7),
            frame(1, "sh (7)", 100, 5),
            frame(2, "main", 100, 5),
            frame(3, "x", 100, 5),
            frame(1, "sh (8)", 100, 2),
            frame(2, "main", 50, 2),
            frame(3, "y", 50, 2),
        ]
    );
    let rows: Vec<u32> = (tree.nodes.iter().enumerate())
        .map(|(place, node)| chart.row(place, node.depth))
        .collect();
    assert_eq!(rows, [0, 1, 2, 3, 4, 5, 6]);
    let sums: Vec<u64> = chart.windows.iter().map(|span| span.weight).collect();
    assert_eq!(sums, [4, 3]);
    assert_eq!(chart.own, [0, 0, 0, 5, 0, 0, 2]);
}

#[test]
fn a_thread_that_changes_its_name_has_one_lane() {
    let mut profile = profile(&[vec![("main;x", 2), ("main;y", 3), ("main;z", 1)]]);
    let labels = [("before", 7), ("after", 7), ("other", 8)].map(|(name, tid)| Labels {
        process: Some("sh".to_owned()),
        comm: Some(name.to_owned()),
        pid: Some(1),
        tid: Some(tid),
        ..Labels::default()
    });
    label(&mut profile, labels.into_iter());
    let (tree, chart) = super::tree(&profile, &Style::default()).expect("it has windows");
    let lanes: Vec<(&str, u64)> = (chart.lanes.iter())
        .map(|(first, _)| (tree.name(&tree.nodes[*first]), chart.weights[*first]))
        .collect();
    assert_eq!(
        lanes,
        [("sh / after [tid 7]", 5), ("sh / other [tid 8]", 1)]
    );
}

#[test]
fn of_many_lanes_the_last_is_of_all_others() {
    let names: Vec<String> = (0..30).map(|number| format!("main;f{number:02}")).collect();
    let weights = (0..30).map(|number| 100 - number);
    let stacks: Vec<(&str, u64)> = names.iter().map(String::as_str).zip(weights).collect();
    let pids: Vec<u32> = (0..30).collect();
    let profile = owned(profile(&[stacks]), &pids);
    let (tree, chart) = super::tree(&profile, &Style::default()).expect("it has windows");
    let lanes: Vec<&str> = (chart.lanes.iter())
        .map(|(first, _)| tree.name(&tree.nodes[*first]))
        .collect();
    assert_eq!(lanes.len(), 24);
    assert_eq!(
        (lanes[0], lanes[22], lanes[23]),
        ("sh (0)", "sh (22)", "[7 others]")
    );
    let all: u64 = (0..30).map(|number| 100 - number).sum();
    assert_eq!(chart.weights[0], all);
}
