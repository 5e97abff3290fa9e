//! Wakers that were interrupts.
//!
//! In: a [`NormalizedProfile`] profile, and the kernel's names. Out: one in which nothing is kept of the program that a waking
//! interrupt came upon, which had nothing to do with it.

use super::kernel::KernelSymbols;
use crate::profile::normalized::{
    Location, LocationIndex, NormalizedProfile, NormalizedStackIndex, NormalizedWaker,
};
use crate::profile::off_cpu::is_interrupt;
use foldhash::HashSet;

/// Leaves away the user stacks of wakers whose kernel stacks go through an interrupt.
pub fn without_interrupted(
    normalized: NormalizedProfile,
    kernel: &KernelSymbols,
) -> NormalizedProfile {
    if normalized.wakers().is_empty() {
        return normalized;
    }
    let is_entry = |location: &LocationIndex| match normalized.location_at(*location) {
        Location::Kernel(address) => kernel.name(address).is_some_and(is_interrupt),
        Location::At { .. } | Location::Named(_) | Location::Within { .. } | Location::Unknown => {
            false
        }
    };
    let wakers = normalized.wakers().iter();
    let stacks: HashSet<NormalizedStackIndex> = wakers.filter_map(|waker| waker.kernel).collect();
    let interrupts: HashSet<NormalizedStackIndex> = stacks
        .into_iter()
        .filter(|index| normalized.stack_at(*index).locations.iter().any(is_entry))
        .collect();
    normalized.with_wakers(|waker| NormalizedWaker {
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
    use crate::profile::normalized::{Label, NormalizedKey, NormalizedStack, ObjectIndex, Sums};
    use crate::symbolize::{KernelNameCache, KernelNames};
    use profiler_common::abi::ThreadState;

    #[test]
    fn frames_interrupted_by_an_interrupt_are_dropped() {
        let mut normalized = NormalizedProfile::default();
        let mut stack = |locations: &[Location]| {
            let locations = locations.iter();
            let locations = locations.map(|location| normalized.location(*location));
            let locations: Vec<_> = locations.collect();
            normalized.stack(NormalizedStack::whole(locations))
        };
        let user = stack(&[Location::At {
            object: ObjectIndex(0),
            offset: 5,
        }]);
        let timer = stack(&[
            Location::Kernel(1),
            Location::Kernel(2),
            Location::Kernel(3),
        ]);
        let write = stack(&[Location::Kernel(1), Location::Kernel(3)]);
        let label = Label {
            pid: 1,
            start: 0,
            comm: [b'a'; 16],
            ..Label::default()
        };
        for kernel in [timer, write] {
            let waker = normalized.waker(NormalizedWaker {
                label,
                user: Some(user),
                kernel: Some(kernel),
            });
            let key = NormalizedKey {
                label,
                thread_state: ThreadState::Woken,
                waker: Some(waker),
                ..NormalizedKey::default()
            };
            normalized.add(
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
        let kernel =
            KernelNameCache::default().symbols(&normalized, &mut KernelNames::asked(&mut ask));
        let left = without_interrupted(normalized, &kernel);
        let users: Vec<bool> = left
            .samples()
            .map(|(key, _)| left.waker_at(key.waker.unwrap()).user.is_some())
            .collect();
        assert_eq!(users, [false, true]);
    }
}
