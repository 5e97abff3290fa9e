//! Functions that the verifier checks once.
//!
//! A function whose name is kept is a *global* one (Linux 5.6): it is verified once, for any arguments, and not again at
//! each call for all that is known there. What it takes and returns are at most five numbers; all else is in the scratch
//! memory of its CPU slot. [`subprog!`] makes a function such a one where its logic stands, and [`Scalar`] says which
//! number stands for which value.

use core::ops::ControlFlow;
use profiler_common::{
    abi::{Allocator, Header, Live, NoticeKind, Rule, StackPosition, ThreadState},
    intern::Hash,
};

/// Declares a function that the verifier checks once. Its name is a symbol, and so must be the only one.
macro_rules! subprog {
    (
        $(#[$meta:meta])*
        $visible:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block
    ) => {
        $(#[$meta])*
        #[inline(always)]
        $visible fn $name($($argument: $type),*) $(-> $result)? {
            #[expect(unsafe_code, reason = "a name that is kept makes the function global")]
            #[unsafe(no_mangle)]
            #[inline(never)]
            extern "C" fn $name($($argument: u64),*) -> u64 {
                #[inline(always)]
                fn body($($argument: $type),*) $(-> $result)? $body
                let result = body($($crate::platform::subprog::Scalar::from_word($argument)),*);
                $crate::platform::subprog::Scalar::into_word(result)
            }
            $crate::platform::subprog::Scalar::from_word(
                $name($($crate::platform::subprog::Scalar::into_word($argument)),*)
            )
        }
    };
}
pub(crate) use subprog;

/// What one number stands for.
pub(crate) trait Scalar {
    /// The number.
    fn into_word(self) -> u64;

    /// What a number stands for that [`into_word`](Self::into_word) made.
    fn from_word(word: u64) -> Self;
}

/// A [`Scalar`] that leaves a number free to stand for nothing.
pub(crate) trait Niche: Scalar {
    /// That number.
    const NONE: u64;
}

/// The highest bit, set in what stands for an error or the end of a walk. Whatever can be one of two leaves it clear.
const OTHER: u64 = 1 << 63;

impl Scalar for () {
    #[inline(always)]
    fn into_word(self) -> u64 {
        0
    }

    #[inline(always)]
    fn from_word(_: u64) -> Self {}
}

impl Scalar for u64 {
    #[inline(always)]
    fn into_word(self) -> u64 {
        self
    }

    #[inline(always)]
    fn from_word(word: u64) -> Self {
        word
    }
}

impl Scalar for u32 {
    #[inline(always)]
    fn into_word(self) -> u64 {
        u64::from(self)
    }

    #[inline(always)]
    fn from_word(word: u64) -> Self {
        word as Self
    }
}

impl Scalar for bool {
    #[inline(always)]
    fn into_word(self) -> u64 {
        u64::from(self)
    }

    #[inline(always)]
    fn from_word(word: u64) -> Self {
        word != 0
    }
}

impl<T: Niche> Scalar for Option<T> {
    #[inline(always)]
    fn into_word(self) -> u64 {
        self.map_or(T::NONE, T::into_word)
    }

    #[inline(always)]
    fn from_word(word: u64) -> Self {
        if word == T::NONE {
            None
        } else {
            Some(T::from_word(word))
        }
    }
}

impl<T: Scalar, E: Scalar> Scalar for Result<T, E> {
    #[inline(always)]
    fn into_word(self) -> u64 {
        match self {
            Ok(value) => value.into_word(),
            Err(error) => error.into_word() | OTHER,
        }
    }

    #[inline(always)]
    fn from_word(word: u64) -> Self {
        if word & OTHER == 0 {
            Ok(T::from_word(word))
        } else {
            Err(E::from_word(word & !OTHER))
        }
    }
}

impl<B: Scalar> Scalar for ControlFlow<B> {
    #[inline(always)]
    fn into_word(self) -> u64 {
        match self {
            Self::Continue(()) => 0,
            Self::Break(end) => end.into_word() | OTHER,
        }
    }

    #[inline(always)]
    fn from_word(word: u64) -> Self {
        if word == 0 {
            Self::Continue(())
        } else {
            Self::Break(B::from_word(word & !OTHER))
        }
    }
}

impl Scalar for ThreadState {
    #[inline(always)]
    fn into_word(self) -> u64 {
        self as u64
    }

    #[inline(always)]
    fn from_word(word: u64) -> Self {
        const RUNNING: u64 = ThreadState::Running as u64;
        const RUNNABLE: u64 = ThreadState::Runnable as u64;
        match word {
            RUNNING => Self::Running,
            RUNNABLE => Self::Runnable,
            _ => Self::Blocked,
        }
    }
}

/// Newtypes over a number.
macro_rules! numbers {
    ($($type:ident($number:ty) $(, none $none:expr)?;)+) => {
        $(
            impl Scalar for $type {
                #[inline(always)]
                fn into_word(self) -> u64 {
                    u64::from(self.0)
                }

                #[inline(always)]
                fn from_word(word: u64) -> Self {
                    Self(word as $number)
                }
            }
            $(
                impl Niche for $type {
                    const NONE: u64 = $none as u64;
                }
            )?
        )+
    };
}

numbers! {
    Allocator(u64);
    Header(u64);
    Live(u64);
    Hash(u64), none 0;
    Rule(u64), none u64::MAX;
    StackPosition(u32), none StackPosition::NONE.0;
}

impl Scalar for NoticeKind {
    #[inline(always)]
    fn into_word(self) -> u64 {
        self as u64
    }

    #[inline(always)]
    fn from_word(word: u64) -> Self {
        Self::from_code(word as u32).unwrap_or(Self::NewProcess)
    }
}
