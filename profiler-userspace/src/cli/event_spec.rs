//! Arguments of `-e`: an event, a tracepoint, or a function.
//!
//! In: what was typed. Out: a [`EventSpec`], or a sentence for a person who typed something else. Never: asks
//! whether this machine has it.

use super::perf_event;
use crate::plan::PerfEvent;
use crate::probe::{Function, Tracepoint};

/// Source of samples, as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EventSpec {
    /// A perf event, counted by `perf_event_open`.
    PerfEvent(PerfEvent),
    /// A place in the kernel.
    Tracepoint(Tracepoint),
    /// A function of a program.
    Function(Function),
}

impl EventSpec {
    /// The name in messages and in names of outputs.
    pub(super) fn name(&self) -> String {
        match self {
            Self::PerfEvent(perf_event) => perf_event.name.to_string(),
            Self::Tracepoint(tracepoint) => tracepoint.to_string(),
            Self::Function(function) => function.to_string(),
        }
    }

    /// Whether both are one thing under two names: of an event, its number counts, and of a tracepoint the name
    /// without its category.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::PerfEvent(one), Self::PerfEvent(other)) => {
                (one.kind, one.config) == (other.kind, other.config)
            }
            (Self::Tracepoint(one), Self::Tracepoint(other)) => one.name == other.name,
            _ => self == other,
        }
    }

    /// Whether it shows where CPU time goes.
    pub(super) fn is_cpu_time(&self) -> bool {
        match self {
            Self::PerfEvent(perf_event) => perf_event.is_cpu_time(),
            Self::Tracepoint(_) | Self::Function(_) => false,
        }
    }
}

/// Reads `cycles`, `sched:sched_switch`, `tracepoint:sched:sched_switch` or `uprobe:libc:malloc`.
pub(super) fn parse(text: &str) -> Result<EventSpec, String> {
    if let Some(rest) = text.strip_prefix("uprobe:") {
        return function(rest).map(EventSpec::Function);
    }
    if let Some(rest) = text.strip_prefix("uretprobe:") {
        return Err(format!(
            "uretprobes are not supported, and a function returns as often as it is called; use -e uprobe:{rest}"
        ));
    }
    let of_kernel = [
        "kprobe:",
        "kretprobe:",
        "probe:",
        "fentry:",
        "fexit:",
        "kfunc:",
        "kretfunc:",
    ];
    if let Some(function) = of_kernel.iter().find_map(|kind| text.strip_prefix(kind)) {
        let function = function.rsplit(':').next().unwrap_or(function);
        return Err(format!(
            "functions of the kernel are not counted; --focus {function} shows the time spent in it, --syscalls the calls that \
             lead there, and -e CATEGORY:NAME counts a tracepoint near it (`perf list tracepoint` lists them)"
        ));
    }
    let (marked, rest) = match text.strip_prefix("tracepoint:") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let plain = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    match rest.split_once(':') {
        // perf's modifiers stand behind events, and no event is a category.
        Some((category, name))
            if plain(category) && plain(name) && perf_event::parse(category).is_err() =>
        {
            if category == "syscalls" {
                return Err(format!(
                    "syscalls:{name} cannot be recorded; use raw_syscalls:sys_enter or raw_syscalls:sys_exit, which fire for \
                     every system call"
                ));
            }
            Ok(EventSpec::Tracepoint(Tracepoint {
                category: category.to_owned(),
                name: name.to_owned(),
            }))
        }
        _ if marked => Err(
            "a tracepoint has a category and a name, such as tracepoint:sched:sched_switch"
                .to_owned(),
        ),
        _ => perf_event::parse(text).map(EventSpec::PerfEvent),
    }
}

/// Reads `libc:malloc` or `/usr/bin/x:std::thread::spawn`. The first colon ends the file: names of functions
/// are full of them.
fn function(text: &str) -> Result<Function, String> {
    match text.split_once(':') {
        Some((file, name)) if !file.is_empty() && !name.is_empty() => Ok(Function {
            file: file.into(),
            name: name.to_owned(),
        }),
        _ => Err(
            "a function is written with its file, such as uprobe:libc:malloc or uprobe:/usr/bin/bash:readline"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_has_a_file_and_a_name() {
        for (typed, file, name) in [
            ("uprobe:libc:malloc", "libc", "malloc"),
            ("uprobe:/usr/bin/x:a::b<c>::d", "/usr/bin/x", "a::b<c>::d"),
        ] {
            let Ok(EventSpec::Function(function)) = parse(typed) else {
                panic!("{typed} is a function");
            };
            assert_eq!(
                (function.file.to_str(), &*function.name),
                (Some(file), name)
            );
        }
        for typed in ["uprobe:", "uprobe:malloc", "uprobe::malloc", "uprobe:libc:"] {
            assert!(
                parse(typed).unwrap_err().contains("uprobe:libc:malloc"),
                "{typed}"
            );
        }
        assert!(
            parse("uretprobe:libc:malloc")
                .unwrap_err()
                .contains("uprobe:libc:malloc")
        );
    }

    #[test]
    fn functions_of_the_kernel_are_no_tracepoints() {
        for typed in [
            "kprobe:vfs_read",
            "probe:vfs_read",
            "kretprobe:vfs_read",
            "kfunc:vmlinux:vfs_read",
        ] {
            let error = parse(typed).unwrap_err();
            assert!(
                error.starts_with("functions of the kernel are not counted; --focus vfs_read "),
                "{typed}: {error}"
            );
        }
    }

    #[test]
    fn tracepoints_are_written_as_in_perf_and_bpftrace() {
        for typed in ["sched:sched_switch", "tracepoint:sched:sched_switch"] {
            let Ok(EventSpec::Tracepoint(tracepoint)) = parse(typed) else {
                panic!("{typed} is a tracepoint");
            };
            assert_eq!(tracepoint.to_string(), "sched:sched_switch");
        }
        assert_eq!(parse("cycles"), Ok(EventSpec::PerfEvent(PerfEvent::CYCLES)));
    }

    #[test]
    fn an_unknown_event_is_answered_with_a_remedy() {
        for (typed, answer) in [
            ("cycles:u", "-e cycles"),
            ("tracepoint:sched", "tracepoint:sched:sched_switch"),
            ("tracepoint:", "tracepoint:sched:sched_switch"),
            ("sched:", "tracepoint"),
            ("syscalls:sys_enter_read", "raw_syscalls:sys_enter"),
            ("cyles", "cycles"),
        ] {
            let refusal = parse(typed).unwrap_err();
            assert!(refusal.contains(answer), "{typed}: {refusal}");
        }
    }
}
