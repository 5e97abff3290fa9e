//! The code of the running kernel.
//!
//! In: a function's name, and which kernel was recorded. Out: its instructions. Never: code of another build.

use super::counted::Counted;
use crate::code::listing::{MAX_BYTES, Stretch};
use crate::kernel::kernel_text;
use crate::object::{BuildId, Fetch};
use crate::output::SourceLocation;
use crate::profile::fold::visible;
use crate::profile::{Machine, Profile};
use crate::report::distro::Distro;
use crate::report::kernel_lines;
use crate::symbolize::{Kallsyms, Naming, SourceLine, running_kernel};
use anyhow::{Context as _, Result, bail, ensure};
use std::collections::HashMap;

/// A function of the kernel as it is now.
pub(super) struct KernelCode {
    /// Its instructions, at the addresses that they have now.
    pub(super) stretch: Stretch,
    /// Where it begins.
    pub(super) begin: u64,
    kernel: Kallsyms,
}

/// The function of this name, if the kernel that runs is the one that was recorded. `is_now`: the recording has just been made.
pub(super) fn read(
    name: &str,
    counted: &Counted,
    profile: &Profile,
    is_now: bool,
) -> Result<KernelCode> {
    let machine = profile.origin.machine.as_deref();
    check_build(machine, running_kernel().as_ref())?;
    let shown = visible(name);
    let kernel =
        Kallsyms::read().with_context(|| format!("the code of `{shown}` cannot be found"))?;
    let functions = kernel.named(name);
    let [function] = functions[..] else {
        match functions.len() {
            0 => bail!(
                "the running kernel has no function `{shown}` now: its module or BPF program was unloaded, or its \
                 code was freed when the machine had started; annotate while it is there, with -p or -a"
            ),
            several => bail!(
                "the running kernel has {several} functions `{shown}`, and the recording does not tell them apart"
            ),
        }
    };
    ensure!(
        is_now || !function.is_of_module,
        "`{shown}` is code of a module or a BPF program, which may have been another build when this was recorded; \
         annotate while it runs: flame-bpf annotate {shown} -a -d 5"
    );
    let begin = function.address;
    let end = kernel.end(begin).unwrap_or(u64::MAX);
    let end = end.min(begin.saturating_add(MAX_BYTES));
    let bytes =
        kernel_text(begin..end).with_context(|| format!("the code of `{shown}` cannot be read"))?;
    let last = counted.addresses.keys().next_back().copied().unwrap_or(0);
    let stretch = Stretch::of(&bytes, begin).with_context(|| {
        format!(
            "the code of `{shown}` cannot be read: the kernel is locked down (see /sys/kernel/security/lockdown), or \
             the code was freed"
        )
    })?;
    Ok(KernelCode {
        stretch: stretch.without_padding(begin.saturating_add(last)),
        begin,
        kernel,
    })
}

/// Whether the kernel that runs is the one that was recorded.
fn check_build(machine: Option<&Machine>, running: Option<&BuildId>) -> Result<()> {
    let recorded = machine.map(|machine| &*machine.kernel_build_id);
    let recorded = recorded.and_then(BuildId::new);
    let Some(recorded) = recorded else {
        bail!(
            "the recording does not say which build of the kernel it was, so the kernel's code cannot be shown; \
             record again where /sys is mounted"
        );
    };
    let Some(running) = running else {
        bail!(
            "/sys/kernel/notes does not say which build of the kernel runs, so it may be another one than was \
             recorded; mount /sys"
        );
    };
    if *running != recorded {
        let release = machine
            .map(|machine| visible(&machine.kernel))
            .unwrap_or_default();
        bail!(
            "the kernel that runs is another build than the recorded one, {release} with build ID {recorded}, whose \
             code is not here; run this where it was recorded, under that kernel"
        );
    }
    Ok(())
}

impl KernelCode {
    /// The names of what the code calls and jumps to elsewhere.
    pub(super) fn targets(&self) -> HashMap<u64, String> {
        let targets = self.stretch.targets();
        targets
            .filter_map(|target| Some((target, self.kernel.begins(target)?.to_owned())))
            .collect()
    }
}

/// Where instructions of a function of the kernel come from, as its debug information says; and why that is not known.
pub(super) fn places(
    function: &str,
    addresses: &[u64],
    naming: &Naming,
    fetch: Option<&Fetch<'_>>,
) -> (HashMap<u64, SourceLocation>, Option<String>) {
    let lines = kernel_lines::lines(naming, fetch);
    let all = lines.within(function, addresses);
    let place = |(address, levels): (&u64, Vec<(String, SourceLine)>)| {
        let is_inlined = levels.len() > 1;
        let (name, SourceLine { file, line }) = levels.into_iter().next_back()?;
        let inlined = if is_inlined { name } else { String::new() };
        let place = SourceLocation {
            inlined,
            file,
            line,
        };
        Some((*address, place))
    };
    let places = addresses.iter().zip(all).filter_map(place).collect();
    let distro = Distro::here(fetch.is_some());
    let finding = kernel_lines::on_lines(&lines.lining(), &distro);
    (places, finding.map(|finding| finding.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_another_kernel_is_refused() {
        let machine = |id: &[u8]| Machine {
            kernel: "6.1".to_owned(),
            kernel_build_id: id.into(),
            ..Machine::default()
        };
        let running = BuildId::new(&[1; 20]);
        let refused = |machine: Option<&Machine>, running: Option<&BuildId>| {
            check_build(machine, running).unwrap_err().to_string()
        };
        check_build(Some(&machine(&[1; 20])), running.as_ref()).expect("the same");
        let other = refused(Some(&machine(&[2; 20])), running.as_ref());
        assert!(other.contains("6.1 with build ID 0202"), "{other}");
        assert!(refused(Some(&machine(&[1; 20])), None).contains("mount /sys"));
        for unknown in [None, Some(&machine(&[]))] {
            assert!(refused(unknown, running.as_ref()).contains("record again"));
        }
    }
}
