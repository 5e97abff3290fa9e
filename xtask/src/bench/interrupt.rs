//! Waiting that Ctrl-C ends.
//!
//! In: a length of time, or a question to ask until the answer is yes. Out: an error once somebody asked for the end, so that
//! everything which was started or changed is undone on the way out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// How soon an interrupt is noticed.
const STEP: Duration = Duration::from_millis(20);

/// From now on, the signals that would end this process are noted instead.
pub(crate) fn listen() -> Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&INTERRUPTED))
            .context("cannot listen for signals")?;
    }
    Ok(())
}

/// An error once somebody asked for the end.
pub(crate) fn check() -> Result<()> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        bail!("interrupted");
    }
    Ok(())
}

/// Sleeps.
pub(crate) fn pause(length: Duration) -> Result<()> {
    let end = Instant::now() + length;
    loop {
        check()?;
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(STEP));
    }
}

/// Asks every `step` until there is an answer; gives up after `limit`.
pub(crate) fn until<T>(
    step: Duration,
    limit: Duration,
    mut ask: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let end = Instant::now() + limit;
    loop {
        check()?;
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        if Instant::now() > end {
            bail!("nothing happened for {} s", limit.as_secs());
        }
        thread::sleep(step);
    }
}
