//! LuaJIT: registers and frame of its interpreter.

/// Registers in which the interpreter keeps its base and its next instruction (rdx, rbx).
pub(in crate::runtime) const BASE: u8 = 1;
/// See [`BASE`].
pub(in crate::runtime) const INSTRUCTION: u8 = 3;

/// The register in which machine code and the interpreter have the table of what runs each instruction (r14).
pub(in crate::runtime) const DISPATCH: u8 = 14;

/// Bytes of the interpreter's native frame, its return address included.
pub(in crate::runtime) const FRAME_BYTES: u64 = 80;
