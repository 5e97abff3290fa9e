//! The command line of `flame-bpf inspect`, which shows what flame-bpf makes of one object file.
//!
//! In: its flags. Out: what to show, and how. Never opens the file.

use super::flags::NameArgs;
use super::{Task, plan};
use crate::debuginfod::Servers;
use crate::symbolize::Naming;
use anyhow::Result;
use std::path::PathBuf;

/// Show what flame-bpf makes of one object file.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Inspect {
    /// Symbolize addresses from stdin as in a profile: one per line, hexadecimal, as objdump prints them
    #[command(max_term_width = 120)]
    Names(Box<NamesArgs>),
    /// Print the unwind table of an object's code, as made from .eh_frame
    #[command(max_term_width = 120)]
    Unwind(UnwindArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct NamesArgs {
    /// A program or library
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    names: NameArgs,
    /// Say how long it took
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct UnwindArgs {
    /// A program or library
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print only the row for this address (hexadecimal, as objdump prints it)
    #[arg(value_name = "ADDRESS", value_parser = hexadecimal)]
    address: Option<u64>,
}

/// An object whose addresses are to be symbolized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectNames {
    /// The object's file.
    pub file: PathBuf,
    /// How its code is named.
    pub naming: Naming,
    /// Which servers are asked for a debug file that is not here.
    pub servers: Servers,
    /// Whether to say how long it took.
    pub verbose: bool,
}

/// An object, or an address of it, whose unwind table is to be printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectUnwind {
    /// The object's file.
    pub file: PathBuf,
    /// An address in the object's own terms.
    pub address: Option<u64>,
}

impl Inspect {
    /// The task that the arguments ask for.
    pub(super) fn task(self) -> Result<Task> {
        Ok(match self {
            Self::Names(args) => Task::InspectNames(InspectNames {
                file: args.file,
                servers: plan::servers(args.names.debuginfod.as_deref())?,
                naming: plan::naming(args.names),
                verbose: args.verbose,
            }),
            Self::Unwind(UnwindArgs { file, address }) => {
                Task::InspectUnwind(InspectUnwind { file, address })
            }
        })
    }
}

fn hexadecimal(word: &str) -> Result<u64, String> {
    u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16)
        .map_err(|_| "not a hexadecimal address such as 0x1139".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Exit, parse};
    use crate::symbolize::Demangling;
    use std::ffi::OsString;

    fn inspect(line: &str) -> Result<Task, Exit> {
        let words = ["flame-bpf", "inspect"].into_iter();
        parse(words.chain(line.split(' ')).map(OsString::from), true)
    }

    #[test]
    fn names_takes_a_file_and_the_flags_about_names() {
        let task = inspect("names a.out --inline --no-demangle -v");
        let Ok(Task::InspectNames(asked)) = task else {
            panic!("{task:?}");
        };
        assert_eq!(asked.file, PathBuf::from("a.out"));
        assert!(asked.naming.inlined && !asked.naming.lines);
        assert_eq!(asked.naming.demangling, Demangling::Off);
        assert_eq!(asked.servers, Servers::IfSet);
        assert!(asked.verbose);
    }

    #[test]
    fn unwind_takes_a_file_and_an_address() {
        for (line, address) in [
            ("unwind a.out", None),
            ("unwind a.out 0x1139", Some(0x1139)),
            ("unwind a.out 1139", Some(0x1139)),
        ] {
            let file = "a.out".into();
            let task = Task::InspectUnwind(InspectUnwind { file, address });
            assert_eq!(inspect(line), Ok(task), "{line}");
        }
    }

    #[test]
    fn anything_else_is_refused_and_help_is_given() {
        for line in [
            "names",
            "names a b",
            "names a --debuginfod=x",
            "names a -p 1",
            "unwind",
            "unwind a 0x1 b",
            "unwind a main",
            "other",
        ] {
            assert_eq!(inspect(line).unwrap_err().code, 2, "{line}");
        }
        for line in ["names --help", "unwind --help", "--help"] {
            assert_eq!(inspect(line).unwrap_err().code, 0, "{line}");
        }
    }
}
