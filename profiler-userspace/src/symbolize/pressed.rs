//! What the limit on memory did to naming.
//!
//! In: what came of each object's debug information. Out: numbers for whoever reports.

use super::dwarf::Asked;
use std::collections::BTreeMap;

/// Where debug information took more than naming may hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pressed {
    /// How many objects' debug information was read more than once.
    pub again: usize,
    /// By module, how many places have not got what debug information tells of them.
    pub left: BTreeMap<String, usize>,
}

impl Pressed {
    /// Adds what came of one object.
    pub(super) fn note(&mut self, module: &str, asked: Asked) {
        self.again += usize::from(asked.again);
        if asked.left > 0 {
            *self.left.entry(module.to_owned()).or_default() += asked.left;
        }
    }
}
