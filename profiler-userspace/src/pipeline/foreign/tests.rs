use crate::input::{Error, File, Kind, ReadOptions, Reading};
use crate::output::{self, Format, Style};
use crate::profile::fold::{self, FoldStyle};
use crate::profile::{Frame, FrameKind, FrameProfile, Profile, Unit, Window};
use proptest::collection::vec;
use proptest::prelude::*;

fn read(bytes: &[u8]) -> Result<(&'static Kind, Reading), Error> {
    let file = File::of(bytes)?;
    let options = ReadOptions {
        unit: Unit::Samples,
        ..ReadOptions::ALL
    };
    Ok((file.kind, file.read(&options)?))
}

fn annotated(profile: &Profile) -> String {
    fold::text(profile, FoldStyle::ANNOTATED)
}

fn pprof_of(profile: &Profile) -> Vec<u8> {
    let format = Format::from_path("x.pb.gz".as_ref()).unwrap();
    let mut bytes = Vec::new();
    output::write(profile, format, &Style::default(), &mut bytes).unwrap();
    bytes
}

/// A frame of any name and such a kind.
fn frame(kind: FrameKind) -> impl Strategy<Value = Frame> {
    let name = prop_oneof![
        "[a-c ]{1,3}",
        "[a-c]{0,2}::[<>;_ki\\[\\]-]{0,4}",
        any::<String>()
    ];
    name.prop_map(move |name| Frame::new(name, kind))
}

fn stack() -> impl Strategy<Value = Vec<Frame>> {
    use FrameKind::{Inlined, Jit, Kernel, Process, User};
    let user = prop::sample::select(vec![User, User, Jit, Inlined]).prop_flat_map(frame);
    (frame(Process), vec(user, 0..4), vec(frame(Kernel), 0..3)).prop_map(
        |(process, mut user, kernel)| {
            // A function is inlined into another.
            if let Some(outermost) = user.first_mut() {
                outermost.kind = User;
            }
            [vec![process], user, kernel].concat()
        },
    )
}

fn profile() -> impl Strategy<Value = Profile> {
    let unit = prop::sample::select(vec![
        Unit::Samples,
        Unit::Nanoseconds,
        Unit::Events("cycles".to_owned()),
    ]);
    (unit, vec((stack(), 1..1000_u64), 1..8)).prop_map(|(unit, stacks)| {
        let mut profile = FrameProfile::new(Profile::new(unit, Window::default()));
        for (stack, weight) in stacks {
            profile.push(&stack, weight, weight);
        }
        profile.into_profile()
    })
}

proptest! {
    #[test]
    fn our_own_pprof_comes_back_as_what_was_written(profile in profile()) {
        let bytes = pprof_of(&profile);
        let (kind, reading) = read(&bytes).unwrap();
        prop_assert_eq!(kind.name, "pprof");
        prop_assert_eq!(&reading.profile.unit, &profile.unit);
        prop_assert_eq!(reading.profile.total_weight(), profile.total_weight());
        prop_assert_eq!(reading.profile.total_count(), profile.total_count());
        prop_assert_eq!(annotated(&reading.profile), annotated(&profile));
    }

    #[test]
    fn broken_pprof_is_an_error_or_a_profile(profile in profile(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = pprof_of(&profile);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        // Whatever comes of it.
        let _read = read(&bytes);
        bytes.truncate(at);
        let _read = read(&bytes);
    }
}
