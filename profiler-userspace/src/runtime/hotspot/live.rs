//! HotSpot's own tables of its fields, in a process that runs.
//!
//! In: the file of the virtual machine. Out: where fields are, by their names; addresses of variables in the file. Any process that
//! has the file mapped serves, because the tables say the same in all. One that was just started may not have filled them yet.

use crate::object::{Image, Part};
use crate::runtime::TargetMemory;
use foldhash::HashMap;
use object::elf::PT_LOAD;
use profiler_common::walk::Memory as _;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Entries of a table, at most, and characters of a name.
const MAX_ENTRIES: u64 = 1 << 14;
const MAX_NAME: usize = 128;

/// So often a process is asked whose tables are not filled yet, and how long apart.
const MAX_TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(4);

/// The name of a process that the JDK's launcher began.
const LAUNCHER: &[u8] = b"java\n";

/// The tables.
pub(super) struct Tables {
    /// Offsets of fields by their type's name, a dot, and theirs.
    fields: HashMap<String, u64>,
    /// Addresses of variables, the file's own.
    variables: HashMap<String, u64>,
    /// Bytes of types.
    sizes: HashMap<String, u64>,
    version: Option<u64>,
}

impl Tables {
    /// Those of some process that has the file mapped.
    pub(super) fn read(image: &Image<'_>) -> Option<Self> {
        for _ in 0..MAX_TRIES {
            let mut is_mapped = false;
            for (process, bias) in processes(image) {
                is_mapped = true;
                let memory = TargetMemory::new(process, [0; _], bias);
                if let Some(tables) = Self::of(image, &memory, bias) {
                    return Some(tables);
                }
            }
            if !is_mapped {
                return None;
            }
            thread::sleep(PAUSE);
        }
        None
    }

    /// Those of one process; none if they are not filled.
    fn of(image: &Image<'_>, memory: &TargetMemory, bias: u64) -> Option<Self> {
        let number = |symbol: &str| {
            let symbol = image.symbol(symbol)?;
            word(memory, symbol.address.checked_add(bias)?)
        };
        let mut tables = Self {
            fields: HashMap::default(),
            variables: HashMap::default(),
            sizes: HashMap::default(),
            version: None,
        };
        let entry = |name: &str| number(&format!("gHotSpotVMStructEntry{name}"));
        let [kind, field, is_static, offset, address, stride] = [
            "TypeNameOffset",
            "FieldNameOffset",
            "IsStaticOffset",
            "OffsetOffset",
            "AddressOffset",
            "ArrayStride",
        ]
        .map(entry);
        let (kind, field, is_static) = (kind?, field?, is_static?);
        let mut place = number("gHotSpotVMStructs")?;
        for _ in 0..MAX_ENTRIES {
            let of_type = word(memory, place.checked_add(kind)?)?;
            if of_type == 0 {
                break;
            }
            let field = word(memory, place.checked_add(field)?)?;
            let name = format!("{}.{}", text(memory, of_type)?, text(memory, field)?);
            if word(memory, place.checked_add(is_static)?)? as u32 == 0 {
                let offset = word(memory, place.checked_add(offset?)?)?;
                tables.fields.insert(name, offset);
            } else {
                let address = word(memory, place.checked_add(address?)?)?;
                if name == "Abstract_VM_Version._vm_major_version" {
                    tables.version = word(memory, address).map(|word| u64::from(word as u32));
                }
                tables.variables.insert(name, address.wrapping_sub(bias));
            }
            place = place.checked_add(stride?)?;
        }
        let entry = |name: &str| number(&format!("gHotSpotVMTypeEntry{name}"));
        let [kind, size, stride] = ["TypeNameOffset", "SizeOffset", "ArrayStride"].map(entry);
        let mut place = number("gHotSpotVMTypes")?;
        for _ in 0..MAX_ENTRIES {
            let of_type = word(memory, place.checked_add(kind?)?)?;
            if of_type == 0 {
                break;
            }
            let size = word(memory, place.checked_add(size?)?)?;
            tables.sizes.insert(text(memory, of_type)?, size);
            place = place.checked_add(stride?)?;
        }
        // Before the file's constructors have run, offsets are zero.
        let is_filled = tables.field("Method._constMethod")? != 0;
        (is_filled && tables.version? != 0).then_some(tables)
    }

    /// The virtual machine's version.
    pub(super) fn version(&self) -> Option<u64> {
        self.version
    }

    /// Where a field is, by its type's name, a dot, and its own.
    pub(super) fn field(&self, name: &str) -> Option<u16> {
        self.fields.get(name).copied()?.try_into().ok()
    }

    /// Bytes of a type.
    pub(super) fn size(&self, name: &str) -> Option<u16> {
        self.sizes.get(name).copied()?.try_into().ok()
    }

    /// The address of a variable, the file's own.
    pub(super) fn address(&self, name: &str) -> Option<u64> {
        self.variables.get(name).copied()
    }
}

fn word(memory: &TargetMemory, address: u64) -> Option<u64> {
    let [word] = memory.read(address)?;
    Some(word)
}

/// Text up to a NUL.
fn text(memory: &TargetMemory, address: u64) -> Option<String> {
    let mut bytes = Vec::new();
    while bytes.len() < MAX_NAME {
        let mut byte = [0];
        memory.copy(address.checked_add(bytes.len() as u64)?, &mut byte)?;
        if byte[0] == 0 {
            return String::from_utf8(bytes).ok();
        }
        bytes.push(byte[0]);
    }
    None
}

/// The processes that have the file mapped, with its load bias: those first that are called like the launcher, because looking
/// takes as long as a process has mappings.
fn processes(image: &Image<'_>) -> impl Iterator<Item = (u32, u64)> {
    let file = image.file.metadata().ok();
    let folders = file.is_some().then(|| fs::read_dir("/proc").ok()).flatten();
    let numbers = folders
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|folder| {
            let name = folder.file_name();
            name.to_str()?.parse::<u32>().ok()
        });
    let is_launcher = |process: &u32| {
        fs::read(format!("/proc/{process}/comm")).is_ok_and(|name| name == LAUNCHER)
    };
    let (launchers, others): (Vec<u32>, Vec<u32>) = numbers.partition(is_launcher);
    launchers
        .into_iter()
        .chain(others)
        .filter_map(move |process| {
            let path = format!("/proc/{process}/maps");
            let bias = bias_in(Path::new(&path), image, file.as_ref()?.ino()).ok()??;
            Some((process, bias))
        })
}

/// The bits of an address within a page.
const PAGE: u64 = 0xfff;

/// The load bias of a file by a table of mappings. Several files may have the same number on different devices, of which containers
/// have names of their own: then the tables are not there.
fn bias_in(maps: &Path, image: &Image<'_>, inode: u64) -> io::Result<Option<u64>> {
    let maps = fs::read_to_string(maps)?;
    let bias = maps.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (start, _) = words.next()?.split_once('-')?;
        let offset = u64::from_str_radix(words.nth(1)?, 16).ok()?;
        let number: u64 = words.nth(1)?.parse().ok()?;
        if number != inode {
            return None;
        }
        let start = u64::from_str_radix(start, 16).ok()?;
        let mut segments = image.of_type(PT_LOAD).map(Part::from);
        let segment = segments.find(|segment| segment.offset & !PAGE == offset)?;
        Some(start.wrapping_sub(segment.address & !PAGE))
    });
    Ok(bias)
}
