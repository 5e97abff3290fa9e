//! Feeds broken input to everything that reads what others wrote.
//!
//! In: `TARGET SECONDS SEED FOLDER`, as `cargo xtask fuzz` gives them. Out: a line for each target, and for each failure its
//! input in FOLDER and an exit code of 1. A failure is a panic, an abort, more memory or more time than [`child`] allows.
//!
//! The inputs are made from real ones by [`mutate`] and depend on the seed and their number alone: this process starts
//! itself again for each target, and when that child dies, makes the last input once more and writes it down.
#![allow(clippy::print_stdout, reason = "what was tried is the output")]

mod child;
mod corpus;
mod inputs;
mod memory;
mod mutate;
mod names;
mod raw;
mod target;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use flame_bpf::allocator::Counting;
use target::Target;

/// The command's allocator, which counts the memory that symbolizing takes.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A child that does not get on for so long is stuck. An honest input is done in a hundredth of this.
const STUCK: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["--child", target, seconds, seed, progress] => (|| {
            child::run(
                parse(target)?,
                parse(seconds)?,
                parse(seed)?,
                progress.as_ref(),
            )
        })()
        .map(|()| true),
        [target, seconds, seed, folder] => supervise(target, seconds, seed, folder.as_ref()),
        _ => Err(anyhow::anyhow!(
            "usage: TARGET|all SECONDS SEED FOLDER; `cargo xtask fuzz` does this"
        )),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn parse<T: FromStr>(word: &str) -> Result<T>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    word.parse()
        .with_context(|| format!("{word:?} makes no sense here"))
}

/// Runs each target wanted; says whether none failed.
fn supervise(wanted: &str, seconds: &str, seed: &str, folder: &Path) -> Result<bool> {
    let targets: Vec<Target> = match wanted {
        "all" => Target::ALL.to_vec(),
        one => vec![parse(one)?],
    };
    let (seconds, seed): (f64, u64) = (parse(seconds)?, parse(seed)?);
    ensure!(seconds > 0.0, "{seconds} s are no time at all");
    let mut good = true;
    for target in &targets {
        let failure = attempt(*target, seconds / targets.len() as f64, seed, folder)?;
        good &= failure.is_none();
    }
    Ok(good)
}

/// Runs one target; gives the file of the input that it failed on.
fn attempt(target: Target, seconds: f64, seed: u64, folder: &Path) -> Result<Option<PathBuf>> {
    let progress = tempfile::NamedTempFile::new().context("cannot make a file")?;
    let itself = std::env::current_exe().context("cannot find this program's own path")?;
    let mut child = Command::new(itself)
        .args([
            "--child",
            target.name(),
            &seconds.to_string(),
            &seed.to_string(),
        ])
        .arg(progress.path())
        .spawn()
        .context("cannot start this program again")?;
    let (mut number, mut since) = (None, Instant::now());
    let stuck = loop {
        if child
            .try_wait()
            .context("cannot wait for a child")?
            .is_some()
        {
            break false;
        }
        let now = child::read_progress(progress.path());
        if now != number {
            (number, since) = (now, Instant::now());
        }
        if since.elapsed() > STUCK {
            child.kill().context("cannot kill a child")?;
            break true;
        }
        thread::sleep(Duration::from_millis(20));
    };
    let status = child.wait().context("cannot wait for a child")?;
    let number = child::read_progress(progress.path());
    let tried = number.map_or(0, |number| number + 1);
    if status.success() {
        println!(
            "fuzz: {} survived {tried} inputs, seed {seed}",
            target.name()
        );
        return Ok(None);
    }
    let Some(number) = number else {
        bail!(
            "the child for {} ended before its first input: {status}",
            target.name()
        );
    };
    let input = target.input(&target.corpus()?, seed, number);
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let path = folder.join(format!("{}-{seed}-{number}", target.name()));
    fs::write(&path, input).with_context(|| format!("cannot write {}", path.display()))?;
    let how = if stuck {
        "stuck".to_owned()
    } else {
        status.to_string()
    };
    println!(
        "fuzz: {} FAILED at input {number} of seed {seed} ({how}): {}",
        target.name(),
        path.display()
    );
    Ok(Some(path))
}
