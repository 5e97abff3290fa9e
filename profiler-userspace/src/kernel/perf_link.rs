//! Links of a program to perf events, with a cookie that tells the program which event fired.
//!
//! In: a loaded program, an event, a CPU. Out: the link; the program is attached until it is closed. aya 0.14 makes such
//! links, too, but passes no cookie with them (`PerfEvent::attach`), and gives no file descriptor of the event out to which
//! a link could be made. `bpf_get_attach_cookie` returns the cookie since Linux 5.15, as old as such links are.
#![expect(unsafe_code, reason = "two system calls that no library of ours has")]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::time::{Duration, Instant};
use syscalls::{Errno, Sysno, syscall};

/// An event of `perf_event_open`, and when it fires.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its name in messages.
    pub name: String,
    /// `perf_event_attr.type`.
    pub kind: u32,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// When it fires.
    pub policy: Policy,
}

/// When the event fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// About this many times a second on each CPU, with a period that the kernel adjusts.
    Frequency(u64),
    /// Every so many occurrences.
    Period(u64),
}

/// The beginning of `struct perf_event_attr` (`include/uapi/linux/perf_event.h`, `PERF_ATTR_SIZE_VER0`).
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    /// A frequency if the flag says so.
    period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint: u32,
    more_config: u64,
}

/// The bit of the flags that makes the period a frequency.
const FREQUENCY: u64 = 1 << 10;

/// `PERF_SAMPLE_RAW`: the kernel demands it of an event that programs are attached to.
const SAMPLE_RAW: u64 = 1 << 10;

/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: usize = 1 << 3;

/// The fields of `union bpf_attr` that `BPF_LINK_CREATE` reads for a perf event
/// (`include/uapi/linux/bpf.h`).
#[repr(C)]
struct LinkCreate {
    program: i32,
    target: i32,
    attach_type: u32,
    flags: u32,
    cookie: u64,
}

/// The number of `BPF_LINK_CREATE`.
const LINK_CREATE: usize = 28;

/// The number of the attach type `BPF_PERF_EVENT`.
const PERF_EVENT: u32 = 41;

/// Opens the event on a CPU, for all tasks, and attaches the program to it.
///
/// # Errors
/// The kernel's answer to either.
pub(super) fn attach(
    program: BorrowedFd<'_>,
    source: &Source,
    cpu: u32,
    cookie: u64,
) -> io::Result<OwnedFd> {
    let event = open(source, On::Cpu(cpu))?;
    let link = LinkCreate {
        program: program.as_raw_fd(),
        target: event.as_raw_fd(),
        attach_type: PERF_EVENT,
        flags: 0,
        cookie,
    };
    // SAFETY: the kernel reads as many bytes as said of a value that outlives the call.
    let answer = unsafe {
        syscall!(
            Sysno::bpf,
            LINK_CREATE,
            &raw const link,
            size_of::<LinkCreate>()
        )
    };
    owned(answer)
}

/// Scope of an event.
#[derive(Clone, Copy)]
enum On {
    /// All tasks on a CPU.
    Cpu(u32),
    /// The thread that opens it.
    ThisThread,
}

/// Cost of an interrupt of a clock, without a program. Measured for some milliseconds of CPU time: by the time that passes
/// between two looks at the clock while one comes. None if no event can be opened.
pub(super) fn interrupt_cost() -> Option<Duration> {
    const PERIOD_NS: u64 = 50_000;
    const LENGTH: Duration = Duration::from_millis(10);
    /// Between two looks at the clock there is less, and in the shortest interrupt more.
    const MIN: Duration = Duration::from_micros(1);
    let source = Source {
        name: String::new(),
        kind: 1,
        config: 0,
        policy: Policy::Period(PERIOD_NS),
    };
    let _event = open(&source, On::ThisThread).ok()?;
    let began = Instant::now();
    let (mut last, mut gaps) = (began, Vec::new());
    while last.duration_since(began) < LENGTH {
        let now = Instant::now();
        let gap = now.duration_since(last);
        if gap >= MIN {
            gaps.push(gap);
        }
        last = now;
    }
    gaps.sort_unstable();
    // Another thread may have run meanwhile, which takes far longer.
    gaps.get(gaps.len() / 2).copied()
}

fn open(source: &Source, on: On) -> io::Result<OwnedFd> {
    let (period, flags) = match source.policy {
        Policy::Frequency(hz) => (hz, FREQUENCY),
        Policy::Period(count) => (count, 0),
    };
    let attributes = Attributes {
        kind: source.kind,
        size: size_of::<Attributes>() as u32,
        config: source.config,
        period,
        sample_type: SAMPLE_RAW,
        read_format: 0,
        flags,
        wakeup_events: 1,
        breakpoint: 0,
        more_config: 0,
    };
    let no_group = -1;
    let (task, cpu) = match on {
        On::Cpu(cpu) => (-1, i64::from(cpu)),
        On::ThisThread => (0, -1),
    };
    // SAFETY: the kernel reads as many bytes as the attributes say that they have, and they outlive the call.
    let answer = unsafe {
        syscall!(
            Sysno::perf_event_open,
            &raw const attributes,
            task,
            cpu,
            no_group,
            CLOSE_ON_EXEC
        )
    };
    owned(answer)
}

/// The file descriptor that a system call returned.
fn owned(answer: Result<usize, Errno>) -> io::Result<OwnedFd> {
    let number = answer.map_err(|error| io::Error::from_raw_os_error(error.into_raw()))?;
    let fd = i32::try_from(number).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made it, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
