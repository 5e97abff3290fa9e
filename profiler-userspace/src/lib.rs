//! flame-bpf: the library behind the command.
pub mod profile;
