//! Which code had no names, and how many samples that concerns.
//!
//! In: each piece of such code as it is met, and the samples whose stacks have frames in it. Out: all of it,
//! that of most samples first. Never: a remedy; reports have these.

use crate::object::BuildId;
use crate::process::CodeMaker;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::PathBuf;

/// Code that had no names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UnsymbolizedCode {
    /// An object that has no symbols of its own, and no debug file that was found.
    Object {
        /// Its name in frames.
        module: String,
        /// Where it was when it was mapped, as its process saw it.
        path: PathBuf,
        /// Which build it is, if it says so.
        build_id: Option<BuildId>,
        /// How far it could be read.
        reached: Reached,
    },
    /// Memory with code that the process made itself.
    Made {
        /// The process ID.
        tgid: u32,
        /// The maker of code that the process seems to be.
        maker: Option<&'static CodeMaker>,
        /// Whether its perf map or jitdump has other code.
        has_code_map: bool,
    },
}

/// How far an object could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reached {
    /// It is below our own root directory.
    Here,
    /// It is in another mount namespace, such as a container's.
    Elsewhere,
    /// It could not be opened: it was deleted or replaced, and its processes have ended.
    Gone,
    /// It may not be read.
    Denied,
    /// It is in a raw recording, and not here as it was then.
    Absent,
}

/// Numbers of frames in samples, and of the innermost among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// All frames, each as often as it was sampled.
    pub frames: u64,
    /// The innermost frames alone: one for each firing.
    pub leaves: u64,
}

/// Code that had no names, and how much of what was sampled it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsymbolized {
    /// The code.
    pub code: UnsymbolizedCode,
    /// The frames in it.
    pub counts: FrameCounts,
}

/// All code that had no names, that of most frames first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllUnsymbolized {
    /// Each.
    pub code: Vec<Unsymbolized>,
    /// All frames, with names and without.
    pub all: FrameCounts,
}

/// The frames of a stack without names: the code that they lie in, and how many do.
#[derive(Clone, Debug, Default)]
pub(super) struct UnsymbolizedFrames {
    in_code: Vec<(u32, u64)>,
    leaf: Option<u32>,
    frames: u64,
}

impl FromIterator<UnsymbolizedId> for UnsymbolizedFrames {
    /// From the code of each frame, the innermost first.
    fn from_iter<T: IntoIterator<Item = UnsymbolizedId>>(frames: T) -> Self {
        let mut stack = Self::default();
        for UnsymbolizedId(id) in frames {
            if stack.frames == 0 {
                stack.leaf = id;
            }
            stack.frames += 1;
            let Some(id) = id else { continue };
            match stack.in_code.iter_mut().find(|(known, _)| *known == id) {
                Some((_, count)) => *count += 1,
                None => stack.in_code.push((id, 1)),
            }
        }
        stack
    }
}

/// The number of code that had no names; nothing for code that has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UnsymbolizedId(Option<u32>);

/// All code without names that was met.
#[derive(Clone, Debug, Default)]
pub(super) struct UnsymbolizedTable {
    all: Vec<Unsymbolized>,
    ids: HashMap<UnsymbolizedCode, UnsymbolizedId>,
    counted: FrameCounts,
}

impl UnsymbolizedTable {
    /// Its number.
    pub(super) fn intern(&mut self, code: UnsymbolizedCode) -> UnsymbolizedId {
        if let Some(&id) = self.ids.get(&code) {
            return id;
        }
        let id = UnsymbolizedId(Some(
            u32::try_from(self.all.len()).expect("these are objects and processes"),
        ));
        self.ids.insert(code.clone(), id);
        self.all.push(Unsymbolized {
            code,
            counts: FrameCounts::default(),
        });
        id
    }

    /// Counts the firings of a sample, whose stacks have these frames. The first stack with a frame has the innermost.
    pub(super) fn count<'a>(
        &mut self,
        stacks: impl Iterator<Item = &'a UnsymbolizedFrames>,
        count: u64,
    ) {
        let mut has_leaf = false;
        for stack in stacks.filter(|stack| stack.frames > 0) {
            self.counted.frames += stack.frames * count;
            for (id, frames) in &stack.in_code {
                self.all[*id as usize].counts.frames += frames * count;
            }
            if !std::mem::replace(&mut has_leaf, true) {
                self.counted.leaves += count;
                if let Some(id) = stack.leaf {
                    self.all[id as usize].counts.leaves += count;
                }
            }
        }
    }

    /// All that samples have, that of most frames first.
    pub(super) fn into_most_first(self) -> AllUnsymbolized {
        let mut code = self.all;
        code.retain(|unsymbolized| unsymbolized.counts.frames > 0);
        code.sort_by_key(|unsymbolized| Reverse(unsymbolized.counts.frames));
        AllUnsymbolized {
            code,
            all: self.counted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(tgid: u32) -> UnsymbolizedCode {
        UnsymbolizedCode::Made {
            tgid,
            maker: None,
            has_code_map: false,
        }
    }

    #[test]
    fn frames_and_leaves_are_counted_by_the_code_that_they_lie_in() {
        let mut unsymbolized = UnsymbolizedTable::default();
        let (one, two, idle) = (
            unsymbolized.intern(made(1)),
            unsymbolized.intern(made(2)),
            unsymbolized.intern(made(3)),
        );
        assert_ne!(one, two);
        assert_ne!(idle, UnsymbolizedId::default());
        assert_eq!(unsymbolized.intern(made(1)), one);
        let named = UnsymbolizedId::default();
        let stack = |ids: &[UnsymbolizedId]| ids.iter().copied().collect::<UnsymbolizedFrames>();
        unsymbolized.count([stack(&[one, named, one, two])].iter(), 5);
        // A kernel stack above a user stack, and one that is empty.
        unsymbolized.count([stack(&[]), stack(&[named]), stack(&[two])].iter(), 2);
        let found = unsymbolized.into_most_first();
        assert_eq!(
            found.all,
            FrameCounts {
                frames: 24,
                leaves: 7
            }
        );
        let counts: Vec<_> = found
            .code
            .iter()
            .map(|code| (code.counts.frames, code.counts.leaves))
            .collect();
        assert_eq!(counts, [(10, 5), (7, 0)]);
        assert_eq!(found.code[1].code, made(2));
    }
}
