//! The live view's side of the session: what its reader and the terminal ask for.
//!
//! In: keys that end or suspend; SIGTSTP, SIGCONT. Out: the recording's end. A process that stops has given the terminal back
//! before, and takes it again when it goes on.

use crate::pipeline::recording_info::RecordingInfo;
use crate::pipeline::sink::screen::{Screen, ViewRequest, Viewing};
use crate::plan::Plan;
use crate::report;
use anyhow::{Context as _, Result};
use rustix::process::{Signal, kill_current_process_group, kill_process};
use tokio::signal::unix::{Signal as Listener, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// SIGTSTP, by which a terminal's Ctrl-Z stops what it runs.
const TERMINAL_STOP: i32 = Signal::TSTP.as_raw();

/// SIGCONT.
const GO_ON: i32 = Signal::CONT.as_raw();

/// Signals and requests that are listened to while there is a live view.
#[derive(Default)]
pub(super) struct LiveSignals(Option<Listening>);

struct Listening {
    stop: Listener,
    resume: Listener,
    requests: UnboundedReceiver<ViewRequest>,
    viewing: Viewing,
    /// Text that waits until the terminal is as it was.
    held: String,
}

impl LiveSignals {
    /// Shows the live view of a plan, and listens.
    ///
    /// # Errors
    /// When there is no terminal, or the kernel refuses it.
    pub(super) fn begin(&mut self, plan: &Plan, recording_info: &RecordingInfo) -> Result<Screen> {
        let listen = |kind| signal(SignalKind::from_raw(kind)).context("cannot listen for signals");
        let (stop, resume) = (listen(TERMINAL_STOP)?, listen(GO_ON)?);
        let (sender, requests) = unbounded_channel();
        let (screen, viewing) = Screen::start(plan, recording_info, move |request| {
            // The session may have ended, and its receiver with it.
            let _ended = sender.send(request);
        })?;
        self.0 = Some(Listening {
            stop,
            resume,
            requests,
            viewing,
            held: String::new(),
        });
        Ok(screen)
    }

    /// Stops and continues the process, until the reader ends the recording; without a live view, forever.
    pub(super) async fn until_end(&mut self) {
        let Some(listening) = &mut self.0 else {
            return std::future::pending().await;
        };
        loop {
            tokio::select! {
                _ = listening.stop.recv() => stop(&listening.viewing),
                _ = listening.resume.recv() => listening.viewing.resume(),
                request = listening.requests.recv() => match request {
                    Some(ViewRequest::End) | None => return,
                    Some(ViewRequest::Suspend) => {
                        // As the terminal would have done it: to all that it runs, us among them.
                        let _nothing_is_left_to_try = kill_current_process_group(Signal::TSTP);
                    }
                },
            }
        }
    }

    /// Says something, when the terminal is as it was.
    pub(super) fn say(&mut self, text: &str) {
        match &mut self.0 {
            Some(listening) => listening.held.push_str(text),
            None => report::print(text),
        }
    }

    /// Gives the terminal back, and says what has waited for that.
    pub(super) fn end(&mut self) {
        if let Some(Listening { viewing, held, .. }) = self.0.take() {
            let failure = viewing.end();
            report::print(&(held + &failure));
        }
    }
}

/// Stops this process. It goes on behind this, with SIGCONT.
fn stop(viewing: &Viewing) {
    viewing.suspend();
    // Nothing else would be left to try.
    let _cannot_fail = kill_process(rustix::process::getpid(), Signal::STOP);
}
