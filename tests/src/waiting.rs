//! Waiting for what another process brings about.

use std::time::{Duration, Instant};

/// Waits until it is so.
///
/// # Panics
///
/// When it is not for a minute.
#[track_caller]
pub fn wait_until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never was so");
        std::thread::sleep(Duration::from_millis(50));
    }
}
