//! Which class or module a method belongs to.
//!
//! In: a frame of the method, or of a block in it. Out: the path of what it is defined in, as Ruby 3.4 has it in its own
//! backtraces. None where that is not certain: of classes without a name, of methods that are made of blocks, and of those that
//! were given to other classes than they were defined in.

use super::{
    Ruby,
    chain::{Frame, word},
    iseq,
    layout::{
        ALIASED, ALIASES_OF_3_1, ATTACHED, CLASS, CREF_CLASS, ClassPath, DEFINITION_TYPE,
        IS_PERMANENT, ISEQ_BODY, LOCAL, METHOD_ENTRY, MODULE, OWN_TYPE, PATH, PREVIOUS_MARKS,
        SINGLETON, SPECIAL_VARIABLES, TABLE_BOUND, TYPE, VARIABLES, at,
    },
};
use crate::runtime::{FUNCTION_BITS, FunctionInfo, Process, RemoteString, Strings};

/// The most blocks within each other that are left to come to their method.
const MAX_BLOCKS: usize = 5;
/// How many variables of a class are looked at.
const MAX_VARIABLES: usize = 4;

impl FunctionInfo for Ruby {
    const OWN_FRAME: Option<usize> = Some(word::SHOWN);

    #[inline(always)]
    fn check(process: &impl Process, body: u64) -> Option<u32> {
        if iseq::fetch(process, body) {
            iseq::check_fetched(process)
        } else {
            None
        }
    }

    /// `extra` is zero.
    #[inline(always)]
    fn strings(process: &impl Process, function: u64) -> Option<Strings> {
        iseq::strings(process, function)
    }

    /// The path of a method's class or module, and 1 if the method is one of the class itself.
    #[inline(always)]
    fn owner(process: &impl Process, body: u64, frame: u64) -> Option<(RemoteString, u64)> {
        let class_path = process.descriptor(at::CLASS_PATH);
        if class_path == ClassPath::Unknown as u64 || frame == 0 {
            return None;
        }
        let frame = Frame::read(process, frame)?;
        let [own] = process.read(frame.iseq.wrapping_add(ISEQ_BODY))?;
        if own & FUNCTION_BITS != body {
            return None;
        }
        let [local] = process.read(own.wrapping_add(process.descriptor(at::LOCAL)))?;
        let [_, _, definition, _, class] = method_entry(process, frame.environment)?;
        let [kind, iseq, cref] = process.read(definition)?;
        if kind & DEFINITION_TYPE != 0 || iseq != local {
            return None;
        }
        let has_fields = class_path == ClassPath::Field as u64;
        let named = named(process, class, has_fields)?;
        let aliases = if has_fields { ALIASED } else { ALIASES_OF_3_1 };
        if kind & aliases != 0 {
            let [defined_in] = process.read(cref.wrapping_add(CREF_CLASS))?;
            if defined_in != class && defined_in != named {
                return None;
            }
        }
        let path = if has_fields {
            let [marks, path] = process.read(named.wrapping_add(PATH))?;
            (marks & IS_PERMANENT != 0).then_some(path)?
        } else {
            path_among_variables(process, named)?
        };
        let path = iseq::string(process, path)?;
        Some((path, u64::from(named != class)))
    }
}

/// The entry of the method that a frame is of, or is within.
#[inline(always)]
fn method_entry(process: &impl Process, environment: u64) -> Option<[u64; 5]> {
    let mut environment = environment;
    for _ in 0..MAX_BLOCKS {
        let [entry, previous, flags] = process.read(environment.wrapping_sub(16))?;
        if flags & LOCAL != 0 {
            return read_entry(process, entry);
        }
        environment = previous & !PREVIOUS_MARKS;
    }
    None
}

#[inline(always)]
fn read_entry(process: &impl Process, address: u64) -> Option<[u64; 5]> {
    let mut entry: [u64; 5] = process.read(address)?;
    if entry[0] & OWN_TYPE == SPECIAL_VARIABLES {
        entry = process.read(entry[1])?;
    }
    (entry[0] & OWN_TYPE == METHOD_ENTRY).then_some(entry)
}

/// The named class or module: `class` itself, or the one that it is the singleton class of.
#[inline(always)]
fn named(process: &impl Process, class: u64, has_fields: bool) -> Option<u64> {
    let [flags] = process.read(class)?;
    match flags & TYPE {
        MODULE => return Some(class),
        CLASS if flags & SINGLETON == 0 => return Some(class),
        CLASS => (),
        _ => return None,
    }
    let attached = if has_fields {
        let [attached] = process.read(class.wrapping_add(ATTACHED))?;
        attached
    } else {
        // Its first variable.
        let (_, entries) = variables(process, class)?;
        let [_, _, attached] = process.read(entries)?;
        attached
    };
    // No other object has this class.
    let [flags, class_of] = process.read(attached)?;
    (class_of == class && matches!(flags & TYPE, CLASS | MODULE)).then_some(attached)
}

/// The variables of a class: how many places there are, and where.
#[inline(always)]
fn variables(process: &impl Process, class: u64) -> Option<(u64, u64)> {
    let [extension] = process.read(class.wrapping_add(24))?;
    let [table] = process.read(extension.wrapping_add(VARIABLES))?;
    let [bound, entries] = process.read(table.wrapping_add(TABLE_BOUND))?;
    Some((bound, entries))
}

/// The path of a class that has it among its variables. The variable's name is a number, which the class `Object` tells: the
/// path is its first variable.
#[inline(always)]
fn path_among_variables(process: &impl Process, class: u64) -> Option<u64> {
    let mut object = process.bias().wrapping_add(process.descriptor(at::OBJECT));
    let slot = process.descriptor(at::OBJECT_SLOT);
    if slot != 0 {
        [object] = process.read(process.bias().wrapping_add(slot))?;
    }
    let [object] = process.read(object)?;
    let (_, entries) = variables(process, object)?;
    let [_, name, path] = process.read(entries)?;
    if !is_object(process, path)? {
        return None;
    }
    let (bound, entries) = variables(process, class)?;
    let mut entry = entries;
    for place in 0..MAX_VARIABLES as u64 {
        if place >= bound {
            return None;
        }
        let [_, key, path] = process.read(entry)?;
        if key == name {
            return Some(path);
        }
        entry = entry.wrapping_add(24);
    }
    None
}

/// Whether a string is `Object`.
#[inline(always)]
fn is_object(process: &impl Process, string: u64) -> Option<bool> {
    let piece = iseq::string(process, string)?;
    let [bytes] = process.read(piece.address)?;
    Some(piece.bytes == 6 && bytes << 16 == u64::from_le_bytes(*b"\0\0Object"))
}
