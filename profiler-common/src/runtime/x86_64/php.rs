//! PHP: registers of its loop.

/// The register in which the loop keeps its frame.
pub(in crate::runtime) const FRAME_REGISTER: u8 = 14;
/// The register in which it keeps its instruction.
pub(in crate::runtime) const INSTRUCTION_REGISTER: u8 = 15;
