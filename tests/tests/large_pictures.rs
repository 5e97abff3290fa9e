//! Pictures of more frames than a file should hold: their bound, and what stands for what is not there.

use std::fmt::Write as _;

use flame_bpf::output::{Format, MinWidth, Style, write};
use flame_bpf::profile::{Profile, Unit, fold};
use flame_bpf_tests::Graph;
use flame_bpf_tests::stacks::of_html;

/// Stacks of twenty frames, each pair of which has its own callees, so that most frames are as narrow as can be.
fn profile(stacks: u32) -> Profile {
    let mut text = String::new();
    for stack in 0..stacks {
        text.push_str("program");
        for level in 0..20 {
            let path = u64::from(stack >> (19 - level)) + (1 << level);
            let _ = write!(text, ";library::module::function_{}", path % 7919);
        }
        // A few have most of the weight.
        let _ = writeln!(text, " {}", 1 + stacks / (1 + stack % 1009));
    }
    fold::parse(text.as_bytes(), Unit::Samples).expect("it is folded text")
}

fn written(profile: &Profile, format: Format, minwidth: MinWidth) -> String {
    let style = Style {
        minwidth,
        ..Style::default()
    };
    let mut bytes = Vec::new();
    write(profile, format, &style, &mut bytes).expect("a vector takes all");
    String::from_utf8(bytes).expect("it is text")
}

#[test]
fn a_graph_has_a_bound_and_the_weight_of_what_it_leaves_out() {
    let profile = profile(300_000);
    let svg = written(&profile, Format::SVG, Style::default().minwidth);
    assert!(svg.len() < 3_000_000, "{} bytes", svg.len());
    let graph = Graph::parse(&svg).expect("a graph");
    let all: u64 = graph.frames.iter().map(|frame| frame.own).sum();
    assert_eq!(all, profile.total_weight());
    let rests: u64 = graph.frames.iter().filter_map(|frame| frame.rest).sum();
    let kept = graph
        .frames
        .iter()
        .filter(|frame| frame.rest.is_none())
        .count();
    assert!(
        rests > 100_000 && kept > 100_000,
        "{rests} in rests, {kept} not"
    );
    let whole = Graph::parse(&written(&profile, Format::SVG, MinWidth::Pixels(0.0)));
    let whole = whole.expect("a graph");
    assert_eq!(whole.frames.len() as u64, kept as u64 + rests);
    assert!(whole.frames.iter().all(|frame| frame.rest.is_none()));

    // A search of the whole finds at least as much, and not more than with all that may be in rests.
    let pattern = "function_77";
    let found = matched(&graph, pattern);
    let hidden: u64 = graph
        .hidden
        .iter()
        .filter(|(name, _)| name.contains(pattern))
        .map(|(_, weight)| weight)
        .sum();
    let truth = matched(&whole, pattern);
    assert!(
        hidden > 0 && found <= truth && truth <= found + hidden,
        "{found} {hidden} {truth}"
    );
    assert_eq!(graph.unsearched, 0);
}

/// The weight of stacks with a frame of such a name.
fn matched(graph: &Graph, pattern: &str) -> u64 {
    let mut inside = None;
    let mut sum = 0;
    for frame in &graph.frames {
        inside = inside.filter(|depth| frame.depth > *depth);
        if inside.is_none() && frame.name.contains(pattern) {
            inside = Some(frame.depth);
        }
        if inside.is_some() {
            sum += frame.own;
        }
    }
    sum
}

#[test]
fn a_page_has_a_bound_and_the_weight_of_what_it_leaves_out() {
    let profile = profile(300_000);
    let html = written(&profile, Format::HTML, Style::default().minwidth);
    assert!(html.len() < 5_000_000, "{} bytes", html.len());
    let stacks = of_html(html.as_bytes());
    let is_rest = |stack: &&Vec<String>| stack.last().is_some_and(|leaf| leaf == "[narrow frames]");
    assert!(stacks.keys().filter(is_rest).count() > 1000);
    assert_eq!(stacks.values().sum::<u64>(), profile.total_weight());
    assert!(html.len() < written(&profile, Format::HTML, MinWidth::Pixels(0.0)).len());
}
