//! Log of the machine's console.
//!
//! In: the console's text, which the script `init.sh` writes between marks. Out: the kernel's version and the lines of each
//! step. It judges nothing.

/// How a mark of `init.sh` begins.
const MARK: &str = "@@ ";

/// Everything that the script said; each part is missing from the point on where the machine stopped.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// As `uname -r` prints it.
    pub(super) kernel: Option<String>,
    /// In the order in which they were taken.
    pub(super) steps: Vec<Step>,
    /// Whether the script came to its end.
    pub(super) ended: bool,
}

/// One step.
#[derive(Debug, Default)]
pub(super) struct Step {
    /// As the script calls it.
    pub(super) name: String,
    /// Lines of its stdout.
    pub(super) out: Vec<String>,
    /// Lines of its stderr.
    pub(super) errors: Vec<String>,
    /// Its exit code, unless the machine stopped first.
    pub(super) exit: Option<i32>,
}

/// A program that the kernel accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verified {
    /// As in the BPF object.
    pub(super) program: String,
    /// How many instructions the verifier went through.
    pub(super) instructions: u64,
}

/// Part of the log that the lines behind a mark belong to.
enum LogPart {
    Outside,
    Out,
    Errors,
}

impl Log {
    /// Reads the console's text; lines outside of the steps are the kernel's own, and passed over.
    pub(super) fn parse(text: &str) -> Self {
        let mut log = Self::default();
        let mut place = LogPart::Outside;
        for line in text.lines().map(|line| line.trim_end_matches('\r')) {
            if let Some(mark) = line.strip_prefix(MARK) {
                place = log.mark(mark);
                continue;
            }
            let Some(step) = log.steps.last_mut().filter(|_| !line.is_empty()) else {
                continue;
            };
            match place {
                LogPart::Outside => (),
                LogPart::Out => step.out.push(line.to_owned()),
                LogPart::Errors => step.errors.push(line.to_owned()),
            }
        }
        log
    }

    fn mark(&mut self, mark: &str) -> LogPart {
        match mark.split_once(' ').unwrap_or((mark, "")) {
            ("kernel", release) => self.kernel = Some(release.to_owned()),
            ("step", name) => {
                self.steps.push(Step {
                    name: name.to_owned(),
                    ..Step::default()
                });
                return LogPart::Out;
            }
            ("errors", _) => return LogPart::Errors,
            ("exit", code) => {
                if let Some(step) = self.steps.last_mut() {
                    step.exit = code.parse().ok();
                }
            }
            ("end", _) => self.ended = true,
            _ => (),
        }
        LogPart::Outside
    }

    /// Every program that some step loaded, by name, with the most instructions that it took the verifier.
    pub(super) fn verified(&self) -> Vec<Verified> {
        let mut all: Vec<Verified> = self.steps.iter().flat_map(Step::verified).collect();
        all.sort_by(|one, other| {
            let most_first = other.instructions.cmp(&one.instructions);
            one.program.cmp(&other.program).then(most_first)
        });
        all.dedup_by(|later, kept| later.program == kept.program);
        all
    }
}

impl Step {
    fn verified(&self) -> impl Iterator<Item = Verified> {
        self.errors.iter().filter_map(|line| {
            let (program, rest) = line.strip_prefix("BPF program ")?.split_once(": ")?;
            let instructions = rest.strip_suffix(" instructions verified")?;
            Some(Verified {
                program: program.to_owned(),
                instructions: instructions.replace(',', "").parse().ok()?,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONSOLE: &str = "[    1.2] a message of the kernel's\r\n\
        @@ kernel 6.1.0-1-cloud-amd64\r\n\
        @@ step process\r\n\
        shares;main 3\r\n\
        \r\n\
        @@ errors\r\n\
        BPF program fork: 129 instructions verified\r\n\
        BPF program on_cpu: 8,379 instructions verified\r\n\
        @@ exit 0\r\n\
        [    2.3] another\r\n\
        @@ step machine\r\n\
        @@ errors\r\n\
        BPF program on_cpu: 9,000 instructions verified\r\n\
        @@ exit 2\r\n";

    #[test]
    fn the_log_is_divided_into_steps() {
        let log = Log::parse(CONSOLE);
        assert_eq!(log.kernel.as_deref(), Some("6.1.0-1-cloud-amd64"));
        let [process, machine] = &log.steps[..] else {
            panic!("two steps: {log:?}");
        };
        assert_eq!((&*process.name, process.exit), ("process", Some(0)));
        assert_eq!(process.out, ["shares;main 3"]);
        assert_eq!(process.errors.len(), 2);
        assert_eq!((&*machine.name, machine.exit), ("machine", Some(2)));
        assert!(machine.out.is_empty() && !log.ended);
        assert!(Log::parse(&format!("{CONSOLE}@@ end\r\n")).ended);
    }

    #[test]
    fn a_step_that_the_machine_never_finished_has_no_exit_code() {
        let log = Log::parse("@@ step process\nshares 1\n[ 3.0] Kernel panic");
        assert_eq!(log.steps[0].exit, None);
        assert_eq!(log.kernel, None);
    }

    #[test]
    fn a_program_is_reported_once_with_its_largest_count() {
        let verified = Log::parse(CONSOLE).verified();
        let shown: Vec<_> = verified
            .iter()
            .map(|v| (&*v.program, v.instructions))
            .collect();
        assert_eq!(shown, [("fork", 129), ("on_cpu", 9_000)]);
    }
}
