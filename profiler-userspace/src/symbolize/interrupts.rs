//! Wakers that were interrupts.
//!
//! In: a [`Located`] profile, and the kernel's names. Out: one in which nothing is kept of the program that a waking
//! interrupt came upon, which had nothing to do with it.

use super::kernel::KernelNames;
use crate::profile::located::{Located, LocatedStackIndex, LocatedWaker, Spot};
use crate::profile::waits::is_interrupt;
use std::collections::{BTreeSet, HashSet};

/// Leaves away the user stacks of wakers whose kernel stacks go through an interrupt.
pub fn without_interrupted(located: Located, names: &mut KernelNames<'_>) -> Located {
    if located.wakers().is_empty() {
        return located;
    }
    let addresses = |index: LocatedStackIndex| {
        let spots = located.stack_at(index).spots.iter();
        spots.filter_map(|spot| match located.spot_at(*spot) {
            Spot::Kernel(address) => Some(address),
            Spot::At { .. } | Spot::Named(_) | Spot::Unknown => None,
        })
    };
    let stacks: HashSet<LocatedStackIndex> = located
        .wakers()
        .iter()
        .filter_map(|waker| waker.kernel)
        .collect();
    let all: BTreeSet<u64> = stacks.iter().flat_map(|index| addresses(*index)).collect();
    let all: Vec<u64> = all.into_iter().collect();
    let (names, _) = names.name(&all);
    let entries: HashSet<u64> = all
        .into_iter()
        .zip(names)
        .filter(|(_, name)| name.as_deref().is_some_and(is_interrupt))
        .map(|(address, _)| address)
        .collect();
    let interrupts: HashSet<LocatedStackIndex> = stacks
        .into_iter()
        .filter(|index| addresses(*index).any(|address| entries.contains(&address)))
        .collect();
    located.with_wakers(|waker| LocatedWaker {
        user: waker.user.filter(|_| {
            let kernel = waker.kernel.as_ref();
            !kernel.is_some_and(|kernel| interrupts.contains(kernel))
        }),
        ..waker
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::located::{Label, LocatedKey, LocatedStack, ObjectIndex, Sums};
    use profiler_common::abi::{Doing, StackEnd};

    #[test]
    fn of_what_an_interrupt_came_upon_nothing_is_kept() {
        let mut located = Located::default();
        let mut stack = |spots: &[Spot]| {
            let spots = spots.iter().map(|spot| located.spot(*spot)).collect();
            located.stack(LocatedStack {
                spots,
                end: StackEnd::Root,
                guessed: false,
            })
        };
        let user = stack(&[Spot::At {
            object: ObjectIndex(0),
            offset: 5,
        }]);
        let timer = stack(&[Spot::Kernel(1), Spot::Kernel(2), Spot::Kernel(3)]);
        let write = stack(&[Spot::Kernel(1), Spot::Kernel(3)]);
        let label = Label {
            comm: [b'a'; 16],
            tid: None,
            cpu: None,
        };
        for kernel in [timer, write] {
            let waker = located.waker(LocatedWaker {
                label,
                user: Some(user),
                kernel: Some(kernel),
            });
            let key = LocatedKey {
                label,
                user: None,
                kernel: None,
                doing: Doing::Woken,
                track: 0,
                waker: Some(waker),
            };
            located.add(
                key,
                Sums {
                    weight: 1,
                    count: 1,
                },
            );
        }
        let mut ask = |addresses: &[u64]| {
            assert_eq!(addresses, [1, 2, 3]);
            let names = ["try_to_wake_up", "asm_sysvec_apic_timer_interrupt", "main"];
            Some(names.map(|name| Some(name.to_owned())).to_vec())
        };
        let left = without_interrupted(located, &mut KernelNames::asked(&mut ask));
        let users: Vec<bool> = left
            .samples()
            .map(|(key, _)| left.waker_at(key.waker.unwrap()).user.is_some())
            .collect();
        assert_eq!(users, [false, true]);
    }
}
