//! The terminal: taken over, and given back as it was, however the program ends.
//!
//! In: screens of cells. Out: what is typed and clicked. Giving back may be asked for any number of times, by whoever comes
//! first: the end, a panic, a signal.
//! Never: stdin or stdout, which may be somebody else's; a terminal that has gone is no error, there is nobody to see it.

use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, DisableMouseCapture, EnableMouseCapture, Event};
use ratatui::crossterm::terminal::{
    self, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{execute, queue};
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Where terminals are, whatever stdin and stdout are.
const TTY: &str = "/dev/tty";

/// Name of the threads that find names: they go on after a panic, which broken files may cause.
pub const NAMING_THREAD: &str = "naming";

/// A screen, or most of one, is written at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// How often it is looked whether what is typed is still wanted.
const PATIENCE: Duration = Duration::from_millis(250);

/// Whether the terminal is ours now. There is one terminal, as there is one process.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal, ours until this is dropped.
pub struct Terminal {
    inner: ratatui::Terminal<CrosstermBackend<BufWriter<File>>>,
}

impl Terminal {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// When there is none.
    pub fn take() -> io::Result<Self> {
        let tty = File::options().read(true).write(true).open(TTY)?;
        give_back_on_panic();
        let inner = ratatui::Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(
            BUFFER_BYTES,
            tty,
        )))?;
        let mut terminal = Self { inner };
        terminal.enter()?;
        Ok(terminal)
    }

    /// Takes it over again.
    ///
    /// # Errors
    /// When it has gone.
    pub fn enter(&mut self) -> io::Result<()> {
        IS_TAKEN.store(true, Ordering::SeqCst);
        enable_raw_mode()?;
        let backend = self.inner.backend_mut();
        execute!(backend, EnterAlternateScreen, EnableMouseCapture, Hide)?;
        self.inner.clear()
    }

    /// Whether it is ours.
    pub fn is_taken() -> bool {
        IS_TAKEN.load(Ordering::SeqCst)
    }

    /// Gives it back for a while.
    pub fn leave(&self) {
        give_back();
    }

    /// How many columns and rows there are.
    ///
    /// # Errors
    /// When it has gone.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        terminal::size()
    }

    /// Shows what `draw` draws; only what differs is written.
    ///
    /// # Errors
    /// When it has gone.
    pub fn show(&mut self, draw: impl FnOnce(&mut Buffer)) -> io::Result<()> {
        if !IS_TAKEN.load(Ordering::SeqCst) {
            return Err(io::Error::other("the terminal was given back"));
        }
        self.inner.draw(|frame| draw(frame.buffer_mut()))?;
        Ok(())
    }

    /// Draws from nothing the next time.
    ///
    /// # Errors
    /// When it has gone.
    pub fn clear(&mut self) -> io::Result<()> {
        self.inner.clear()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives the terminal back, if it is ours.
fn give_back() {
    if !IS_TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    // Nothing can be done about a terminal that has gone.
    let _gone = disable_raw_mode();
    if let Ok(mut tty) = File::options().write(true).open(TTY) {
        let _gone = queue!(tty, DisableMouseCapture, LeaveAlternateScreen, Show);
        let _gone = tty.flush();
    }
}

/// Gives the terminal back before a panic prints its message, so that it is seen.
fn give_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let goes_on = thread::current().name() == Some(NAMING_THREAD);
            if goes_on && IS_TAKEN.load(Ordering::SeqCst) {
                return;
            }
            give_back();
            before(info);
        }));
    });
}

/// Keys, clicks and resizes, read by a thread of its own until this is dropped.
pub struct Input {
    is_wanted: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Input {
    /// Passes on what comes. A terminal that has gone, or `pass` that returns false, ends it.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn read(pass: impl Fn(Event) -> bool + Send + 'static) -> io::Result<Self> {
        let is_wanted = Arc::new(AtomicBool::new(true));
        let goes_on = Arc::clone(&is_wanted);
        let read = move || {
            while goes_on.load(Ordering::Relaxed) {
                let came = match event::poll(PATIENCE) {
                    Ok(true) => event::read(),
                    Ok(false) => continue,
                    Err(error) => Err(error),
                };
                if !came.is_ok_and(&pass) {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("keys".to_owned()).spawn(read)?;
        Ok(Self {
            is_wanted,
            thread: Some(thread),
        })
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.is_wanted.store(false, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}
