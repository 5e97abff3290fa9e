//! Subprograms: functions that the verifier checks once.
//!
//! A function that keeps its name is *global* (Linux 5.6): it is verified once, for any arguments, and not again
//! at each call. It takes and returns at most five numbers; everything else is in the scratch memory of its CPU
//! slot. [`subprog!`] declares one where its logic is, and [`Scalar`] defines which number stands for which
//! value.

use core::ops::ControlFlow;
use profiler_common::{
    abi::{Allocator, Header, KernelEventKind, Live, Rule, StackPosition, ThreadState},
    intern::Hash,
};

/// Declares a function that the verifier checks once. Its name is a symbol, so it must be unique.
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

/// A value that fits into one number.
pub(crate) trait Scalar {
    /// The number.
    fn into_word(self) -> u64;

    /// The value of a number made by [`into_word`](Self::into_word).
    fn from_word(word: u64) -> Self;
}

/// A [`Scalar`] with a spare number for "none".
pub(crate) trait Niche: Scalar {
    /// That number.
    const NONE: u64;
}

/// The highest bit marks an error or the end of a walk. Values that can be either leave it clear.
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

impl Scalar for KernelEventKind {
    #[inline(always)]
    fn into_word(self) -> u64 {
        self as u64
    }

    #[inline(always)]
    fn from_word(word: u64) -> Self {
        Self::from_code(word as u32).unwrap_or(Self::NewProcess)
    }
}
