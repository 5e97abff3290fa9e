//! A browser with a graph in it, and what a person does there.
//!
//! In: folded text and pages around it. Out: texts and places. Knows the names that the graph's script gives its parts.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use flame_bpf::output::{self, Format, Style};
use flame_bpf::profile::Unit;
use flame_bpf::profile::fold::parse;
use tempfile::TempDir;

use crate::browser::Browser;

/// How long a text may take to appear.
const PATIENCE: Duration = Duration::from_secs(10);
/// Whether the script has taken over.
const READY: &str =
    "document.querySelectorAll('.fg-search').length === document.querySelectorAll('script').length";

/// Folded text of samples as a graph.
///
/// # Panics
///
/// When it is no folded text.
pub fn draw_graph(folded: &str, style: &Style) -> String {
    let profile = parse(folded.as_bytes(), Unit::Samples).expect("folded text");
    let mut bytes = Vec::new();
    output::write(&profile, Format::SVG, style, &mut bytes).expect("a vector takes everything");
    String::from_utf8(bytes).expect("SVG is UTF-8")
}

/// A style with this title, and a balance with a loss.
pub fn titled(title: &str) -> Style {
    Style {
        title: title.to_owned(),
        notes: format!("{title}\nrecorded: 9 samples\nLOST: 1 sample: no room"),
        ..Style::default()
    }
}

/// A browser that shows a graph.
#[derive(Debug)]
pub struct GraphPage {
    /// The browser that shows it.
    pub browser: Browser,
    folder: TempDir,
}

impl GraphPage {
    /// Starts a browser.
    ///
    /// # Errors
    ///
    /// When there is none on this machine.
    pub fn new() -> Result<Self, String> {
        Ok(Self {
            browser: Browser::start()?,
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
        })
    }

    /// Writes a file for it to open.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("the folder can be written");
        path
    }

    /// Opens a file, and waits until its scripts have taken over.
    #[track_caller]
    pub fn open(&mut self, path: &Path) {
        self.browser.open(path);
        self.browser.wait_for(READY);
    }

    /// Draws a graph, and opens it alone.
    #[track_caller]
    pub fn show(&mut self, folded: &str, style: &Style) {
        let path = self.file("graph.svg", &draw_graph(folded, style));
        self.open(&path);
    }

    /// The text of the first element that a selector finds.
    #[track_caller]
    pub fn text(&mut self, selector: &str) -> String {
        let text = self
            .browser
            .ask(&format!("document.querySelector('{selector}').textContent"));
        text.as_str().expect("a text").to_owned()
    }

    /// Clicks the middle of the frame with this label.
    #[track_caller]
    pub fn click(&mut self, label: &str) {
        let [x, y] = self.place_of(label);
        self.browser.click(x, y);
    }

    /// The middle of the label with this text, in pixels of the window.
    #[track_caller]
    pub fn place_of(&mut self, label: &str) -> [f64; 2] {
        let place = self.browser.ask(&format!(
            "(() => {{ const text = [...document.querySelectorAll('text')].find(t => t.textContent === '{label}');
                const box = text.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        ));
        [0, 1].map(|index| place[index].as_f64().expect("a number"))
    }

    /// Waits until the first element that a selector finds has this text: searches begin when typing pauses.
    #[track_caller]
    pub fn expect(&mut self, selector: &str, text: &str) {
        let start = Instant::now();
        while self.text(selector) != text && start.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(self.text(selector), text, "{selector}");
    }

    /// Types into the search field.
    #[track_caller]
    pub fn search(&mut self, text: &str) {
        self.browser.ask(
            "(() => { const field = document.querySelector('.fg-search'); field.focus(); field.select(); })()",
        );
        self.browser.write(text);
    }

    /// Panics if the page's scripts have thrown anything.
    #[track_caller]
    pub fn no_errors(&self) {
        assert!(
            self.browser.errors().is_empty(),
            "{:?}",
            self.browser.errors()
        );
    }
}
