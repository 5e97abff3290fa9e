//! Names of the kernel's functions, kept from window to window of a recording.
//!
//! In: the locations of each window, and a kernel that can be asked. Out: names. Each address is asked for once in a
//! while, because modules and BPF programs come and go.

use super::kernel::{KernelNames, KernelNaming, KernelSymbols};
use super::kernel_function::KernelFunction;
use super::kernel_lines::KernelLining;
use crate::profile::normalized::NormalizedProfile;
use foldhash::HashMap;
use std::time::{Duration, Instant};

/// All names are forgotten when they are so old.
const MAX_AGE: Duration = Duration::from_secs(120);

/// The kernel's names of a recording.
#[derive(Debug, Default)]
pub struct KernelNameCache {
    /// When the first of them was asked for.
    since: Option<Instant>,
    functions: HashMap<u64, Option<KernelFunction>>,
    naming: KernelNaming,
    lining: Option<KernelLining>,
}

impl KernelNameCache {
    /// The functions of all of the kernel's locations in a window.
    pub fn symbols(
        &mut self,
        normalized: &NormalizedProfile,
        names: &mut KernelNames<'_>,
    ) -> KernelSymbols {
        if self.since.is_some_and(|since| since.elapsed() > MAX_AGE) {
            *self = Self::default();
        }
        let addresses = KernelSymbols::addresses(normalized);
        let is_new = |address: &u64| !self.functions.contains_key(address);
        let new: Vec<u64> = addresses.iter().copied().filter(is_new).collect();
        if !new.is_empty() {
            let (functions, naming) = names.name(&new);
            self.since.get_or_insert_with(Instant::now);
            self.functions.extend(new.into_iter().zip(functions));
            (self.naming, self.lining) = (naming, names.lining());
        }
        let functions = addresses.into_iter().filter_map(|address| {
            let function = self.functions.get(&address)?.clone()?;
            Some((address, function))
        });
        KernelSymbols {
            functions: functions.collect(),
            naming: self.naming.clone(),
            lining: self.lining.clone(),
        }
    }
}
