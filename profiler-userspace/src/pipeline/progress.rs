//! The progress line, on a terminal: elapsed time and samples so far; later, what is being named or fetched.

use crate::debuginfod::Fetched;
use crate::text::number::mebibytes;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::RefCell;
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long naming may take without a word.
const SILENCE: Duration = Duration::from_secs(1);

/// How often the line is drawn from then on.
const REDRAWN: Duration = Duration::from_millis(200);

/// One line on stderr; nothing at all where that is no terminal.
pub(crate) struct Progress {
    /// Another one each time that the line was removed.
    bar: RefCell<ProgressBar>,
    duration: Option<Duration>,
}

impl Progress {
    /// A line for a recording of the given duration, or of none that is known.
    pub(crate) fn new(duration: Option<Duration>, quiet: bool) -> Self {
        let is_hidden = quiet || !std::io::stderr().is_terminal();
        Self {
            bar: RefCell::new(line(is_hidden)),
            duration,
        }
    }

    /// Whether anybody sees it.
    pub(crate) fn is_visible(&self) -> bool {
        !self.bar.borrow().is_hidden()
    }

    /// Draws the line anew. `samples`: how many there are so far, and of what.
    pub(crate) fn sampling(&self, elapsed: Duration, samples: &str) {
        let of = match self.duration {
            Some(duration) => format!(" of {}", duration.as_secs_f64()),
            None => String::new(),
        };
        self.show(format!(
            "{:.1}{of} s, {samples}; Ctrl-C stops and draws",
            elapsed.as_secs_f64(),
        ));
    }

    /// Draws the line anew while debug files are fetched.
    pub(crate) fn fetching(&self, fetched: &Fetched) {
        self.show(format!(
            "fetching debug files: {} so far; a second Ctrl-C gives up",
            mebibytes(fetched.bytes)
        ));
    }

    fn show(&self, message: String) {
        let bar = self.bar.borrow();
        bar.set_message(message);
        bar.tick();
    }

    /// Draws the line while objects are named, as soon as that has taken a second, until what is returned is
    /// dropped.
    pub(crate) fn naming(&self) -> Naming {
        Naming::begin(self.bar.borrow().clone(), SILENCE)
    }

    /// Removes the line, until there is something to say again.
    pub(crate) fn clear(&self) {
        let is_hidden = !self.is_visible();
        self.bar.replace(line(is_hidden)).finish_and_clear();
    }
}

/// A line that says nothing yet.
fn line(is_hidden: bool) -> ProgressBar {
    let bar = match is_hidden {
        true => ProgressBar::hidden(),
        false => ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()),
    };
    let style =
        ProgressStyle::with_template("{spinner} {msg}").expect("the template is well-formed");
    bar.set_style(style);
    bar
}

/// Says what takes so long, from a thread of its own: one step alone may take seconds.
struct Slow {
    // Dropping the sender ends the thread.
    drawing: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Slow {
    /// Draws a message again and again, once this has taken so long, until it is dropped.
    fn begin(
        bar: ProgressBar,
        silence: Duration,
        message: impl Fn() -> String + Send + 'static,
    ) -> Self {
        let (sender, ended) = channel::<()>();
        let draw = move || {
            let mut wait = silence;
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                bar.set_message(message());
                bar.tick();
                wait = REDRAWN;
            }
        };
        // Without a thread there is no line, and all else is the same.
        let thread = thread::Builder::new().spawn(draw).ok();
        Self {
            drawing: thread.map(|thread| (sender, thread)),
        }
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.drawing.take() {
            drop(sender);
            let _drawn = thread.join();
        }
    }
}

/// Says how many objects are named.
pub(crate) struct Naming {
    told: Arc<Told>,
    _drawing: Slow,
}

#[derive(Default)]
struct Told {
    done: AtomicUsize,
    all: AtomicUsize,
}

impl Naming {
    fn begin(bar: ProgressBar, silence: Duration) -> Self {
        let told = Arc::new(Told::default());
        let to_draw = Arc::clone(&told);
        let message = move || {
            format!(
                "naming: {} of {} objects; Ctrl-C gives up",
                to_draw.done.load(Relaxed),
                to_draw.all.load(Relaxed),
            )
        };
        Self {
            told,
            _drawing: Slow::begin(bar, silence, message),
        }
    }

    /// How far it has come.
    pub(crate) fn tell(&self, done: usize, all: usize) {
        self.told.done.store(done, Relaxed);
        self.told.all.store(all, Relaxed);
    }
}

/// Says how much of files is read. The line goes with it.
pub(crate) struct Reading {
    /// So many bytes are.
    pub(crate) bytes: Arc<AtomicU64>,
    bar: ProgressBar,
    drawing: Option<Slow>,
}

impl Reading {
    /// Of files of so many bytes together; none where that is not known.
    pub(crate) fn begin(all: Option<u64>, quiet: bool) -> Self {
        let is_hidden = quiet || !std::io::stderr().is_terminal();
        Self::on(line(is_hidden), SILENCE, all)
    }

    fn on(bar: ProgressBar, silence: Duration, all: Option<u64>) -> Self {
        let bytes = Arc::new(AtomicU64::new(0));
        let of = all.map_or_else(String::new, |all| format!(" of {}", mebibytes(all)));
        let read = Arc::clone(&bytes);
        let message = move || {
            let read = mebibytes(read.load(Relaxed));
            format!("reading: {read}{of}; Ctrl-C gives up")
        };
        Self {
            bytes,
            drawing: Some(Slow::begin(bar.clone(), silence, message)),
            bar,
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.drawing = None;
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slow_steps_show_progress() {
        let bar = ProgressBar::hidden();
        let naming = Naming::begin(bar.clone(), Duration::from_millis(1));
        naming.tell(2, 7);
        while !bar.message().starts_with("naming: 2 of 7 objects") {
            thread::yield_now();
        }
        drop(naming);

        let bar = ProgressBar::hidden();
        let naming = Naming::begin(bar.clone(), Duration::from_secs(3600));
        naming.tell(1, 2);
        drop(naming);
        assert_eq!(bar.message(), "");
    }

    #[test]
    fn reading_says_how_much_of_all_is_read() {
        let bar = ProgressBar::hidden();
        let reading = Reading::on(bar.clone(), Duration::from_millis(1), Some(4 << 20));
        reading.bytes.store(1 << 20, Relaxed);
        let expected = "reading: 1.0 MiB of 4.0 MiB; Ctrl-C gives up";
        while bar.message() != expected {
            thread::yield_now();
        }
        drop(reading);
        assert!(bar.is_finished());
    }
}
