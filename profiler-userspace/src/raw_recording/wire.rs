//! The messages in the sections of a raw recording, as Protocol Buffers encode them.
//!
//! In: columns. Out: bytes, and back. Lists are columns of numbers and texts, never of messages, so that a
//! decoder takes little more memory than the bytes do.
//! The numbers of fields are the format's: `docs/raw-recordings.md`.

use prost::Message;
use std::time::{Duration, SystemTime};

/// Section 1: what is known beside the samples.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Head {
    #[prost(string, tag = "1")]
    pub(super) writer: String,
    #[prost(string, tag = "2")]
    pub(super) title: String,
    #[prost(string, tag = "3")]
    pub(super) noun: String,
    #[prost(string, tag = "4")]
    pub(super) event: String,
    #[prost(uint32, tag = "5")]
    pub(super) unit: u32,
    #[prost(string, tag = "6")]
    pub(super) host: String,
    #[prost(string, tag = "7")]
    pub(super) kernel: String,
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub(super) command_line: Vec<Vec<u8>>,
    #[prost(uint64, tag = "9")]
    pub(super) started_ns: u64,
    /// How waits are shown.
    #[prost(uint32, tag = "12")]
    pub(super) off_cpu: u32,
    /// Whether it was recorded window by window, each of which says what was lost in it.
    #[prost(bool, tag = "13")]
    pub(super) windows: bool,
    /// Activity of the threads whose stacks these are.
    #[prost(uint32, tag = "14")]
    pub(super) activity: u32,
    /// 0 if a sample stands for no time.
    #[prost(uint64, tag = "15")]
    pub(super) period_ns: u64,
    /// Empty if it is not known.
    #[prost(bytes = "vec", tag = "16")]
    pub(super) kernel_build_id: Vec<u8>,
}

/// Section 2: some objects, names, locations, stacks and samples. Each refers to what stands in the same
/// section or an earlier one.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Batch {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(super) object_paths: Vec<Vec<u8>>,
    #[prost(uint32, repeated, tag = "2")]
    pub(super) object_kinds: Vec<u32>,
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub(super) object_build_ids: Vec<Vec<u8>>,
    #[prost(uint64, repeated, tag = "4")]
    pub(super) object_sizes: Vec<u64>,
    #[prost(sint64, repeated, tag = "5")]
    pub(super) object_modified_ns: Vec<i64>,
    #[prost(uint32, repeated, tag = "6")]
    pub(super) object_segments: Vec<u32>,
    #[prost(uint64, repeated, tag = "7")]
    pub(super) segment_offsets: Vec<u64>,
    #[prost(uint64, repeated, tag = "8")]
    pub(super) segment_sizes: Vec<u64>,
    #[prost(uint64, repeated, tag = "9")]
    pub(super) segment_addresses: Vec<u64>,
    #[prost(uint32, repeated, tag = "10")]
    pub(super) segment_kinds: Vec<u32>,

    #[prost(string, repeated, tag = "11")]
    pub(super) names: Vec<String>,
    #[prost(uint32, repeated, tag = "12")]
    pub(super) name_kinds: Vec<u32>,

    #[prost(uint32, repeated, tag = "13")]
    pub(super) location_kinds: Vec<u32>,
    /// Differences from the value before of the same kind in this section.
    #[prost(sint64, repeated, tag = "14")]
    pub(super) location_values: Vec<i64>,

    /// One more than where in its function a named location is, 0 where that is not known and for all others. None at all
    /// where it is known of none.
    #[prost(uint64, repeated, tag = "45")]
    pub(super) location_places: Vec<u64>,

    #[prost(uint32, repeated, tag = "15")]
    pub(super) stack_shared: Vec<u32>,
    #[prost(uint32, repeated, tag = "16")]
    pub(super) stack_lengths: Vec<u32>,
    /// By how much a location's number is less than that of the first location that no stack had before, for each [`STEP_NEXT`].
    #[prost(uint32, repeated, tag = "17")]
    pub(super) stack_locations: Vec<u32>,
    #[prost(uint32, repeated, tag = "18")]
    pub(super) stack_ends: Vec<u32>,

    #[prost(bytes = "vec", repeated, tag = "19")]
    pub(super) label_comms: Vec<Vec<u8>>,
    /// None at all where no process has a name but those of its threads.
    #[prost(bytes = "vec", repeated, tag = "40")]
    pub(super) label_processes: Vec<Vec<u8>>,
    #[prost(uint64, repeated, tag = "20")]
    pub(super) label_tids: Vec<u64>,
    #[prost(uint64, repeated, tag = "21")]
    pub(super) label_cpus: Vec<u64>,

    /// One more than a cgroup's number, 0 for none. None at all where no label has one.
    #[prost(uint32, repeated, tag = "41")]
    pub(super) label_cgroups: Vec<u32>,
    #[prost(string, repeated, tag = "42")]
    pub(super) cgroup_paths: Vec<String>,
    /// Names of containers, or their short IDs; empty where there is none.
    #[prost(string, repeated, tag = "43")]
    pub(super) cgroup_containers: Vec<String>,
    /// Names of pods, with their namespaces, or their UIDs.
    #[prost(string, repeated, tag = "44")]
    pub(super) cgroup_pods: Vec<String>,

    /// One more than a context's number, 0 for none. None at all where no label has one.
    #[prost(uint32, repeated, tag = "46")]
    pub(super) label_contexts: Vec<u32>,
    /// How many of the next two each context has.
    #[prost(uint32, repeated, tag = "47")]
    pub(super) context_lengths: Vec<u32>,
    #[prost(string, repeated, tag = "48")]
    pub(super) context_keys: Vec<String>,
    #[prost(string, repeated, tag = "49")]
    pub(super) context_values: Vec<String>,

    /// Differences from the one before in this section.
    #[prost(sint64, repeated, tag = "22")]
    pub(super) sample_labels: Vec<i64>,
    /// Differences from the one before in this section.
    #[prost(sint64, repeated, tag = "23")]
    pub(super) sample_users: Vec<i64>,
    #[prost(uint32, repeated, tag = "24")]
    pub(super) sample_kernels: Vec<u32>,
    #[prost(uint32, repeated, tag = "25")]
    pub(super) sample_thread_state: Vec<u32>,
    #[prost(uint64, repeated, tag = "26")]
    pub(super) sample_counts: Vec<u64>,
    /// None at all where each weight is its count.
    #[prost(uint64, repeated, tag = "27")]
    pub(super) sample_weights: Vec<u64>,

    #[prost(uint32, repeated, tag = "28")]
    pub(super) waker_labels: Vec<u32>,
    #[prost(uint32, repeated, tag = "29")]
    pub(super) waker_users: Vec<u32>,
    #[prost(uint32, repeated, tag = "30")]
    pub(super) waker_kernels: Vec<u32>,
    /// None at all where no sample has a waker.
    #[prost(uint32, repeated, tag = "31")]
    pub(super) sample_wakers: Vec<u32>,

    /// Which stack has the shared locations; 0 where there are none. 2n is the one so far back; 2n + 1 is n more than the
    /// last one that was written so in this section, the first than the stack of the number 0.
    #[prost(uint32, repeated, tag = "32")]
    pub(super) stack_bases: Vec<u32>,

    /// Which locations follow those that are shared.
    #[prost(uint32, repeated, tag = "33")]
    pub(super) stack_steps: Vec<u32>,

    /// Paths of source files.
    #[prost(string, repeated, tag = "34")]
    pub(super) files: Vec<String>,
    /// One more than a file's number, 0 for none. None at all where no name has a file.
    #[prost(uint32, repeated, tag = "35")]
    pub(super) name_files: Vec<u32>,
    #[prost(uint32, repeated, tag = "36")]
    pub(super) name_lines: Vec<u32>,

    /// Differences from the one before in this section.
    #[prost(sint64, repeated, tag = "37")]
    pub(super) label_pids: Vec<i64>,
    /// Differences from the one before in this section.
    #[prost(sint64, repeated, tag = "38")]
    pub(super) label_starts: Vec<i64>,

    /// None at all where no name has such a line.
    #[prost(uint32, repeated, tag = "39")]
    pub(super) name_defined: Vec<u32>,
}

/// Section 3: the end of a whole file.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct End {
    #[prost(string, tag = "1")]
    pub(super) closing: String,
    #[prost(uint64, tag = "2")]
    pub(super) samples: u64,
}

/// Section 4: a part of the recording's time. The batches behind it, up to the next or the end, are its.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Window {
    #[prost(uint64, tag = "1")]
    pub(super) started_ns: u64,
    #[prost(uint64, tag = "2")]
    pub(super) duration_ns: u64,
    #[prost(uint64, tag = "3")]
    pub(super) count: u64,
    #[prost(uint64, tag = "4")]
    pub(super) lost: u64,
    #[prost(string, tag = "5")]
    pub(super) closing: String,
    /// Whether nothing of what stands before it is referred to any more, and numbers begin at 0 again.
    #[prost(bool, tag = "6")]
    pub(super) anew: bool,
    #[prost(uint64, tag = "7")]
    pub(super) firings: u64,
    #[prost(uint64, tag = "8")]
    pub(super) filtered: u64,
    /// How much time of the CPUs was not idle; 0 if that is not known.
    #[prost(uint64, tag = "9")]
    pub(super) busy_ns: u64,
}

/// Kinds of a [`Batch`]'s `location_kinds`; behind these are objects' numbers. This one: no
/// location is known.
pub(super) const LOCATION_UNKNOWN: u32 = 0;
/// The value is a name's number.
pub(super) const LOCATION_NAMED: u32 = 1;
/// The value is an offset into the object whose number is the kind less this.
pub(super) const LOCATION_OBJECT: u32 = 2;

/// Steps of a [`Batch`]'s `stack_steps`; behind these are places among the callees of the location
/// before. This one: the first location that no stack had before.
pub(super) const STEP_NEW: u32 = 0;
/// It is the next one of `stack_locations`.
pub(super) const STEP_NEXT: u32 = 1;
/// It is the latest callee, or as many before it as the step is more than this.
pub(super) const STEP_CALLEE: u32 = 2;

/// From this bit of `stack_ends` on are the [`profiler_common::abi::Fallbacks`]; below it is how the walk ended.
pub(super) const FALLBACKS_SHIFT: u32 = 8;

/// The bits of a [`Head`]'s `off_cpu`: waits are shown, as the others say.
pub(super) const VIEW: u32 = 1;
/// The scheduler's frames stay.
pub(super) const VIEW_SCHEDULER: u32 = 2;
/// A frame says what was waited for.
pub(super) const VIEW_REASONS: u32 = 4;
/// Kernel frames stay.
pub(super) const VIEW_KERNEL: u32 = 8;
/// Stacks of threads that ran stay as they are.
pub(super) const VIEW_RAN: u32 = 16;
/// It is shown who ended waits, without where threads waited.
pub(super) const VIEW_WAKERS_ALONE: u32 = 32;
/// It is shown who ended waits, above where threads waited.
pub(super) const VIEW_WAKERS_ABOVE: u32 = 64;
/// All of them.
pub(super) const VIEW_KNOWN: u32 = 127;

/// A time that is written as nanoseconds since 1970; 1970 if there is no such time.
pub(super) fn time(since_1970_ns: u64) -> SystemTime {
    let since_1970 = Duration::from_nanos(since_1970_ns);
    (SystemTime::UNIX_EPOCH.checked_add(since_1970)).unwrap_or(SystemTime::UNIX_EPOCH)
}
