//! All frames as text that a script can hold.
//!
//! In: a tree, its colours, its texts. Out: base64 of a zlib stream of numbers and names, column by column, which
//! compresses well; `script/unpack.js` reads it. No name can be taken for anything else there.
//!
//! Numbers are little endian in groups of seven bits, the top bit set on all but the last byte:
//!
//! - the texts' size in bytes, then the texts, a line each: title, subtitle, unit, balance, the legend's labels, names, notes, origins, each a module, a tab
//!   and a file;
//! - whether something was lost, whether the graph grows downwards, whether it begins with the leaves, 1 if callees are to be
//!   by name and 2 if by weight and 0 if as is usual, a frame's height, the least width in millionths of
//!   a pixel or of a percent, whether it is the latter, whether it is a flame chart, whether frames are hatched, and how
//!   many notes there are: as many as names, or none;
//! - the size of the legend, and three bytes for each of its colours;
//! - the number of names, and for each its place in the legend plus one, then for each three bytes of colour, then for each
//!   its place among the origins plus one;
//! - the number of frames, and in preorder from the one behind the root: by how much each is nearer to the root than
//!   a child of the one before; its name, 0 for the next one that is new, else its place plus one; then from the root
//!   on: its own weight;
//! - the place of the name of rests plus one, or 0; for each node that has it, in order, how many frames it stands for; for each
//!   name its weight in rests; the number of names that are only there and are not among these;
//! - of a flame chart, whose weights are nanoseconds: for each of these frames the gap to its left, then from the root on
//!   what was counted in it itself; the number of windows, and for each the gap before it, how long it is, and what was
//!   counted; whether it has lanes, which are what the root calls: each begins with it and is as long.

use super::chart::Chart;
use super::color::Color;
use super::draw::Texts;
use super::paint::Paints;
use super::tree::Tree;
use crate::output::web::{self, number};
use crate::output::{CalleeOrder, MinWidth, Style};
use flate2::Compression;
use std::io;

/// More bytes than this are packed less densely, or packing takes longer than all the rest.
const LARGE: usize = 2 << 20;

/// Frames and texts, packed.
#[derive(Debug)]
pub(super) struct Packed {
    /// Base64.
    pub(super) text: String,
    /// Of what was packed, so that it does not depend on how well.
    pub(super) checksum: u32,
}

/// Packs everything that the script needs.
pub(super) fn pack(
    (tree, chart): (&Tree, Option<&Chart>),
    paints: &Paints,
    texts: &Texts,
    style: &Style,
) -> io::Result<Packed> {
    let mut bytes = Vec::with_capacity(tree.nodes.len() * 4);
    let labels = paints.legend.iter().map(|(label, _)| *label);
    let names = tree.names.iter().map(|frame| &*frame.name);
    let lines: Vec<&str> = [&*texts.title, &texts.subtitle, &texts.noun, &texts.balance]
        .into_iter()
        .chain(labels)
        .chain(names)
        .chain(paints.notes.iter().map(|note| &**note))
        .chain(paints.origins.0.iter().map(|origin| &**origin))
        .collect();
    let lines = lines.join("\n");
    number(lines.len() as u64, &mut bytes);
    bytes.extend_from_slice(lines.as_bytes());

    let (least, is_share) = match style.minwidth {
        MinWidth::Pixels(pixels) => (pixels, false),
        MinWidth::Percent(percent) => (percent, true),
    };
    number(texts.is_lossy.into(), &mut bytes);
    number(style.inverted.into(), &mut bytes);
    number(style.reverse.into(), &mut bytes);
    let order = match style.order {
        None => 0,
        Some(CalleeOrder::Name) => 1,
        Some(CalleeOrder::Weight) => 2,
    };
    number(order, &mut bytes);
    number(style.height.into(), &mut bytes);
    number((least * 1e6) as u64, &mut bytes);
    number(is_share.into(), &mut bytes);
    number(chart.is_some().into(), &mut bytes);
    number(paints.is_hatched.into(), &mut bytes);
    number(paints.notes.len() as u64, &mut bytes);

    number(paints.legend.len() as u64, &mut bytes);
    for (_, color) in &paints.legend {
        three(*color, &mut bytes);
    }
    number(tree.names.len() as u64, &mut bytes);
    for paint in &paints.of_names {
        number(paint.entry.map_or(0, |entry| entry as u64 + 1), &mut bytes);
    }
    for paint in &paints.of_names {
        three(paint.color, &mut bytes);
    }
    for origin in &paints.origins.1 {
        number((*origin).into(), &mut bytes);
    }

    number(tree.nodes.len() as u64, &mut bytes);
    for pair in tree.nodes.windows(2) {
        number((pair[0].depth + 1 - pair[1].depth).into(), &mut bytes);
    }
    let mut next = 1;
    for node in &tree.nodes[1..] {
        if node.name == next {
            next += 1;
            number(0, &mut bytes);
        } else {
            number(u64::from(node.name) + 1, &mut bytes);
        }
    }
    for node in &tree.nodes {
        number(node.own, &mut bytes);
    }
    let rests = &tree.rests;
    number(rests.name.map_or(0, |name| u64::from(name) + 1), &mut bytes);
    for (_, frames) in &rests.frames {
        number(*frames, &mut bytes);
    }
    if rests.name.is_some() {
        for weight in &rests.hidden {
            number(*weight, &mut bytes);
        }
        number(rests.unsearched, &mut bytes);
    }
    if let Some(chart) = chart {
        times(tree, chart, &mut bytes);
    }

    let level = if bytes.len() > LARGE { 1 } else { 6 };
    Ok(Packed {
        text: web::pack(&[&bytes], Compression::new(level))?,
        checksum: crc32fast::hash(&bytes),
    })
}

/// Parts of a chart beside its tree.
fn times(tree: &Tree, chart: &Chart, bytes: &mut Vec<u8>) {
    // For each depth where the next frame there begins if there is no gap.
    let mut next: Vec<u64> = Vec::new();
    for (index, node) in tree.nodes.iter().enumerate() {
        let depth = node.depth as usize;
        if index > 0 {
            let is_lane = depth == 1 && !chart.lanes.is_empty();
            let before = if is_lane {
                tree.nodes[0].left
            } else {
                next[depth]
            };
            number(node.left - before, bytes);
        }
        next.truncate(depth);
        next.extend([node.left + node.weight, node.left]);
    }
    for own in &chart.own {
        number(*own, bytes);
    }
    number(chart.windows.len() as u64, bytes);
    let mut behind = 0;
    for span in &chart.windows {
        number(span.start - behind, bytes);
        number(span.end - span.start, bytes);
        number(span.weight, bytes);
        behind = span.end;
    }
    number((!chart.lanes.is_empty()).into(), bytes);
}

fn three(color: Color, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&[color.r, color.g, color.b]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Palette;
    use crate::profile::fold::parse;
    use crate::profile::{Unit, View};

    /// Takes numbers off packed bytes.
    struct Reader(std::vec::IntoIter<u8>);

    impl Reader {
        fn number(&mut self) -> u64 {
            let (mut value, mut shift) = (0, 0);
            loop {
                let byte = self.0.next().expect("more bytes");
                value |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    return value;
                }
            }
        }

        fn numbers(&mut self, count: u64) -> Vec<u64> {
            (0..count).map(|_| self.number()).collect()
        }

        fn skip(&mut self, bytes: u64) -> Vec<u8> {
            self.0.by_ref().take(bytes as usize).collect()
        }
    }

    #[test]
    fn everything_comes_back() {
        let text = "a;b;c 1\na;b 300\na;d_[k] 70000\nb 18446744073709000000\n";
        let profile = parse(text.as_bytes(), Unit::Samples).expect("folded text");
        let view = View::new(&profile);
        let (tree, _) = Tree::new(&view, &Style::default());
        let paints = Paints::new(Palette::LAND, &view, &tree);
        let style = Style {
            minwidth: MinWidth::Percent(0.25),
            inverted: true,
            ..Style::default()
        };
        let texts = Texts::new(&style, "samples");
        let packed = pack((&tree, None), &paints, &texts, &style).expect("memory takes all");
        let mut reader = Reader(web::unpacked(&packed.text).into_iter());

        let size = reader.number();
        let lines = String::from_utf8(reader.skip(size)).expect("UTF-8");
        let lines: Vec<&str> = lines.split('\n').collect();
        assert_eq!(lines[..4], ["Flame Graph", "", "samples", ""]);
        assert_eq!(reader.numbers(10), [0, 1, 0, 0, 16, 250_000, 1, 0, 0, 0]);
        let legend = reader.number();
        assert_eq!(legend as usize, paints.legend.len());
        reader.skip(3 * legend);
        let names = reader.number();
        assert_eq!(
            lines[4 + legend as usize..],
            ["all", "a", "b", "c", "d", "b", "kernel\t"]
        );
        reader.skip(names + 3 * names);
        assert_eq!(reader.numbers(names), [0, 0, 0, 0, 1, 0]);
        let frames = reader.number();
        assert_eq!(reader.numbers(frames - 1), [0, 0, 0, 2, 2]);
        assert_eq!(reader.numbers(frames - 1), [0, 0, 0, 0, 0]);
        assert_eq!(
            reader.numbers(frames),
            [0, 0, 300, 1, 70_000, 18_446_744_073_709_000_000]
        );
        assert_eq!(reader.number(), 0);
        assert_eq!(reader.0.next(), None);
    }
}
