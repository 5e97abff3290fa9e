//! Programs that tests compile, run, and ask where their functions are.

use crate::process::ProcessKey;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A directory of its own for each test's files.
pub(in crate::symbolize) struct Workshop(tempfile::TempDir);

impl Workshop {
    pub(in crate::symbolize) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(in crate::symbolize) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Compiles a source into a program or library of that name.
    pub(in crate::symbolize) fn compile(
        &self,
        compiler: &str,
        name: &str,
        source: &str,
        args: &[&str],
    ) -> PathBuf {
        let extension = match compiler {
            "rustc" => "rs",
            "g++" => "cc",
            _ => "c",
        };
        let path = self.path(&format!("{name}.{extension}"));
        std::fs::write(&path, source).unwrap();
        let program = self.path(name);
        let files = ["-o", program.to_str().unwrap(), path.to_str().unwrap()];
        self.run(compiler, args.iter().copied().chain(files));
        program
    }

    /// Runs a tool, of those that building needs, to its success.
    pub(in crate::symbolize) fn run<'a>(
        &self,
        tool: &str,
        args: impl IntoIterator<Item = &'a str>,
    ) {
        assert!(self.can_run(tool, args), "{tool} is not installed");
    }

    /// Runs a tool to its success; says so and returns `false` if it is not installed.
    #[expect(clippy::print_stdout, reason = "tests say what they skip")]
    pub(in crate::symbolize) fn can_run<'a>(
        &self,
        tool: &str,
        args: impl IntoIterator<Item = &'a str>,
    ) -> bool {
        match Command::new(tool)
            .args(args)
            .current_dir(self.0.path())
            .output()
        {
            Ok(output) => {
                assert!(
                    output.status.success(),
                    "{}",
                    String::from_utf8_lossy(&output.stderr)
                );
                true
            }
            Err(error) => {
                let test = std::thread::current().name().unwrap_or("test").to_owned();
                println!("SKIP {test}: no {tool}: {error}");
                false
            }
        }
    }
}

/// A program that runs until it is told to go on, or dropped.
pub(super) struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    pub(super) fn start(program: &Path) -> Self {
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The addresses that it printed in one line.
    pub(super) fn addresses(&mut self) -> Vec<u64> {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        let number = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap();
        line.split_whitespace().map(number).collect()
    }

    pub(super) fn resume(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    pub(super) fn process_key(&self) -> ProcessKey {
        ProcessKey::new(self.child.id(), 1)
    }

    pub(super) fn end(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
