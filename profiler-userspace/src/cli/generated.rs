//! Text generated from the definition of the command line: shell completions, and the man page.
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

/// The man page, in roff, with the options of each sub-command behind our own.
pub(super) fn man(mut command: Command) -> Exit {
    command.build();
    let mut text = Vec::new();
    let page = clap_mangen::Man::new(command.clone());
    page.render(&mut text).expect("a vector grows as needed");
    let commands = command.get_subcommands();
    for command in commands.filter(|command| command.get_arguments().count() > 0) {
        let name = command.get_bin_name().unwrap_or(command.get_name());
        let title = name.replace('-', r"\-").to_uppercase();
        text.extend_from_slice(format!(".SH \"{title}\"\n").as_bytes());
        let page = clap_mangen::Man::new(command.clone());
        let mut section = Vec::new();
        page.render_description_section(&mut section)
            .and_then(|()| page.render_options_section(&mut section))
            .expect("a vector grows as needed");
        // Sections of a section.
        let section = String::from_utf8_lossy(&section).replace(".SH ", ".SS ");
        text.extend_from_slice(section.as_bytes());
    }
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
    use clap::CommandFactory as _;

    fn printed(words: &[&str]) -> String {
        let words = std::iter::once(&"flame-bpf").chain(words);
        let exit = crate::cli::parse(words.map(std::ffi::OsString::from), true).unwrap_err();
        assert_eq!(exit.code, 0, "{}", exit.text);
        exit.text
    }

    #[test]
    fn completions_and_the_man_page_know_every_flag() {
        let mut command = crate::cli::Args::command();
        command.build();
        let ours = command.get_arguments();
        let render = command.find_subcommand("render").expect("it is there");
        let flags: Vec<String> = ours
            .chain(render.get_arguments())
            .filter(|arg| !arg.is_hide_set())
            .filter_map(|arg| arg.get_long().map(str::to_owned))
            .collect();
        assert!(flags.len() > 60, "{flags:?}");
        for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
            let text = printed(&["completions", shell]);
            for flag in &flags {
                assert!(text.contains(&**flag), "{shell}: {flag}");
            }
        }
        let page = printed(&["man"]);
        assert!(page.starts_with(".ie") || page.contains(".TH"), "{page}");
        for flag in &flags {
            assert!(page.contains(&flag.replace('-', r"\-")), "{flag}");
        }
    }
}
