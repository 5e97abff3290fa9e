//! The live view's side of the session: what its reader and the terminal ask for.
//!
//! In: keys that end or suspend; SIGTSTP, SIGCONT. Out: what is to be done. A process that stops has given the terminal back
//! before, and takes it again when it goes on.

use crate::pipeline::live::{Asked, Live, Viewing};
use crate::pipeline::recording_info::RecordingInfo;
use crate::plan::Plan;
use anyhow::{Context as _, Result};
use rustix::process::{Signal, kill_current_process_group, kill_process};
use tokio::signal::unix::{Signal as Listener, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// SIGTSTP, by which a terminal's Ctrl-Z stops what it runs.
const TERMINAL_STOP: i32 = Signal::TSTP.as_raw();

/// SIGCONT.
const GO_ON: i32 = Signal::CONT.as_raw();

/// Action that is wanted next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The recording is to end.
    End,
    /// The process is to stop.
    Stop,
    /// The process was stopped, and goes on.
    GoOn,
}

/// Signals and requests that are listened to while there is a live view.
#[derive(Default)]
pub(super) struct LiveSignals(Option<Listening>);

struct Listening {
    stop: Listener,
    go_on: Listener,
    asked: UnboundedReceiver<Asked>,
}

impl LiveSignals {
    /// Shows the live view of a plan, and listens.
    ///
    /// # Errors
    /// When there is no terminal, or the kernel refuses it.
    pub(super) fn begin<'a>(
        &mut self,
        plan: &'a Plan,
        recording_info: &RecordingInfo,
    ) -> Result<Live<'a>> {
        let listen = |kind| signal(SignalKind::from_raw(kind)).context("cannot listen for signals");
        let (ask, asked) = unbounded_channel();
        self.0 = Some(Listening {
            stop: listen(TERMINAL_STOP)?,
            go_on: listen(GO_ON)?,
            asked,
        });
        Live::start(plan, recording_info, move |wanted| {
            // The session may have ended, and its receiver with it.
            let _ended = ask.send(wanted);
        })
    }

    /// The next action; never, if there is no live view.
    pub(super) async fn next(&mut self) -> Option<Wanted> {
        let Some(listening) = &mut self.0 else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = listening.stop.recv() => Some(Wanted::Stop),
            _ = listening.go_on.recv() => Some(Wanted::GoOn),
            asked = listening.asked.recv() => match asked? {
                Asked::End => Some(Wanted::End),
                Asked::Suspend => {
                    // As the terminal would have done it: to all that it runs, us among them.
                    kill_current_process_group(Signal::TSTP).ok()?;
                    None
                }
            },
        }
    }
}

/// Stops this process. It goes on behind this, with SIGCONT.
pub(super) fn stop(viewing: &Viewing) {
    viewing.suspend();
    // Nothing else would be left to try.
    let _cannot_fail = kill_process(rustix::process::getpid(), Signal::STOP);
}
