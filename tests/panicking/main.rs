//! Takes the terminal as the live view does, draws, and panics on a thread.
//!
//! In: nothing. Out: what a panic says, on a terminal that is as it was.

use flame_bpf::live::Terminal;
use std::thread;
use std::time::Duration;

fn main() {
    let mut terminal = Terminal::take().expect("there is a terminal");
    let drawing = thread::Builder::new()
        .name("view".to_owned())
        .spawn(move || {
            let drawn = terminal.show(|buffer| {
                buffer.set_string(0, 0, "taken", ratatui::style::Style::new());
            });
            drawn.expect("the terminal is there");
            thread::sleep(Duration::from_millis(1500));
            panic!("broken on purpose");
        });
    let ended = drawing.map(thread::JoinHandle::join);
    assert!(matches!(ended, Ok(Err(_))), "the thread panicked");
}
