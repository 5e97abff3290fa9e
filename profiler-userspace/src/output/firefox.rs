//! Firefox Profiler: profiles for <https://profiler.firefox.com>, and for Perfetto, which reads them too.
//!
//! In: a profile and its style. Out: its processed profile format, version 60, gzipped, the same bytes for the same profile.
//! A sample of ours is a sum over a window. Those of a thread and window are laid one behind the other in it; their order
//! means nothing, and markers say where windows begin and end.
//! Never: a weight that is rounded. The published crate has 32-bit weights and whole milliseconds, so it is not used.
//!
//! The format: `src/types/profile.ts` and `docs-developer/CHANGELOG-formats.md` of firefox-devtools/profiler.

mod meta;
mod tables;
mod threads;

use super::json_stream::Json;
use super::{Error, Style};
use crate::profile::{CallTree, Profile};
use flate2::{Compression, GzBuilder};
use std::io::Write;

/// Writes the profile. Fails on one without samples, of which there is nothing to show.
pub(super) fn write(profile: &Profile, style: &Style, out: &mut dyn Write) -> Result<(), Error> {
    if profile.samples().is_empty() {
        return Err(Error::Empty);
    }
    // Neither a time nor a file's name, so that equal profiles are equal files.
    let mut gzip = GzBuilder::new().write(out, Compression::default());
    let mut json = Json::new(&mut gzip);
    let tree = CallTree::new(profile);
    let threads = threads::of(profile, &tree);
    json.text("{\"meta\":")?;
    json.value(&meta::meta(profile, style, threads.len()))?;
    tables::write(profile, &tree, &mut json)?;
    json.text(",\"threads\":[")?;
    for (number, thread) in threads.iter().enumerate() {
        json.text(if number > 0 { "," } else { "" })?;
        // Those of the whole recording stand with the busiest thread.
        thread.write(profile, &tree, number == 0, &mut json)?;
    }
    json.text("],\"pages\":[],\"counters\":[]}\n")?;
    json.end()?;
    gzip.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests;
