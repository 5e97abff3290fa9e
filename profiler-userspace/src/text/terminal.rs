//! The terminal that a text is for.
//!
//! In: an open stream, and what the environment says. Out: columns, and whether there are colours.

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::os::fd::AsFd;

/// Columns of a line: what `COLUMNS` says, or else the terminal has; none where there is neither.
pub(crate) fn columns(stream: Option<impl IsTerminal + AsFd>) -> Option<usize> {
    let said = std::env::var("COLUMNS").ok();
    let said = said.and_then(|columns| columns.parse().ok());
    let of_terminal = || {
        let stream = stream.filter(IsTerminal::is_terminal)?;
        let size = rustix::termios::tcgetwinsize(&stream).ok()?;
        Some(usize::from(size.ws_col))
    };
    // Some terminals do not say.
    said.or_else(of_terminal).filter(|columns| *columns > 0)
}

/// Whether a stream is a terminal that shows colours, and nobody minds (<https://no-color.org>).
pub(crate) fn has_colors(stream: &impl IsTerminal) -> bool {
    let var = |name| std::env::var_os(name).unwrap_or_default();
    stream.is_terminal() && are_wanted(&var("NO_COLOR"), &var("TERM"))
}

fn are_wanted(no_color: &OsStr, term: &OsStr) -> bool {
    no_color.is_empty() && !term.is_empty() && term != "dumb"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_are_for_those_who_can_see_them_and_want_to() {
        let wanted = |no_color: &str, term: &str| are_wanted(no_color.as_ref(), term.as_ref());
        assert!(wanted("", "xterm"));
        assert!(!wanted("1", "xterm"));
        assert!(!wanted("", "dumb"));
        assert!(!wanted("", ""));
    }
}
