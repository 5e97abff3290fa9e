//! Survival and cost of naming the code of hostile objects.
//!
//! In: an object that is cut short while it is read, and one whose compressed debug information is huge. Out: how often
//! flame-bpf and blazesym live through the first, and what the second takes. Profilers read objects as root that any user
//! may write. Never leaves these objects behind.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::command::{Running, run};
use super::figure::{Figure, Table, Unit};
use super::symbols::{addresses, text};
use super::{Bench, interrupt};

/// How many times an object is cut short, each time later by [`LATER`].
const CUTS: u32 = 40;

const LATER: Duration = Duration::from_micros(500);

/// How much an object's debug information unpacks to, in bytes.
const BOMB_BYTES: u64 = 1 << 30;

/// Takes the section's figures.
pub(super) fn measure(bench: &Bench) -> Result<Table> {
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let itself = std::env::current_exe().context("cannot find this program's own path")?;
    let all = addresses(&itself, 10_000)?;
    fs::write(folder.path().join("addresses"), text(&all, 10_000))
        .context("cannot write addresses")?;
    let commands = |object: &str| {
        let ours = bench.flame_bpf.display();
        [
            (
                "flame-bpf",
                format!("'{ours}' inspect names {object} --lines --inline"),
            ),
            (
                "blazesym",
                format!("'{}' inlines {object}", bench.blazesym.display()),
            ),
        ]
    };
    let mut table = Table::new("Naming addresses of hostile objects");
    let mut lived = Vec::new();
    for (name, command) in commands("./victim") {
        let mut count = 0;
        for cut in 0..CUTS {
            count += u32::from(lives(&command, &itself, folder.path(), LATER * cut)?);
        }
        lived.push(format!("{name} {count} of {CUTS} times"));
    }
    table.note(format!(
        "An object that is cut to a page while 10,000 addresses of it are named, each time {} µs later: lived through by {}.",
        LATER.as_micros(),
        lived.join(" and ")
    ));
    bomb(folder.path())?;
    let (mut cpu, mut peak) = (Vec::new(), Vec::new());
    for (name, command) in commands("./bomb") {
        let used = run(
            &format!("exec {command} < addresses > /dev/null"),
            folder.path(),
        )?;
        cpu.push((name, Figure::from_iter([used.cpu_s * 1000.0])));
        peak.push((name, Figure::from_iter([used.peak_mib])));
    }
    let bytes = fs::metadata(folder.path().join("bomb")).map_or(0, |file| file.len());
    let what = format!(
        "{:.1} MiB that unpack to 1 GiB",
        bytes as f64 / f64::from(1 << 20)
    );
    table.compare(&format!("{what}: CPU"), Unit::Milliseconds, cpu);
    table.compare(&format!("{what}: peak"), Unit::Mebibytes, peak);
    Ok(table)
}

/// Whether a command ends well whose object is cut short so much later than it starts.
fn lives(command: &str, object: &Path, folder: &Path, later: Duration) -> Result<bool> {
    let victim = folder.join("victim");
    fs::copy(object, &victim).context("cannot copy an object")?;
    let line = format!("exec {command} < addresses > /dev/null");
    let mut running = Running::start(&line, folder)?;
    interrupt::pause(later)?;
    let file = File::options().write(true).open(&victim);
    file.and_then(|file| file.set_len(4096))
        .context("cannot cut an object short")?;
    Ok(running.wait()?.success)
}

/// Makes a small program whose debug strings unpack to a GiB.
fn bomb(folder: &Path) -> Result<()> {
    fs::write(folder.join("bomb.c"), "int main(void) { return 0; }\n")
        .context("cannot write a program")?;
    let source = format!(".section .debug_str,\"\",@progbits\n.zero {}\n", BOMB_BYTES);
    fs::write(folder.join("bomb.s"), source).context("cannot write a program")?;
    run(
        "gcc -g -O1 -gz=zlib -o bomb bomb.c bomb.s -Wl,--compress-debug-sections=zlib",
        folder,
    )?;
    Ok(())
}
