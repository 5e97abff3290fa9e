//! Lua: registers of its functions, which are called as C's are.

/// The first argument of a function (rdi).
pub(in crate::runtime) const FIRST_ARGUMENT: u8 = 5;
/// The second (rsi).
pub(in crate::runtime) const SECOND_ARGUMENT: u8 = 4;
