//! Rights of this process: what it may ask of the kernel, and who keeps it from more.
//!
//! In: `/proc/self/status`, the file that runs, the kernel's lockdown. Out: the reason why a call was refused.

use super::Trouble;
use super::mounts::{mount_of, shell_word};
use rustix::fs::{StatVfsMountFlags, fstatvfs};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// One right (`include/uapi/linux/capability.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Capability(&'static str, u32);

const BPF: Capability = Capability("bpf", 39);
const PERFMON: Capability = Capability("perfmon", 38);
/// Stands for both, and before Linux 5.8 is the only one.
const SYS_ADMIN: Capability = Capability("sys_admin", 21);
const SYS_PTRACE: Capability = Capability("sys_ptrace", 19);
const DAC_READ_SEARCH: Capability = Capability("dac_read_search", 2);
const CHECKPOINT_RESTORE: Capability = Capability("checkpoint_restore", 40);

/// With these all of the machine is recorded, and most code has names.
const DEFAULT: [Capability; 3] = [BPF, PERFMON, SYS_PTRACE];

/// And with these, code of all files has.
const ALL: [Capability; 5] = [
    BPF,
    PERFMON,
    SYS_PTRACE,
    DAC_READ_SEARCH,
    CHECKPOINT_RESTORE,
];

/// The inode number of the initial user namespace (`include/linux/proc_ns.h`, `PROC_USER_INIT_INO`).
const INITIAL_USER_NAMESPACE: u64 = 0xefff_fffd;

/// Rights of this process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rights {
    effective: u64,
    /// Those that it, and whatever it runs, may ever have.
    bounding: u64,
    no_new_privileges: bool,
    has_seccomp_filter: bool,
    in_user_namespace: bool,
    is_locked_down: bool,
    is_root: bool,
    program: PathBuf,
    /// Whether the program's file has capabilities.
    program_has_capabilities: bool,
    /// Where the program's file system is mounted, if it is so that capabilities of files do not count.
    nosuid: Option<PathBuf>,
}

impl Rights {
    /// Those of this process now.
    pub(crate) fn look() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let lockdown = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
        let namespace = fs::metadata("/proc/self/ns/user");
        let running = File::open("/proc/self/exe").ok();
        let has_capabilities = |file: &File| {
            let name = "security.capability";
            rustix::fs::fgetxattr(file, name, &mut [0_u8; 64][..]).is_ok_and(|length| length > 0)
        };
        let is_nosuid = |file: &&File| {
            let flags = fstatvfs(file).map(|system| system.f_flag);
            flags.is_ok_and(|flags| flags.contains(StatVfsMountFlags::NOSUID))
        };
        Self {
            in_user_namespace: namespace.is_ok_and(|it| it.ino() != INITIAL_USER_NAMESPACE),
            is_locked_down: lockdown.contains("[confidentiality]"),
            is_root: rustix::process::geteuid().is_root(),
            program: std::env::current_exe().unwrap_or_else(|_| "flame-bpf".into()),
            program_has_capabilities: running.as_ref().is_some_and(has_capabilities),
            nosuid: running.as_ref().filter(is_nosuid).and_then(mount_of),
            ..Self::parse(&status)
        }
    }

    fn parse(status: &str) -> Self {
        let field = |name: &str| {
            let mut lines = status.lines();
            lines.find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
        };
        let set = |name| field(name).and_then(|digits| u64::from_str_radix(digits, 16).ok());
        Self {
            effective: set("CapEff").unwrap_or(0),
            bounding: set("CapBnd").unwrap_or(u64::MAX),
            no_new_privileges: field("NoNewPrivs") == Some("1"),
            // 1 is the strict mode, in which nothing would get as far as this.
            has_seccomp_filter: field("Seccomp") == Some("2"),
            ..Self::default()
        }
    }

    fn has(&self, wanted: Capability) -> bool {
        self.effective & 1 << wanted.1 != 0
    }

    /// The capabilities that recording takes and this process has not.
    fn lacking(&self) -> Vec<Capability> {
        let wanted = [BPF, PERFMON].into_iter();
        let wanted = wanted.filter(|&it| !self.has(it) && !self.has(SYS_ADMIN));
        wanted.collect()
    }

    /// Why a call was refused that has to do with BPF or perf events.
    pub(crate) fn why_refused(&self) -> Trouble {
        let lacking = self.lacking();
        if !lacking.is_empty() {
            return self.why_lacking(&lacking);
        }
        if self.in_user_namespace {
            return Trouble::advice(
                "this process is in a user namespace, and its capabilities count in that alone",
                "run flame-bpf outside of it, as root or with capabilities: rootless containers cannot record",
            );
        }
        if self.has_seccomp_filter {
            return Trouble::advice(
                "this process has the capabilities, but a seccomp filter refuses the system call",
                "allow bpf and perf_event_open in the profile (docker: --security-opt seccomp=unconfined; \
                 systemd: SystemCallFilter=@system-service bpf perf_event_open)",
            );
        }
        if self.is_locked_down {
            return Trouble::advice(
                "the kernel is locked down for confidentiality, which forbids BPF to read memory even for root",
                "boot with lockdown=integrity or none",
            );
        }
        Trouble::advice(
            "this process has the capabilities, so a security policy (SELinux, AppArmor or another) refuses it",
            "the kernel's log says which: dmesg | grep -iE 'avc|apparmor'",
        )
    }

    fn why_lacking(&self, lacking: &[Capability]) -> Trouble {
        let names = |all: &[Capability], before: &str| {
            let all = all.iter();
            let all = all.map(|it| format!("{before}{}", it.0.to_uppercase()));
            all.collect::<Vec<_>>().join(" and ")
        };
        let needs = format!(
            "it needs the capabilities CAP_BPF and CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8), and this process has not {}",
            names(lacking, "CAP_"),
        );
        if lacking.iter().any(|it| self.bounding & 1 << it.1 == 0) {
            return Trouble::advice(
                format!(
                    "{needs}, nor may it ever: whoever started it, such as a container's runtime, took it away"
                ),
                "docker and podman: --cap-add BPF --cap-add PERFMON --cap-add SYS_PTRACE; Kubernetes: \
                 securityContext.capabilities.add; systemd: AmbientCapabilities= and CapabilityBoundingSet=",
            );
        }
        if self.program_has_capabilities {
            if let Some(mount) = &self.nosuid {
                let mount = shell_word(mount);
                return Trouble::command(
                    format!(
                        "{needs}: those of the program's file do not count because {mount} is mounted nosuid"
                    ),
                    format_args!("mount -o remount,suid {mount}"),
                );
            }
            if self.no_new_privileges {
                return Trouble::advice(
                    format!("{needs}: no_new_privs keeps it from those of the program's file"),
                    "start it without (systemd: NoNewPrivileges=no), or with ambient capabilities (systemd: AmbientCapabilities=)",
                );
            }
        }
        let run = if self.is_root {
            ""
        } else {
            "; run it with sudo, or grant them once"
        };
        Trouble::command(format!("{needs}{run}"), self.setcap(&DEFAULT))
    }

    /// Why functions may not be watched.
    pub(crate) fn why_no_functions(&self) -> Trouble {
        if self.has(SYS_ADMIN) {
            return self.why_refused();
        }
        Trouble::advice(
            "functions of programs take CAP_SYS_ADMIN, which this process has not",
            "run flame-bpf as root for --alloc and -e uprobe:, or grant it cap_sys_admin, too",
        )
    }

    /// Why files of other programs could not be opened; none if no right is missing for that.
    pub(crate) fn why_unreadable(&self) -> Option<Trouble> {
        let stands_for = |it: Capability| it == CHECKPOINT_RESTORE && self.has(SYS_ADMIN);
        let lacking = ALL.into_iter();
        let lacking = lacking.filter(|&it| !self.has(it) && !stands_for(it));
        let names: Vec<String> = lacking
            .map(|it| format!("CAP_{}", it.0.to_uppercase()))
            .collect();
        (!names.is_empty()).then(|| {
            let why = format!("this process has not {}", names.join(", "));
            Trouble::command(why, self.setcap(&ALL))
        })
    }

    fn setcap(&self, wanted: &[Capability]) -> String {
        let names: Vec<String> = wanted.iter().map(|it| format!("cap_{}", it.0)).collect();
        let program = shell_word(&self.program);
        format!("setcap {}=ep {program}", names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Mend;

    const FULL: u64 = 0x1ff_ffff_ffff;

    fn rights(effective: u64) -> Rights {
        Rights {
            effective,
            bounding: FULL,
            program: "/opt/my tools/flame-bpf".into(),
            ..Rights::default()
        }
    }

    fn bits(all: &[Capability]) -> u64 {
        all.iter().map(|it| 1 << it.1).sum()
    }

    #[test]
    fn a_status_tells_rights() {
        let text = "Name:\tx\nCapEff:\t000000c000000000\nCapBnd:\t000001ffffffffff\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n";
        let rights = Rights::parse(text);
        assert!(rights.has(BPF) && rights.has(PERFMON) && !rights.has(SYS_ADMIN));
        assert!(rights.no_new_privileges && rights.has_seccomp_filter);
        assert!(!Rights::parse("").has_seccomp_filter);
        assert!(!Rights::look().program.as_os_str().is_empty());
    }

    #[test]
    fn the_nearest_reason_is_named() {
        let said = |rights: Rights| rights.why_refused();
        let bare = said(rights(bits(&[BPF])));
        assert!(bare.why.ends_with("grant them once"), "{bare}");
        assert!(bare.why.contains("has not CAP_PERFMON;"), "{bare}");
        let Mend::Command(command) = &bare.mend else {
            panic!("{bare}")
        };
        assert!(
            command.ends_with(
                "setcap cap_bpf,cap_perfmon,cap_sys_ptrace=ep '/opt/my tools/flame-bpf'"
            ),
            "{command}"
        );
        let with = Rights {
            program_has_capabilities: true,
            nosuid: Some("/mnt".into()),
            ..rights(0)
        };
        assert!(said(with.clone()).to_string().contains("remount,suid /mnt"));
        let with = Rights {
            nosuid: None,
            no_new_privileges: true,
            ..with
        };
        assert!(said(with).why.contains("no_new_privs"));
        let bounded = Rights {
            bounding: bits(&[BPF]),
            ..rights(0)
        };
        assert!(said(bounded).to_string().contains("--cap-add"));
        let has = rights(bits(&[SYS_ADMIN]));
        for (rights, word) in [
            (has.clone(), "policy"),
            (
                Rights {
                    is_locked_down: true,
                    ..has.clone()
                },
                "locked down",
            ),
            (
                Rights {
                    has_seccomp_filter: true,
                    is_locked_down: true,
                    ..has.clone()
                },
                "seccomp",
            ),
            (
                Rights {
                    in_user_namespace: true,
                    has_seccomp_filter: true,
                    ..has
                },
                "user namespace",
            ),
        ] {
            let trouble = said(rights);
            assert!(trouble.why.contains(word), "{trouble}");
        }
    }
}
