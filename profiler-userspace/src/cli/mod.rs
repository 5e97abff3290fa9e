//! The command line: sub-commands, flags, and the help that documents them.
//!
//! In: the arguments of the process. Out: a [`Task`], or the text and exit code with which to end.
//! Never: prints, ends the process, or looks at the machine.
//!
//! The flags are in [`record`], [`render`] and [`inspect`]; what a single value may look like is in [`value`] and
//! [`event_spec`]; every rule that connects two flags, and every default, is in [`plan`]; answers to the commands of perf and
//! bcc are in [`hints`].

mod annotate;
mod calls;
mod chart;
mod diff;
mod doctor;
mod event_spec;
mod flags;
mod generated;
mod help;
mod hints;
mod inspect;
mod off_cpu;
mod perf_event;
mod plan;
mod record;
mod render;
mod service;
mod text;
mod value;

pub use inspect::{InspectNames, InspectUnwind};
pub use service::with_settings;

use crate::plan::{Annotating, Diffing, Doctoring, Plan, Rendering};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser as _};
use std::ffi::OsString;

/// The task of a run: a subcommand with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// Record, and write what was recorded.
    Record(Box<Plan>),
    /// Say whether a service could begin.
    Check(Box<Plan>),
    /// Symbolize and draw a raw recording.
    Render(Box<Rendering>),
    /// Compare two sides of recordings.
    Diff(Box<Diffing>),
    /// Show the instructions of a function, with samples.
    Annotate(Box<Annotating>),
    /// Try what can be recorded here.
    Doctor(Box<Doctoring>),
    /// Symbolize addresses of one object.
    InspectNames(InspectNames),
    /// Print the unwind table of one object.
    InspectUnwind(InspectUnwind),
}

/// Profile a running Linux machine: sample stacks, count them in the kernel, draw a flame graph.
#[derive(Debug, clap::Parser)]
#[command(
    name = "flame-bpf",
    version,
    override_usage = "flame-bpf [OPTIONS] [DURATION] [-- COMMAND [ARGS]...]\n       flame-bpf top [OPTIONS]\n       flame-bpf service --otlp URL [OPTIONS]\n       flame-bpf render FILE [OPTIONS]\n       flame-bpf diff BEFORE AFTER [OPTIONS]\n       flame-bpf annotate [FILE] FUNCTION [OPTIONS]\n       flame-bpf doctor [-p PID]",
    after_help = help::EXAMPLES,
    after_long_help = format!("{}\n\n{}", help::EXAMPLES, help::READING),
    args_conflicts_with_subcommands = true,
    max_term_width = 120
)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    record: record::RecordArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show on the terminal where time goes, while it goes on; takes the options of a recording, but not those of files
    #[command(
        override_usage = "flame-bpf top [OPTIONS] [DURATION] [-- COMMAND [ARGS]...]",
        mut_args(help::in_top)
    )]
    Top(Box<record::RecordArgs>),
    #[command(mut_args(help::in_service))]
    Service(Box<service::ServiceArgs>),
    Render(Box<render::RenderArgs>),
    Diff(Box<diff::DiffArgs>),
    Annotate(Box<annotate::AnnotateArgs>),
    Doctor(doctor::DoctorArgs),
    #[command(subcommand)]
    Inspect(inspect::Inspect),
    Completions(generated::CompletionsArgs),
    /// Print the man page: flame-bpf man | man -l -
    Man,
}

/// Reads the command line, the program's own name first.
///
/// # Errors
/// Text to print, and the exit code, where there is nothing to do: help that was asked for, or a
/// command line that cannot be obeyed.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    stdout_is_terminal: bool,
) -> Result<Task, Exit> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let is_recording = |word: &OsString| word.as_encoded_bytes().ends_with(b".fbpf");
    if arguments.get(1).is_some_and(is_recording) {
        arguments.insert(1, "render".into());
    }
    text::join_report(&mut arguments);
    read(&arguments, stdout_is_terminal).map_err(|exit| {
        if exit.code == 0 {
            return exit;
        }
        let typed = arguments.get(1..).unwrap_or_default();
        // Others' tools have no such commands.
        let command = Args::command();
        let is_ours = |word: &OsString| command.get_subcommands().any(|sub| sub.get_name() == word);
        if typed.first().is_some_and(is_ours) {
            return exit;
        }
        let accepted = |spelling: &[OsString]| {
            let program = arguments.iter().take(1);
            let whole: Vec<OsString> = program.chain(spelling).cloned().collect();
            read(&whole, stdout_is_terminal).is_ok()
        };
        hints::advice(typed, accepted).map_or(exit, |advice| Exit::usage(&advice))
    })
}

/// [`parse`], without advice.
fn read(arguments: &[OsString], stdout_is_terminal: bool) -> Result<Task, Exit> {
    if help::is_short(arguments) {
        let error = help::brief(Args::command()).try_get_matches_from(arguments);
        if let Err(error) = error {
            return Err(Exit::from_clap(error));
        }
    }
    let Args { command, record } = Args::try_parse_from(arguments).map_err(Exit::from_clap)?;
    let task = match command {
        Some(Command::Render(args)) => {
            render::build(*args, stdout_is_terminal).map(|rendering| Task::Render(rendering.into()))
        }
        Some(Command::Top(mut args)) => {
            args.live = true;
            plan::build(*args, stdout_is_terminal, None).map(|plan| Task::Record(plan.into()))
        }
        Some(Command::Service(args)) => return service(*args, stdout_is_terminal),
        Some(Command::Diff(args)) => diff::build(*args).map(|diffing| Task::Diff(diffing.into())),
        Some(Command::Annotate(args)) => {
            annotate::build(*args, usual()).map(|annotating| Task::Annotate(annotating.into()))
        }
        Some(Command::Doctor(args)) => doctor::build(&args).map(|tried| Task::Doctor(tried.into())),
        Some(Command::Inspect(args)) => args.task(),
        Some(Command::Completions(args)) => {
            return Err(generated::completions(&args, Args::command()));
        }
        Some(Command::Man) => return Err(generated::man(Args::command())),
        None if record.command.is_empty() && arguments.iter().any(|word| word == "--") => {
            return Err(Exit::usage("there is no command behind `--`"));
        }
        None => plan::build(record, stdout_is_terminal, None).map(|plan| Task::Record(plan.into())),
    };
    task.map_err(|error| Exit::usage(&format!("{error:#}")))
}

/// The flags of a recording of which nothing is said.
fn usual() -> record::RecordArgs {
    Args::parse_from(["flame-bpf"]).record
}

/// The task of a service, which may be to say whether it is right.
fn service(args: service::ServiceArgs, stdout_is_terminal: bool) -> Result<Task, Exit> {
    let service::ServiceArgs {
        service,
        mut record,
    } = args;
    let checks = service.check_config;
    if service.with_off_cpu {
        // A budget says by itself how many.
        let is_bounded = record.running.max_overhead.is_some();
        let period = (!is_bounded).then_some(service::DEFAULT_WAIT_PERIOD);
        record.off_cpu.set_beside(period);
    }
    if !record.command.is_empty() {
        return Err(Exit::usage(
            "a service runs no command; leave out what is behind `--`, or record without `service`",
        ));
    }
    let plan = service.service(record.window.take()).and_then(|service| {
        if record.takes_samples()? {
            record.sampling.settle_rate(service::DEFAULT_HZ);
        }
        plan::build(record, stdout_is_terminal, Some(service))
    });
    match plan {
        Ok(plan) if checks => Ok(Task::Check(plan.into())),
        Ok(plan) => Ok(Task::Record(plan.into())),
        Err(error) => Err(Exit::usage(&format!("{error:#}"))),
    }
}

/// How to end instead of recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Text to print: on stdout where `code` is 0, on stderr otherwise. Ends with a newline.
    pub text: String,
    /// The exit code: 0 for help, the version and what is generated, 2 for a command line that cannot be obeyed.
    pub code: u8,
}

impl Exit {
    fn usage(sentence: &str) -> Self {
        Self {
            text: format!("error: {sentence}\n\nFor more information, try '--help'.\n"),
            code: 2,
        }
    }

    /// The fault, without words around it.
    pub fn reason(&self) -> &str {
        let text = self.text.trim();
        let text = text.strip_prefix("error: ").unwrap_or(text);
        // Behind it stand the usage, and where there is help.
        text.split("\n\n").next().unwrap_or_default()
    }

    fn from_clap(mut error: clap::Error) -> Self {
        // A tip to put the flag behind `--`, where it would be run as a command.
        error.remove(ContextKind::Suggested);
        if !is_near(&error) {
            error.remove(ContextKind::SuggestedArg);
        }
        let code = match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => 0,
            _ => 2,
        };
        Self {
            text: error.render().to_string(),
            code,
        }
    }
}

/// Whether the flag that clap suggests is what somebody may have meant: one or two letters away.
fn is_near(error: &clap::Error) -> bool {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        Some(ContextValue::Strings(texts)) => texts.first().map(String::as_str),
        _ => None,
    };
    let (typed, suggested) = (
        text(ContextKind::InvalidArg),
        text(ContextKind::SuggestedArg),
    );
    let near = |(typed, suggested)| strsim::osa_distance(typed, suggested) <= 2;
    typed.zip(suggested).is_none_or(near)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_flags_are_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_flag_and_its_help_take_a_line_and_a_half() {
        let mut command = Args::command();
        command.build();
        let all = std::iter::once(&command).chain(command.get_subcommands());
        for arg in all.flat_map(|command| command.get_arguments()) {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.chars().count() <= 130, "{}: {help}", arg.get_id());
        }
    }

    #[test]
    fn help_lists_no_flag_that_is_refused() {
        let shown = |line: &str| {
            let words = std::iter::once("flame-bpf").chain(line.split(' '));
            let exit = parse(words.map(OsString::from), true).expect_err("it is help");
            assert_eq!(exit.code, 0, "{}", exit.text);
            exit.text
        };
        let (top, service, whole) = (
            shown("top --help"),
            shown("service --help"),
            shown("--help"),
        );
        for (flag, of_service) in [
            ("--output", false),
            ("--folded", false),
            ("--open", false),
            ("--source", false),
            ("--report", false),
            ("--flamechart", false),
            ("--off-cpu-output", false),
            ("--kernel-lines", false),
            ("--window", true),
            ("--root-per", true),
            ("--pid", true),
            ("--focus", true),
        ] {
            let has = |help: &str| {
                help.lines()
                    .any(|line| line.split([' ', ',', '=', '[']).any(|word| word == flag))
            };
            assert!(has(&whole), "{flag}");
            assert_eq!(has(&service), of_service, "{flag}");
            assert_eq!(
                has(&top),
                of_service && !["--window", "--root-per"].contains(&flag),
                "{flag}"
            );
        }
    }

    /// Words that bring the parser, and the hints, to every corner.
    fn word() -> impl Strategy<Value = String> {
        let flags = "--?(-|p|pid|d|dfK|adf|F|e|o|t|g|r|call-graph|title|é)(=?[0-9a-z.,:-]{0,4})";
        prop_oneof![
            flags,
            "(record|render|inspect|top|sleep|10|0|max|a\\.svg|cycles:u|nginx|-|é)",
            any::<String>()
        ]
    }

    proptest! {
        #[test]
        fn whatever_is_typed_gets_a_task_or_an_answer(words in prop::collection::vec(word(), 0..6)) {
            let program = std::iter::once("flame-bpf".to_owned());
            match parse(program.chain(words).map(OsString::from), true) {
                Ok(Task::Record(plan)) => {
                    prop_assert!(plan.events.iter().all(|event| event.outputs.is_empty() == plan.live));
                    prop_assert!(!plan.events.is_empty());
                    prop_assert!(plan.target != crate::plan::Target::Launched || plan.launch.is_some());
                    prop_assert!(plan.launch.is_none_or(|command| !command.is_empty()));
                }
                Ok(_) => {}
                Err(exit) => {
                    prop_assert!(exit.text.ends_with('\n'));
                    prop_assert!(exit.code == 2 || (exit.code == 0 && !exit.text.starts_with("error")));
                }
            }
        }
    }
}
