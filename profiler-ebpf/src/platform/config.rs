//! The constants fixed at load.
#![expect(
    unsafe_code,
    reason = "a static that user space overwrites before the load"
)]

use profiler_common::abi::{Config, Switches, Zero as _};

/// Overwritten by user space before loading; a running program never sees these values. In a section of its own, which is a
/// map of its own: so user space can put another in its place before it loads programs again.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".rodata.config")]
static CONFIG: Config = Config::ZERO;

/// Reads one field of the configuration. A macro, because each read must name its field as a place: then the verifier sees
/// a constant.
macro_rules! config {
    ($($field:ident).+) => { $crate::platform::config::load(|config| &raw const (*config).$($field).+) };
}
pub(crate) use config;

/// Reads what `field` points to, hiding from the compiler that it is the zero above.
#[inline(always)]
pub(crate) fn load<T: Copy>(field: impl FnOnce(&'static Config) -> *const T) -> T {
    // SAFETY: `field` points into CONFIG, which lives for ever and which nobody writes after load.
    unsafe { field(&CONFIG).read_volatile() }
}

/// Whether a switch is on.
#[inline(always)]
pub(crate) fn has(switch: Switches) -> bool {
    config!(switches).has(switch)
}
