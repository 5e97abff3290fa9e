//! The functions that the running kernel lists, with their addresses.
//!
//! In: `/proc/kallsyms`. Out: where functions of a name are, and what begins at an address. Other than
//! [names of addresses](super::kernel), this takes the whole list.

use super::kernel::{KALLSYMS, KernelNaming, listing};
use super::kernel_function::readable;
use anyhow::{Context as _, Result, bail};
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

/// A symbol of the kernel's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSymbol {
    /// Its address.
    pub address: u64,
    /// Its name, as frames have it.
    pub name: String,
    /// Whether it is part of a module or a BPF program, which come and go while the kernel runs.
    pub is_of_module: bool,
}

/// All of them, by their addresses.
#[derive(Clone, Debug)]
pub struct Kallsyms(Vec<KernelSymbol>);

impl Kallsyms {
    /// Those of the running kernel.
    ///
    /// # Errors
    /// Where it hides addresses, or the list cannot be read.
    pub fn read() -> Result<Self> {
        Self::of(Path::new(KALLSYMS))
    }

    fn of(list: &Path) -> Result<Self> {
        match listing(list) {
            KernelNaming::Listed => {}
            KernelNaming::Unlisted { reason } => bail!(
                "{} cannot be read: {reason}; mount /proc, and use a kernel with CONFIG_KALLSYMS",
                list.display()
            ),
            _ => bail!(
                "the kernel hides the addresses of its functions; run with sudo, or grant CAP_SYSLOG, and set \
                 kernel.kptr_restrict to 1 or less"
            ),
        }
        let mut symbols = Vec::new();
        let file = File::open(list).context("opening the kernel's list of symbols")?;
        for line in BufReader::new(file).split(b'\n') {
            symbols.extend(symbol(&line?));
        }
        symbols.sort_by_key(|symbol: &KernelSymbol| symbol.address);
        Ok(Self(symbols))
    }

    /// All functions of a name.
    pub fn named(&self, name: &str) -> Vec<&KernelSymbol> {
        self.0.iter().filter(|symbol| symbol.name == name).collect()
    }

    /// The name of what begins at an address.
    pub fn begins(&self, address: u64) -> Option<&str> {
        let at = self.0.partition_point(|symbol| symbol.address < address);
        let symbol = self.0.get(at).filter(|symbol| symbol.address == address)?;
        Some(&symbol.name)
    }

    /// The end of the function at an address: the beginning of what follows.
    pub fn end(&self, address: u64) -> Option<u64> {
        let next = self.0.partition_point(|symbol| symbol.address <= address);
        Some(self.0.get(next)?.address)
    }
}

/// A symbol of code: address, kind, name, and the module after a tab.
fn symbol(line: &[u8]) -> Option<KernelSymbol> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    if !matches!(words.next()?, "t" | "T" | "w" | "W") {
        return None;
    }
    Some(KernelSymbol {
        address,
        name: readable(words.next()?.as_bytes())?,
        is_of_module: words.next().is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn list(text: &str) -> Result<Kallsyms> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        Kallsyms::of(file.path())
    }

    #[test]
    fn functions_are_found_by_name_and_end_where_the_next_begins() {
        let kernel = list(
            "0000000000000000 A fixed_percpu_data\nffffffff81002000 T two\nffffffff81001000 T one\n\
             ffffffff81001800 d data\nffffffff81001000 T alias\nffffffff81003000 t two\n\
             ffffffffc0201000 t fuse_read\t[fuse]\nnonsense\nffffffff8 T\n",
        )
        .unwrap();
        let [one] = kernel.named("one")[..] else {
            panic!("one function");
        };
        assert!(!one.is_of_module);
        assert_eq!(kernel.end(one.address), Some(0xffff_ffff_8100_2000));
        assert_eq!(kernel.named("two").len(), 2);
        assert!(kernel.named("data").is_empty());
        assert!(kernel.named("fuse_read")[0].is_of_module);
        assert_eq!(kernel.end(kernel.named("fuse_read")[0].address), None);
        assert_eq!(kernel.begins(0xffff_ffff_8100_3000), Some("two"));
        assert_eq!(kernel.begins(0xffff_ffff_8100_3001), None);
    }

    #[test]
    fn hidden_addresses_are_refused_with_what_mends_it() {
        let hidden = list("0000000000000000 T one\n").unwrap_err().to_string();
        assert!(hidden.contains("CAP_SYSLOG"), "{hidden}");
        let empty = list("").unwrap_err().to_string();
        assert!(empty.contains("CONFIG_KALLSYMS"), "{empty}");
    }
}
