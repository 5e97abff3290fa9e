//! Names of Java's threads, of which the kernel keeps the first 15 bytes.
//!
//! In: the memory of a process, the number that a thread has there, and its name as the kernel has it. Out: the name that Java has
//! for it, if the kernel's is the beginning of that. Where Java keeps it, HotSpot's own tables say, and the fields of its classes:
//! `InstanceKlass` has them as six numbers each, since 21 as a stream of packed ones (`fieldInfo.hpp`).

use super::live::Tables;
use super::scopes::{least_digit, unsigned};
use crate::runtime::{Descriptor, TargetMemory};
use foldhash::HashMap;
use profiler_common::descriptor_fields;
use profiler_common::runtime::hotspot::{Offsets, at};
use profiler_common::walk::Memory as _;

/// The words of a descriptor that user space alone reads: where fields are, and behind that addresses of variables.
const FIELDS: usize = at::OFFSETS + Offsets::WORDS;
const VARIABLES: usize = FIELDS + Fields::WORDS;

descriptor_fields! {
    /// Where fields are by which threads and their names are found. All are zero if one is not known.
    struct Fields from FIELDS;
    /// In a `ThreadsList`: how many there are.
    length,
    /// In a `ThreadsList`: the `JavaThread`s.
    threads,
    /// In a `JavaThread`: its `OSThread`.
    os_thread,
    /// In an `OSThread`: the number that the thread has in the process's namespace.
    number,
    /// In a `JavaThread`: the handle of its object.
    object,
    /// In an `InstanceKlass`: its `ConstantPool`.
    constants,
    /// In an `InstanceKlass`: its fields.
    fields,
    /// In an `InstanceKlass`: how many they are, until 20; zero where they are a stream.
    field_count,
    /// In an `Array` of numbers: these.
    elements,
}

/// Variables, by their places among these words.
#[derive(Clone, Copy)]
enum Variable {
    /// The `ThreadsList`.
    Threads,
    /// The address that compressed references count from.
    Base,
    /// How many bits they are shifted.
    Shift,
    /// The class of threads.
    ThreadClass,
    /// The class of strings.
    StringClass,
}

const VARIABLE_COUNT: usize = 5;

/// Adds to a descriptor what the tables say of threads; where they lack anything, threads have the kernel's names.
pub(super) fn describe(tables: &Tables, words: &mut Descriptor) {
    let Some((fields, variables)) = described(tables) else {
        return;
    };
    words[FIELDS..VARIABLES].copy_from_slice(&fields.words());
    words[VARIABLES..VARIABLES + VARIABLE_COUNT].copy_from_slice(&variables);
}

fn described(tables: &Tables) -> Option<(Fields, [u64; VARIABLE_COUNT])> {
    let field = |name: &str| tables.field(name);
    let class = |name: &str| {
        let name = format!("vmClasses._klasses[static_cast<int>(vmClassID::{name}_klass_knum)]");
        tables.address(&name)
    };
    let compressed = |name: &str| {
        let since = tables.address(&format!("CompressedOops.{name}"));
        since.or(tables.address(&format!("CompressedOops._narrow_oop.{name}")))
    };
    let stream = field("InstanceKlass._fieldinfo_stream");
    let fields = Fields {
        length: field("ThreadsList._length")?,
        threads: field("ThreadsList._threads")?,
        os_thread: field("Thread._osthread").or(field("JavaThread._osthread"))?,
        number: field("OSThread._thread_id")?,
        object: field("JavaThread._threadObj")?,
        constants: field("InstanceKlass._constants")?,
        fields: stream.or(field("InstanceKlass._fields"))?,
        field_count: match stream {
            Some(_) => 0,
            None => field("InstanceKlass._java_fields_count")?,
        },
        elements: field("Array<u1>._data")?,
    };
    let variables = [
        tables.address("ThreadsSMRSupport._java_thread_list")?,
        compressed("_base")?,
        compressed("_shift")?,
        class("Thread")?,
        class("String")?,
    ];
    Some((fields, variables))
}

/// The most threads of a list.
const MAX_THREADS: u64 = 1 << 16;
/// The most bytes of the fields of a class, and of the name of a field.
const MAX_FIELD_BYTES: usize = 1 << 12;
const MAX_FIELD_NAME: u64 = 16;
/// The most characters of a name that are read.
const MAX_NAME: usize = 256;
/// A number of characters that is none, but characters.
const MAX_CHARACTERS: usize = 1 << 20;
/// Stands for the rest of a longer one.
const CUT: char = '…';

/// Bits of the flags of a field in a stream that say that a number follows: its first value, its generic signature, its group.
const OPTIONAL: [u32; 3] = [1, 1 << 2, 1 << 4];
/// Numbers of a field until 20; where its name and the halves of its place are among them; and bits below that place.
const FIELD_NUMBERS: usize = 6;
const FIELD_NAME: usize = 1;
const FIELD_PLACE: usize = 4;
const PLACE_SHIFT: u32 = 2;

/// Where an array has its length, and where its elements begin: with compressed classes, without (since 22, until 21), and with
/// compact headers (`arrayOop.hpp`). In this order, because a name may repeat itself.
const ARRAYS: [(usize, usize); 4] = [(12, 16), (16, 20), (16, 24), (8, 12)];
/// Bytes of an array in which all these lie.
const ARRAY_HEAD: usize = 24;

/// The threads of a process.
pub(in crate::runtime) struct Threads<'m> {
    memory: &'m TargetMemory,
    fields: Fields,
    /// `JavaThread`s by the numbers of their threads.
    of: HashMap<u32, u64>,
    /// In a thread: its name; in a string: its array, and how that has the characters.
    name: u64,
    value: u64,
    coder: u64,
}

impl<'m> Threads<'m> {
    /// Those of a process that run now; none if its tables or its memory do not tell.
    pub(in crate::runtime) fn read(memory: &'m TargetMemory) -> Option<Self> {
        let fields = Fields::of(memory);
        (fields.threads != 0).then_some(())?;
        let mut all = Self {
            memory,
            fields,
            of: HashMap::default(),
            name: 0,
            value: 0,
            coder: 0,
        };
        let [thread, string] = [Variable::ThreadClass, Variable::StringClass];
        [all.name] = all.fields_of(thread, [b"name"])?;
        [all.value, all.coder] = all.fields_of(string, [b"value", b"coder"])?;
        let list = all.variable(Variable::Threads)?;
        let count = all.word(list, fields.length)? & 0xffff_ffff;
        let array = all.word(list, fields.threads)?;
        for index in 0..count.min(MAX_THREADS) {
            let place = array.checked_add(8 * index)?;
            // One may be gone by now.
            if let Some((number, thread)) = all.thread(place) {
                all.of.insert(number, thread);
            }
        }
        Some(all)
    }

    fn thread(&self, place: u64) -> Option<(u32, u64)> {
        let [thread] = self.memory.read(place)?;
        let of_system = self.word(thread, self.fields.os_thread)?;
        Some((self.word(of_system, self.fields.number)? as u32, thread))
    }

    /// The name of the thread of a number, which begins with these bytes.
    pub(in crate::runtime) fn name(&self, number: u32, beginning: &[u8]) -> Option<String> {
        let handle = self.word(*self.of.get(&number)?, self.fields.object)?;
        let [object] = self.memory.read(handle)?;
        let base = self.variable(Variable::Base)?;
        let shift = self.variable(Variable::Shift)? as u32 & 31;
        let compressed = |object: u64, field: u64| -> Option<u64> {
            let [word] = self.memory.read(object.checked_add(field)?)?;
            base.checked_add(u64::from(word as u32) << shift)
        };
        let whole = |object: u64, field: u64| -> Option<u64> {
            let [word] = self.memory.read(object.checked_add(field)?)?;
            Some(word)
        };
        // Which of both references are, no table says. The beginning tells whether it is the name.
        self.text(object, compressed, beginning)
            .or_else(|| self.text(object, whole, beginning))
    }

    /// The text that a thread's object refers to, if it begins so.
    fn text(
        &self,
        object: u64,
        refer: impl Fn(u64, u64) -> Option<u64>,
        beginning: &[u8],
    ) -> Option<String> {
        let string = refer(object, self.name)?;
        let array = refer(string, self.value)?;
        let mut coder = [0];
        self.memory
            .copy(string.checked_add(self.coder)?, &mut coder)?;
        let width = match coder {
            [0] => 1,
            [1] => 2,
            _ => return None,
        };
        let mut head = [0; ARRAY_HEAD];
        self.memory.copy(array, &mut head)?;
        ARRAYS.iter().find_map(|(length, begin)| {
            let length = head[*length..].first_chunk().copied()?;
            let characters = u32::from_le_bytes(length) as usize / width;
            // Text in its place.
            (characters <= MAX_CHARACTERS).then_some(())?;
            let mut bytes = vec![0; width * characters.min(MAX_NAME)];
            self.memory
                .copy(array.checked_add(*begin as u64)?, &mut bytes)?;
            let mut text: String = match width {
                1 => bytes.into_iter().map(char::from).collect(),
                _ => {
                    let units = bytes.as_chunks().0.iter();
                    let units = units.map(|unit| u16::from_le_bytes(*unit));
                    String::from_utf16_lossy(&units.collect::<Vec<u16>>())
                }
            };
            if characters > MAX_NAME {
                text.push(CUT);
            }
            text.as_bytes().starts_with(beginning).then_some(text)
        })
    }

    /// Where a class has fields of these names.
    fn fields_of<const N: usize>(&self, class: Variable, names: [&[u8]; N]) -> Option<[u64; N]> {
        let class = self.variable(class)?;
        let constants = self.word(class, self.fields.constants)?;
        let array = self.word(class, self.fields.fields)?;
        let [length] = self.memory.read(array)?;
        let is_stream = self.fields.field_count == 0;
        let width = if is_stream { 1 } else { 2 };
        let mut bytes = vec![0; (length as u32 as usize * width).min(MAX_FIELD_BYTES)];
        let begin = array.checked_add(self.fields.elements.into())?;
        self.memory.copy(begin, &mut bytes)?;
        let all = if is_stream {
            in_stream(&bytes, least_digit(self.memory))?
        } else {
            let count = self.word(class, self.fields.field_count)? & 0xffff;
            in_numbers(&bytes, count as usize)
        };
        let mut found = [None; N];
        for (name, place) in all {
            for (wanted, found) in names.iter().zip(&mut found) {
                if found.is_none() && self.is_called(constants, name, wanted) {
                    *found = Some(u64::from(place));
                }
            }
        }
        found.iter().all(Option::is_some).then_some(())?;
        Some(found.map(Option::unwrap_or_default))
    }

    /// Whether the constant of this number is a name.
    fn is_called(&self, constants: u64, number: u32, wanted: &[u8]) -> bool {
        let called = || -> Option<bool> {
            let offsets = Offsets::of(self.memory);
            let place = u64::from(offsets.constant_pool_bytes) + 8 * u64::from(number);
            let [symbol] = self.memory.read(constants.checked_add(place)?)?;
            let symbol = symbol & !1;
            let length = self.word(symbol, offsets.symbol_length)? & 0xffff;
            if length != wanted.len() as u64 || length > MAX_FIELD_NAME {
                return Some(false);
            }
            let mut name = vec![0; wanted.len()];
            let body = symbol.checked_add(offsets.symbol_body.into())?;
            self.memory.copy(body, &mut name)?;
            Some(name == wanted)
        };
        called().unwrap_or(false)
    }

    fn word(&self, address: u64, offset: u16) -> Option<u64> {
        let [word] = self.memory.read(address.checked_add(offset.into())?)?;
        Some(word)
    }

    fn variable(&self, variable: Variable) -> Option<u64> {
        self.memory.variable(VARIABLES + variable as usize)
    }
}

/// The numbers of the names and the places of the fields in a stream, without those that HotSpot adds, which are last.
fn in_stream(mut bytes: &[u8], least: u8) -> Option<Vec<(u32, u32)>> {
    let mut next = || unsigned(&mut bytes, least);
    let (count, _added) = (next()?, next()?);
    let mut all = Vec::new();
    for _ in 0..count {
        let (Some(name), Some(_signature), Some(place)) = (next(), next(), next()) else {
            break;
        };
        let (Some(_access), Some(flags)) = (next(), next()) else {
            break;
        };
        for optional in OPTIONAL {
            if flags & optional != 0 {
                next();
            }
        }
        all.push((name, place));
    }
    Some(all)
}

/// The same of so many fields as they are until 20.
fn in_numbers(bytes: &[u8], count: usize) -> Vec<(u32, u32)> {
    let numbers: Vec<u32> = bytes
        .as_chunks()
        .0
        .iter()
        .map(|number| u32::from(u16::from_le_bytes(*number)))
        .collect();
    let fields = numbers.chunks_exact(FIELD_NUMBERS).take(count);
    fields
        .map(|field| {
            let place = field[FIELD_PLACE + 1] << 16 | field[FIELD_PLACE];
            (field[FIELD_NAME], place >> PLACE_SHIFT)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_stream_have_names_and_places() {
        // Two of Java's and one of HotSpot's own; the first has a first value and a generic signature.
        let numbers = [
            2,
            1,
            7,
            8,
            12,
            2,
            1 | 4,
            99,
            98,
            9,
            8,
            16,
            2,
            0,
            1,
            2,
            20,
            0,
            2,
        ];
        let bytes: Vec<u8> = numbers.iter().map(|number| number + 1).collect();
        assert_eq!(in_stream(&bytes, 1).unwrap(), [(7, 12), (9, 16)]);
        assert_eq!(in_stream(&bytes[..9], 1).unwrap(), [(7, 12)]);
        assert_eq!(in_stream(&[], 1), None);
    }

    #[test]
    fn fields_of_numbers_have_names_and_places() {
        let numbers: [u16; 14] = [2, 7, 8, 0, 12 << 2 | 1, 0, 2, 9, 8, 0, 1, 1, 5, 5];
        let bytes: Vec<u8> = numbers
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        assert_eq!(in_numbers(&bytes, 2), [(7, 12), (9, 1 << 14)]);
        assert_eq!(in_numbers(&bytes, 1), [(7, 12)]);
    }
}
