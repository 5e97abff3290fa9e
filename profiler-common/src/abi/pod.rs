//! Byte and type: the one place that vouches for the layout of what crosses the boundary.
#![cfg_attr(
    feature = "user",
    expect(unsafe_code, reason = "aya's Pod is an unsafe trait")
)]

use super::{
    COMM_BYTES, COUNTERS_WORDS, CallChoice, Code, CodeKey, Config, Control, Counters, FaultLayout,
    FileLayout, KEY_WORDS, Mapped, MappingLayout, Notice, SIDES, SampleKey, Side, Stamp, Switches,
    Tally, TaskLayout,
};

/// The sizes of a list of types, added up.
macro_rules! sum_of {
    ($($field:ty),* $(,)?) => { 0 $(+ size_of::<$field>())* };
}

// A type without padding is as large as its fields together: every byte of it is somebody's.
const _: () = {
    assert!(size_of::<SampleKey>() == sum_of!(u64, [u32; 5], Stamp, [u8; COMM_BYTES]));
    assert!(size_of::<SampleKey>() == KEY_WORDS * 8);
    assert!(size_of::<Tally>() == sum_of!(u64, u64, SampleKey));
    assert!(size_of::<Tally>() == 64, "a tally is one cache line");
    assert!(size_of::<Notice>() == sum_of!(u32, u32, u64, u64));
    assert!(size_of::<Mapped>() == sum_of!(Notice, u64, u64, CodeKey));
    assert!(size_of::<Counters>() == sum_of!([u64; COUNTERS_WORDS]));
    assert!(size_of::<TaskLayout>() == sum_of!([u32; 18]));
    assert!(
        size_of::<Config>()
            == sum_of!(
                [u64; 4],
                Switches,
                [u32; 10],
                CallChoice,
                TaskLayout,
                MappingLayout,
                FileLayout,
                FaultLayout
            )
    );
    assert!(size_of::<MappingLayout>() == sum_of!([u32; 23]));
    assert!(size_of::<FileLayout>() == sum_of!([u32; 8]));
    assert!(size_of::<FaultLayout>() == sum_of!([u32; 2]));
    assert!(size_of::<CallChoice>() == sum_of!([u32; 4]));
    assert!(size_of::<Code>() == sum_of!(CodeKey, [u64; 5]));
    // These two do have padding, to keep cache lines apart; it is never read.
    assert!(size_of::<Side>() == 64);
    assert!(size_of::<Control>() == 64 * (1 + 2 * SIDES));
};

#[cfg(feature = "user")]
mod user {
    use super::Config;

    // SAFETY: `Config` is `repr(C)`, holds only integers, and has no padding (asserted above).
    unsafe impl aya::Pod for Config {}
}
