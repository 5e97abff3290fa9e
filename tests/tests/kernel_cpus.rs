//! CPUs that come online and go offline while a recording goes on.

use std::fs;
use std::io;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::Duration;

use flame_bpf_tests::{
    Folded, Invocation, Program, Stack, assert_alone, kernel_test, require, tool,
};
use rustix::process::Signal;

/// The last CPU of those that run, with the switch that turns it off. On again when this is dropped.
struct Switch(String, u32);

impl Switch {
    fn find() -> Result<Self, String> {
        assert_alone();
        let cpus = flame_bpf::kernel::online_cpus().map_err(|error| error.to_string())?;
        let cpu = *cpus.last().ok_or("no CPU is online")?;
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/online");
        let switch = Self(path, cpu);
        let tried = switch.turn("0").and_then(|()| switch.turn("1"));
        tried.map_err(|error| format!("CPU {cpu} cannot be turned off: {error}"))?;
        Ok(switch)
    }

    fn turn(&self, state: &str) -> io::Result<()> {
        fs::write(&self.0, state)
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _it_stays_off = self.turn("1");
    }
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _has_ended = self.0.kill();
        let _is_reaped = self.0.wait();
    }
}

/// A program that works on this CPU alone.
fn work_on(cpu: u32) -> Killed {
    let workload = Command::new("taskset")
        .args(["-c", &cpu.to_string()])
        .arg(Program::c("shares").path())
        .stdout(std::process::Stdio::null())
        .spawn();
    Killed(workload.expect("taskset is there"))
}

/// Whether there are samples of the program on this CPU.
fn has_work_on(folded: &Folded, cpu: u32) -> bool {
    let on_it = |stack: &Stack| stack.has("work_round") && stack.root() == format!("[cpu {cpu}]");
    folded.any(on_it)
}

#[kernel_test(alone)]
fn a_cpu_that_comes_is_sampled_and_one_that_goes_is_named() {
    require!(tool("taskset"));
    let switch = require!(Switch::find());
    switch.turn("0").expect("it was turned off before");
    let mut running = Invocation::new("-f -a -F 199 --per-cpu").start();
    running.wait_until_all_attached();
    switch.turn("1").expect("it was turned on before");
    let cpu = switch.1;
    let workload = work_on(cpu);
    // One second until the list of CPUs is read, and one of samples.
    sleep(Duration::from_millis(2500));
    drop(workload);
    switch.turn("0").expect("it was turned off before");
    sleep(Duration::from_millis(1500));
    running.signal(Signal::INT);
    let run = running.finish().expect_code(0);
    let run = run
        .expect_stderr(&format!("CPU {cpu} came online after"))
        .expect_stderr("went offline after");
    let folded = run.folded();
    assert!(has_work_on(&folded, cpu), "{folded}");
}

#[kernel_test(alone)]
fn a_cpu_that_goes_and_returns_at_once_is_sampled_again() {
    require!(tool("taskset"));
    let switch = require!(Switch::find());
    let cpu = switch.1;
    let mut running = Invocation::new("-f -a -F 199 --per-cpu").start();
    running.wait_until_all_attached();
    switch.turn("0").expect("it was turned off before");
    switch.turn("1").expect("it was turned on before");
    // One second until it is looked at, and one of samples.
    sleep(Duration::from_millis(1500));
    let workload = work_on(cpu);
    sleep(Duration::from_millis(1000));
    drop(workload);
    running.signal(Signal::INT);
    let run = running.finish().expect_code(0);
    let run = run.expect_stderr(&format!("CPU {cpu} went offline after"));
    let folded = run.folded();
    assert!(has_work_on(&folded, cpu), "{folded}");
}
