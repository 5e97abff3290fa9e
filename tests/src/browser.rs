//! Chromium, driven over its own protocol: what a person would see of a file, and do to it.
//!
//! In: pages, clicks, keys, expressions. Out: what the page answers. Never: a picture that is looked at by nobody.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::feature::tool;

/// How long an answer may take on a machine that does other things, too.
const PATIENCE: Duration = Duration::from_secs(60);
/// Its user agent: pages may treat a browser that calls itself headless differently.
const NAME: &str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
/// The protocol's pipes are descriptors 3 and 4.
const WITH_PIPES: &str = r#"exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#;

/// A browser with one page.
#[derive(Debug)]
pub struct Browser {
    process: Child,
    commands: ChildStdin,
    answers: Receiver<Value>,
    next: u64,
    session: Option<String>,
    /// Exceptions of the page's scripts, and what the browser refused to draw.
    errors: Vec<String>,
    /// The addresses that the page asked for.
    requests: Vec<String>,
    _profile: TempDir,
}

impl Browser {
    /// Starts one.
    ///
    /// # Errors
    ///
    /// When there is no Chromium on this machine.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn start() -> Result<Self, String> {
        let chromium = tool("chromium")?;
        let profile = tempfile::tempdir().expect("a temporary folder can be made");
        let mut process = Command::new("sh")
            .args(["-c", WITH_PIPES, "sh"])
            .arg(chromium)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu"])
            .args(["--remote-debugging-pipe", "--no-first-run"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh is there");
        let commands = process.stdin.take().expect("it is piped");
        let output = process.stdout.take().expect("it is piped");
        let (sender, answers) = channel();
        thread::spawn(move || {
            for message in BufReader::new(output).split(0).map_while(Result::ok) {
                let answer = serde_json::from_slice(&message).expect("the protocol is JSON");
                if sender.send(answer).is_err() {
                    break;
                }
            }
        });
        let mut browser = Self {
            process,
            commands,
            answers,
            next: 0,
            session: None,
            errors: Vec::new(),
            requests: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let session = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", session);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        browser.call("Runtime.enable", json!({}));
        browser.call("Log.enable", json!({}));
        browser.call("Network.enable", json!({}));
        let name = json!({"userAgent": NAME});
        browser.call("Emulation.setUserAgentOverride", name);
        Ok(browser)
    }

    /// Gives a command of the protocol, and waits for its answer.
    #[track_caller]
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let mut command = json!({"id": self.next, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        write!(self.commands, "{command}\0").expect("the browser listens");
        loop {
            let answer = self
                .answers
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|error| panic!("{method}: {error}"));
            if answer["method"] == "Runtime.exceptionThrown" {
                self.errors.push(answer["params"].to_string());
            }
            if answer["method"] == "Log.entryAdded" && answer["params"]["entry"]["level"] == "error"
            {
                self.errors.push(answer["params"].to_string());
            }
            if answer["method"] == "Network.requestWillBeSent" {
                let asked = answer["params"]["request"]["url"].as_str();
                self.requests.extend(asked.map(str::to_owned));
            }
            if answer["id"] == self.next {
                let error = &answer["error"];
                assert!(error.is_null(), "{method}: {error}");
                return answer["result"].clone();
            }
        }
    }

    /// The size of the window in CSS pixels, and whether it is a phone's.
    pub fn resize(&mut self, width: u32, height: u32, is_phone: bool) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone,
            "screenWidth": width, "screenHeight": height});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let touch = json!({"enabled": is_phone});
        self.call("Emulation.setTouchEmulationEnabled", touch);
    }

    /// Whether the person likes dark pages.
    pub fn prefer_dark(&mut self, is_dark: bool) {
        let scheme = if is_dark { "dark" } else { "light" };
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", media);
    }

    /// Whether pages may run scripts.
    pub fn allow_scripts(&mut self, is_allowed: bool) {
        let disabled = json!({"value": !is_allowed});
        self.call("Emulation.setScriptExecutionDisabled", disabled);
    }

    /// Opens a file, and returns when it and what it holds is loaded.
    #[track_caller]
    pub fn open(&mut self, file: &Path) {
        self.errors.clear();
        // The address alone would not load it again.
        self.call("Page.navigate", json!({"url": "about:blank"}));
        self.requests.clear();
        let address = json!({"url": format!("file://{}", file.display())});
        self.call("Page.navigate", address);
        self.wait_for("location.protocol === 'file:' && document.readyState === 'complete'");
        // The file itself is a request, too.
        let own = self.ask("location.href.split('#')[0]");
        self.requests.retain(|asked| own != **asked);
    }

    /// Waits until an expression is true.
    ///
    /// # Panics
    ///
    /// When it does not become true.
    #[track_caller]
    pub fn wait_for(&mut self, expression: &str) {
        let start = Instant::now();
        while self.ask(expression) != json!(true) {
            assert!(
                start.elapsed() < PATIENCE,
                "never true: {expression}; {:?}",
                self.errors
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The value of an expression in the page.
    ///
    /// # Panics
    ///
    /// When it throws.
    #[track_caller]
    pub fn ask(&mut self, expression: &str) -> Value {
        let question =
            json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", question);
        let thrown = &answer["exceptionDetails"];
        assert!(thrown.is_null(), "{expression}: {thrown}");
        answer["result"]["value"].clone()
    }

    /// A click at a place of the window.
    pub fn click(&mut self, x: f64, y: f64) {
        self.point(x, y);
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Moves the pointer.
    pub fn point(&mut self, x: f64, y: f64) {
        let event = json!({"type": "mouseMoved", "x": x, "y": y});
        self.call("Input.dispatchMouseEvent", event);
    }

    /// Moves the pointer from one place to another with its button pressed.
    pub fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        let path = [
            ("mouseMoved", from, "none"),
            ("mousePressed", from, "left"),
            ("mouseMoved", to, "left"),
            ("mouseReleased", to, "left"),
        ];
        for (kind, (x, y), button) in path {
            let event = json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Presses a key, by the name that pages know it by.
    pub fn press(&mut self, key: &str) {
        let text = match key {
            "Enter" => "\r",
            _ if key.len() == 1 => key,
            _ => "",
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({"type": kind, "key": key});
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Types into what has the focus.
    pub fn write(&mut self, text: &str) {
        self.call("Input.insertText", json!({"text": text}));
    }

    /// The addresses that the page asked for since it was opened.
    pub fn requests(&mut self) -> &[String] {
        // Whatever was sent before the answer has come by then.
        self.ask("0");
        &self.requests
    }

    /// Exceptions that the page's scripts have thrown since it was opened.
    pub fn errors(&self) -> &[String] {
        &self.errors
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let close = json!({"id": i32::MAX, "method": "Browser.close"});
        write!(self.commands, "{close}\0").ok();
        let start = Instant::now();
        while matches!(self.process.try_wait(), Ok(None)) {
            if start.elapsed() > Duration::from_secs(5) {
                self.process.kill().ok();
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}
