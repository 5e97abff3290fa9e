//! Conducts a rendering: windows come from files, and all of them go to the same outputs.
//!
//! In: raw recordings and profiles of other tools, and how they are to be named and drawn. Out: the outputs, and what the recording said at
//! its end, with what there is to say of names now. Never touches the kernel half, and needs no privileges.

use super::prepare;
use crate::clock::Between;
use crate::desktop;
use crate::input::Time;
use crate::output::{Style, length};
use crate::pipeline::pieces::{self, InputRequest, Told};
use crate::pipeline::select::select;
use crate::pipeline::source;
use crate::pipeline::symbolize::Symbolizer;
use crate::pipeline::together::Together;
use crate::pipeline::view::style;
use crate::pipeline::write::{write, wrote};
use crate::plan::{Output, Rendering, RootPer};
use crate::profile::{MAX_WINDOWS, Profile, WindowTotals};
use crate::report::print;
use anyhow::{Result, ensure};
use std::time::SystemTime;

/// Renders as asked.
///
/// # Errors
/// When an input cannot be read or is of no kind that is known, when nothing of them is selected, when inputs cannot be shown together,
/// or when an output cannot be written.
pub fn render(asked: &Rendering) -> Result<()> {
    let sinks = prepare(asked.outputs.iter())?;
    let directories = source::Directories::open(&asked.source, &asked.servers)?;
    let between = Between {
        from: asked.from,
        to: asked.to,
    };
    for file in &asked.files {
        pieces::check_time(file, between)?;
    }
    let time = |began: SystemTime| between.of(began);
    let time: Time<'_> = &time;
    let symbolizer = Symbolizer::new(&asked.naming, &asked.servers, asked.verbosity.quiet);
    let files = InputRequest {
        files: &asked.files,
        time: (asked.from.is_some() || asked.to.is_some()).then_some(time),
        windows: windows(asked),
        cgroups: &asked.selection.cgroups,
        sample_type: asked.sample_type.as_deref(),
        root_per: asked.root_per,
        lines: asked.naming.lines && !asked.naming.joins_lines,
        quiet: asked.verbosity.quiet,
        ..InputRequest::default()
    };
    let mut together = Together::default();
    pieces::each(files, &mut |number, piece| together.add(number, piece))?;
    let (mut profile, told) = together.finish(&symbolizer)?;
    let Told {
        title,
        mut summary,
        about,
        missing,
        event: _,
    } = told;
    divide(&mut profile, asked)?;
    if let Some(RootPer::Part(part)) = asked.root_per {
        profile.root_per(part);
    }
    let (profile, left_out) = select(profile, &asked.selection)?;
    summary.findings.extend(left_out);
    let source = directories.find(&profile);
    summary.findings.extend(source.finding);
    let title = asked.title.clone().unwrap_or(title);
    let style = style(
        &Style {
            source: source.text,
            ..asked.style.clone()
        },
        asked.colors,
        (title, summary.lines()),
        &profile,
    );
    let places: Vec<_> = sinks.iter().zip(&asked.outputs).collect();
    let files = write(&places, Some(profile), &style, None)?;
    if asked.verbosity.verbose > 0 {
        print(&about);
    }
    if !asked.verbosity.quiet {
        summary.findings.extend(wrote(files));
        print(&summary.shown());
    } else {
        print(&missing);
    }
    let picture = asked.outputs.iter().find_map(Output::picture);
    if let Some(picture) = picture.filter(|_| asked.opens) {
        print(&desktop::open(picture));
    }
    Ok(())
}

/// More windows take more memory, and most outputs have room for few.
const DEFAULT_WINDOWS: usize = 40;

/// By how many windows samples are told apart.
fn windows(asked: &Rendering) -> usize {
    let all = asked.outputs.iter().any(Output::has_all_windows);
    match all || asked.style.chart || asked.resolution.is_some() {
        // Recordings of different times have none in common.
        _ if asked.files.len() > 1 => 1,
        true => MAX_WINDOWS,
        false if asked.outputs.iter().any(Output::has_windows) => DEFAULT_WINDOWS,
        false => 1,
    }
}

/// Makes windows as long as was asked for.
fn divide(profile: &mut Profile, asked: &Rendering) -> Result<()> {
    let Some(resolution) = asked.resolution else {
        return Ok(());
    };
    let own = WindowTotals::resolution(&profile.windows);
    ensure!(
        !own.is_zero(),
        "--resolution {resolution:?} cannot be had: several files together, profiles of other tools and --wall have no \
         windows; render one raw recording"
    );
    ensure!(
        resolution * 8 >= own * 7,
        "--resolution {resolution:?} cannot be had: the recording is divided into windows of {}, which cannot be \
         divided again; leave it out, or record again with --resolution {resolution:?}",
        length(own)
    );
    profile.widen_windows(resolution);
    Ok(())
}
