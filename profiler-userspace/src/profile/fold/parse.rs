//! Folded text back to a profile.
//!
//! In: what [`super::fold`] or another tool wrote, and what its weights count.
//! Out: a profile whose folded text is the same again, and which lines hold no stack and why.
//! Never: a line that is skipped silently; only blank lines and comments (`# `) hold no stack.
//!
//! Weights with decimals are kept in the smallest unit that all lines share: hundredths of samples, say.
//!
//! The kind of a frame is read from what the text says of it. A line with `_[k]` in it is annotated
//! throughout. In one without, all behind a `-` is the kernel's. `_[j]` is code that a runtime made and
//! `_[i]` an inlined function, wherever they stand. A bracketed name without an offset is a mark, and
//! `[tid 1]` or `[cpu 1]` beside the process is a label.

use super::name::reads_as_number;
use super::stack_line::StackLine;
use super::visible;
use crate::profile::frames::FrameProfile;
use crate::profile::model::Sample;
use crate::profile::{Profile, Unit, Window};
use crate::text::lines::LineReader;
use std::io::{self, BufRead};

/// Why text is not folded stacks.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// There is no second word.
    #[error("line {line} has no weight: `{text}` should end in a space and a number")]
    NoWeight {
        /// Counted from one.
        line: usize,
        /// The line's beginning.
        text: String,
    },
    /// The last word is no number, or is too large.
    #[error("line {line} ends in `{weight}`, which is no weight: it should be a number below 2^64")]
    BadWeight {
        /// Counted from one.
        line: usize,
        /// The last word's beginning.
        weight: String,
    },
    /// Two numbers end the line.
    #[error(
        "line {line} has two weights, as the difference of two profiles has; give one of these two profiles instead"
    )]
    TwoWeights {
        /// Counted from one.
        line: usize,
    },
    /// There are more stacks than memory may be taken for.
    #[error("the stacks up to line {line} take 2 GiB of memory; divide the text")]
    TooMany {
        /// Counted from one.
        line: usize,
    },
    /// All weights up to this line are 2^64 or more.
    #[error(
        "the weights up to line {line} add up to 2^64 or more; divide them all by the same number first"
    )]
    TooHeavy {
        /// Counted from one.
        line: usize,
    },
    /// Bytes do not come.
    #[error("{0}")]
    Unreadable(String),
}

impl From<io::Error> for ParseError {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error.to_string())
    }
}

/// The most memory that text may take, in bytes, beside its names: a small packed file may hold a great many lines.
pub const MAX_MEMORY: u64 = 2 << 30;

/// Folded text that was read.
#[derive(Debug)]
pub struct Parsed {
    /// The stacks.
    pub profile: Profile,
    /// How many lines hold stacks.
    pub read: u64,
    /// How many lines hold none, and are neither blank nor comments.
    pub skipped: u64,
    /// Why the first of these does not.
    pub first_skipped: Option<ParseError>,
    /// Whether weights have more decimals than can tell on a share, and so were rounded.
    pub is_rounded: bool,
}

/// Reads folded text, whose weights are in `unit`, and in which each line holds a stack.
///
/// # Errors
/// At the first line that holds none.
pub fn parse(mut text: &[u8], unit: Unit) -> Result<Profile, ParseError> {
    let parsed = parse_lines(&mut text, unit)?;
    match parsed.first_skipped {
        Some(error) => Err(error),
        None => Ok(parsed.profile),
    }
}

/// Reads folded text, whose weights are in `unit`.
///
/// The text does not say how many firings a line stands for: it is as many as the weight where
/// samples are what is counted, and else one, the least that there can have been.
/// Invalid UTF-8 is replaced by U+FFFD, since names are whatever a program has put there.
///
/// # Errors
/// When there are more stacks, or weights, than fit, or bytes do not come.
pub fn parse_lines(text: &mut dyn BufRead, unit: Unit) -> Result<Parsed, ParseError> {
    let mut weights = Weights::new(&unit);
    let mut profile = FrameProfile::new(Profile::new(unit, Window::default()));
    let (mut read, mut skipped, mut first_skipped) = (0, 0, None);
    let mut lines = LineReader::new(text);
    let mut frames = StackLine::default();
    while let Some((line, text)) = lines.next()? {
        let text = text.trim_ascii();
        if text.is_empty() || text.starts_with("# ") || text == "#" {
            continue;
        }
        match split_weight(line, text, &mut weights) {
            Ok((stack, weight)) => {
                read += 1;
                let alike = frames.read(stack);
                let sample = profile.push_alike(&frames, alike, 0, 1);
                weights.add(line, sample, weight)?;
            }
            Err(error) => {
                skipped += 1;
                first_skipped = first_skipped.or(Some(error));
            }
        }
        if profile.bytes() > MAX_MEMORY {
            return Err(ParseError::TooMany { line });
        }
    }
    let decimals = weights.decimals();
    let mut profile = profile.into_profile();
    if decimals > 0 && profile.unit != Unit::Nanoseconds {
        let unit = format!("{}/{}", profile.unit.noun(), 10_u64.pow(decimals));
        profile.unit = Unit::Events(unit);
    }
    let counts_firings = profile.unit == Unit::Samples;
    profile.change_samples(|place, sample| {
        let weight = weights.of(place, decimals);
        Some(Sample {
            weight,
            count: if counts_firings { weight } else { sample.count },
            ..sample
        })
    });
    Ok(Parsed {
        profile,
        read,
        skipped,
        first_skipped,
        is_rounded: weights.most_decimals > decimals,
    })
}

/// Weights of samples, with all their decimals until it is known how many of these there are.
struct Weights {
    /// The decimals that all weights have in the end, if that is known.
    fixed: Option<u32>,
    /// By their places, in parts of 10^-[`MAX_DECIMALS`].
    sums: Vec<u128>,
    total: u128,
    /// The largest total, in the same parts.
    limit: u128,
    /// The most that a number had, and the sum of all numbers, whether or not a stack is in front of them.
    most_decimals: u32,
    all: f64,
}

impl Weights {
    fn new(unit: &Unit) -> Self {
        // Microseconds are read as nanoseconds.
        let fixed = (*unit == Unit::Nanoseconds).then_some(3);
        Self {
            fixed,
            sums: Vec::new(),
            total: 0,
            limit: u128::from(u64::MAX) * 10_u128.pow(MAX_DECIMALS - fixed.unwrap_or(0)),
            most_decimals: 0,
            all: 0.0,
        }
    }

    /// The weight that a word is; none if it is none, or is too large.
    fn read(&mut self, word: &str) -> Option<u128> {
        let number = Decimal::whole(word).or_else(|| Decimal::parse(word))?;
        self.most_decimals = self.most_decimals.max(number.decimals);
        self.all += number.digits as f64 / 10_f64.powi(number.decimals as i32);
        let scaled = number.scaled(MAX_DECIMALS);
        scaled.filter(|scaled| *scaled <= self.limit)
    }

    fn add(&mut self, line: usize, sample: usize, weight: u128) -> Result<(), ParseError> {
        // Neither is above the limit, whose double there is room for.
        self.total += weight;
        if self.total > self.limit {
            return Err(ParseError::TooHeavy { line });
        }
        self.sums.resize(self.sums.len().max(sample + 1), 0);
        self.sums[sample] += weight;
        Ok(())
    }

    /// By how many decimals weights are scaled: as many as it takes to hold each share to a billionth.
    fn decimals(&self) -> u32 {
        /// The sum that tells a billionth apart.
        const ENOUGH: f64 = 1e9;
        let tells = |decimals: &u32| self.all * 10_f64.powi(*decimals as i32) >= ENOUGH;
        let needed = (0..=MAX_DECIMALS).find(tells).unwrap_or(MAX_DECIMALS);
        self.fixed.unwrap_or(self.most_decimals.min(needed))
    }

    /// The weight of a sample in so many decimals, rounded.
    fn of(&self, sample: usize, decimals: u32) -> u64 {
        let parts = 10_u128.pow(MAX_DECIMALS - decimals);
        let weight = (self.sums[sample] + parts / 2) / parts;
        u64::try_from(weight).unwrap_or(u64::MAX)
    }
}

/// As many as a weight has room for.
const MAX_DECIMALS: u32 = 18;

/// A number as text has it: `12.5` is 125 with one decimal.
struct Decimal {
    digits: u128,
    decimals: u32,
}

impl Decimal {
    /// One of digits alone, as nearly all are.
    fn whole(word: &str) -> Option<Self> {
        /// So many always fit.
        const FEW: usize = 19;
        let is_whole = word.len() <= FEW && word.bytes().all(|byte| byte.is_ascii_digit());
        let digits = is_whole.then(|| word.parse::<u64>().ok())??;
        Some(Self {
            digits: digits.into(),
            decimals: 0,
        })
    }

    fn parse(word: &str) -> Option<Self> {
        /// More say nothing, and would not fit.
        const MAX_DIGITS: usize = 30;
        let (number, exponent) = match word.split_once(['e', 'E']) {
            Some((number, exponent)) => (
                number,
                exponent.parse::<i32>().ok().filter(|it| it.abs() <= 40)?,
            ),
            None => (word, 0),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty()) || !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let room = MAX_DIGITS.saturating_sub(whole.len());
        let fraction = fraction[..fraction.len().min(room)].trim_end_matches('0');
        let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
        match i32::try_from(fraction.len()).ok()? - exponent {
            decimals @ 0.. => Some(Self {
                digits,
                decimals: decimals as u32,
            }),
            more => Some(Self {
                digits: digits.checked_mul(10_u128.checked_pow(more.unsigned_abs())?)?,
                decimals: 0,
            }),
        }
    }

    /// The number of units of so many decimals, rounded; none if it has no room.
    fn scaled(&self, decimals: u32) -> Option<u128> {
        let scaled = match decimals.checked_sub(self.decimals) {
            Some(more) => self.digits.checked_mul(10_u128.checked_pow(more)?)?,
            None => match 10_u128.checked_pow(self.decimals - decimals) {
                Some(divisor) => (self.digits + divisor / 2) / divisor,
                None => 0,
            },
        };
        Some(scaled)
    }
}

fn split_weight<'a>(
    line: usize,
    text: &'a str,
    weights: &mut Weights,
) -> Result<(&'a str, u128), ParseError> {
    let Some((stack, word)) = split_last_word(text) else {
        return Err(ParseError::NoWeight {
            line,
            text: excerpt(text),
        });
    };
    let Some(weight) = weights.read(word) else {
        return Err(ParseError::BadWeight {
            line,
            weight: excerpt(word),
        });
    };
    let stack = stack.trim_ascii_end();
    match split_last_word(stack) {
        Some((_, first)) if reads_as_number(first) => Err(ParseError::TwoWeights { line }),
        _ => Ok((stack, weight)),
    }
}

/// The parts before and behind the last blank. Most stacks have none, and all of them is looked at.
fn split_last_word(text: &str) -> Option<(&str, &str)> {
    let blank = memchr::memrchr2(b' ', b'\t', text.as_bytes())?;
    Some((&text[..blank], &text[blank + 1..]))
}

/// So much of hostile text as an error can quote.
pub(crate) fn excerpt(text: &str) -> String {
    const CHARS: usize = 40;
    let shown = visible(text);
    match shown.char_indices().nth(CHARS) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown.into_owned(),
    }
}
