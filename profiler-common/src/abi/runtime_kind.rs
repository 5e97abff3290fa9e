//! Which runtimes there are.

/// Which runtime it is. The discriminant is the lowest byte of a descriptor's word 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum RuntimeKind {
    /// CPython: Python.
    CPython = 0,
    /// perl 5.
    Perl = 1,
    /// PHP, the Zend engine.
    Php = 2,
    /// CRuby.
    Ruby = 3,
    /// LuaJIT.
    LuaJit = 4,
    /// PUC Lua.
    Lua = 5,
}

impl RuntimeKind {
    /// All of them, in the order of the discriminants.
    pub const ALL: [Self; 6] = [
        Self::CPython,
        Self::Perl,
        Self::Php,
        Self::Ruby,
        Self::LuaJit,
        Self::Lua,
    ];

    /// The kind with this discriminant, if there is one.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::CPython),
            1 => Some(Self::Perl),
            2 => Some(Self::Php),
            3 => Some(Self::Ruby),
            4 => Some(Self::LuaJit),
            5 => Some(Self::Lua),
            _ => None,
        }
    }
}
