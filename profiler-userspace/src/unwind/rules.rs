//! Interns rules: each gets one number.
//!
//! In: rules. Out: the index of each in one list without duplicates.

use foldhash::{HashMap, HashMapExt as _};
use profiler_common::abi::{MAX_RULES, Rule};

/// The binary logarithm of how many rules are found without the map.
const RECENT_BITS: u32 = 10;

/// A list of distinct rules. When it is full, further rules get the index of [`Rule::UNSUPPORTED`]: walks end
/// there and say so.
#[derive(Clone, Debug)]
pub struct RuleSet {
    rules: Vec<Rule>,
    places: HashMap<Rule, u16>,
    /// A cache of recent rules, indexed by a few of their bits. A few rules are asked for all the time, and a
    /// map that resists hostile input is slow.
    recent: Box<[(Rule, u16); 1 << RECENT_BITS]>,
    refused: usize,
}

impl RuleSet {
    /// The index of [`Rule::MISSING`] in every set.
    pub const MISSING: u16 = 0;
    /// The index of [`Rule::UNSUPPORTED`] in every set.
    pub const UNSUPPORTED: u16 = 1;

    /// A set with only the two rules that every set has.
    pub fn new() -> Self {
        let mut set = Self {
            rules: Vec::new(),
            places: HashMap::new(),
            // True as soon as the first rule, MISSING, is added below.
            recent: Box::new([(Rule::MISSING, Self::MISSING); 1 << RECENT_BITS]),
            refused: 0,
        };
        set.place(Rule::MISSING);
        set.place(Rule::UNSUPPORTED);
        set
    }

    /// The index of a rule, which is added if it is new.
    pub fn place(&mut self, rule: Rule) -> u16 {
        let slot = rule.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - RECENT_BITS);
        let slot = slot as usize;
        if self.recent[slot].0 == rule && !self.rules.is_empty() {
            return self.recent[slot].1;
        }
        let place = self.place_by_map(rule);
        self.recent[slot] = (rule, place);
        place
    }

    fn place_by_map(&mut self, rule: Rule) -> u16 {
        if let Some(&place) = self.places.get(&rule) {
            return place;
        }
        match u16::try_from(self.rules.len()) {
            Ok(place) if usize::from(place) < MAX_RULES => {
                self.rules.push(rule);
                self.places.insert(rule, place);
                place
            }
            _ => {
                self.refused += 1;
                Self::UNSUPPORTED
            }
        }
    }

    /// The indices of all of `rules`.
    pub fn adopt(&mut self, rules: &[Rule]) -> Vec<u16> {
        rules.iter().map(|&rule| self.place(rule)).collect()
    }

    /// The rules by index.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// How often there was no room for a rule; the same rule may count several times.
    pub const fn refused(&self) -> usize {
        self.refused
    }

    pub(super) fn into_rules(self) -> Vec<Rule> {
        self.rules
    }
}

impl Default for RuleSet {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profiler_common::abi::RuleKind;

    #[test]
    fn a_rule_is_stored_once_in_each_set() {
        let mut set = RuleSet::new();
        let rule = Rule::new(RuleKind::Offset, 7, 8);
        let place = set.place(rule);
        assert_eq!(set.place(rule), place);
        assert_eq!(set.rules()[usize::from(place)], rule);
        let mut other = RuleSet::new();
        other.place(Rule::ROOT);
        assert_eq!(other.adopt(set.rules()), [0, 1, 3]);
    }

    #[test]
    fn a_full_rule_set_refuses_and_counts() {
        let mut set = RuleSet::new();
        for offset in 0..70_000 {
            set.place(Rule::new(RuleKind::Offset, 7, offset));
        }
        assert_eq!(set.rules().len(), MAX_RULES);
        assert_eq!(set.refused(), 70_002 - MAX_RULES);
        assert_eq!(
            set.place(Rule::new(RuleKind::Offset, 7, 69_999)),
            RuleSet::UNSUPPORTED
        );
        assert_eq!(set.place(Rule::new(RuleKind::Offset, 7, 0)), 2);
    }
}
