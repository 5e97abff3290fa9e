//! A service and real collectors: what was recorded is in a collector's file, each window once, whatever happens meanwhile; and what
//! collectors lose that are killed.

#![expect(
    clippy::print_stdout,
    reason = "figures, for whoever runs them by hand"
)]

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use flame_bpf_tests::{
    Collector, Exchange, Invocation, Mounted, Passing, ProfileServer, Program, Proxy, kernel_test,
    require, wait_until,
};
use rustix::process::Signal;
use tempfile::tempdir;

/// Troubles of a collector and of the way to it, one after the other.
struct Troubles {
    /// It loses each so-manieth answer.
    loses_each: usize,
    /// How long all goes well, before, between and behind the others.
    fine: Duration,
    stopped: Duration,
    disk_full: Duration,
}

/// Puts bytes into a folder until nothing more goes in.
fn fill(folder: &Path) -> std::path::PathBuf {
    let filler = folder.join("filler");
    let _full = fs::write(&filler, vec![0; 128 << 20]);
    filler
}

/// Nothing is lost, nothing is there twice by its ID, and all that was recorded is in the collector's file.
fn each_window_is_there(troubles: &Troubles) {
    let folder = tempdir().expect("a temporary folder can be made");
    let disk = require!(Mounted::small(folder.path().to_owned(), 96 << 10));
    let mut collector = require!(Collector::start(Passing::Written, &disk.0));
    let proxy = Proxy::start(collector.address(), Some(troubles.loses_each));
    let _workload = Program::c("shares").start(&[]);
    let mut running = Invocation::new("service -v -a -F 199 --window 1s")
        .flag("--otlp", proxy.url())
        .start();
    running.wait_until_attached();
    let takes_again = |since: Instant| {
        wait_until(|| {
            let exchanges = proxy.exchanges();
            let last = exchanges.last();
            last.is_some_and(|last| last.is_taken && !last.is_lost && last.at > since)
        });
        sleep(troubles.fine);
    };
    takes_again(Instant::now());
    collector.end();
    sleep(troubles.stopped);
    collector.begin();
    takes_again(Instant::now());
    let filler = fill(&disk.0);
    sleep(troubles.disk_full);
    fs::remove_file(filler).expect("it is there");
    takes_again(Instant::now());
    running.signal(Signal::TERM);
    let run = running.finish().expect_no_panic().expect_code(0);
    run.lossless_balance().assert_even();
    collector.end();
    let (held, exchanges) = (collector.held(), proxy.exchanges());
    let recorded = run.balance().recorded;
    let stderr = &run.stderr;
    assert_eq!(held.sums.values().sum::<u64>(), recorded, "{stderr}");
    assert_eq!(held.sums, Exchange::taken(&exchanges), "{stderr}");
    let lost: Vec<_> = exchanges.iter().filter(|of| of.is_lost).collect();
    let failed = exchanges.iter().filter(|of| !of.is_taken).count();
    assert!(lost.len() > 1 && failed > 1, "{} {failed}", lost.len());
    // A window comes twice where the answer was lost, and only there.
    let again: usize = lost.iter().map(|of| Exchange::taken([*of]).len()).sum();
    assert_eq!(held.again, again, "{stderr}");
    // The disk was full in the middle of a line, which came again.
    assert!(held.torn <= 1, "{} torn lines", held.torn);
    assert!(stderr.contains("takes profiles again"), "{stderr}");
    let windows = stderr
        .lines()
        .find_map(|line| line.split_once(" windows to "));
    println!(
        "{:?} windows, {} requests, {failed} failed, {} answers lost, {} profiles ({again} twice), {recorded} samples",
        windows.map(|(before, _)| before),
        exchanges.len(),
        lost.len(),
        held.sums.len(),
    );
}

#[kernel_test]
fn each_window_is_in_a_collectors_file_though_it_stops_its_disk_is_full_and_answers_are_lost() {
    each_window_is_there(&Troubles {
        loses_each: 4,
        fine: Duration::from_secs(3),
        stopped: Duration::from_secs(3),
        disk_full: Duration::from_secs(3),
    });
}

#[kernel_test]
#[ignore = "takes two minutes: a hundred windows"]
fn each_of_a_hundred_windows_is_in_a_collectors_file() {
    each_window_is_there(&Troubles {
        loses_each: 25,
        fine: Duration::from_secs(20),
        stopped: Duration::from_secs(30),
        disk_full: Duration::from_secs(10),
    });
}

/// A collector that is killed, and the way to it.
struct Killed {
    collector: Collector,
    proxy: Proxy,
}

impl Killed {
    /// Requests that it took.
    fn taken(&self) -> usize {
        let exchanges = self.proxy.exchanges();
        exchanges.iter().filter(|of| of.is_taken).count()
    }
}

#[kernel_test]
fn collectors_that_are_killed_lose_what_they_took_unless_they_store_it() {
    let servers = [(); 2].map(|()| ProfileServer::start(&[]));
    servers.iter().for_each(|server| server.set_down(true));
    let urls = servers.each_ref().map(ProfileServer::url);
    let kinds = [
        Passing::Buffered,
        Passing::Written,
        Passing::Queued(&urls[0]),
        Passing::Stored(&urls[1]),
    ];
    let folders = kinds.map(|_| tempdir().expect("a temporary folder can be made"));
    let mut all = Vec::new();
    for (passing, folder) in kinds.into_iter().zip(&folders) {
        let collector = require!(Collector::start(passing, folder.path()));
        let proxy = Proxy::start(collector.address(), None);
        all.push(Killed { collector, proxy });
    }
    let _workload = Program::c("shares").start(&[]);
    let invocation = Invocation::new("service -v -a -F 199 --window 1s");
    let to = |invocation: Invocation, of: &Killed| invocation.flag("--otlp", of.proxy.url());
    let mut running = all.iter().fold(invocation, to).start();
    running.wait_until_attached();
    wait_until(|| all.iter().all(|of| of.taken() > 2));
    all.iter_mut().for_each(|of| of.collector.kill());
    let killed = Instant::now();
    all.iter_mut().for_each(|of| of.collector.begin());
    let before: Vec<usize> = all.iter().map(Killed::taken).collect();
    let goes_on = |(of, before): (&Killed, &usize)| of.taken() > before + 1;
    wait_until(|| all.iter().zip(&before).all(goes_on));
    running.signal(Signal::TERM);
    let run = running.finish().expect_no_panic().expect_code(0);
    let recorded = run.lossless_balance().recorded;
    servers.iter().for_each(|server| server.set_down(false));
    for (number, (of, passing)) in all.iter_mut().zip(kinds).enumerate() {
        let exchanges = of.proxy.exchanges();
        let taken = Exchange::taken(&exchanges);
        // None is lost before a collector says that it has it.
        assert_eq!(taken.values().sum::<u64>(), recorded, "{}", run.stderr);
        let before = Exchange::taken(exchanges.iter().filter(|of| of.at < killed));
        let arrived = match passing {
            Passing::Buffered | Passing::Written => {
                of.collector.end();
                of.collector.held().sums
            }
            Passing::Queued(_) | Passing::Stored(_) => {
                let server = &servers[number - 2];
                let is_stored = matches!(passing, Passing::Stored(_));
                let is_to_come = |id: &&String| is_stored || !before.contains_key(*id);
                wait_until(|| {
                    let sums = server.sums();
                    taken
                        .keys()
                        .filter(is_to_come)
                        .all(|id| sums.contains_key(id))
                });
                server.sums()
            }
        };
        let missing = taken.iter().filter(|(id, _)| !arrived.contains_key(*id));
        let missing: Vec<_> = missing.collect();
        let is_before = |(id, _): &(&String, &u64)| before.contains_key(*id);
        assert!(missing.iter().all(is_before), "{passing:?}");
        let lost: u64 = missing.iter().map(|(_, sum)| **sum).sum();
        assert_eq!(
            arrived.values().sum::<u64>() + lost,
            recorded,
            "{passing:?}"
        );
        println!(
            "{passing:?}: {} of {} profiles lost",
            missing.len(),
            taken.len()
        );
        match passing {
            Passing::Written | Passing::Stored(_) => assert_eq!(lost, 0, "{passing:?}"),
            Passing::Queued(_) => assert_eq!(missing.len(), before.len(), "it was in memory"),
            // Its buffer has the end of the last one, or nothing.
            Passing::Buffered => {}
        }
    }
}
