//! Frames that are no code: what a firing was, where that is known by a number and not by a place.
//!
//! In: a frame. Out: its name. Names of files come from the target, and may be any bytes.

use super::demangle::visible;
use crate::profile::arch::{compat_system_call, system_call};
use crate::profile::raw::RawFrame;

/// The name of a frame that is no code; none if it is.
pub(super) fn name(frame: &RawFrame) -> Option<String> {
    let name = match frame {
        RawFrame::Native(_) | RawFrame::Kernel(_) => return None,
        // Of user stacks, where these are no leaf's.
        RawFrame::Function(_) | RawFrame::Position(_) | RawFrame::Mark(_) => return None,
        RawFrame::SystemCall(number) => match system_call(*number) {
            Some(call) => format!("[{call}]"),
            None => format!("[system call {number}]"),
        },
        RawFrame::CompatSystemCall(number) => match compat_system_call(*number) {
            Some(call) => format!("[{call}, 32-bit]"),
            None => format!("[system call {number}, 32-bit]"),
        },
        RawFrame::KernelLock(flags) => format!("[{}]", lock(*flags)),
        RawFrame::UserLock => "[futex]".to_owned(),
        RawFrame::PageIn => "[page-in]".to_owned(),
        RawFrame::FileName(name) => format!("[file: {}]", visible(&name.0)),
        RawFrame::Unknown(_) => "[not known]".to_owned(),
    };
    Some(name)
}

/// Kind of the lock that a thread waits for, from the flags in the kernel's tracepoint (`LCB_F_…`
/// in `include/trace/events/lock.h`).
fn lock(flags: u32) -> &'static str {
    const SPIN: u32 = 1;
    const READ: u32 = 2;
    const WRITE: u32 = 4;
    const REALTIME: u32 = 8;
    const PER_CPU: u32 = 16;
    const MUTEX: u32 = 32;
    let has = |flag| flags & flag != 0;
    let (read, write) = (has(READ), has(WRITE));
    match () {
        () if has(MUTEX) => "mutex",
        () if has(REALTIME) && read => "rt lock: read",
        () if has(REALTIME) && write => "rt lock: write",
        () if has(REALTIME) => "rt mutex",
        () if has(PER_CPU) && read => "percpu rwsem: read",
        () if has(PER_CPU) => "percpu rwsem: write",
        () if has(SPIN) && read => "rwlock: read",
        () if has(SPIN) && write => "rwlock: write",
        () if has(SPIN) => "spinlock",
        () if read => "rwsem: read",
        () if write => "rwsem: write",
        () => "semaphore",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::raw::FileName;

    #[test]
    fn system_calls_and_locks_have_their_usual_names() {
        for (frame, expected) in [
            (RawFrame::SystemCall(0), "[read]"),
            (RawFrame::SystemCall(202), "[futex]"),
            (RawFrame::SystemCall(9999), "[system call 9999]"),
            (RawFrame::CompatSystemCall(3), "[read, 32-bit]"),
            (RawFrame::KernelLock(1), "[spinlock]"),
            (RawFrame::KernelLock(33), "[mutex]"),
            (RawFrame::KernelLock(2), "[rwsem: read]"),
            (RawFrame::UserLock, "[futex]"),
            (RawFrame::PageIn, "[page-in]"),
        ] {
            assert_eq!(name(&frame).as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_file_frame_shows_any_file_name() {
        let file = RawFrame::FileName(Box::new(FileName(b"a\n\xffcdefgh"[..].into())));
        let shown = name(&file).expect("a name");
        assert!(
            shown.starts_with("[file: a") && shown.ends_with("cdefgh]"),
            "{shown:?}"
        );
    }

    #[test]
    fn code_addresses_have_no_system_call_name() {
        for address in [8, 0xffff_ffff_8100_0000] {
            assert!(
                RawFrame::of_addresses([address])
                    .iter()
                    .all(|frame| name(frame).is_none())
            );
        }
    }
}
