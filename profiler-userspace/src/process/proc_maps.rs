//! The parser of `/proc/PID/maps`.
//!
//! In: the file's bytes, line by line. Out: its mappings, or those that are wanted. Pure; an invalid line is skipped. The
//! kernel writes the file, but paths and names in it are the target's. The format is described in the
//! kernel's `Documentation/filesystems/proc.rst`.

use crate::object::FileNumber;
use std::borrow::Cow;
use std::io::{self, BufRead};
use std::ops::Range;

/// Longer than any line can be: a path of `PATH_MAX` bytes, each escaped as four.
const MAX_LINE_BYTES: u64 = 32 << 10;

/// One mapping, as its line describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The addresses it covers.
    pub range: Range<u64>,
    /// Its offset in the file.
    pub offset: u64,
    /// Which file is mapped.
    pub number: FileNumber,
    /// Whether it may be executed.
    pub executable: bool,
    /// A path, a name in brackets, or nothing, unchanged.
    pub name: &'a [u8],
}

/// Calls `visit` with each executable mapping until it returns `false`.
///
/// # Errors
///
/// When reading fails, as it does once the process has gone. Mappings visited before remain valid.
pub fn each_executable(maps: impl BufRead, visit: impl FnMut(Entry<'_>) -> bool) -> io::Result<()> {
    each_executable_or(maps, |_| false, visit)
}

/// As [`each_executable`], with those whose lines are wanted for what they end in, which is their name.
///
/// # Errors
///
/// See there.
pub fn each_executable_or(
    maps: impl BufRead,
    is_wanted: impl Fn(&[u8]) -> bool,
    visit: impl FnMut(Entry<'_>) -> bool,
) -> io::Result<()> {
    each_of(
        maps,
        |is_executable, line| is_executable || is_wanted(line),
        visit,
    )
}

/// As [`each_executable`], with all mappings.
///
/// # Errors
///
/// See there.
pub fn each(maps: impl BufRead, visit: impl FnMut(Entry<'_>) -> bool) -> io::Result<()> {
    each_of(maps, |_, _| true, visit)
}

fn each_of(
    mut maps: impl BufRead,
    is_wanted: impl Fn(bool, &[u8]) -> bool,
    mut visit: impl FnMut(Entry<'_>) -> bool,
) -> io::Result<()> {
    let mut line = Vec::with_capacity(256);
    loop {
        line.clear();
        if io::Read::take(&mut maps, MAX_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        if let Some(entry) = parse(line, &is_wanted)
            && !visit(entry)
        {
            return Ok(());
        }
    }
}

/// The mapping in a line, if it has one that is wanted: by whether it is executable, and by the line.
fn parse(line: &[u8], is_wanted: impl Fn(bool, &[u8]) -> bool) -> Option<Entry<'_>> {
    let (range, rest) = split(line, b' ')?;
    let (permissions, rest) = split(rest, b' ')?;
    // Most lines end here, so this is tested before any number is parsed.
    let executable = permissions.get(2) == Some(&b'x');
    if !is_wanted(executable, line) {
        return None;
    }
    let (start, end) = split(range, b'-')?;
    let range = hexadecimal(start)?..hexadecimal(end)?;
    let (offset, rest) = split(rest, b' ')?;
    let (device, rest) = split(rest, b' ')?;
    let (major, minor) = split(device, b':')?;
    let (inode, name) = split(rest, b' ').unwrap_or((rest, b""));
    let padding = name.iter().take_while(|&&byte| byte == b' ').count();
    (range.start < range.end).then_some(Entry {
        range,
        offset: hexadecimal(offset)?,
        number: FileNumber {
            major: u32::try_from(hexadecimal(major)?).ok()?,
            minor: u32::try_from(hexadecimal(minor)?).ok()?,
            inode: decimal(inode)?,
        },
        executable,
        name: &name[padding..],
    })
}

/// A path without the kernel's escaping: a newline in it is written `\012`.
///
/// A path that really contains those four characters comes out wrong. It then names no file, or one whose
/// inode does not match.
pub fn unescape(path: &[u8]) -> Cow<'_, [u8]> {
    const NEWLINE: &[u8] = b"\\012";
    if !path.windows(NEWLINE.len()).any(|window| window == NEWLINE) {
        return Cow::Borrowed(path);
    }
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, tail)) = rest.split_first() {
        if let Some(tail) = rest.strip_prefix(NEWLINE) {
            plain.push(b'\n');
            rest = tail;
        } else {
            plain.push(byte);
            rest = tail;
        }
    }
    Cow::Owned(plain)
}

fn split(bytes: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|&byte| byte == separator)?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

fn decimal(digits: &[u8]) -> Option<u64> {
    str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REAL: &str = "\
5626ee400000-5626ee421000 r--p 00000000 fe:00 247026                     /usr/bin/cat
5626ee421000-5626ee530000 r-xp 00021000 fe:00 247026                     /usr/bin/cat
5626ef100000-5626ef121000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000010000 rwxp 00000000 00:00 0 
7f0000020000-7f0000030000 r-xs 00000000 00:01 1027                       /memfd:jit cache (deleted)
7f0000040000-7f0000050000 r-xp 00001000 103:12 99                        /tmp/two  words\\012here
7ffd2a1f4000-7ffd2a1f6000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
";

    fn entries(text: &[u8]) -> Vec<(Range<u64>, u64, FileNumber, Vec<u8>)> {
        let mut found = Vec::new();
        each_executable(text, |entry| {
            found.push((entry.range, entry.offset, entry.number, entry.name.to_vec()));
            true
        })
        .unwrap();
        found
    }

    #[test]
    fn executable_mappings_are_kept_with_all_fields() {
        let found = entries(REAL.as_bytes());
        let names: Vec<&[u8]> = found.iter().map(|entry| entry.3.as_slice()).collect();
        assert_eq!(
            names,
            [
                b"/usr/bin/cat".as_slice(),
                b"",
                b"/memfd:jit cache (deleted)",
                b"/tmp/two  words\\012here",
                b"[vdso]",
                b"[vsyscall]",
            ],
        );
        assert_eq!(found[0].0, 0x5626_ee42_1000..0x5626_ee53_0000);
        assert_eq!(found[0].1, 0x21000);
        let number = |at: usize| (found[at].2.major, found[at].2.minor, found[at].2.inode);
        assert_eq!(number(0), (0xfe, 0, 247_026));
        assert_eq!(number(3), (0x103, 0x12, 99));
        assert_eq!(found[5].0.start, 0xffff_ffff_ff60_0000);
    }

    #[test]
    fn reading_maps_stops_when_asked() {
        let mut seen = 0;
        each_executable(REAL.as_bytes(), |_| {
            seen += 1;
            seen < 2
        })
        .unwrap();
        assert_eq!(seen, 2);
    }

    #[test]
    fn others_are_kept_by_their_names() {
        let mut found = Vec::new();
        let is_wanted = |line: &[u8]| line.ends_with(b"[heap]") || line.ends_with(b"[vdso]");
        each_executable_or(REAL.as_bytes(), is_wanted, |entry| {
            found.push((entry.executable, entry.name.to_vec()));
            true
        })
        .unwrap();
        assert_eq!(found.len(), 7);
        assert_eq!(found[1], (false, b"[heap]".to_vec()));
        assert_eq!(found[5], (true, b"[vdso]".to_vec()));
    }

    #[test]
    fn the_maps_of_this_process_are_read() {
        let maps = std::fs::read("/proc/self/maps").unwrap();
        let here = executable_mappings_are_kept_with_all_fields as fn() as usize as u64;
        assert!(entries(&maps).iter().any(|entry| entry.0.contains(&here)));
    }

    #[test]
    fn only_newlines_are_unescaped_in_paths() {
        assert_eq!(&*unescape(b"/a\\012b\\012"), b"/a\nb\n");
        assert_eq!(&*unescape(b"/a\\01 \\0123"), b"/a\\01 \n3");
        assert!(matches!(unescape(b"/usr/bin/cat"), Cow::Borrowed(_)));
    }

    #[test]
    fn malformed_lines_are_no_mappings() {
        for line in [
            "",
            "x",
            "10-20",
            "10-20 r-xp",
            "20-10 r-xp 0 0:0 0",
            "10-20 r-xp zz 0:0 0",
            "10-20 r-xp 0 0 0",
            "10-20 r-xp 0 0:0 -1",
            "10-fffffffffffffffff r-xp 0 0:0 0",
            "10-20 r- 0 0:0 0",
        ] {
            assert_eq!(
                parse(line.as_bytes(), |executable, _| executable),
                None,
                "{line}"
            );
        }
        assert!(parse(b"10-20 r-xp 0 0:0 0", |executable, _| executable).is_some());
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let mut text = b"10-20 r-xp 0 0:0 7 /".to_vec();
        text.resize(200_000, b'a');
        let found = entries(&text);
        assert!(found[0].3.len() < 40_000);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            entries(&text);
            unescape(&text);
        }

        #[test]
        fn printed_mappings_are_read_back(start in 0u64..1 << 47, pages in 1u64..1000, offset: u64, inode: u64) {
            let end = start + pages * 4096;
            let line = format!("{start:08x}-{end:08x} r-xp {offset:08x} 08:01 {inode} {:20}/a b\n", "");
            let found = entries(line.as_bytes());
            prop_assert_eq!(found.len(), 1);
            prop_assert_eq!(found[0].0.clone(), start..end);
            prop_assert_eq!(found[0].1, offset);
            prop_assert_eq!(found[0].2.inode, inode);
            prop_assert_eq!(found[0].3.as_slice(), b"/a b");
        }
    }
}
