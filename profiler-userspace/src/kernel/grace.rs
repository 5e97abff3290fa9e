//! The grace period: until no program can still use removed data.
//!
//! The counters are what it is told by. A firing counts itself as begun (a full barrier) before it looks at
//! anything, and as ended after it last touched anything. So once every probe has ended on every CPU as many
//! firings as it had begun there at some moment, all that follow know what was written before that moment.

use super::{Error, Result, read};
use profiler_common::abi::{COUNTERS_WORDS, Class, Counter};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst, fence};
use std::time::{Duration, Instant};

/// How long a firing may take to end before we give up. They take microseconds; a virtual machine's CPU
/// may be kept from running in the middle of one.
const PATIENCE: Duration = Duration::from_secs(10);

/// Waits until every firing has ended that began before this call. `counters`: all words of the counters, of
/// every CPU for one event after the other.
pub(super) fn wait(counters: &[AtomicU64]) -> Result<()> {
    fence(SeqCst);
    let cpu_slots = || counters.chunks_exact(COUNTERS_WORDS);
    let begun: Vec<u64> = cpu_slots().map(begun).collect();
    let since = Instant::now();
    for (number, (cpu_slot, begun)) in cpu_slots().zip(begun).enumerate() {
        while ended(cpu_slot) < begun {
            if since.elapsed() > PATIENCE {
                return Err(Error::Stuck {
                    cpu_slot: number,
                    seconds: PATIENCE.as_secs(),
                });
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }
    Ok(())
}

/// How many runs of a probe's program a CPU has begun: as many as firings, unless a firing lasts longer
/// than its run, and runs are counted apart.
fn begun(cpu_slot: &[AtomicU64]) -> u64 {
    match read(cpu_slot, Counter::Entered) {
        0 => read(cpu_slot, Counter::Fired),
        entered => entered,
    }
}

/// How many runs a CPU has ended.
fn ended(cpu_slot: &[AtomicU64]) -> u64 {
    if read(cpu_slot, Counter::Entered) != 0 {
        return read(cpu_slot, Counter::Left);
    }
    Counter::ALL
        .iter()
        .filter(|counter| {
            matches!(
                counter.class(),
                Class::Recorded | Class::Filtered | Class::Lost
            )
        })
        .map(|&counter| read(cpu_slot, counter))
        .sum()
}
