//! The tree in which the kernel keeps a process's mappings: one step down.
//!
//! Since Linux 6.1 that is a *maple tree* (`include/linux/maple_tree.h`). Each node has up to 15 *pivots*,
//! the last addresses of its ranges, and one slot for each range, which leads to another node or, in a leaf,
//! to the entry. In: the words of a node. Out: which slot to follow. Never reads memory: the tree may change
//! during the walk, so the reader must be able to fail.

use core::hint::black_box;

/// The most pivots of any node: leaves and plain inner nodes have so many (`MAPLE_RANGE64_SLOTS` - 1).
pub const PIVOTS: usize = 15;

/// Pivots of inner nodes that also store gaps (`MAPLE_ARANGE64_SLOTS` - 1), as in trees of mappings.
pub const GAP_PIVOTS: usize = 9;

/// The most levels that are followed. Nodes are at least half full, so nine levels would hold far more
/// mappings than `vm.max_map_count` allows.
pub const LEVELS: u32 = 9;

/// The binary logarithm of the smallest page size: mappings begin and end at page boundaries.
const PAGE_BITS: u32 = 12;

/// Nodes are aligned to this; the bits below encode their kind (`MAPLE_NODE_MASK`).
const NODE_ALIGNMENT: u64 = 256;

/// A node by its encoded address (`struct maple_enode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node(u64);

impl Node {
    /// The node that an entry refers to: a tree's root, or a slot of an inner node.
    #[inline(always)]
    pub const fn from_entry(entry: u64) -> Option<Self> {
        // Small numbers are markers. A root has bit 1 set, any other node bit 2, a pointer neither.
        if entry > 4096 && entry & 6 != 0 {
            Some(Self(entry))
        } else {
            None
        }
    }

    /// Its address in kernel memory.
    #[inline(always)]
    pub const fn address(self) -> u64 {
        self.0 & !(NODE_ALIGNMENT - 1)
    }

    /// `enum maple_type`: 1 is a leaf, 2 an inner node, 3 an inner node that also stores gaps.
    #[inline(always)]
    const fn kind(self) -> u64 {
        self.0 >> 3 & 15
    }

    /// Whether its slots hold entries, not further nodes.
    #[inline(always)]
    pub const fn is_leaf(self) -> bool {
        self.kind() < 2
    }

    /// Whether it stores gaps, and so has [`GAP_PIVOTS`] pivots.
    #[inline(always)]
    pub const fn has_gaps(self) -> bool {
        self.kind() == 3
    }
}

/// The slot for `address`. `word` gives the [`PIVOTS`] words at a node's pivots; in a node that stores gaps
/// only the first [`GAP_PIVOTS`] are pivots. Unused pivots are zero.
///
/// Pivots are last addresses of whole pages, ascending, so the slot's number is the number of pivots below
/// the address's page. Counted without branches: the verifier would follow both sides of all fifteen.
#[inline(always)]
pub fn slot(word: impl Fn(usize) -> u64, has_gaps: bool, address: u64) -> u64 {
    // Hidden from the compiler, which would turn these into comparisons and branches.
    let page = black_box(address >> PAGE_BITS);
    let rest = black_box(u64::from(!has_gaps));
    let mut slot = 0;
    for place in 0..PIVOTS {
        // An unused pivot wraps to above everything; one in use stays within its page.
        let below = (word(place).wrapping_sub(1) >> PAGE_BITS).wrapping_sub(page) >> 63;
        slot += if place < GAP_PIVOTS {
            below
        } else {
            below & rest
        };
    }
    slot
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use std::vec::Vec;

    #[test]
    fn nodes_and_their_kinds_are_distinguished() {
        assert_eq!(Node::from_entry(0), None);
        assert_eq!(Node::from_entry(0xffff_8880_1234_5600), None);
        // A root: address, kind 3, the root's marker.
        let root = Node::from_entry(0xffff_8880_1234_5600 | 3 << 3 | 2).unwrap();
        assert_eq!(root.address(), 0xffff_8880_1234_5600);
        assert!(root.has_gaps() && !root.is_leaf());
        // An inner slot: address, kind 1, `MAPLE_ENODE_NULL`.
        let leaf = Node::from_entry(0xffff_8880_1234_5700 | 1 << 3 | 4).unwrap();
        assert!(leaf.is_leaf() && !leaf.has_gaps());
    }

    #[test]
    fn the_last_range_needs_no_pivot() {
        let mut words = [0; PIVOTS];
        words[0] = 0x1fff;
        words[1] = 0x2fff;
        assert_eq!(slot(|place| words[place], false, 0x1fff), 0);
        assert_eq!(slot(|place| words[place], false, 0x2000), 1);
        assert_eq!(slot(|place| words[place], false, 0x3000), 2);
        assert_eq!(slot(|_| 0x1fff, true, u64::MAX), 9);
        words[2] = u64::MAX;
        assert_eq!(slot(|place| words[place], false, u64::MAX), 2);
    }

    proptest! {
        /// As the kernel finds it: the first slot whose pivot is not below the address.
        #[test]
        fn a_maple_lookup_finds_what_a_scan_finds(mut pages in proptest::collection::vec(1u64..1 << 45, 0..16), address in 1u64..1 << 57, junk: u64, gaps in any::<bool>()) {
            pages.sort_unstable();
            pages.dedup();
            let most = if gaps { GAP_PIVOTS } else { PIVOTS };
            pages.truncate(most);
            let pivots: Vec<u64> = pages.iter().map(|page| (page << 12) - 1).collect();
            let mut words = [if gaps { junk } else { 0 }; PIVOTS];
            words[..most].fill(0);
            words[..pivots.len()].copy_from_slice(&pivots);
            let scanned = pivots.iter().position(|&pivot| pivot >= address).unwrap_or(pivots.len());
            prop_assert_eq!(slot(|place| words[place], gaps, address), scanned as u64);
        }
    }
}
