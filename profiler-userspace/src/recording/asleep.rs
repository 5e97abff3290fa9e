//! Threads that were off the CPU before the recording began: their stacks, from outside.
//!
//! In: what the kernel half tells of them, the mappings and the memory of their processes. Out: entries
//! that the kernel half counts their time for. A thread's stack stays as it is while it sleeps; if it
//! wakes while we look, what we saw is thrown away, and the kernel half sees its next wait itself.

use super::sampling::Session;
use crate::kernel::Sleeping;
use crate::object::{Elf, ElfAddress, FileOffset};
use crate::process::{BackingId, Identity, Owner, Processes};
use crate::profile::raw::RawStack;
use crate::unwind::UnwindTable;
use anyhow::Result;
use profiler_common::abi::{KeptRegisters, MAX_USER_FRAMES, Rule, StackEnd};
use profiler_common::walk::native::{self, Frame};
use profiler_common::walk::{Memory, Registers, Step, frame_pointer};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// What came of the looking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Before {
    /// Threads whose memory could not be read.
    pub(super) incomplete: usize,
}

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

/// How to find callers in one object.
struct Object {
    elf: Elf,
    table: UnwindTable,
}

/// Walks stacks of other processes.
struct Walker<'a> {
    processes: &'a mut Processes,
    objects: HashMap<BackingId, Option<Object>>,
}

impl Session {
    /// Looks for threads that are off the CPU, and has their time counted from the recording's beginning.
    pub(super) fn find_asleep(&mut self, user_stacks: bool) -> Result<Before> {
        let mut before = Before::default();
        let mut walker = Walker {
            processes: &mut self.processes,
            objects: HashMap::new(),
        };
        for sleeping in self.kernel.asleep()? {
            let user = user_stacks.then(|| walker.walk(&sleeping)).flatten();
            before.incomplete += usize::from(user.as_ref().is_some_and(|(_, readable)| !readable));
            let user = user.map(|(stack, _)| stack);
            self.kernel.put_to_sleep(&sleeping, user.as_ref())?;
        }
        Ok(before)
    }
}

impl Walker<'_> {
    /// The user stack of a thread, and whether its memory could be read. None for a kernel thread.
    fn walk(&mut self, sleeping: &Sleeping) -> Option<(RawStack, bool)> {
        let [ip, sp, fp, bx] = sleeping.registers;
        let stack = |addresses: Vec<u64>, end| RawStack {
            addresses: addresses.into_boxed_slice(),
            fp_fallback: false,
            end,
        };
        match sleeping.kept {
            KeptRegisters::None => return None,
            KeptRegisters::Compat => return Some((stack(vec![ip], StackEnd::Compat), true)),
            KeptRegisters::Native => {}
        }
        let identity = Identity {
            tgid: sleeping.tgid,
            incarnation: sleeping.incarnation,
        };
        self.processes.see(identity);
        let memory = ProcessMemory(File::open(format!("/proc/{}/mem", sleeping.tgid)).ok());
        let mut addresses = Vec::new();
        let mut frame = Frame::running(Registers { ip, sp, fp }, bx);
        let end = loop {
            if addresses.len() == MAX_USER_FRAMES {
                break StackEnd::Truncated;
            }
            addresses.push(frame.ip);
            match self.step(identity, &frame, &memory) {
                Step::Caller(caller) => frame = caller,
                Step::End(end) => break end,
            }
        };
        Some((stack(addresses, end), memory.0.is_some()))
    }

    /// The caller of a frame: by the rule of the object that it is in, else by frame pointer.
    fn step(&mut self, identity: Identity, frame: &Frame, memory: &ProcessMemory) -> Step<Frame> {
        let rule = self.rule(identity, frame.lookup());
        if let Some(rule) = rule.filter(|&rule| rule != Rule::MISSING) {
            // Other registers than those kept are not known; the few rules that ask for them are of code
            // that makes no calls.
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

    fn rule(&mut self, identity: Identity, address: u64) -> Option<Rule> {
        let place = self.processes.get(identity)?.place(address)?;
        let owner = Owner {
            identity,
            mapping: place.mapping,
            seen: place.seen,
        };
        let processes = &*self.processes;
        let object = self.objects.entry(place.backing).or_insert_with(|| {
            let opened = processes.open(place.backing, &[owner])?;
            Some(Object {
                elf: Elf::read(&opened.file.file)?,
                table: UnwindTable::read(&opened.file.file).ok()?,
            })
        });
        let object = object.as_ref()?;
        let ElfAddress(address) = object.elf.segments.address(FileOffset(place.offset))?;
        object.table.rule_at(ElfAddress(address))
    }
}
