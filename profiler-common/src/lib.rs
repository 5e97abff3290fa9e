//! The contract between the two halves of flame-bpf.
//!
//! [`abi`] holds every type that crosses the boundary between kernel and user space. [`walk`], [`runtime`], [`intern`] and
//! [`wait_sampling`] hold every decision that the kernel half takes: which frame is the caller, when a walk
//! stops, which slot of a table a key belongs to, which waits are looked at. They are pure and know no maps, loops or helpers, so
//! the code that runs in the kernel is the code that the host's tests run.
#![no_std]

pub mod abi;
pub mod intern;
pub mod runtime;
pub mod wait_sampling;
pub mod walk;
