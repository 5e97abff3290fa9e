//! File systems that are mounted, and those that must be, and are not, or lie under something else.
//!
//! In: `/proc/self/mountinfo`. Out: what is mounted; what is missing, and the command that brings it.

use super::Trouble;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Where the kernel keeps its type information.
pub(crate) const TYPE_INFORMATION: &str = "/sys/kernel/btf/vmlinux";

/// One mounted file system.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    id: u64,
    /// The directory of that file system that is mounted.
    pub(crate) root: PathBuf,
    /// Where it is mounted.
    pub(crate) at: PathBuf,
    /// The kind of file system, such as `cgroup2`.
    pub(crate) kind: Vec<u8>,
    /// Options of the file system, with commas between.
    pub(crate) options: Vec<u8>,
}

impl Mount {
    /// A line of `mountinfo`; see `proc_pid_mountinfo(5)`.
    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|&byte| byte == b' ');
        let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        let root = unescaped(fields.nth(2)?);
        let at = unescaped(fields.next()?);
        let mut behind = fields.skip_while(|field| *field != b"-");
        Some(Self {
            id,
            root: root.into(),
            at: at.into(),
            kind: behind.nth(1)?.to_vec(),
            options: behind.nth(1).unwrap_or_default().to_vec(),
        })
    }

    /// All that this process sees.
    pub(crate) fn all() -> Vec<Self> {
        Self::parse_all(&fs::read("/proc/self/mountinfo").unwrap_or_default())
    }

    /// Those in the text of a `mountinfo`.
    pub(crate) fn parse_all(text: &[u8]) -> Vec<Self> {
        let lines = text.split(|&byte| byte == b'\n');
        lines.filter_map(Self::parse).collect()
    }
}

/// A path without the kernel's escaping: white space and backslashes are three octal digits.
fn unescaped(path: &[u8]) -> OsString {
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&first, behind)) = rest.split_first() {
        let digits = behind.get(..3).filter(|_| first == b'\\');
        let byte = digits.and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 8).ok()
        });
        plain.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &behind[3..] } else { behind };
    }
    OsString::from_vec(plain)
}

/// Where the file system is mounted that has this open file.
pub(super) fn mount_of(file: &fs::File) -> Option<PathBuf> {
    use std::os::fd::AsRawFd as _;
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).ok()?;
    let id = info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?;
    let id: u64 = id.trim().parse().ok()?;
    let mut all = Mount::all().into_iter();
    Some(all.find(|mount| mount.id == id)?.at)
}

/// Why a file under /sys, which this kernel should have, is not there; none if nothing covers its place.
pub(crate) fn uncovered(path: &Path) -> Option<Trouble> {
    uncovered_among(&Mount::all(), path)
}

fn uncovered_among(mounts: &[Mount], path: &Path) -> Option<Trouble> {
    let above = mounts.iter().filter(|mount| path.starts_with(&mount.at));
    // The last of those that lie deepest is seen.
    let seen = above.max_by_key(|mount| mount.at.components().count())?;
    if seen.kind == b"sysfs" {
        return None;
    }
    let shown = shell_word(&seen.at);
    let is_in_sys = seen.at.starts_with("/sys") && seen.at != Path::new("/sys");
    Some(if is_in_sys {
        let why = format!("something is mounted over {shown}");
        Trouble::command(why, format_args!("umount {shown}"))
    } else {
        Trouble::command("/sys is not mounted", "mount -t sysfs sysfs /sys")
    })
}

/// Why the kernel's type information cannot be read.
pub(crate) fn type_information() -> Trouble {
    uncovered(Path::new(TYPE_INFORMATION)).unwrap_or_else(|| {
        Trouble::advice(
            "this kernel was built without type information (CONFIG_DEBUG_INFO_BTF)",
            "use a kernel that has it in /sys/kernel/btf/vmlinux",
        )
    })
}

/// Refuses a machine on which no cgroups are mounted, so that nothing says which container a process is in.
pub(crate) fn has_cgroups() -> Result<(), Trouble> {
    /// Both versions of the file system (`include/uapi/linux/magic.h`).
    const KINDS: [i64; 2] = [0x0027_e0eb, 0x6367_7270];
    // Something else may lie over a mount.
    let is_seen = |mount: &Mount| {
        let system = rustix::fs::statfs(&mount.at);
        system.is_ok_and(|system| KINDS.contains(&system.f_type))
    };
    let all = Mount::all();
    let mut all = all.iter().filter(|mount| mount.kind.starts_with(b"cgroup"));
    if all.any(is_seen) {
        return Ok(());
    }
    Err(Trouble::command(
        "no cgroup file system is mounted",
        "mount -t cgroup2 cgroup2 /sys/fs/cgroup",
    ))
}

/// A path as a word for a shell.
pub(super) fn shell_word(path: &Path) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+:@%,".contains(byte);
    let bytes = path.as_os_str().as_bytes();
    match bytes.iter().all(is_plain) {
        true => path.display().to_string(),
        false => format!("'{}'", path.display().to_string().replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    const ROOT: &str = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw";
    const SYS: &str = "23 27 0:22 / /sys rw,relatime shared:7 - sysfs sysfs rw";

    fn said(text: &str) -> Option<String> {
        let trouble = uncovered_among(
            &Mount::parse_all(text.as_bytes()),
            Path::new(TYPE_INFORMATION),
        )?;
        Some(trouble.to_string().replace("sudo ", ""))
    }

    #[test]
    fn what_lies_over_type_information_is_named() {
        assert_eq!(said(&format!("{ROOT}\n{SYS}")), None);
        assert_eq!(
            said(ROOT).unwrap(),
            "/sys is not mounted; mend it with `mount -t sysfs sysfs /sys`"
        );
        let hidden = "40 23 0:6 /null /sys/kernel/btf/vmlinux rw - devtmpfs devtmpfs rw";
        assert_eq!(
            said(&format!("{ROOT}\n{SYS}\n{hidden}")).unwrap(),
            "something is mounted over /sys/kernel/btf/vmlinux; mend it with `umount /sys/kernel/btf/vmlinux`"
        );
        let over = "41 23 0:9 / /sys rw - tmpfs tmpfs rw";
        assert_eq!(said(&format!("{ROOT}\n{SYS}\n{over}")), said(ROOT));
    }

    #[test]
    fn paths_are_unescaped_and_quoted() {
        let mount = Mount::parse(br"9 1 0:1 / /a\040b\134 rw - tmpfs tmpfs rw").unwrap();
        assert_eq!(mount.at, Path::new("/a b\\"));
        assert_eq!(mount.root, Path::new("/"));
        assert_eq!(mount.options, b"rw");
        assert_eq!(shell_word(&mount.at), "'/a b\\'");
        assert_eq!(unescaped(br"\9"), OsStr::new(r"\9"));
        assert_eq!(Mount::parse(b""), None);
    }

    #[test]
    fn a_file_knows_its_mount() {
        let file = fs::File::open("/proc/self/status").unwrap();
        assert_eq!(mount_of(&file).unwrap(), Path::new("/proc"));
    }
}
