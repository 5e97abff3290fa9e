//! Finds names on a thread of its own, however long that takes.
//!
//! In: questions. Out: names that are known, and a word to whoever shows them.

use crate::debuginfod::{Client, Limits};
use crate::live::NAMING_THREAD;
use crate::object::{BuildId, Fetch};
use crate::plan::Plan;
use crate::symbolize::{NameCache, Question};
use anyhow::{Context as _, Result};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Names are shown at least so often while they come in.
const PATIENCE: Duration = Duration::from_millis(250);

/// The thread that finds names. It ends when this is dropped, or with the process.
pub(super) struct Naming {
    questions: Sender<Question>,
}

impl Naming {
    /// Starts it. `named` is called when names have come.
    pub(super) fn start(
        plan: &Plan,
        names: Arc<NameCache>,
        named: impl Fn() + Send + 'static,
    ) -> Result<Self> {
        let (questions, asked) = channel::<Question>();
        let (naming, servers) = (plan.naming.clone(), plan.servers.clone());
        let work = move || {
            let client = Client::new(servers.addresses(), Limits::from_environment(), |_| {});
            let fetch = client.as_ref().map(|client| |id: &BuildId| client.find(id));
            let fetch = fetch.as_ref().map(|fetch| fetch as &Fetch<'_>);
            while let Ok(first) = asked.recv() {
                let mut next = Some(first);
                let began = Instant::now();
                // Those that have come meanwhile are answered before anybody hears of it, unless that takes long.
                while let Some(question) = next.take() {
                    names.learn_counted(|| question.answer(&naming, fetch));
                    if began.elapsed() < PATIENCE {
                        next = asked.try_recv().ok();
                    }
                }
                named();
            }
        };
        thread::Builder::new()
            .name(NAMING_THREAD.to_owned())
            .spawn(work)
            .context("cannot start the thread that finds names")?;
        Ok(Self { questions })
    }

    /// Asks.
    pub(super) fn ask(&self, questions: impl Iterator<Item = Question>) {
        for question in questions {
            // It ends with the process.
            let _ended = self.questions.send(question);
        }
    }
}
