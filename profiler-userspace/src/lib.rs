//! flame-bpf: the library behind the command.
pub mod cli;
pub mod plan;
pub mod profile;
