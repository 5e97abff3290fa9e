//! The command line of `flame-bpf show-unwind`.
//!
//! In: the arguments of the process. Out: what to show, if that was asked for. Never opens the file.

use std::ffi::OsString;
use std::path::PathBuf;

use super::Exit;

/// What it is asked for by.
const WORD: &str = "show-unwind";

const HELP: &str = "\
Shows how the stacks of an object's code are walked: its unwind table, as made from .eh_frame.

Usage: flame-bpf show-unwind FILE [ADDRESS]

ADDRESS is one in the object's own terms, in hexadecimal, as objdump prints it; without one, all
rows are shown, each with the address from which on it holds.
";

/// An object, or an address of it, of which the unwind table is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShowUnwind {
    /// The object's file.
    pub file: PathBuf,
    /// An address in the object's own terms.
    pub address: Option<u64>,
}

impl ShowUnwind {
    /// Reads the command line, the program's own name first; none if it asks for something else.
    ///
    /// # Errors
    /// What to print and the exit code to end with, where it cannot be obeyed or asks for help.
    pub fn parse(arguments: &[OsString]) -> Option<Result<Self, Exit>> {
        let operands = match arguments {
            [_, word, operands @ ..] if word == WORD => operands,
            _ => return None,
        };
        if operands.iter().any(|word| word == "-h" || word == "--help") {
            return Some(Err(Exit {
                text: HELP.to_owned(),
                code: 0,
            }));
        }
        let (file, address) = match operands {
            [file] => (file, None),
            [file, address] => match hexadecimal(address) {
                Some(address) => (file, Some(address)),
                None => {
                    let address = address.to_string_lossy();
                    return Some(Err(refusal(&format!(
                        "'{address}' is no address in hexadecimal, such as 0x1139"
                    ))));
                }
            },
            _ => {
                return Some(Err(refusal(
                    "show-unwind wants a file, and perhaps an address",
                )));
            }
        };
        Some(Ok(Self {
            file: file.into(),
            address,
        }))
    }
}

fn refusal(sentence: &str) -> Exit {
    Exit {
        text: format!(
            "error: {sentence}\n\nFor more information, try 'flame-bpf {WORD} --help'.\n"
        ),
        code: 2,
    }
}

fn hexadecimal(word: &OsString) -> Option<u64> {
    let word = word.to_str()?;
    u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Option<Result<ShowUnwind, Exit>> {
        let words = std::iter::once(&"flame-bpf").chain(words);
        ShowUnwind::parse(&words.map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn a_file_and_an_address_are_taken() {
        let shown = |address| {
            Some(Ok(ShowUnwind {
                file: "a.out".into(),
                address,
            }))
        };
        assert_eq!(parse(&["show-unwind", "a.out"]), shown(None));
        for address in ["0x1139", "1139"] {
            assert_eq!(
                parse(&["show-unwind", "a.out", address]),
                shown(Some(0x1139))
            );
        }
    }

    #[test]
    fn anything_else_is_refused_or_somebody_elses() {
        assert_eq!(parse(&["-p", "1"]), None);
        assert_eq!(parse(&[]), None);
        for words in [
            &["show-unwind"][..],
            &["show-unwind", "a", "0x1", "b"],
            &["show-unwind", "a", "main"],
        ] {
            assert_eq!(parse(words).unwrap().unwrap_err().code, 2, "{words:?}");
        }
        assert_eq!(
            parse(&["show-unwind", "--help"]).unwrap().unwrap_err().code,
            0
        );
    }
}
