//! Where a PHP that exports nothing, being linked statically, has its loop and its innermost frame.
//!
//! In: an object's file. Out: `execute_ex`, and the address of `executor_globals`, read out of code. The loop is the one large
//! function that stores the register that it keeps its argument in as the innermost frame over and over. Where there is more
//! than one candidate, none is believed.

use super::super::arch::php::stores;
use super::super::function_bounds::larger;
use super::super::{commonest, only};
use super::{Places, body};
use crate::object::Image;
use profiler_common::runtime::php::CURRENT_EXECUTE_DATA;

/// Bytes of the smallest loop: it has some thousand instructions of PHP's, although those that are rare are functions.
const SMALLEST: u64 = 8 << 10;

/// `execute_ex`, and where the innermost frame is kept.
pub(super) fn find(image: &Image<'_>) -> Option<Places> {
    let all = larger(image, SMALLEST).into_iter();
    let (execute, current) = only(all.filter_map(|function| {
        body(image, function.start)?;
        let current = commonest(&stores(image, &function)?)?;
        Some((function, current))
    }))?;
    Some(Places {
        execute,
        globals: current.checked_sub(CURRENT_EXECUTE_DATA)?,
        slot: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn what_an_object_exports_is_found_without_that() {
        let Ok(file) = File::open("/usr/bin/php") else {
            return;
        };
        let image = Image::read(&file).unwrap();
        let found = find(&image).unwrap();
        let exported = image.symbol("execute_ex").unwrap();
        assert_eq!(found.execute.start, exported.address);
        let globals = image.symbol("executor_globals").unwrap();
        assert_eq!(found.globals, globals.address);
    }

    #[test]
    fn other_objects_have_no_loop() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        assert!(find(&Image::read(&file).unwrap()).is_none());
    }
}
