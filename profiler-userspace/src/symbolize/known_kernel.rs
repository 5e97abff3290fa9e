//! Names of the kernel's functions that are kept from window to window of a recording that is watched.
//!
//! In: the locations of each window, and a kernel that can be asked. Out: names; each address is asked for once in a while,
//! because modules and BPF programs come and go.

use super::kernel::{KernelNames, KernelNaming, KernelSymbols};
use super::kernel_function::KernelFunction;
use crate::profile::normalized::NormalizedProfile;
use foldhash::HashMap;

/// After so many windows all names are forgotten.
const WINDOWS: u32 = 120;

/// The kernel's names of a recording that is watched.
#[derive(Debug, Default)]
pub struct KnownKernel {
    functions: HashMap<u64, Option<KernelFunction>>,
    naming: KernelNaming,
    windows: u32,
}

impl KnownKernel {
    /// The functions of all of the kernel's locations in the next window.
    pub fn of(
        &mut self,
        normalized: &NormalizedProfile,
        names: &mut KernelNames<'_>,
    ) -> KernelSymbols {
        self.windows += 1;
        if self.windows > WINDOWS {
            *self = Self::default();
        }
        let addresses = KernelSymbols::addresses(normalized);
        let is_new = |address: &u64| !self.functions.contains_key(address);
        let new: Vec<u64> = addresses.iter().copied().filter(is_new).collect();
        if !new.is_empty() {
            let (functions, naming) = names.name(&new);
            self.functions.extend(new.into_iter().zip(functions));
            self.naming = naming;
        }
        let known = addresses.into_iter().filter_map(|address| {
            let function = self.functions.get(&address)?.clone()?;
            Some((address, function))
        });
        KernelSymbols::known(known, self.naming.clone())
    }
}
