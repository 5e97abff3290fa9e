//! Numbers that look like chance and are the same in each run.
//!
//! In: a seed. Out: numbers below a limit. An xorshift generator (Marsaglia, 2003).

/// A row of numbers.
#[derive(Clone)]
pub(super) struct Numbers(u64);

impl Numbers {
    /// The row of a seed, which is not 0.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next one below `limit`.
    pub(super) fn below(&mut self, limit: u32) -> u32 {
        for _ in 0..2 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
        }
        (self.0 >> 32) as u32 % limit
    }
}
