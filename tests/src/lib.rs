//! Black-box and kernel tests of flame-bpf.
