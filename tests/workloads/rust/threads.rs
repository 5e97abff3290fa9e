//! A Rust program of three named threads, each with a function of its own and an appetite of its own.
//!
//! Prints `ready TID...` in the order alpha, beta, gamma, and runs until it is killed.

use std::hint::black_box;
use std::io::Write;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

// Each function changes what it got from the next, or the call would be a jump and the frame lost.
mod alpha {
    #[inline(never)]
    pub fn checksum(turns: u64) -> u64 {
        super::turn_over(turns) ^ 1
    }
}

struct Beta;

trait Churn {
    fn churn(&self, turns: u64) -> u64;
}

impl Churn for Beta {
    #[inline(never)]
    fn churn(&self, turns: u64) -> u64 {
        turn_over(turns) ^ 2
    }
}

#[inline(never)]
fn generic_grind<T: Copy + Into<u64>>(turns: T) -> u64 {
    turn_over(turns.into()) ^ 3
}

#[inline(never)]
fn turn_over(turns: u64) -> u64 {
    let mut x = turns | 1;
    for _ in 0..turns {
        x = black_box(x.wrapping_mul(6364136223846793005).wrapping_add(1));
    }
    x
}

/// This thread's ID, which the kernel puts at the end of a symbolic link's target.
fn tid() -> String {
    let link = std::fs::read_link("/proc/thread-self").expect("procfs is mounted");
    let name = link
        .file_name()
        .expect("the link ends with the thread's ID");
    name.to_string_lossy().into_owned()
}

fn live(name: &str, idle: Duration, work: fn()) -> String {
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            sender.send(tid()).expect("the main thread waits for this");
            loop {
                let start = Instant::now();
                while start.elapsed() < Duration::from_millis(2) {
                    work();
                }
                if !idle.is_zero() {
                    thread::sleep(idle);
                }
            }
        })
        .expect("a thread can be started");
    receiver.recv().expect("the thread says who it is")
}

fn main() {
    let tids = [
        live("alpha-thread", Duration::ZERO, || {
            black_box(alpha::checksum(20_000));
        }),
        live("beta-thread", Duration::from_millis(2), || {
            black_box(Beta.churn(20_000));
        }),
        live("gamma-thread", Duration::from_millis(6), || {
            black_box(generic_grind(20_000_u32));
        }),
    ];
    println!("ready {}", tids.join(" "));
    std::io::stdout().flush().expect("stdout is open");
    // Nobody waits for a test that crashed: end on one's own, later than any test.
    thread::sleep(Duration::from_secs(240));
}
