//! Calls of the Parquet library, which panics at some files that are broken.
//!
//! In: a call. Out: its result, or an error in place of a panic, of which nothing is printed. Panics elsewhere are printed as ever.

use super::broken;
use crate::input::Error;
use parquet::errors::Result as ParquetResult;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether this thread is in such a call.
    static IS_CALLING: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Does what the library does. What it was at work on must not be used again after an error.
pub(super) fn guarded<T>(call: impl FnOnce() -> ParquetResult<T>) -> Result<T, Error> {
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_CALLING.get() {
                before(panic);
            }
        }));
    });
    IS_CALLING.set(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    IS_CALLING.set(false);
    match result {
        Ok(result) => result.map_err(|error| broken(&error.to_string())),
        Err(_) => Err(broken("its pages contradict each other")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error() {
        let error = guarded::<()>(|| panic!("out of range"));
        assert!(matches!(error, Err(Error::Whole(text)) if text.contains("contradict")));
        assert_eq!(guarded(|| Ok(7)).ok(), Some(7));
    }
}
