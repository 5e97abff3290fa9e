//! The table of runtimes: a line for each, from which all that names them is made.
//!
//! In: a name, a number, and the words of file formats. Out: [`RuntimeKind`]. To add a runtime, add a line here; the
//! compiler then says where its code is missing.

/// Declares an enumeration of runtimes from a table.
macro_rules! kinds {
    (
        $(#[$enum_doc:meta])*
        $vis:vis enum $Kind:ident;
        $(
            $(#[$doc:meta])*
            $name:ident = $code:literal, short: $short:literal, frame_type: $frame_type:literal;
        )+
    ) => {
        $(#[$enum_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        $vis enum $Kind {
            $($(#[$doc])* $name = $code,)+
        }

        impl $Kind {
            /// All of them, in the order of the discriminants.
            $vis const ALL: [Self; [$($code),+].len()] = [$(Self::$name),+];

            /// The kind with this discriminant, if there is one.
            $vis const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)+
                    _ => None,
                }
            }

            /// The short name of the language: `py`, as in the suffix `_[py]` of folded text.
            $vis const fn short(self) -> &'static str {
                match self {
                    $(Self::$name => $short,)+
                }
            }

            /// The value of OpenTelemetry's attribute `profile.frame.type`; its own where the semantic conventions have none.
            $vis const fn frame_type(self) -> &'static str {
                match self {
                    $(Self::$name => $frame_type,)+
                }
            }
        }

        // Sets of them are bits, and the discriminants indices.
        const _: () = {
            let mut index = 0;
            while index < $Kind::ALL.len() {
                assert!($Kind::ALL[index] as usize == index);
                index += 1;
            }
        };
    };
}

kinds! {
    /// A runtime. The discriminant is the lowest byte of a descriptor's word 0.
    pub enum RuntimeKind;
    /// CPython: Python.
    CPython = 0, short: "py", frame_type: "cpython";
    /// perl 5.
    Perl = 1, short: "perl", frame_type: "perl";
    /// PHP, the Zend engine.
    Php = 2, short: "php", frame_type: "php";
    /// CRuby.
    Ruby = 3, short: "rb", frame_type: "ruby";
    /// LuaJIT.
    LuaJit = 4, short: "luajit", frame_type: "luajit";
    /// PUC Lua.
    Lua = 5, short: "lua", frame_type: "lua";
    /// V8: JavaScript.
    V8 = 6, short: "js", frame_type: "v8js";
    /// HotSpot: Java.
    HotSpot = 7, short: "java", frame_type: "jvm";
}

#[cfg(test)]
mod tests {
    use super::RuntimeKind;

    /// A table with a runtime that does not exist.
    mod made_up {
        kinds! {
            /// Runtimes of a test.
            pub(super) enum Kind;
            /// One that exists.
            CPython = 0, short: "py", frame_type: "cpython";
            /// One that does not.
            Befunge = 1, short: "bf", frame_type: "befunge";
        }
    }

    #[test]
    fn a_runtime_is_one_line() {
        use made_up::Kind;
        assert_eq!(Kind::ALL, [Kind::CPython, Kind::Befunge]);
        assert_eq!(Kind::from_code(1), Some(Kind::Befunge));
        assert_eq!(Kind::from_code(2), None);
        assert_eq!(Kind::Befunge.short(), "bf");
        assert_eq!(Kind::Befunge.frame_type(), "befunge");
    }

    #[test]
    fn names_tell_runtimes_apart() {
        for kind in RuntimeKind::ALL {
            assert_eq!(RuntimeKind::from_code(kind as u8), Some(kind));
            let same = |other: &&RuntimeKind| other.short() == kind.short();
            assert_eq!(RuntimeKind::ALL.iter().filter(same).count(), 1, "{kind:?}");
            // Those of other kinds of frames.
            assert!(!["k", "j", "i"].contains(&kind.short()));
        }
    }
}
