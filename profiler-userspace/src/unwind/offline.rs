//! User stacks of sleeping threads, walked from outside through `/proc/PID/mem`.
//!
//! In: a thread's registers, and the mappings and memory of its process. Out: its stack. It is valid while
//! the thread sleeps; the caller discards it if the thread woke up meanwhile.

use crate::object::{Elf, ElfAddress, FileOffset, RegularFile};
use crate::process::{BackingId, Owner, ProcessKey, Processes};
use crate::profile::raw::{RawFrame, RawStack};
use crate::unwind::{Depth, UnwindTable};
use profiler_common::abi::{
    Fallbacks, KeptRegisters, MAX_USER_FRAMES, READ_TOGETHER_BITS, Rule, StackEnd,
};
use profiler_common::walk::arch::ends_in_call;
use profiler_common::walk::native::{self, Frame, Reached};
use profiler_common::walk::{Memory, Registers, Step, frame_pointer};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// The memory of one process.
struct ProcessMemory(Option<File>);

impl Memory for ProcessMemory {
    fn read<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        let mut words = [0; N];
        let mut bytes = [0; 8];
        for (place, word) in words.iter_mut().enumerate() {
            let at = address.checked_add(8 * place as u64)?;
            self.0.as_ref()?.read_exact_at(&mut bytes, at).ok()?;
            *word = u64::from_ne_bytes(bytes);
        }
        Some(words)
    }
}

/// Whether a call ends where a frame will resume.
fn follows_call(frame: &Frame, memory: &ProcessMemory) -> bool {
    let before = memory.read::<1>(frame.ip.wrapping_sub(8));
    before.is_some_and(|[bytes]| ends_in_call(bytes))
}

/// How to find callers in one object.
struct Object {
    elf: Elf,
    table: UnwindTable,
    /// Where the table leaves descriptions out.
    file: Option<RegularFile>,
    /// Rules from there.
    described: HashMap<u64, Option<Rule>>,
}

impl Object {
    fn read(file: RegularFile) -> Option<Self> {
        // Those who wait are seldom in code that nothing describes, and there are many files.
        let table = UnwindTable::read_expecting(&file.file, Depth::Outline, None, |_| ()).ok()?;
        Some(Self {
            elf: Elf::read(&file.file)?,
            file: table.index.is_some().then_some(file),
            table,
            described: HashMap::new(),
        })
    }

    fn rule_at(&mut self, address: ElfAddress) -> Option<Rule> {
        let (table, file) = (&self.table, self.file.as_ref());
        match table.rule_at(address)? {
            Rule::UNREAD => {
                let described = || table.described_at(&file?.file, address);
                *self.described.entry(address.0).or_insert_with(described)
            }
            rule => Some(rule),
        }
    }
}

/// Walks stacks of other processes.
#[derive(Default)]
pub(crate) struct OfflineWalker {
    objects: HashMap<BackingId, Option<Object>>,
    /// An address of each part of a file that stacks were in.
    met: HashMap<(BackingId, u64), (ProcessKey, u64)>,
}

impl OfflineWalker {
    /// An address of each part of each file that the stacks so far were in, with a process that maps it.
    pub(crate) fn met(&self) -> Vec<(ProcessKey, u64)> {
        self.met.values().copied().collect()
    }

    /// The user stack of a thread, from its registers (instruction, stack and frame pointer, saved register), and
    /// whether its memory could be read. None for a kernel thread. The mappings that are found are recorded in `processes`.
    pub(crate) fn walk(
        &mut self,
        processes: &mut Processes,
        process_key: ProcessKey,
        kept: KeptRegisters,
        [ip, sp, fp, saved]: [u64; 4],
    ) -> Option<(RawStack, bool)> {
        let stack = |addresses: Vec<u64>, end| RawStack {
            frames: RawFrame::of_addresses(addresses),
            fallbacks: Fallbacks::NONE,
            check: 0,
            end,
        };
        match kept {
            KeptRegisters::None => return None,
            KeptRegisters::Compat => return Some((stack(vec![ip], StackEnd::Compat), true)),
            KeptRegisters::Native => {}
        }
        processes.see(process_key);
        let memory = ProcessMemory(File::open(format!("/proc/{}/mem", process_key.tgid)).ok());
        let mut addresses = Vec::new();
        let mut frame = Frame::running(Registers { ip, sp, fp }, saved);
        let end = loop {
            if addresses.len() == MAX_USER_FRAMES {
                break StackEnd::Truncated;
            }
            addresses.push(frame.ip);
            match self.step(processes, process_key, &frame, &memory) {
                // A frame pointer that only a sample of functions vouches for: as in the kernel half.
                Step::Caller(caller)
                    if caller.reached == Reached::Pointed && !follows_call(&caller, &memory) =>
                {
                    break StackEnd::NoFramePointer;
                }
                Step::Caller(caller) => frame = caller,
                Step::End(end) => break end,
            }
        };
        Some((stack(addresses, end), memory.0.is_some()))
    }

    /// The caller of a frame: by its object's rule, else by frame pointer.
    fn step(
        &mut self,
        processes: &Processes,
        process_key: ProcessKey,
        frame: &Frame,
        memory: &ProcessMemory,
    ) -> Step<Frame> {
        let rule = self.rule(processes, process_key, frame.lookup());
        if let Some(rule) = rule.filter(|&rule| rule != Rule::MISSING) {
            // Other registers are unknown; the few rules that need them are for code that makes no calls.
            return native::step(rule, frame, |_| None, memory);
        }
        let Some(registers) = frame.registers(memory) else {
            return Step::End(StackEnd::NoFramePointer);
        };
        match frame_pointer::step(registers, memory) {
            Step::Caller(caller) => Step::Caller(Frame::called(caller)),
            Step::End(end) => Step::End(end),
        }
    }

    fn rule(
        &mut self,
        processes: &Processes,
        process_key: ProcessKey,
        address: u64,
    ) -> Option<Rule> {
        let place = processes.get(process_key)?.place(address)?;
        let owner = Owner::new(process_key, place.mapping, place.seen);
        let object = self
            .objects
            .entry(place.backing)
            .or_insert_with(|| Object::read(processes.open(place.backing, &[owner]).ok()?.file));
        let object = object.as_mut()?;
        let own_address = object.elf.segments.address(FileOffset(place.offset))?;
        let part = (place.backing, own_address.0 >> READ_TOGETHER_BITS);
        self.met.entry(part).or_insert((process_key, address));
        object.rule_at(own_address)
    }
}
