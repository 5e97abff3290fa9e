//! The kernel half of flame-bpf.
#![no_std]
#![no_main]
