//! The contract between the two halves of flame-bpf.
//!
//! [`abi`] holds every type that crosses the boundary.
#![no_std]

pub mod abi;
