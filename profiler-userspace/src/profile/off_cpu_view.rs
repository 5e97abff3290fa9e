//! How waits are shown.
//!
//! In: what the user wants. Out: plain values, which a profile and a raw recording keep. [`super::off_cpu`] applies them.

/// How it is shown who ended waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wakers {
    /// Not at all.
    #[default]
    None,
    /// With their stacks, under the names of who waited.
    Alone,
    /// With their stacks, upside down above those of who waited.
    Above,
}

/// How waits are shown, and what is made of kernel stacks for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffCpuView {
    /// Whether the scheduler's frames stay, and only the probe's are cut.
    pub scheduler: bool,
    /// Whether it is said at the leaf what was waited for.
    pub reasons: bool,
    /// Whether kernel frames stay.
    pub kernel: bool,
    /// Whether there are threads that ran, whose stacks stay as they are.
    pub ran: bool,
    /// How it is shown who ended waits.
    pub wakers: Wakers,
}

impl OffCpuView {
    /// Stacks that are shown as they are, but for the scheduler's frames.
    pub const PLAIN: Self = Self {
        scheduler: false,
        reasons: false,
        kernel: true,
        ran: false,
        wakers: Wakers::None,
    };
}
