//! HotSpot, as in the JDKs 17 to 25: frames on the native stack, in code that it made, without frame pointers.
//!
//! All code is in blobs in the code cache, of which a map of segments says where each begins. A blob of compiled code says how large
//! its frames are, and which method it is of; a frame of the interpreter has its method beside its frame pointer. What a method is
//! called, the class file's constants say, which the virtual machine keeps. Where fields are, it says itself (`vmStructs.cpp`).
//!
//! A method is told by its address: it lives in memory of its class loader. A blob is told by its address and the number that the
//! compiler gave it, because it may be dropped and its memory become another's.
//!
//! Sources: `vmStructs.cpp`, `codeBlob.hpp`, `heap.cpp`, each machine's `frame_….hpp`, `method.hpp`, `constMethod.hpp`, `constantPool.hpp` and
//! `symbol.hpp` of 17, 21 and 25.

mod blob;
mod code;
mod layout;
mod method;

pub use layout::{CALL_STUB, Offsets, at};

/// HotSpot.
#[derive(Clone, Copy, Debug)]
pub struct HotSpot;

#[cfg(test)]
mod tests;
