//! What is generated from the definition of the command line: completions of shells, and the man page.
//!
//! In: the definition. Out: text for stdout.

use super::Exit;
use clap::Command;
use clap_complete::Shell;

/// Print completions for a shell: source <(flame-bpf completions bash)
#[derive(Debug, clap::Args)]
pub(super) struct CompletionsArgs {
    /// The shell that reads them
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Completions for a shell.
pub(super) fn completions(args: &CompletionsArgs, mut command: Command) -> Exit {
    let mut text = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, name, &mut text);
    shown(text)
}

/// The man page, in roff.
pub(super) fn man(command: Command) -> Exit {
    let mut text = Vec::new();
    let page = clap_mangen::Man::new(command);
    page.render(&mut text).expect("a vector grows as needed");
    shown(text)
}

fn shown(text: Vec<u8>) -> Exit {
    Exit {
        text: String::from_utf8_lossy(&text).into_owned(),
        code: 0,
    }
}

#[cfg(test)]
mod tests {
    fn printed(words: &[&str]) -> String {
        let words = std::iter::once(&"flame-bpf").chain(words);
        let exit = crate::cli::parse(words.map(std::ffi::OsString::from), true).unwrap_err();
        assert_eq!(exit.code, 0, "{}", exit.text);
        exit.text
    }

    #[test]
    fn completions_and_the_man_page_know_every_flag() {
        for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
            let text = printed(&["completions", shell]);
            assert!(
                text.contains("off-cpu") && text.contains("debug-dir"),
                "{shell}"
            );
        }
        let page = printed(&["man"]);
        assert!(page.starts_with(".ie") || page.contains(".TH"), "{page}");
        assert!(page.contains("off\\-cpu"), "{page}");
    }
}
