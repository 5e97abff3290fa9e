//! flame-bpf and perf, and how each is asked for the same thing.
//!
//! In: a rate, perhaps a CPU and a duration. Out: command lines and the processes that they start. Both sample the whole
//! machine by the same clock.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use super::command::{PRINTED, Running, Usage, last_message, run};
use super::{bpf, interrupt};
use crate::workspace::in_path;

/// The profiler of waits in libbpf-tools.
const OFFCPUTIME: &str = "offcputime";

/// Where flame-bpf draws.
const GRAPH: &str = "flame.svg";

/// Time that perf events need from being opened to sampling at their rate, with room to spare.
const SETTLING: Duration = Duration::from_millis(300);

/// A profiler.
#[derive(Clone)]
pub(super) struct Profiler {
    /// As in the tables.
    pub(super) name: &'static str,
    program: PathBuf,
    /// Arguments behind the program, before the rate.
    record: String,
    /// Option for the rate; empty for a profiler that has none.
    rate: &'static str,
    /// Option for a number of seconds.
    length: &'static str,
    /// Turns what was recorded into text.
    convert: Option<&'static str>,
    /// Whether it counts in BPF programs.
    pub(super) uses_bpf: bool,
}

/// Request to a recorder.
#[derive(Clone, Copy, Default)]
pub(super) struct Request {
    /// Samples a second on each CPU.
    pub(super) rate: u32,
    /// How long, in seconds; until it is interrupted where there is no number.
    pub(super) seconds: Option<u32>,
    /// Only there; everywhere where there is none.
    pub(super) cpu: Option<usize>,
}

/// A profiler that records.
pub(super) struct Recording<'a> {
    profiler: &'a Profiler,
    /// Its process.
    pub(super) process: Running,
    folder: TempDir,
}

/// flame-bpf as it is asked for by most, with more arguments.
pub(super) fn flame_bpf(name: &'static str, program: &Path, more: &str) -> Profiler {
    Profiler {
        name,
        program: program.to_owned(),
        record: format!("-q -e cpu-clock -o {GRAPH} {more}"),
        rate: "-F",
        length: "-d",
        convert: None,
        uses_bpf: true,
    }
}

/// flame-bpf as it records waits, with more arguments: each of them, so there is no rate.
pub(super) fn flame_bpf_of_waits(name: &'static str, program: &Path, more: &str) -> Profiler {
    Profiler {
        record: format!("-q --off-cpu -o {GRAPH} {more}"),
        rate: "",
        ..flame_bpf(name, program, "")
    }
}

/// perf, if it is installed.
pub(super) fn perf() -> Option<Profiler> {
    Some(perf_at(in_path("perf")?, "perf record -g", "-g"))
}

/// libbpf-tools' `offcputime`, if it is installed. It prints text.
pub(super) fn offcputime() -> Option<Profiler> {
    Some(Profiler {
        name: OFFCPUTIME,
        program: in_path(OFFCPUTIME)?,
        // By itself it keeps 1,024 stacks.
        record: "--stack-storage-size=16384".into(),
        rate: "",
        length: "",
        convert: None,
        uses_bpf: true,
    })
}

fn perf_at(program: PathBuf, name: &'static str, more: &str) -> Profiler {
    Profiler {
        name,
        program,
        // Without -N it copies objects to a cache in the home folder, once and not each time.
        record: format!("record -q -a -N -e cpu-clock -k mono -o perf.data {more}"),
        rate: "-F",
        length: "-- sleep",
        // Without lines of inlined functions, which take it minutes.
        convert: Some("perf script --no-inline -i perf.data"),
        uses_bpf: false,
    }
}

impl Profiler {
    /// perf as it interrupts, but walks no stack: what interrupts alone cost. None where this is not perf.
    pub(super) fn without_stacks(&self) -> Option<Self> {
        let program = self.program.clone();
        (!self.uses_bpf).then(|| perf_at(program, "perf record, no stacks", ""))
    }

    /// The command line that records.
    pub(super) fn line(&self, request: Request) -> String {
        let mut line = format!("exec '{}' {}", self.program.display(), self.record);
        if !self.rate.is_empty() {
            line += &format!(" {} {}", self.rate, request.rate);
        }
        if let Some(cpu) = request.cpu {
            line += &format!(" -C {cpu}");
        }
        if let Some(seconds) = request.seconds {
            line += &format!(" {} {seconds}", self.length);
        }
        line
    }

    /// Records in `folder` and makes what is made of that; what both used.
    ///
    /// # Errors
    /// When it recorded nothing.
    pub(super) fn record(&self, request: Request, folder: &Path) -> Result<Usage> {
        let recorded = run(&self.line(request), folder)?;
        let made = self.finish(folder)?;
        Ok(Usage {
            cpu_s: recorded.cpu_s + made.cpu_s,
            peak_mib: recorded.peak_mib.max(made.peak_mib),
            success: true,
        })
    }

    /// Turns what lies in `folder` into text, where that is another command, and looks whether there is anything.
    ///
    /// # Errors
    /// When it recorded nothing.
    pub(super) fn finish(&self, folder: &Path) -> Result<Usage> {
        let used = match self.convert {
            Some(line) => run(line, folder)?,
            None => Usage::default(),
        };
        let holds = |name: &str| fs::metadata(folder.join(name)).is_ok_and(|file| file.len() > 0);
        ensure!(
            holds(GRAPH) || holds(PRINTED) || holds("perf.data"),
            "{} recorded nothing{}",
            self.name,
            last_message(folder)
        );
        Ok(used)
    }

    /// Runs for a second, to see whether it does.
    ///
    /// # Errors
    /// When it does not run here.
    pub(super) fn try_out(&self) -> Result<()> {
        let folder = tempfile::tempdir().context("cannot make a folder")?;
        let request = Request {
            rate: 997,
            seconds: Some(1),
            cpu: None,
        };
        self.record(request, folder.path()).map(|_| ())
    }
}

impl<'a> Recording<'a> {
    /// Starts to record until it is interrupted.
    ///
    /// # Errors
    /// When no process can be started.
    pub(super) fn start(profiler: &'a Profiler, rate: u32, cpu: Option<usize>) -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a folder")?;
        let seconds = None;
        let line = profiler.line(Request { rate, seconds, cpu });
        Ok(Self {
            profiler,
            process: Running::start(&line, folder.path())?,
            folder,
        })
    }

    /// The same, and waits until it samples at its rate.
    ///
    /// # Errors
    /// When it ends before.
    pub(super) fn settled(profiler: &'a Profiler, rate: u32, cpu: Option<usize>) -> Result<Self> {
        let mut recording = Self::start(profiler, rate, cpu)?;
        recording.wait_until(Duration::from_millis(5), bpf::has_perf_event)?;
        interrupt::pause(SETTLING)?;
        Ok(recording)
    }

    /// Waits until something is true of the process ID, which is asked every `step`.
    ///
    /// # Errors
    /// When it ends before.
    pub(super) fn wait_until(
        &mut self,
        step: Duration,
        mut is_true: impl FnMut(u32) -> bool,
    ) -> Result<()> {
        let limit = Duration::from_secs(60);
        interrupt::until(step, limit, || {
            ensure!(
                !self.process.has_ended()?,
                "{} has ended early{}",
                self.profiler.name,
                last_message(self.folder.path())
            );
            Ok(is_true(self.process.pid()).then_some(()))
        })
    }

    /// Does as Ctrl-C does; what was recorded is of no interest.
    ///
    /// # Errors
    /// When it does not end.
    pub(super) fn discard(&mut self) -> Result<()> {
        self.process.interrupt()?;
        interrupt::pause(Duration::from_millis(100))
    }

    /// When its first sample was taken, in seconds of the monotonic clock; of perf, which notes times.
    ///
    /// # Errors
    /// When there is no sample.
    pub(super) fn first_sample(&self) -> Result<f64> {
        let folder = self.folder.path();
        run("perf script --ns -F time -i perf.data > times", folder)?;
        let text = fs::read_to_string(folder.join("times")).context("cannot read times")?;
        let times = text
            .lines()
            .filter_map(|line| line.trim().trim_end_matches(':').parse::<f64>().ok());
        times
            .min_by(f64::total_cmp)
            .context("perf recorded no sample")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_holds_what_was_asked_for() {
        let ours = flame_bpf("flame-bpf", Path::new("/bin/f"), "-a");
        let mut request = Request {
            rate: 99,
            seconds: Some(10),
            cpu: Some(1),
        };
        assert_eq!(
            ours.line(request),
            "exec '/bin/f' -q -e cpu-clock -o flame.svg -a -F 99 -C 1 -d 10"
        );
        (request.seconds, request.cpu) = (None, None);
        assert_eq!(
            perf_at("perf".into(), "perf", "-g").line(request),
            "exec 'perf' record -q -a -N -e cpu-clock -k mono -o perf.data -g -F 99"
        );
    }
}
