//! How much memory what a file says may take, and why it is not taken.

/// Why a batch was not taken.
pub(super) enum Stop {
    /// There is no memory left for it.
    Full,
    /// It makes no sense.
    Nonsense(&'static str),
}

/// Memory that a file's contents may still take, in bytes by a rough estimate.
pub(super) struct Budget {
    left: u64,
    // Bytes spent on values that have a number; a file may begin its numbers anew.
    numbers: u64,
}

impl Budget {
    /// So many bytes.
    pub(super) fn new(most: u64) -> Self {
        Self {
            left: most,
            numbers: 0,
        }
    }

    /// Takes so many bytes, if there are so many.
    pub(super) fn spend(&mut self, bytes: usize) -> Result<(), Stop> {
        self.left = self.left.checked_sub(bytes as u64).ok_or(Stop::Full)?;
        Ok(())
    }

    /// Takes so many bytes for what has a number in the file.
    pub(super) fn spend_for_number(&mut self, bytes: usize) -> Result<(), Stop> {
        self.spend(bytes)?;
        self.numbers += bytes as u64;
        Ok(())
    }

    /// Nothing has a number any more.
    pub(super) fn begin_anew(&mut self) {
        self.left += std::mem::take(&mut self.numbers);
    }
}
