//! Which Linux distribution this is, and the command that installs an object's symbols.
//!
//! In: `/etc/os-release`, and on Debian and Ubuntu the lists of what packages hold. Out: half a sentence.
//! Never runs the command, and never asks the network.

use crate::object::BuildId;
use crate::profile::fold::visible;
use memchr::memmem::Finder;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Where dpkg keeps a list of the files of each package.
const DPKG_LISTS: &str = "/var/lib/dpkg/info";

/// The distributions whose commands are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Debian,
    Ubuntu,
    Fedora,
}

/// A distribution.
#[derive(Debug)]
pub(crate) struct Distro {
    family: Option<Family>,
    lists: PathBuf,
    /// Whether debuginfod servers were asked already.
    servers_asked: bool,
}

impl Distro {
    /// The one that runs here.
    pub(crate) fn here(servers_asked: bool) -> Self {
        let release = fs::read_to_string("/etc/os-release")
            .or_else(|_| fs::read_to_string("/usr/lib/os-release"));
        Self {
            family: release.ok().and_then(|text| family(&text)),
            lists: DPKG_LISTS.into(),
            servers_asked,
        }
    }

    /// One that nothing is known of.
    #[cfg(test)]
    pub(crate) fn unknown() -> Self {
        Self {
            family: None,
            lists: PathBuf::new(),
            servers_asked: false,
        }
    }

    /// Commands or flags that bring the symbols of the object at `path`.
    pub(crate) fn symbols_of(&self, path: &Path, build_id: Option<&BuildId>) -> String {
        let command = match self.family {
            Some(Family::Debian | Family::Ubuntu) => self.debian(path),
            Some(Family::Fedora) => build_id.map(|id| {
                let (directory, rest) = id.split();
                format!("`dnf install /usr/lib/debug/.build-id/{directory}/{rest}.debug`")
            }),
            None => None,
        };
        match command {
            Some(command) => format!("{command}, or {}", self.anywhere()),
            None => self.anywhere().to_owned(),
        }
    }

    /// The command that installs the debug information of the kernel of that release.
    pub(crate) fn kernel_lines(&self, release: &str) -> Option<String> {
        let release = visible(release);
        match self.family? {
            Family::Debian => Some(format!("`apt install linux-image-{release}-dbg`")),
            Family::Ubuntu => Some(format!(
                "`apt install linux-image-{release}-dbgsym` from Ubuntu's debug archive"
            )),
            Family::Fedora => Some(format!("`dnf debuginfo-install kernel-{release}`")),
        }
    }

    /// Whether debuginfod servers were asked already.
    pub(crate) fn servers_asked(&self) -> bool {
        self.servers_asked
    }

    /// The flag that brings symbols whatever the distribution.
    pub(crate) fn anywhere(&self) -> &'static str {
        match self.servers_asked {
            true => "use --debug-dir DIR with its debug file",
            false => "use --debuginfod",
        }
    }

    fn debian(&self, path: &Path) -> Option<String> {
        let package = owner(&self.lists, path)?;
        // The one library whose symbols are in Debian's main archive.
        if package == "libc6" {
            return Some("`apt install libc6-dbg`".to_owned());
        }
        let whose = match self.family? {
            Family::Ubuntu => "Ubuntu",
            _ => "Debian",
        };
        let package = visible(&package).into_owned();
        Some(format!(
            "`apt install {package}-dbgsym` from {whose}'s debug archive"
        ))
    }
}

fn family(release: &str) -> Option<Family> {
    let value = |key: &str| {
        let line = release.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim_matches(['"', '\'']).to_owned())
    };
    let all = [value("ID="), value("ID_LIKE=")].into_iter().flatten();
    let words: Vec<String> = all
        .flat_map(|words| words.split(' ').map(str::to_owned).collect::<Vec<_>>())
        .collect();
    words.iter().find_map(|word| match word.as_str() {
        "ubuntu" => Some(Family::Ubuntu),
        "debian" => Some(Family::Debian),
        "fedora" => Some(Family::Fedora),
        _ => None,
    })
}

/// The package that holds a file, as dpkg's lists say.
fn owner(lists: &Path, path: &Path) -> Option<String> {
    let wanted = path.as_os_str().as_bytes();
    // Packages may still call by its old name what lies below /usr today.
    let old = wanted.strip_prefix(b"/usr").unwrap_or(wanted);
    let names = fs::read_dir(lists).ok()?.flatten();
    let names = names.map(|entry| entry.file_name());
    let names = names.filter(|list| list.as_bytes().ends_with(b".list"));
    // Packages are called like what they hold, as a rule: the one that is meant comes first, and the others are not read.
    let mut entries: BinaryHeap<(usize, Reverse<OsString>)> = names
        .map(|list| (likeness(&list, path), Reverse(list)))
        .collect();
    let finder = Finder::new(old);
    std::iter::from_fn(|| entries.pop()).find_map(|(_, Reverse(list))| {
        let list = lists.join(list);
        let text = fs::read(&list).ok()?;
        let held = finder.find_iter(&text).any(|at| {
            let begin = text[..at].rsplit(|&byte| byte == b'\n').next();
            let is_whole = [Some(&b'\n'), None].contains(&text.get(at + old.len()));
            is_whole && matches!(begin, Some(b"" | b"/usr"))
        });
        let name = list.file_stem()?.to_str()?;
        // An architecture may follow.
        held.then(|| name.split(':').next().unwrap_or(name).to_owned())
    })
}

/// How many letters a list's name and a part of a path begin with alike.
fn likeness(list: &OsStr, path: &Path) -> usize {
    let name = list.as_bytes();
    let alike = |part: &OsStr| {
        let both = name.iter().zip(part.as_bytes());
        both.take_while(|(left, right)| left == right).count()
    };
    path.iter().map(alike).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_os_release_gives_its_family() {
        for (release, wanted) in [
            ("NAME=x\nID=debian\n", Some(Family::Debian)),
            ("ID=ubuntu\nID_LIKE=debian\n", Some(Family::Ubuntu)),
            (
                "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n",
                Some(Family::Ubuntu),
            ),
            (
                "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n",
                Some(Family::Fedora),
            ),
            ("ID=arch\n", None),
            ("", None),
        ] {
            assert_eq!(family(release), wanted, "{release}");
        }
    }

    fn debian() -> (tempfile::TempDir, Distro) {
        let lists = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(lists.path().join(name), text).unwrap();
        write("libc6:amd64.list", "/.\n/lib/x86_64-linux-gnu/libc.so.6\n");
        write(
            "libssl3.list",
            "/usr/lib/libssl.so.3.old\n/usr/lib/libssl.so.3\n",
        );
        write("libssl3.md5sums", "/usr/bin/none\n");
        write("aaa.list", "/usr/bin/libssl4-tool\n");
        let distribution = Distro {
            family: Some(Family::Debian),
            lists: lists.path().to_owned(),
            servers_asked: false,
        };
        (lists, distribution)
    }

    #[test]
    fn the_kernel_package_matches_its_release() {
        let (_lists, mut distribution) = debian();
        let command = |distribution: &Distro| distribution.kernel_lines("6.1.0-9-amd64");
        let debian = command(&distribution).unwrap();
        assert_eq!(debian, "`apt install linux-image-6.1.0-9-amd64-dbg`");
        distribution.family = Some(Family::Fedora);
        assert!(
            command(&distribution)
                .unwrap()
                .contains("dnf debuginfo-install kernel-6.1.0")
        );
        assert_eq!(command(&Distro::unknown()), None);
    }

    #[test]
    fn debian_names_the_package() {
        let (_lists, mut debian) = debian();
        let said = |debian: &Distro, path: &str| debian.symbols_of(Path::new(path), None);
        let libc = said(&debian, "/usr/lib/x86_64-linux-gnu/libc.so.6");
        assert!(libc.starts_with("`apt install libc6-dbg`, or"), "{libc}");
        let ssl = said(&debian, "/usr/lib/libssl.so.3");
        assert!(
            ssl.starts_with("`apt install libssl3-dbgsym` from Debian's debug archive"),
            "{ssl}"
        );
        let tool = said(&debian, "/usr/bin/libssl4-tool");
        assert!(tool.starts_with("`apt install aaa-dbgsym`"), "{tool}");
        assert_eq!(said(&debian, "/usr/bin/none"), debian.anywhere());
        debian.family = Some(Family::Ubuntu);
        assert!(said(&debian, "/usr/lib/libssl.so.3").contains("Ubuntu's debug archive"));
    }

    #[test]
    fn fedora_needs_the_build_alone() {
        let fedora = Distro {
            family: Some(Family::Fedora),
            lists: PathBuf::new(),
            servers_asked: false,
        };
        let file = fs::File::open("/proc/self/exe").unwrap();
        let elf = crate::object::Elf::read(&file).unwrap();
        let path = Path::new("/usr/lib64/libx.so");
        assert_eq!(fedora.symbols_of(path, None), fedora.anywhere());
        if let Some(id) = elf.build_id {
            let said = fedora.symbols_of(path, Some(&id));
            let (directory, rest) = id.split();
            assert!(
                said.contains(&format!(".build-id/{directory}/{rest}.debug")),
                "{said}"
            );
        }
    }
}
