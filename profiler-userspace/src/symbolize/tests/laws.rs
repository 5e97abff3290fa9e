//! Laws that hold for every raw profile.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashSet};

const ENDS: [StackEnd; 5] = [
    StackEnd::Root,
    StackEnd::Truncated,
    StackEnd::Unreadable,
    StackEnd::NoFramePointer,
    StackEnd::Compat,
];

/// An address of this very process, of the kernel's half, or any at all.
fn address() -> impl Strategy<Value = u64> {
    let code = address as fn() -> _ as usize as u64;
    prop_oneof![
        code - 0x8000..code + 0x8000,
        0xffff_ffff_8100_0000u64..0xffff_ffff_8200_0000,
        any::<u64>(),
        Just(0)
    ]
}

fn stack() -> impl Strategy<Value = Arc<RawStack>> {
    (
        proptest::collection::vec(address(), 0..20),
        proptest::sample::select(&ENDS[..]),
    )
        .prop_map(|(addresses, end)| {
            Arc::new(RawStack {
                frames: RawFrame::of_addresses(addresses),
                end,
                fallbacks: Fallbacks::NONE,
                check: 0,
            })
        })
}

fn who() -> impl Strategy<Value = Who> {
    let tgid = prop_oneof![Just(std::process::id()), Just(0), Just(u32::MAX)];
    (
        tgid,
        0u64..2,
        any::<[u8; 16]>(),
        any::<Option<u32>>(),
        any::<Option<u32>>(),
    )
        .prop_map(|(tgid, incarnation, comm, tid, cpu)| Who {
            tgid,
            incarnation,
            comm,
            tid,
            cpu,
            cgroup: 0,
        })
}

pub(super) fn profile() -> impl Strategy<Value = RawProfile> {
    proptest::collection::vec(stack(), 1..8).prop_flat_map(|stacks| {
        let index = (0..u32::try_from(stacks.len()).unwrap()).prop_map(StackIndex);
        let index = proptest::option::of(index);
        let sample = (who(), index.clone(), index, 0u64..1 << 40, 0u64..1 << 20).prop_map(
            |(who, user, kernel, weight, count)| RawSample {
                who,
                user,
                kernel,
                weight,
                count,
                ..RawSample::default()
            },
        );
        proptest::collection::vec(sample, 0..20).prop_map(move |samples| {
            let mut raw = RawProfile::default();
            raw.stacks.clone_from(&stacks);
            raw.samples = samples;
            raw
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn symbolizing_conserves_weight_count_and_depth(raw in profile(), knows: bool) {
        let mut ask = |addresses: &[u64]| {
            assert!(addresses.is_sorted_by(|one, next| one < next));
            Some(addresses.iter().map(|address| knows.then(|| format!("f{address:x}"))).collect())
        };
        let mut processes = Processes::new();
        let (normalized, objects) = normalized(&mut processes, &raw);
        let kernel = KernelNameCache::default().symbols(&normalized, &mut KernelNames::asked(&mut ask));
        let profile = symbolize(normalized, &objects, Unit::Samples, &processes, &kernel, &usual()).profile;
        let view = View::new(&profile);
        let tree = view.tree();
        // Equal stacks are added up, so what is compared is what stacks of one shape weigh together.
        let mut expected: BTreeMap<[usize; 3], (u64, u64)> = BTreeMap::new();
        for sample in &raw.samples {
            let part = |index: Option<StackIndex>| index.map(|index| raw.stack(index));
            let (user, kernel) = (part(sample.user), part(sample.kernel));
            let frames = |part: Option<&RawStack>| part.map_or(0, |part| part.frames.len());
            let cut = [user, kernel].into_iter().flatten().filter(|part| part.end.mark().is_some());
            let sums = expected.entry([frames(user), frames(kernel), cut.count()]).or_default();
            sums.0 += sample.weight;
            sums.1 += sample.count;
        }
        let mut found: BTreeMap<[usize; 3], (u64, u64)> = BTreeMap::new();
        let mut stacks = HashSet::new();
        for sample in tree.samples() {
            prop_assert!(stacks.insert(sample.node), "a stack occurs twice");
            let stack = tree.stack(sample.node);
            let kinds: Vec<FrameKind> = stack.iter().map(|frame| frame.kind).collect();
            let of = |kind| kinds.iter().filter(|found| **found == kind).count();
            prop_assert_eq!(of(FrameKind::Process), 1);
            prop_assert!(stack.iter().all(|frame| !frame.name.is_empty()));
            // Callers first, and the kernel last.
            let order = |kind| kinds.iter().position(|found| *found == kind);
            let last_user = kinds.iter().rposition(|found| *found == FrameKind::User);
            prop_assert!(order(FrameKind::Kernel).is_none_or(|first| last_user.is_none_or(|last| last < first)));
            let shape = [of(FrameKind::User), of(FrameKind::Kernel), of(FrameKind::Mark)];
            let sums = found.entry(shape).or_default();
            sums.0 += sample.weight;
            sums.1 += sample.count;
        }
        prop_assert_eq!(found, expected);
    }
}
