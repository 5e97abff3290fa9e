//! blazesym alone, as a program that `cargo xtask bench symbols` measures beside flame-bpf.
//!
//! In: what to ask, of what, and addresses on stdin in hexadecimal, one to a line. Out: a line for each with its
//! frames, the outermost first. It uses one source of blazesym at a time and nothing of flame-bpf.

use std::env;
use std::io::{self, BufWriter, Read as _, Write as _};

use anyhow::{Context as _, Result, bail};
use blazesym::MaybeDefault;
use blazesym::normalize::{Normalizer, UserMeta};
use blazesym::symbolize::source::{Elf, Kernel, Process, Source};
use blazesym::symbolize::{Input, Sym, Symbolized, Symbolizer};

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [what, of] = arguments.as_slice() else {
        bail!(
            "wants what to ask (names, dwarf, lines, inlines, kernel, kernel-lines, process, normalize) and of what"
        );
    };
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let addresses = text
        .lines()
        .map(|line| u64::from_str_radix(line.trim_start_matches("0x"), 16))
        .collect::<Result<Vec<u64>, _>>()?;
    let mut out = BufWriter::new(io::stdout().lock());
    if what == "normalize" {
        return normalize(of.parse()?, addresses, &mut out);
    }
    let symbolizer = Symbolizer::builder()
        .enable_auto_reload(false)
        .enable_code_info(matches!(
            what.as_str(),
            "lines" | "inlines" | "kernel-lines"
        ))
        .enable_inlined_fns(what == "inlines")
        .build();
    let (source, input) = match what.as_str() {
        "names" | "dwarf" | "lines" | "inlines" => {
            let mut elf = Elf::new(of);
            elf.debug_syms = what != "names";
            (Source::Elf(elf), Input::VirtOffset(addresses.as_slice()))
        }
        "kernel" | "kernel-lines" => {
            let kernel = Kernel {
                kallsyms: MaybeDefault::Default,
                vmlinux: match what.as_str() {
                    "kernel" => MaybeDefault::None,
                    _ => MaybeDefault::Some(of.into()),
                },
                debug_syms: what != "kernel",
                ..Kernel::default()
            };
            (Source::Kernel(kernel), Input::AbsAddr(addresses.as_slice()))
        }
        "process" => {
            let mut process = Process::new(of.parse::<u32>()?.into());
            process.debug_syms = false;
            (
                Source::Process(process),
                Input::AbsAddr(addresses.as_slice()),
            )
        }
        other => bail!("knows nothing of {other}"),
    };
    let symbols = symbolizer.symbolize(&source, input).context("blazesym")?;
    for (address, symbol) in addresses.iter().zip(symbols) {
        match symbol {
            Symbolized::Sym(symbol) => writeln!(out, "{address:#x} {}", frames(&symbol))?,
            Symbolized::Unknown(_) => writeln!(out, "{address:#x} [unknown]")?,
        }
    }
    Ok(())
}

/// The function and those that were compiled into it, with their lines.
fn frames(symbol: &Sym<'_>) -> String {
    let inlined = symbol.inlined.iter();
    let rest = inlined.map(|function| (&*function.name, function.code_info.as_ref()));
    let all = std::iter::once((&*symbol.name, symbol.code_info.as_deref())).chain(rest);
    let frames = all.map(|(name, code)| match code {
        Some(code) => {
            let line = code
                .line
                .map_or_else(String::new, |line| format!(":{line}"));
            format!("{name} ({}{line})", code.file.to_string_lossy())
        }
        None => name.to_owned(),
    });
    frames.collect::<Vec<_>>().join(";")
}

/// Where in which file each address of a process lies.
fn normalize(pid: u32, mut addresses: Vec<u64>, out: &mut impl io::Write) -> Result<()> {
    addresses.sort_unstable();
    let normalizer = Normalizer::builder().enable_build_ids(false).build();
    let found = normalizer
        .normalize_user_addrs(pid.into(), &addresses)
        .context("blazesym")?;
    for (address, (offset, meta)) in addresses.iter().zip(&found.outputs) {
        match &found.meta[*meta] {
            UserMeta::Elf(elf) => writeln!(out, "{address:#x} {}+{offset:#x}", elf.path.display())?,
            _ => writeln!(out, "{address:#x} [unknown]")?,
        }
    }
    Ok(())
}
