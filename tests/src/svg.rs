//! Flame-graph SVGs, read with a strict XML parser, and the frames that they carry packed.

use std::io::Read as _;
use std::path::Path;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use flate2::read::ZlibDecoder;
use roxmltree::Document;

/// A frame of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphFrame {
    /// Levels below it; 0 for the root.
    pub depth: usize,
    /// Its name, without annotation.
    pub name: String,
    /// The weight of the stacks that end in it.
    pub own: u64,
    /// Of a flame chart: when it begins and ends, in nanoseconds.
    pub time: Option<(u64, u64)>,
    /// Its kind, as in the legend; empty if none.
    pub kind: String,
    /// As in `rgb(1,2,3)`.
    pub color: String,
    /// Text that is shown instead of its weight; empty if none.
    pub note: String,
    /// How many frames it stands for, if it is a rest of narrow ones.
    pub rest: Option<u64>,
    /// Module and source file of its code; empty if neither is known.
    pub origin: String,
}

/// Data that a graph carries for its script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Title, subtitle, unit, balance.
    pub texts: Vec<String>,
    /// Whether something was lost, whether it grows downwards, a frame's height, the least width in millionths,
    /// whether that is a share, whether it is a flame chart, whether frames are hatched, how many notes there are.
    pub settings: Vec<u64>,
    /// All frames in preorder, from the root.
    pub frames: Vec<GraphFrame>,
    /// Of a flame chart: when each window begins and ends, in nanoseconds.
    pub windows: Vec<(u64, u64)>,
    /// Names with weight in rests, and how much.
    pub hidden: Vec<(String, u64)>,
    /// How many names of rests are not carried.
    pub unsearched: u64,
}

impl Graph {
    /// Reads the text of an SVG.
    ///
    /// # Errors
    ///
    /// A sentence, when it is not well-formed, or carries no frames.
    pub fn parse(svg: &str) -> Result<Self, String> {
        let document = Document::parse(svg).map_err(|error| error.to_string())?;
        let root = document.root_element();
        if root.tag_name().name() != "svg" {
            return Err(format!("the root is {}, not svg", root.tag_name().name()));
        }
        let script = root
            .descendants()
            .find(|node| node.tag_name().name() == "script")
            .and_then(|script| script.text())
            .ok_or("no script")?;
        let (_, packed) = script
            .split_once("(document.currentScript,\"")
            .ok_or("no frames")?;
        let (packed, _) = packed.split_once('"').ok_or("frames without an end")?;
        let zlib = BASE64_STANDARD
            .decode(packed)
            .map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        ZlibDecoder::new(&zlib[..])
            .read_to_end(&mut bytes)
            .map_err(|error| error.to_string())?;
        Bytes(&bytes).graph()
    }
}

/// The bytes that are not read yet.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: u64) -> Result<&'a [u8], String> {
        let count = usize::try_from(count).map_err(|error| error.to_string())?;
        let (taken, rest) = self.0.split_at_checked(count).ok_or("it ends early")?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64, String> {
        let end = self.0.iter().position(|byte| byte >> 7 == 0);
        let end = end.ok_or("it ends within a number")?;
        let groups = self.take(end as u64 + 1)?;
        let value = |value, group: &u8| value << 7 | u64::from(group & 0x7f);
        Ok(groups.iter().rev().fold(0, value))
    }

    fn numbers(&mut self, count: u64) -> Result<Vec<u64>, String> {
        (0..count).map(|_| self.number()).collect()
    }

    fn graph(mut self) -> Result<Graph, String> {
        let size = self.number()?;
        let texts = std::str::from_utf8(self.take(size)?).map_err(|error| error.to_string())?;
        let mut texts: Vec<String> = texts.split('\n').map(str::to_owned).collect();
        let settings = self.numbers(10)?;
        let legend_size = self.number()?;
        self.take(3 * legend_size)?;
        let name_count = self.number()?;
        let kinds = self.numbers(name_count)?;
        let colors = self.take(3 * name_count)?;
        let origin_numbers = self.numbers(name_count)?;
        let count = self.number()?;
        let ups = self.numbers(count - 1)?;
        if ups.iter().any(|up| *up > count) {
            return Err("a frame above the root".to_owned());
        }
        let places = self.numbers(count - 1)?;
        let mut owns = self.numbers(count)?;
        let mut fresh = 0;
        let names_of_frames: Vec<usize> = [1]
            .iter()
            .chain(&places)
            .map(|place| match place {
                0 => {
                    fresh += 1;
                    fresh
                }
                place => *place as usize - 1,
            })
            .collect();
        let rest = self.number()?.checked_sub(1);
        let mut rests = vec![None; owns.len()];
        for (frame, name) in names_of_frames.iter().enumerate().skip(1) {
            if Some(*name as u64) == rest {
                rests[frame] = Some(self.number()?);
            }
        }
        let hidden_weights = self.numbers(if rest.is_some() { name_count } else { 0 })?;
        let unsearched = if rest.is_some() { self.number()? } else { 0 };
        let mut times = None;
        let mut windows = Vec::new();
        if settings[7] == 1 {
            let gaps = self.numbers(count - 1)?;
            let lengths = owns;
            owns = self.numbers(count)?;
            let window_count = self.number()?;
            windows = windows_of(&self.numbers(3 * window_count)?);
            let has_lanes = self.number()? == 1;
            times = Some(times_of(&ups, &gaps, &lengths, has_lanes));
        }
        if !self.0.is_empty() {
            return Err(format!("{} bytes too many", self.0.len()));
        }
        let mut behind = texts.split_off(4);
        let mut names = behind.split_off(legend_size as usize);
        let mut notes = names.split_off(name_count as usize);
        let origins = notes.split_off(settings[9] as usize);
        let hidden = names.iter().cloned().zip(hidden_weights);
        let hidden = hidden.filter(|(_, weight)| *weight > 0).collect();
        let mut depth = 0;
        let mut frames = Vec::new();
        for (index, &own) in owns.iter().enumerate() {
            if let Some(before) = index.checked_sub(1) {
                depth = (depth + 1_usize)
                    .checked_sub(ups[before] as usize)
                    .filter(|depth| *depth > 0)
                    .ok_or("a second root")?;
            }
            let name = names_of_frames[index];
            let kind = kinds[name] as usize;
            let rgb = &colors[3 * name..3 * name + 3];
            frames.push(GraphFrame {
                depth,
                name: names[name].clone(),
                own,
                time: times.as_ref().map(|times| times[index]),
                kind: kind
                    .checked_sub(1)
                    .map_or_else(String::new, |kind| behind[kind].clone()),
                color: format!("rgb({},{},{})", rgb[0], rgb[1], rgb[2]),
                note: notes.get(name).cloned().unwrap_or_default(),
                rest: rests[index],
                origin: (origin_numbers[name] as usize)
                    .checked_sub(1)
                    .map_or_else(String::new, |origin| origins[origin].clone()),
            });
        }
        Ok(Graph {
            texts,
            settings,
            frames,
            windows,
            hidden,
            unsearched,
        })
    }
}

/// When windows begin and end, by the gap before each, how long it is, and its weight.
fn windows_of(numbers: &[u64]) -> Vec<(u64, u64)> {
    let mut behind = 0;
    let windows = numbers.chunks_exact(3).map(|window| {
        let start = behind + window[0];
        behind = start + window[1];
        (start, behind)
    });
    windows.collect()
}

/// When frames begin and end, by how much nearer to the root each is than a child of the one before, the gap to its left,
/// and how long it is without what it called.
/// Lanes are what the root calls, and are as long as it.
fn times_of(ups: &[u64], gaps: &[u64], owns: &[u64], has_lanes: bool) -> Vec<(u64, u64)> {
    let mut parents = vec![0];
    for (before, &up) in ups.iter().enumerate() {
        let parent = (0..up).fold(before, |node, _| parents[node]);
        parents.push(parent);
    }
    let mut lengths = owns.to_vec();
    for node in (1..lengths.len()).rev() {
        if !(has_lanes && parents[node] == 0) {
            lengths[parents[node]] += lengths[node];
        }
    }
    // Where the next one begins that is called by a frame.
    let mut next = vec![0; lengths.len()];
    let mut times = vec![(0, lengths[0])];
    for node in 1..lengths.len() {
        let start = next[parents[node]] + gaps[node - 1];
        if !(has_lanes && parents[node] == 0) {
            next[parents[node]] = start + lengths[node];
        }
        next[node] = start;
        times.push((start, start + lengths[node]));
    }
    times
}

/// Panics unless `path` holds one whole, well-formed SVG of at least one frame.
#[track_caller]
pub fn assert_whole_svg(path: &Path) {
    assert!(
        svg_titles(path).len() > 1,
        "{} shows no frame",
        path.display()
    );
}

/// The name of each frame, drawn or carried, from the root.
///
/// # Panics
///
/// When the file cannot be read, or is not a whole graph.
#[track_caller]
pub fn svg_titles(path: &Path) -> Vec<String> {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let graph = Graph::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    graph.frames.into_iter().map(|frame| frame.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_svg_that_a_browser_would_refuse_is_refused() {
        for wrong in [
            "<svg><title>a<b></title></svg>",
            "<svg><title>a</title>",
            "<svg><title>\u{1}</title></svg>",
            "<svg a='1' a='2'/>",
            "<html/>",
            "",
            "<svg><script>(document.currentScript,\"eA==\")</script></svg>",
        ] {
            assert!(Graph::parse(wrong).is_err(), "{wrong:?} was accepted");
        }
    }
}
