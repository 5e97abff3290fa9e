//! The command line of `flame-bpf show-names`.
//!
//! In: the arguments of the process. Out: what to name, and how, if that was asked for. Never opens the
//! file.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser as _;

use super::{Exit, NameArgs, plan};
use crate::debuginfod::Servers;
use crate::symbolize::Naming;

/// What it is asked for by.
const WORD: &str = "show-names";

/// Names the addresses that come on stdin, as they would be named in a profile: one to a line, in hexadecimal
/// and in the object's own terms, as objdump prints them.
#[derive(Debug, clap::Parser)]
#[command(name = "flame-bpf show-names", max_term_width = 120)]
struct Args {
    /// The object: a program or library
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    names: NameArgs,
    /// Say how long naming took
    #[arg(short, long)]
    verbose: bool,
}

/// An object whose addresses are to be named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShowNames {
    /// The object's file.
    pub file: PathBuf,
    /// How its code is named.
    pub naming: Naming,
    /// Who is asked for a debug file that is not here.
    pub servers: Servers,
    /// Whether to say how long it took.
    pub verbose: bool,
}

impl ShowNames {
    /// Reads the command line, the program's own name first; none if it asks for something else.
    ///
    /// # Errors
    /// What to print and the exit code to end with, where it cannot be obeyed or asks for help.
    pub fn parse(arguments: &[OsString]) -> Option<Result<Self, Exit>> {
        match arguments {
            [_, word, ..] if word == WORD => Some(Self::read(&arguments[1..])),
            _ => None,
        }
    }

    fn read(arguments: &[OsString]) -> Result<Self, Exit> {
        let Args {
            file,
            names,
            verbose,
        } = Args::try_parse_from(arguments).map_err(Exit::from_clap)?;
        let servers = plan::servers(names.debuginfod.as_deref());
        Ok(Self {
            file,
            servers: servers.map_err(|error| Exit::usage(&format!("{error:#}")))?,
            naming: plan::naming(names),
            verbose,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbolize::Demangling;

    fn parse(words: &[&str]) -> Option<Result<ShowNames, Exit>> {
        let words = std::iter::once(&"flame-bpf").chain(words);
        ShowNames::parse(&words.map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn a_file_and_the_flags_about_names_are_taken() {
        let asked = parse(&["show-names", "a.out", "--inline", "--no-demangle", "-v"]);
        let asked = asked.unwrap().unwrap();
        assert_eq!(asked.file, PathBuf::from("a.out"));
        assert!(asked.naming.inlined && !asked.naming.lines);
        assert_eq!(asked.naming.demangling, Demangling::Off);
        assert_eq!(asked.servers, Servers::IfSet);
        assert!(asked.verbose);
    }

    #[test]
    fn anything_else_is_refused_or_somebody_elses() {
        assert_eq!(parse(&["-p", "1"]), None);
        for words in [
            &["show-names"][..],
            &["show-names", "a", "b"],
            &["show-names", "a", "--debuginfod=x"],
            &["show-names", "a", "-p", "1"],
        ] {
            assert_eq!(parse(words).unwrap().unwrap_err().code, 2, "{words:?}");
        }
        let help = parse(&["show-names", "--help"]).unwrap().unwrap_err();
        assert_eq!(help.code, 0);
        assert!(help.text.contains("--debug-dir"), "{}", help.text);
    }
}
