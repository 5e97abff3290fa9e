//! Black-box and kernel tests of flame-bpf: the harness.
//!
//! In: the flame-bpf binary as a user would run it, and the programs under `workloads/`.
//! Out: [`Workload`], a program with known call chains that dies with its test; [`Run`], what one
//! invocation of flame-bpf left behind; [`Folded`] and [`Balance`], its output and its accounts read
//! strictly; [`kernel_test`](macro@kernel_test), for tests that need root, and [`require!`], which skips a test aloud where it
//! cannot run.
//! Never: flame-bpf's own parsers or formatters. What a test reads it reads with the code here, so
//! that a mistake cannot cancel itself out.

mod balance;
mod binary;
mod browser;
mod cgroup;
mod collector;
mod definition;
mod feature;
mod folded;
mod go;
pub mod go_pprof;
pub mod golden;
mod grammar;
mod interpreter;
mod invocation;
mod java;
mod loading;
mod made_up;
mod mount;
pub mod native_walk;
mod page;
mod page_data;
mod profile_server;
mod program;
mod protobuf;
mod proxy;
mod recipe;
pub mod recorded;
mod request;
mod run;
mod said;
pub mod stacks;
mod svg;
pub mod tmux;
mod waiting;
mod walked;
mod windows;
mod workload;

use std::path::{Path, PathBuf};

pub use balance::Balance;
pub use binary::binary;
pub use browser::Browser;
pub use cgroup::{Cgroup, Version};
pub use collector::{Collector, Held, Passing};
pub use definition::defined_functions;
pub use feature::{
    PrivateCopy, Sharing, Sysctl, Turn, allowed_cpus, announce_timing, assert_alone, engines,
    file_contains, files_in, javas, kernel_turn, nodes, python, skip, tool, walks_by_tables,
};
pub use flame_bpf_test_macros::kernel_test;
pub use folded::{ALL_BUT_A_FEW, Folded, NEARLY_ALL, Stack, assert_near};
pub use go::go_toolchains;
pub use grammar::Grammar;
pub use interpreter::{Interpreter, annotated, is_of, profile};
pub use invocation::{Invocation, Running};
pub use java::java_classes;
pub use loading::{
    AUTO, BOTH, INTERPRETED, load, load_probe, load_probes, load_runtimes, programs, request,
    without_loops,
};
pub use made_up::{MadeUp, MadeUpFrame, MadeUpSample, WORST};
pub use mount::Mounted;
pub use page::{GraphPage, draw_graph, titled};
pub use page_data::PageData;
pub use profile_server::{Answer, ProfileServer};
pub use program::{Mangling, Program, source};
pub use proxy::{Exchange, Proxy};
pub use recipe::{Recipe, compiles_32_bit};
pub use run::Run;
pub use said::{Account, Said};
pub use stacks::Stacks;
pub use svg::{Graph, GraphFrame, assert_whole_svg, svg_titles};
pub use waiting::wait_until;
pub use walked::TWELVE;
pub use windows::in_windows;
pub use workload::{Workload, cpu_ns, thread_cpu_ns};

/// The path of a golden file.
pub fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden")
        .join(name)
}

/// Says aloud that this test measures time, so that `cargo xtask test` may run it again; `#[kernel_test(timing)]` does.
#[macro_export]
macro_rules! measures_time {
    () => {{
        fn here() {}
        $crate::announce_timing(std::any::type_name_of_val(&here));
    }};
}

/// Unwraps an `Ok`, or prints `SKIP <test>: <reason>` and returns from the test.
///
/// The line goes to stderr past the test runner's capture, so that skips are seen and can be counted
/// although the test passes.
#[macro_export]
macro_rules! require {
    ($feature:expr) => {
        match $feature {
            Ok(granted) => granted,
            Err(reason) => {
                fn here() {}
                $crate::skip(std::any::type_name_of_val(&here), &reason);
                return;
            }
        }
    };
}
