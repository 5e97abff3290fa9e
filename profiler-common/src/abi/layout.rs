//! How a type that crosses the boundary is declared: once, by [`boundary!`].
//!
//! In: a struct's fields. Out: the struct, its all-zero value, the proof that it has no byte of padding but those that it
//! owns up to, and its [`StructLayout`], which the golden of the boundary prints. Pure.

/// A value that is all zeros: what stands in the BPF object where user space puts the real one.
pub trait Zero {
    /// All zeros.
    const ZERO: Self;
}

macro_rules! zero_numbers {
    ($($type:ty),+) => { $(impl Zero for $type { const ZERO: Self = 0; })+ };
}

zero_numbers!(u8, u16, u32, u64);

impl<T: Zero, const N: usize> Zero for [T; N] {
    const ZERO: Self = [T::ZERO; N];
}

/// Where the fields of a struct lie, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct StructLayout {
    /// The struct's name.
    pub name: &'static str,
    /// Its size.
    pub size: usize,
    /// Its alignment.
    pub align: usize,
    /// Its fields, as they were declared: name, offset and size.
    pub fields: &'static [(&'static str, usize, usize)],
}

/// Declares structs that cross the boundary. Behind the name, `, padding N` owns up to `N` bytes that belong to no field;
/// `<W = u64>` is the
/// word, which is another type where the kernel half writes what user space reads.
macro_rules! boundary {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident $(<$($word:ident = $usual:ty),+>)? $(, padding $padding:literal)? {
            $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)+
        }
    )+) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name $(<$($word = $usual),+>)? {
            $($(#[$field_meta])* pub $field: $type,)+
        }

        const _: () = {
            $($(type $word = $usual;)+)?
            assert!(
                size_of::<$name>() == 0 $(+ $padding)? $(+ size_of::<$type>())+,
                concat!("every byte of ", stringify!($name), " belongs to a field")
            );
        };

        impl $(<$($word: $crate::abi::layout::Zero),+>)? $crate::abi::layout::Zero for $name $(<$($word),+>)? {
            const ZERO: Self = Self { $($field: <$type as $crate::abi::layout::Zero>::ZERO,)+ };
        }

        impl $name {
            /// Where its fields lie. A struct without a row in [`BOUNDARY`](crate::abi::BOUNDARY) does not use this, which
            /// the compiler warns of.
            pub(crate) const LAYOUT: $crate::abi::layout::StructLayout = {
                $($(type $word = $usual;)+)?
                $crate::abi::layout::StructLayout {
                    name: stringify!($name),
                    size: size_of::<$name>(),
                    align: align_of::<$name>(),
                    fields: &[$((
                        stringify!($field),
                        core::mem::offset_of!($name, $field),
                        size_of::<$type>(),
                    ),)+],
                }
            };
        }
    )+ };
}
pub(crate) use boundary;
