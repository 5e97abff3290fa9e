//! The flame-bpf command.
fn main() {}
