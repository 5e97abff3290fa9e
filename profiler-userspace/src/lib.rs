//! flame-bpf as a library: everything behind the command.
//!
//! The modules are one straight line. A [`plan`] says what to do, [`cli`] makes one from the command
//! line, and [`session`] carries it out: the [`kernel`] counts stacks and hands them up as a raw
//! [`profile`], [`symbolize`] names them with what [`process`], [`object`] and
//! [`debuginfod`] know, [`output`] writes.

pub mod allocator;
mod caller;
pub mod cgroups;
pub mod cli;
pub mod clock;
mod code;
pub mod debuginfod;
mod desktop;
pub mod diff;
pub mod input;
pub mod inspect;
pub mod kernel;
pub mod live;
pub mod machine;
pub mod object;
pub mod output;
pub mod overhead;
mod parquet_schema;
pub mod pipeline;
pub mod plan;
mod pprof;
pub mod probe;
pub mod process;
pub mod profile;
pub mod raw_recording;
mod report;
pub mod runtime;
pub mod send;
pub mod session;
pub mod store;
pub mod symbolize;
mod targets;
mod text;
pub mod unwind;
mod usage;
