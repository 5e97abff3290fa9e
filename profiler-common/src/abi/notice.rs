//! News from the kernel half.

/// What a notice tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum NoticeKind {
    /// A process was sampled that had not been seen before, or not lately.
    NewProcess = 0,
    /// A live side has become half full: drain before the other half fills too.
    HalfFull = 1,
    /// A walk came to code that has not been published.
    UnknownCode = 2,
}

impl NoticeKind {
    /// The kind whose discriminant is `code`, if there is one.
    pub const fn from_code(code: u32) -> Option<Self> {
        match code {
            0 => Some(Self::NewProcess),
            1 => Some(Self::HalfFull),
            2 => Some(Self::UnknownCode),
            _ => None,
        }
    }
}

/// One record of the notices' ring buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Notice {
    /// A [`NoticeKind`].
    pub kind: u32,
    /// The process, as seen in our PID namespace; zero for `HalfFull`.
    pub tgid: u32,
    /// The process's [`SampleKey::incarnation`](super::SampleKey::incarnation).
    pub incarnation: u64,
    /// For `UnknownCode`, an address in that code; otherwise zero.
    pub address: u64,
}
