//! Byte and type: the one place that vouches for types as bytes.
//!
//! That they have no padding is asserted where they are declared, by [`boundary!`](super::layout).
#![cfg_attr(
    feature = "user",
    expect(unsafe_code, reason = "aya's Pod is an unsafe trait")
)]

#[cfg(feature = "user")]
mod user {
    use crate::abi::{Config, ThreadEntry, WakerEntry};

    // SAFETY: `Config` is `repr(C)`, holds only integers, and has no padding (asserted where it is declared).
    unsafe impl aya::Pod for Config {}

    // SAFETY: as for `Config`; all words.
    unsafe impl aya::Pod for ThreadEntry {}

    // SAFETY: as for `Config`; all words.
    unsafe impl aya::Pod for WakerEntry {}
}
