//! The names of addresses in one object.
//!
//! In: a file, addresses as text, and how names are wanted. Out: text. Never touches the kernel half.

use crate::debuginfod::{Client, Limits, Servers};
use crate::object::{BuildId, ElfAddress, Fetch, RegularFile};
use crate::report::{debug_info, print};
use crate::symbolize::{self, Naming, ObjectFrame};
use anyhow::{Context as _, Result};
use std::io::BufRead;
use std::path::Path;
use std::time::Instant;

/// A line for each address that `input` holds a line with: the address and its frames, the outermost first.
/// If `verbose`, says on stderr how long naming them took.
///
/// # Errors
/// When the file or the input cannot be read, or a line is no address.
pub fn names(
    file: &Path,
    input: impl BufRead,
    naming: &Naming,
    servers: &Servers,
    verbose: bool,
) -> Result<String> {
    let opened =
        RegularFile::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let path = file
        .canonicalize()
        .with_context(|| format!("cannot find {}", file.display()))?;
    let mut addresses = Vec::new();
    for line in input.lines() {
        let line = line.context("cannot read addresses from stdin")?;
        let word = line.trim();
        if !word.is_empty() {
            let digits = word.strip_prefix("0x").unwrap_or(word);
            let address = u64::from_str_radix(digits, 16).with_context(|| {
                format!("`{word}` is no address in hexadecimal, such as 0x1139")
            })?;
            addresses.push(ElfAddress(address));
        }
    }
    let begin = Instant::now();
    let client = Client::new(servers.addresses(), Limits::from_environment(), |_| ());
    let fetch = client.as_ref().map(|client| |id: &BuildId| client.find(id));
    let fetch = fetch.as_ref().map(|fetch| fetch as &Fetch<'_>);
    let (named, skipped) = symbolize::name_object(opened, &path, &addresses, naming, fetch);
    if verbose {
        print(&format!(
            "flame-bpf: {} of {} addresses were named in {:.3} ms\n",
            named.iter().filter(|frames| !frames.is_empty()).count(),
            named.len(),
            begin.elapsed().as_secs_f64() * 1e3,
        ));
    }
    for finding in debug_info::on_details(&skipped, naming.memory.bytes) {
        print(&format!("flame-bpf: {}\n", finding.text));
    }
    let lines = addresses.iter().zip(named).map(|(address, frames)| {
        let frames = match frames.is_empty() {
            true => "[unknown]".to_owned(),
            false => frames
                .iter()
                .map(ObjectFrame::shown)
                .collect::<Vec<_>>()
                .join(";"),
        };
        format!("{:#x} {frames}\n", address.0)
    });
    Ok(lines.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_named_in_input_order() {
        let elf = crate::object::Elf::read(&std::fs::File::open("/proc/self/exe").unwrap());
        let code = elf.unwrap().code.into_iter().flatten();
        let longest = code.max_by_key(|code| code.end - code.start).unwrap();
        let middle = longest.start.midpoint(longest.end);
        let input = format!("{:x}\n\n0x1\n{:#x}\n", middle, longest.start);
        let itself = std::env::current_exe().unwrap();
        let named = |text: &str| {
            let naming = Naming::default();
            let servers = Servers::Named(String::new());
            names(&itself, text.as_bytes(), &naming, &servers, true)
        };
        let text = named(&input).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with(&format!("{middle:#x} ")));
        assert!(!lines[0].ends_with("[unknown]"));
        assert_eq!(lines[1], "0x1 [unknown]");
        let error = named("main\n").unwrap_err().to_string();
        assert!(error.contains("`main` is no address"), "{error}");
    }
}
