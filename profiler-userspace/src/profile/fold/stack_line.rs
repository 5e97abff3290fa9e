//! The frames of a line of folded text, one line after the other.
//!
//! In: stacks as lines have them. Out: names and kinds of their frames, and how many of these are as in the line before: most
//! stacks begin as that does, and what they have alike is looked at once.

use super::split_suffix;
use crate::profile::frame::{cpu_label, thread_label};
use crate::profile::frames::{Alike, StackFrames};
use crate::profile::{FrameKind, FrameRef, SourceFrame, is_mark, marks};
use memchr::{memchr, memchr_iter};

/// Part of a line that is a frame. Places are counted from the second frame on, so that they stay where the first is another; of
/// the first itself, which begins the line, from its beginning.
#[derive(Clone, Copy)]
struct FrameSpan {
    begin: usize,
    end: usize,
    /// Where its name ends: before the suffix that says its kind, if that is what it says.
    name_end: usize,
    kind: FrameKind,
    /// Frames before the next one, as far as they decide its kind.
    behind: Behind,
}

impl FrameSpan {
    fn new(begin: usize, text: &str, kind: FrameKind, behind: Behind) -> Self {
        let stem = match split_suffix(text) {
            Some((stem, told)) if told == kind => stem,
            _ => text,
        };
        Self {
            begin,
            end: begin + text.len(),
            name_end: begin + stem.len(),
            kind,
            behind,
        }
    }
}

/// Facts that decide the kind of a frame beside its name: of the frames before it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Behind {
    process_seen: bool,
    beside_process: bool,
}

impl Behind {
    const NOTHING: Self = Self {
        process_seen: false,
        beside_process: true,
    };

    /// The next frame, which begins there and stands so in the line.
    fn next(self, begin: usize, text: &str, is_kernel: impl Fn(&str) -> bool) -> FrameSpan {
        let Self {
            mut process_seen,
            beside_process,
        } = self;
        let is_special = is_special(text);
        let told = || split_suffix(text).map(|(_, kind)| kind);
        let kind = if is_kernel(text) {
            FrameKind::Kernel
        } else if is_special && beside_process && is_label(text) {
            FrameKind::Label
        } else if let Some(kind) = told().filter(|kind| *kind != FrameKind::Kernel) {
            kind
        } else if !process_seen && beside_process {
            process_seen = true;
            FrameKind::Process
        } else if is_special && is_mark(text) {
            FrameKind::Mark
        } else {
            FrameKind::User
        };
        let still = matches!(kind, FrameKind::Label | FrameKind::Process);
        let behind = Self {
            process_seen,
            beside_process: beside_process && still,
        };
        FrameSpan::new(begin, text, kind, behind)
    }
}

/// The stack of one line.
#[derive(Default)]
pub(super) struct StackLine {
    text: String,
    /// Where the frames behind the first begin in it.
    second: usize,
    spans: Vec<FrameSpan>,
    /// How many of the spans are what they are whatever stands behind them.
    lasting: usize,
}

impl StackLine {
    /// Reads the next stack. Returns how much of it is as it was in the one before.
    pub(super) fn read(&mut self, text: &str) -> Alike {
        let border = memchr(b';', text.as_bytes());
        let second = border.map_or(text.len(), |border| border + 1);
        let is_first_alike = self.text[..self.second] == text[..second];
        let shared = shared(&self.text[self.second..], &text[second..]);
        let lasting = self.spans.get(1..self.lasting).unwrap_or_default();
        let mut alike = 1 + lasting.partition_point(|span| span.end < shared);
        self.second = second;
        self.text.clear();
        self.text.push_str(text);

        let first = Behind::NOTHING.next(0, &text[..border.unwrap_or(text.len())], is_kernel);
        match self.spans.first_mut() {
            Some(last) if (last.kind, last.behind) == (first.kind, first.behind) => *last = first,
            _ => {
                alike = 0;
                self.spans = vec![first];
            }
        }
        self.spans.truncate(alike.max(1));
        if border.is_some() {
            self.read_rest();
        }
        self.lasting = self.spans.len();
        if let Some(border) = self.border() {
            self.lasting = border - 1;
            self.set_border(border);
            alike = alike.min(self.lasting);
        }
        Alike {
            first: is_first_alike,
            frames: alike,
        }
    }

    /// Reads the frames behind those that are known.
    fn read_rest(&mut self) {
        let rest = &self.text[self.second..];
        let (mut begin, mut behind) = match self.spans[..] {
            [only] => (0, only.behind),
            [.., last] => (last.end + 1, last.behind),
            [] => return,
        };
        let borders = memchr_iter(b';', &rest.as_bytes()[begin..]);
        let first = begin;
        for end in borders.map(|border| first + border).chain([rest.len()]) {
            let span = behind.next(begin, &rest[begin..end], is_kernel);
            behind = span.behind;
            self.spans.push(span);
            begin = end + 1;
        }
    }

    /// The frame that stands between those of the program and those of the kernel, if there is one.
    fn border(&self) -> Option<usize> {
        let is_border = |at: &usize| self.text_of(*at) == marks::DELIMITER;
        (1..self.spans.len().saturating_sub(1)).find(is_border)
    }

    /// Gives what stands around the border its kind, and takes the border out.
    fn set_border(&mut self, border: usize) {
        let is_annotated = (0..self.spans.len()).any(|at| is_kernel(self.text_of(at)));
        let mut behind = self.spans[border - 1].behind;
        for at in border..self.spans.len() {
            let is_kernel = |name: &str| match is_annotated {
                true => is_kernel(name),
                false => at > border && !(is_special(name) && is_mark(name)),
            };
            let span = behind.next(self.spans[at].begin, self.text_of(at), is_kernel);
            behind = span.behind;
            self.spans[at] = span;
        }
        // The border stands right behind the last user frame, and only before something of the kernel's.
        if !self.spans[border - 1].kind.is_user() {
            self.set_kind(border - 1, FrameKind::User);
        }
        let is_kernel = |span: &FrameSpan| span.kind == FrameKind::Kernel;
        if !self.spans[border + 1..].iter().any(is_kernel) {
            for at in border + 1..self.spans.len() {
                self.set_kind(at, FrameKind::Kernel);
            }
        }
        self.spans.remove(border);
    }

    fn set_kind(&mut self, at: usize, kind: FrameKind) {
        let FrameSpan { begin, behind, .. } = self.spans[at];
        self.spans[at] = FrameSpan::new(begin, self.text_of(at), kind, behind);
    }

    /// A frame as it stands in the line.
    fn text_of(&self, at: usize) -> &str {
        let FrameSpan { begin, end, .. } = self.spans[at];
        &self.text[self.counted_from(at)..][begin..end]
    }

    /// The place in the line that those of a span are counted from.
    fn counted_from(&self, at: usize) -> usize {
        if at == 0 { 0 } else { self.second }
    }
}

impl StackFrames for StackLine {
    fn len(&self) -> usize {
        self.spans.len()
    }

    fn at(&self, at: usize) -> SourceFrame<'_> {
        let span = &self.spans[at];
        let name = &self.text[self.counted_from(at)..][span.begin..span.name_end];
        let kind = span.kind;
        SourceFrame::nowhere(FrameRef { name, kind })
    }
}

/// How many bytes two texts have alike from the beginning on.
fn shared(one: &str, other: &str) -> usize {
    const STEP: usize = 32;
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let steps = one.chunks_exact(STEP).zip(other.chunks_exact(STEP));
    let begin = STEP * steps.take_while(|(a, b)| a == b).count();
    let rest = one[begin..].iter().zip(&other[begin..]);
    begin + rest.take_while(|(a, b)| a == b).count()
}

fn is_kernel(name: &str) -> bool {
    split_suffix(name).is_some_and(|(_, kind)| kind == FrameKind::Kernel)
}

/// Whether more may be said of a frame than its name: all that does ends so, and few names do.
fn is_special(name: &str) -> bool {
    name.as_bytes().last() == Some(&b']')
}

fn is_label(name: &str) -> bool {
    let thread = thread_label(name).map(|(digits, _)| digits);
    thread
        .or_else(|| cpu_label(name))
        .is_some_and(|number| number.parse::<u32>().is_ok())
}
