//! Shows windows on a thread of its own.
//!
//! In: windows, names that come late, keys. Out: the screen, and files where what is seen is saved. A window is shown at once,
//! and again when its names have come. The screen is drawn when something came, and not otherwise.

use super::LiveWindow;
use crate::live::{self, Action, Channel, Event, Input, Status, Terminal, Theme, Top, Update};
use crate::output::{self, sink::Sink};
use crate::pipeline::facts;
use crate::pipeline::recording_info::RecordingInfo;
use crate::pipeline::view::{style, viewed};
use crate::plan::{self, Plan};
use crate::profile::{Activity, Origin, Profile, interpreters};
use crate::raw_recording;
use crate::runtime;
use crate::symbolize::NameCache;
use crate::text::number::amount;
use anyhow::{Context as _, Result, bail};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// So many windows may wait for names. Older ones are kept with what they have.
const MAX_WAITING: usize = 20;

/// Requests of the reader for the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ViewRequest {
    /// The recording is to end.
    End,
    /// All that the terminal runs is to stop until it is continued.
    Suspend,
}

/// Messages to the thread.
enum Message {
    Window(Box<LiveWindow>, Status),
    Named,
    Came(Event),
    /// The process is about to stop; an answer is waited for.
    Suspend(Sender<()>),
    Continue,
    End,
}

/// Tells the thread something.
#[derive(Clone)]
pub(super) struct Teller(Sender<Message>);

impl Teller {
    /// Names have come.
    pub(super) fn named(&self) {
        self.tell(Message::Named);
    }

    /// A window is over.
    pub(super) fn show(&self, window: LiveWindow, status: Status) {
        self.tell(Message::Window(Box::new(window), status));
    }

    fn tell(&self, message: Message) {
        // It has ended, and somebody else says why.
        let _ended = self.0.send(message);
    }
}

/// The thread that shows windows.
pub(crate) struct Viewing {
    teller: Teller,
    thread: JoinHandle<Result<()>>,
    input: Input,
}

impl Viewing {
    /// Takes the terminal and starts the thread. `request` is called with what the reader wants.
    pub(super) fn start(
        plan: &Plan,
        recording_info: &RecordingInfo,
        names: Arc<NameCache>,
        request: impl Fn(ViewRequest) + Send + Sync + 'static,
    ) -> Result<Self> {
        let terminal = Terminal::take().context(
            "cannot show a live view: there is no terminal; record to a file, as with -d 10 -o x.svg",
        )?;
        let size = terminal.size().context("the terminal has no size")?;
        let theme = Theme::detect(|name| std::env::var(name).ok());
        let channels = plan.events.iter().map(|event| {
            let palette = event.probe.view().palette();
            Channel {
                name: event.name(),
                title: plan
                    .title
                    .clone()
                    .unwrap_or_else(|| recording_info.timeless_title(plan, event)),
                unit: event.unit(),
                palette: plan.colors.unwrap_or(palette),
                has_both: event.probe.view().activity == Activity::Both,
            }
        });
        let mut top = Top::new(
            channels.collect(),
            plan.capture.label_frames.threads,
            theme,
            size,
        );
        let crate::output::Style {
            inverted,
            reverse,
            order,
            ..
        } = plan.style;
        top.turn(inverted, reverse, order);
        let (sender, messages) = channel();
        let teller = Teller(sender);
        let keys = teller.clone();
        let input = Input::read(move |event| keys.0.send(Message::Came(event)).is_ok())
            .context("cannot start the thread that reads keys")?;
        let view = View {
            plan: plan.clone(),
            terminal,
            top,
            names,
            waiting: Vec::new(),
            began: Instant::now(),
            is_stale: true,
        };
        let request = Arc::new(request);
        let thread = thread::Builder::new()
            .name("view".to_owned())
            .spawn(move || {
                let at_end = AtEnd(Arc::clone(&request));
                let shown = view.run(&messages, &*request);
                drop(at_end);
                shown
            })
            .context("cannot start the thread that draws")?;
        Ok(Self {
            teller,
            thread,
            input,
        })
    }

    pub(super) fn teller(&self) -> Teller {
        self.teller.clone()
    }

    /// Gives the terminal back before the process stops.
    pub(crate) fn suspend(&self) {
        let (done, is_done) = channel();
        self.teller.tell(Message::Suspend(done));
        // A thread that has ended has given it back.
        let _ended = is_done.recv();
    }

    /// Takes the terminal again.
    pub(crate) fn resume(&self) {
        self.teller.tell(Message::Continue);
    }

    /// Gives the terminal back for good. Returns what went wrong, as a sentence; nothing if nothing did.
    pub(crate) fn end(self) -> String {
        drop(self.input);
        self.teller.tell(Message::End);
        match self.thread.join() {
            Ok(Ok(())) => String::new(),
            Ok(Err(error)) => format!("flame-bpf: the live view ended early: {error:#}\n"),
            // The panic has said what it was.
            Err(_) => "flame-bpf: the live view failed unexpectedly\n".to_owned(),
        }
    }
}

/// Has the recording end when the thread does, also by a panic.
struct AtEnd<F: Fn(ViewRequest)>(Arc<F>);

impl<F: Fn(ViewRequest)> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)(ViewRequest::End);
    }
}

/// Origin of an event's samples, whose time is told elsewhere.
fn timeless(event: &plan::Event) -> Origin {
    Origin {
        started: None,
        machine: None,
        ..facts::origin(event, "", Duration::ZERO)
    }
}

/// A window whose names are not all known.
struct Waiting {
    window: LiveWindow,
    /// Whether it is shown with those that are.
    is_shown: bool,
}

/// State of the thread.
struct View {
    plan: Plan,
    terminal: Terminal,
    top: Top,
    names: Arc<NameCache>,
    /// Windows whose names are not all known, the oldest first.
    waiting: Vec<Waiting>,
    began: Instant,
    /// Whether the screen shows something else than it should.
    is_stale: bool,
}

impl View {
    fn run(mut self, messages: &Receiver<Message>, request: &impl Fn(ViewRequest)) -> Result<()> {
        self.draw()?;
        while let Ok(first) = messages.recv() {
            // All that came while it was drawn is drawn once.
            let mut next = Some(first);
            while let Some(message) = next {
                if !self.take(message, request)? {
                    return Ok(());
                }
                next = messages.try_recv().ok();
            }
            self.draw()?;
        }
        Ok(())
    }

    /// Does what a message asks for; false at the end.
    fn take(&mut self, message: Message, request: &impl Fn(ViewRequest)) -> Result<bool> {
        match message {
            Message::Window(window, status) => {
                self.top.note(status);
                self.window(*window);
            }
            Message::Named => self.show_complete(),
            Message::Came(event) => self.obey(&event, request)?,
            Message::Suspend(done) => {
                self.terminal.leave();
                let _nobody_waits = done.send(());
            }
            Message::Continue => {
                self.is_stale = true;
                self.terminal.leave();
                self.terminal.enter().context("the terminal has gone")?;
                let (columns, rows) = self.terminal.size()?;
                self.top.resize(columns, rows);
            }
            Message::End => return Ok(false),
        }
        Ok(true)
    }

    fn obey(&mut self, event: &Event, request: &impl Fn(ViewRequest)) -> Result<()> {
        self.is_stale = true;
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        match live::obey(&mut self.top, event, now) {
            Action::Draw => {}
            Action::Quit => request(ViewRequest::End),
            Action::Suspend => request(ViewRequest::Suspend),
            Action::Redraw => self.terminal.clear()?,
            Action::Save(path) => {
                let message = match self.save(&path) {
                    Ok(message) => message,
                    Err(error) => format!("{error:#}"),
                };
                self.top.say(message);
            }
        }
        Ok(())
    }

    fn draw(&mut self) -> Result<()> {
        if !self.is_stale || !Terminal::is_taken() {
            return Ok(());
        }
        self.is_stale = false;
        self.top.note_naming(self.names.open());
        let top = &self.top;
        let shown = self.terminal.show(|buffer| live::draw(top, buffer));
        shown.context("the terminal has gone")
    }

    /// Takes in a window. It is shown when its names have come, which usually is at once; but not later than the next one.
    fn window(&mut self, window: LiveWindow) {
        for mut waiting in std::mem::take(&mut self.waiting) {
            if !std::mem::replace(&mut waiting.is_shown, true) {
                self.show(&waiting.window, false);
            }
            self.waiting.push(waiting);
        }
        self.waiting.push(Waiting {
            window,
            is_shown: false,
        });
        if self.waiting.len() > MAX_WAITING {
            let oldest = self.waiting.remove(0);
            self.show(&oldest.window, true);
        }
        self.show_complete();
    }

    /// Shows windows, for good, whose names have all come.
    fn show_complete(&mut self) {
        for waiting in std::mem::take(&mut self.waiting) {
            let LiveWindow {
                events, objects, ..
            } = &waiting.window;
            let is_complete = events
                .iter()
                .all(|event| self.names.is_complete(event, objects));
            match is_complete {
                true => self.show(&waiting.window, true),
                false => self.waiting.push(waiting),
            }
        }
    }

    /// Shows a window, with the names that are known. `is_final`: it will not be shown again.
    fn show(&mut self, window: &LiveWindow, is_final: bool) {
        let mut profiles = Vec::with_capacity(window.events.len());
        for (event, normalized) in self.plan.events.iter().zip(&window.events) {
            let profile = self.names.symbolize(
                normalized.clone(),
                &window.objects,
                event.unit(),
                &window.kernel,
                &self.plan.naming,
            );
            let profile = match self.plan.naming.interpreter_frames {
                true => profile,
                false => interpreters::without_loops(profile, runtime::hidden_frames),
            };
            let off_cpu = event.probe.off_cpu_view(self.plan.capture.kernel_stacks);
            profiles.push(viewed(profile, timeless(event), off_cpu));
        }
        let profiles = profiles.into_iter().map(|profile| self.selected(profile));
        let profiles = profiles.collect();
        self.is_stale = true;
        self.top.take(Update {
            number: window.number,
            is_final,
            profiles,
        });
    }

    /// The selected part of a profile. That nothing is left of a window says nothing.
    fn selected(&mut self, mut profile: Profile) -> Profile {
        let selection = &self.plan.selection;
        if selection.is_all() || profile.samples().is_empty() {
            return profile;
        }
        match selection.of(profile.clone()) {
            Ok(selected) => selected.profile,
            Err(error) => {
                self.top.say(error.to_string());
                profile.clear();
                profile
            }
        }
    }

    /// Writes what is seen.
    fn save(&self, path: &Path) -> Result<String> {
        let is_raw = path
            .extension()
            .is_some_and(|of| of == raw_recording::EXTENSION);
        if is_raw {
            bail!("a raw recording keeps addresses, and these are gone; record with -o x.fbpf");
        }
        let format = output::Format::from_path(path)?;
        let mut profile = self.top.profile();
        let event = &self.plan.events[self.top.channel()];
        profile.origin = timeless(event);
        if profile.samples().is_empty() {
            bail!("there is nothing to save yet");
        }
        let title = self.top.title();
        let told = (title.clone(), title);
        let style = style(&self.plan.style, self.plan.colors, told, &profile);
        let sink = Sink::prepare(path)?;
        sink.deliver(|out| output::write(&profile, format, &style, out))?;
        let sum = profile.unit.shown(profile.total_weight());
        Ok(format!(
            "wrote {}: {}",
            path.display(),
            amount(sum, profile.unit.noun())
        ))
    }
}
