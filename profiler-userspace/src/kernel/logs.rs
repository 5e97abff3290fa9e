//! Log lines of the kernel half.
//!
//! In: the ring buffer that it writes them to where `-vvv` asks for them. Out: lines of text, and how many found the
//! buffer full. Never waits for a line: whoever comes by takes what is there.

use super::errors::missing;
use super::shared::{Shared, array, map};
use super::{Error, Result};
use aya::Ebpf;
use aya::maps::MapData;
use aya_log::EbpfLogger;
use log::{Log, Metadata, Record};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

/// Room for log lines, in bytes: about a thousand.
const ROOM_BYTES: u32 = 256 << 10;

/// The least that a ring buffer can have, in bytes.
const MIN_BYTES: u32 = 4096;

/// How large the ring buffer is made, in bytes.
pub(super) const fn room(wanted: bool) -> u32 {
    if wanted { ROOM_BYTES } else { MIN_BYTES }
}

/// Where lines come from.
pub(super) struct Logs {
    logger: EbpfLogger<Lines>,
    lines: Lines,
    dropped: Shared,
    /// Kept open: programs that are loaded later name it.
    _dropped_map: MapData,
}

/// Lines in the order in which they were read.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Log for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let line = format!("[{}] {}", record.level(), record.args());
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(line);
    }

    fn flush(&self) {}
}

impl Logs {
    /// Takes the maps that the kernel half writes lines to.
    ///
    /// # Errors
    /// When the object has no such maps, or the count cannot be mapped.
    pub(super) fn new(ebpf: &mut Ebpf) -> Result<Self> {
        let lines = Lines::default();
        let dropped = array(ebpf, "LOGS_DROPPED")?;
        let logger = EbpfLogger::init_with_logger(ebpf, lines.clone());
        Ok(Self {
            logger: logger.map_err(|error| match error {
                aya_log::Error::MapNotFound => missing("AYA_LOGS"),
                other => Error::Loader {
                    step: "listening for log lines",
                    detail: other.to_string(),
                },
            })?,
            lines,
            dropped: map("LOGS_DROPPED", &dropped, 0, 1)?,
            _dropped_map: dropped,
        })
    }

    /// The lines that were written since they were taken last, and how many were dropped since the beginning.
    pub(super) fn take(&mut self) -> (Vec<String>, u64) {
        self.logger.flush();
        let mut lines = (self.lines.0.lock()).unwrap_or_else(PoisonError::into_inner);
        let dropped = self.dropped.words().first();
        let dropped = dropped.map_or(0, |count| count.load(Relaxed));
        (std::mem::take(&mut *lines), dropped)
    }
}
