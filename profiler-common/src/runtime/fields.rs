//! Numbers in a descriptor, such as where fields are: 16 bits each, four in a word.
//!
//! In: their names. Out: a struct of them, its words, and each number by itself, for which only its word is read.

/// Declares numbers that stand in a descriptor from a word on.
#[macro_export]
macro_rules! descriptor_fields {
    (
        $(#[$of:meta])+
        $vis:vis struct $Fields:ident from $first:expr;
        $($(#[$doc:meta])+ $name:ident,)+
    ) => {
        $(#[$of])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        $vis struct $Fields {
            $($(#[$doc])+ $vis $name: u16,)+
        }

        const _: () = {
            #[expect(non_camel_case_types, reason = "the names are those of the fields, which they count")]
            #[derive(Clone, Copy)]
            enum FieldIndex {
                $($name,)+
                End,
            }

            #[allow(dead_code, reason = "each half reads some, and the other others")]
            impl $Fields {
                /// Words that they take.
                $vis const WORDS: usize = (FieldIndex::End as usize).div_ceil(4);

                /// As words of a descriptor.
                $vis fn words(self) -> [u64; Self::WORDS] {
                    let mut words = [0; Self::WORDS];
                    $(words[FieldIndex::$name as usize / 4] |=
                        (self.$name as u64) << (FieldIndex::$name as usize % 4 * 16);)+
                    words
                }

                /// All of them, from a descriptor.
                $vis fn of(file: &impl $crate::runtime::Described) -> Self {
                    Self {
                        $($name: Self::at(file, FieldIndex::$name),)+
                    }
                }

                $(
                    /// The one of this name.
                    #[inline(always)]
                    $vis fn $name(file: &impl $crate::runtime::Described) -> u64 {
                        Self::at(file, FieldIndex::$name) as u64
                    }
                )+

                #[inline(always)]
                fn at(file: &impl $crate::runtime::Described, place: FieldIndex) -> u16 {
                    let place = place as usize;
                    (file.descriptor($first + place / 4) >> (place % 4 * 16)) as u16
                }
            }

            assert!($first + $Fields::WORDS <= $crate::runtime::DESCRIPTOR_WORDS);
        };
    };
}

#[cfg(test)]
mod tests {
    use crate::runtime::memory::Recorded;

    descriptor_fields! {
        /// Numbers of a test.
        struct Numbers from 7;
        /// The first.
        first,
        /// The second.
        second,
        /// The third.
        third,
        /// The fourth.
        fourth,
        /// The fifth, in the next word.
        fifth,
    }

    #[test]
    fn numbers_return_from_a_descriptor() {
        let numbers = Numbers {
            first: 1,
            second: u16::MAX,
            third: 3,
            fourth: 0x8000,
            fifth: 5,
        };
        let mut process = Recorded::default();
        process.descriptor[7..7 + Numbers::WORDS].copy_from_slice(&numbers.words());
        assert_eq!(Numbers::of(&process), numbers);
        assert_eq!(Numbers::second(&process), 0xffff);
        assert_eq!(Numbers::fifth(&process), 5);
        assert_eq!(process.descriptor[6] | process.descriptor[9], 0);
    }
}
