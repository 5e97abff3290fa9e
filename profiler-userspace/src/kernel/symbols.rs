//! Names of kernel addresses, asked of the kernel itself.

use super::shared::map;
use super::{Kernel, Result};
use aya::programs::{RawTracePoint, RawTracePointRunOptions, TestRun as _};
use profiler_common::abi::{ProgramId, SYMBOL_BYTES};
use std::sync::atomic::Ordering::Relaxed;

impl Kernel {
    /// The kernel's name for each address: the symbol it is in, with its module as `name [module]`. An inner
    /// `None` if it has no name. An outer `None` if this kernel cannot be asked (before Linux 5.13, whose BPF
    /// programs cannot print): read `/proc/kallsyms` then.
    pub fn name_symbols(&mut self, addresses: &[u64]) -> Option<Vec<Option<String>>> {
        let program: &mut RawTracePoint = self.program(ProgramId::NameSymbol).ok()?;
        program.load().ok()?;
        let names = self.ask(addresses).ok();
        let program: &mut RawTracePoint = self.program(ProgramId::NameSymbol).ok()?;
        program.unload().ok()?;
        names
    }

    fn ask(&mut self, addresses: &[u64]) -> Result<Vec<Option<String>>> {
        let buffer = map("SYMBOL", &self.maps.symbol, 0, SYMBOL_BYTES / 8)?;
        let program: &mut RawTracePoint = self.program(ProgramId::NameSymbol)?;
        let mut names = Vec::with_capacity(addresses.len());
        for &address in addresses {
            let mut options = RawTracePointRunOptions::new();
            options.args[0] = address;
            let ran = program.test_run(options);
            let bytes: Vec<u8> = buffer
                .words()
                .iter()
                .flat_map(|word| word.load(Relaxed).to_ne_bytes())
                .take_while(|&byte| byte != 0)
                .collect();
            let name = String::from_utf8_lossy(&bytes).into_owned();
            // An address without a symbol is printed as a number.
            names.push(
                Some(name)
                    .filter(|name| ran.is_ok() && !name.is_empty() && !name.starts_with("0x")),
            );
        }
        Ok(names)
    }
}
