use super::*;
use crate::pprof::Line;
use crate::profile::{Frame, FrameKind, FrameProfile, Unit, Window};
use flate2::read::GzDecoder;
use std::io::Read as _;

fn written(profile: &Profile) -> pprof::Profile {
    let style = Style {
        notes: "recorded: 3\nlost: nothing\n".to_owned(),
        ..Style::default()
    };
    let (mut bytes, mut again) = (Vec::new(), Vec::new());
    write(profile, &style, &mut bytes).unwrap();
    write(profile, &style, &mut again).unwrap();
    assert_eq!(bytes, again);
    let mut plain = Vec::new();
    GzDecoder::new(&*bytes).read_to_end(&mut plain).unwrap();
    pprof::Profile::decode(&*plain).unwrap()
}

#[test]
fn inlined_functions_are_lines_and_ids_are_dense() {
    let unit = Unit::Events("cache-misses".to_owned());
    let mut frames = FrameProfile::new(Profile::new(unit, Window::default()));
    let frame = |name: &str, kind| Frame {
        name: name.to_owned(),
        kind,
    };
    let stack = [
        frame("app", FrameKind::Process),
        frame("<Vec<T> as Drop>::drop", FrameKind::User),
        frame("core", FrameKind::Inlined),
        frame("vfs_read", FrameKind::Kernel),
    ];
    frames.push(&stack, 3_000, 3);
    frames.push(&stack[..2], 1_000, 1);
    let written_profile = written(&frames.into_profile());
    let text =
        |number: i64| str::from_utf8(&written_profile.string_table[number as usize]).unwrap();
    let types: Vec<_> = written_profile
        .sample_type
        .iter()
        .map(|of| text(of.kind))
        .collect();
    assert_eq!(types, ["samples", "cache_misses"]);
    assert_eq!(text(written_profile.default_sample_type), "cache_misses");
    assert_eq!(written_profile.string_table[0], b"");
    assert!(
        (1..)
            .zip(&written_profile.location)
            .all(|(id, location)| location.id == id)
    );
    assert!(
        (1..)
            .zip(&written_profile.function)
            .all(|(id, function)| function.id == id)
    );
    let values: Vec<_> = written_profile
        .sample
        .iter()
        .map(|sample| sample.value.clone())
        .collect();
    assert_eq!(values, [[3, 3_000], [1, 1_000]]);
    let names: Vec<Vec<&str>> = written_profile.sample[0]
        .location_id
        .iter()
        .map(|id| &written_profile.location[*id as usize - 1].line)
        .map(|lines| {
            let function = |line: &Line| written_profile.function[line.function_id as usize - 1];
            lines.iter().map(|line| text(function(line).name)).collect()
        })
        .collect();
    assert_eq!(
        names,
        [vec!["vfs_read"], vec!["core", "<Vec<T> as Drop>::drop"]]
    );
    assert!(
        written_profile
            .function
            .iter()
            .all(|function| text(function.system_name).is_empty())
    );
    let comments: Vec<_> = written_profile
        .comment
        .iter()
        .map(|comment| text(*comment))
        .collect();
    assert_eq!(comments[1..], ["recorded: 3", "lost: nothing"]);
    let label = &written_profile.sample[0].label;
    assert_eq!((text(label[0].key), text(label[0].text)), ("comm", "app"));
}
