//! Colours of text on a terminal.
//!
//! In: lines for people, without anything that a terminal obeys. Out: the same lines, errors and losses in red, shares in the
//! colours that perf gives them. Never: another change.

use std::borrow::Cow;

const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const BOLD_RED: &str = "\u{1b}[1;31m";
const PLAIN: &str = "\u{1b}[m";

/// The beginnings of messages of errors.
const ERRORS: [&str; 2] = ["error:", "flame-bpf:"];

/// The label of losses, as it stands in a summary.
const LOSS: &str = "LOST";

/// From so many percent on a share is red, and from so many it is green.
const MUCH: f64 = 5.0;
const SOME: f64 = 0.5;

/// Lines with colours.
pub(crate) fn painted(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(line).collect();
    lines.join("\n")
}

fn line(line: &str) -> Cow<'_, str> {
    if let Some(begin) = ERRORS.iter().find(|begin| line.starts_with(**begin)) {
        return format!("{BOLD_RED}{begin}{PLAIN}{}", &line[begin.len()..]).into();
    }
    if line.trim_start().starts_with(LOSS) {
        return format!("{BOLD_RED}{line}{PLAIN}").into();
    }
    let Some((share, behind)) = line.split_once('%') else {
        return line.into();
    };
    let color = match share.trim_start().parse::<f64>() {
        Ok(percent) if percent >= MUCH => RED,
        Ok(percent) if percent >= SOME => GREEN,
        _ => return line.into(),
    };
    format!("{color}{share}%{PLAIN}{behind}").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn errors_losses_and_large_shares_stand_out() {
        let text = "error: no\n  LOST        3 samples\n  lost        nothing\n 14.0%   1.0%  f\n  0.6%  g\n <0.1%  h";
        let expected = "\u{1b}[1;31merror:\u{1b}[m no\n\u{1b}[1;31m  LOST        3 samples\u{1b}[m\n  lost        nothing\n\
            \u{1b}[31m 14.0%\u{1b}[m   1.0%  f\n\u{1b}[32m  0.6%\u{1b}[m  g\n <0.1%  h";
        assert_eq!(painted(text), expected);
    }

    proptest! {
        #[test]
        fn nothing_but_colors_is_added(text in "([ a-z0-9.%:LOST\n]|error:){0,40}") {
            let mut plain = painted(&text);
            for color in [RED, GREEN, BOLD_RED, PLAIN] {
                plain = plain.replace(color, "");
            }
            prop_assert_eq!(plain, text);
        }
    }
}
