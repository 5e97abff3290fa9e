//! Both sides, compared.
//!
//! In: what there is of both. Out: the same, for readers. Read by [`crate::output`] and [`Condition`](super::Condition).

use super::model::{Function, Quantity, Side, Sight, Tests};
use super::nodes::Nodes;
use super::stats::estimate::Clusters;
use super::whole::Whole;
use crate::profile::Unit;

/// Both sides, compared.
#[derive(Debug)]
pub struct Comparison {
    /// Unit of the profiles.
    pub unit: Unit,
    /// Quantity that is compared.
    pub quantity: Quantity,
    /// Change of everything for each second; none where nobody knows how long an input took.
    pub whole: Option<Whole>,
    /// Sampling units that the noise is estimated from.
    pub clusters: Clusters,
    /// Whether anything is claimed.
    pub claims: bool,
    /// Before, and after.
    pub sides: [Side; 2],
    /// Functions, those that changed most first.
    pub functions: Vec<Function>,
    /// The tree of calls in preorder, callees by name.
    pub nodes: Nodes,
    /// Of functions by themselves, of functions with what they called, of nodes.
    pub tests: [Tests; 3],
    /// None where nothing was tested.
    pub sight: Option<Sight>,
    /// Names of the one program of each side, where they differ and are taken for one.
    pub programs: Option<[String; 2]>,
}

impl Comparison {
    /// Functions whose change is beyond noise, in one way or the other.
    pub fn changed(&self) -> usize {
        let is_changed = |function: &&Function| {
            function.itself.verdict.is_change() || function.total.verdict.is_change()
        };
        self.functions.iter().filter(is_changed).count()
    }
}
