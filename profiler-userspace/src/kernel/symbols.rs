//! Names of kernel addresses, asked of the kernel itself.

use super::Result;
use super::programs::Programs;
use super::shared::map;
use aya::maps::MapData;
use aya::programs::RawTracePoint;
use profiler_common::abi::{ProgramId, SYMBOL_BYTES};
use std::sync::atomic::Ordering::Relaxed;

/// Where the kernel half prints names.
pub(super) struct SymbolNames {
    printed: MapData,
}

impl SymbolNames {
    /// Names are printed into this map.
    pub(super) fn new(printed: MapData) -> Self {
        Self { printed }
    }

    /// The kernel's name of each address; see
    /// [`Kernel::name_symbols`](super::Kernel::name_symbols).
    pub(super) fn ask(
        &self,
        programs: &mut Programs,
        addresses: &[u64],
    ) -> Option<Vec<Option<String>>> {
        programs.load_tracepoint(ProgramId::NameSymbol).ok()?;
        let names = self.ask_loaded(programs, addresses).ok();
        let program: &mut RawTracePoint = programs.get(ProgramId::NameSymbol).ok()?;
        program.unload().ok()?;
        names
    }

    fn ask_loaded(
        &self,
        programs: &mut Programs,
        addresses: &[u64],
    ) -> Result<Vec<Option<String>>> {
        let buffer = map("SYMBOL", &self.printed, 0, SYMBOL_BYTES / 8)?;
        let mut names = Vec::with_capacity(addresses.len());
        for &address in addresses {
            let ran = programs.run(ProgramId::NameSymbol, address);
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
