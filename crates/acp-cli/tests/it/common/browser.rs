//! A page in headless Chromium, controlled over the DevTools protocol. Each message is JSON followed by a zero byte.
//! Messages are exchanged over pipes, which are file descriptors 3 and 4 in Chromium.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The environment variable that makes tests fail instead of being skipped if Chromium is not installed.
const REQUIRE_BROWSER_VARIABLE: &str = "ACP_REQUIRE_CHROMIUM";

/// The possible names of the Chromium program.
const BROWSER_NAMES: [&str; 5] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "chrome-headless-shell",
    "chrome",
];

/// The maximum time to wait for a condition on a page, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Browser {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    session: Option<String>,
    last: u64,
    /// Messages from the browser that are events rather than responses.
    events: VecDeque<Value>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts a browser with an empty page. Prints a note and returns `None` if Chromium is not installed.
    pub(crate) fn start() -> Option<Self> {
        let runs = |name: &&&str| {
            let version = Command::new(name).arg("--version").output();
            version.is_ok_and(|version| version.status.success())
        };
        let Some(name) = BROWSER_NAMES.iter().find(runs) else {
            let required =
                std::env::var_os(REQUIRE_BROWSER_VARIABLE).is_some_and(|value| value == "1");
            assert!(
                !required,
                "{REQUIRE_BROWSER_VARIABLE} is set, and there is no Chromium"
            );
            // Past the harness, which keeps what tests that pass print to itself.
            let _ = writeln!(std::io::stderr(), "skipped: there is no Chromium");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        let mut process = Command::new("sh")
            .args([
                "-c",
                "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1",
                "sh",
                name,
            ])
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .args(["--disable-dev-shm-usage", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut browser = Self {
            input: process.stdin.take().unwrap(),
            output: BufReader::new(process.stdout.take().unwrap()),
            process,
            session: None,
            last: 0,
            events: VecDeque::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        let size = json!({"width": 1400, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        browser.call("Emulation.setDeviceMetricsOverride", size);
        Some(browser)
    }

    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let called = self.try_call(method, params);
        called.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Calls a method, and returns its result or the error.
    fn try_call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.input
            .write_all(format!("{message}\0").as_bytes())
            .unwrap();
        loop {
            let mut bytes = Vec::new();
            self.output.read_until(0, &mut bytes).unwrap();
            bytes.pop().expect("the browser has ended");
            let mut said: Value = serde_json::from_slice(&bytes).unwrap();
            if said["id"] == self.last {
                return match said["error"].is_null() {
                    true => Ok(said["result"].take()),
                    false => Err(said["error"].take()),
                };
            }
            self.events.push_back(said);
        }
    }

    /// Returns the value of an expression. If the value is a promise, waits for it.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let mut result = self.call("Runtime.evaluate", params);
        assert!(
            result["exceptionDetails"].is_null(),
            "{expression}: {result}"
        );
        result["result"]["value"].take()
    }

    pub(crate) fn evaluate_text(&mut self, expression: &str) -> String {
        let value = self.evaluate(expression);
        value
            .as_str()
            .unwrap_or_else(|| panic!("{expression}: {value}"))
            .to_owned()
    }

    /// Opens a file and waits until the page has been rendered.
    pub(crate) fn open_page(&mut self, file: &Path) {
        self.call(
            "Page.navigate",
            json!({"url": format!("file://{}", file.display())}),
        );
        self.wait_for("document.documentElement?.dataset.ready > 0");
    }

    /// Waits until this condition is true. Polls, since the page changes on its own.
    pub(crate) fn wait_for(&mut self, condition: &str) {
        let start = Instant::now();
        // The condition, or false after a frame of the page's own.
        let expression = format!(
            "({condition}) || new Promise((resume) => setTimeout(() => resume(false), 16))"
        );
        loop {
            let params =
                json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
            // While another page is being loaded, there is nothing to evaluate anything in.
            match self.try_call("Runtime.evaluate", params) {
                Ok(result) if result["result"]["value"] == json!(true) => return,
                Ok(_) | Err(_) => {}
            }
            assert!(start.elapsed() < TIMEOUT, "never: {condition}");
        }
    }

    /// Writes a picture of the page to the directory in `ACP_PICTURES`, if it is set, to be looked at.
    pub(crate) fn take_picture(&mut self, name: &str) {
        use base64::Engine as _;
        let Some(directory) = std::env::var_os("ACP_PICTURES") else {
            return;
        };
        let picture = self.call("Page.captureScreenshot", serde_json::json!({}));
        let picture =
            base64::engine::general_purpose::STANDARD.decode(picture["data"].as_str().unwrap());
        std::fs::write(Path::new(&directory).join(name), picture.unwrap()).unwrap();
    }

    /// Returns console messages, policy violations, exceptions, dialogs, and any requests other than for the page
    /// itself.
    pub(crate) fn console_errors(&mut self) -> Vec<Value> {
        let events = std::mem::take(&mut self.events);
        let of = |event: &Value| match event["method"].as_str() {
            Some("Log.entryAdded" | "Runtime.exceptionThrown" | "Page.javascriptDialogOpening") => {
                true
            }
            Some("Network.requestWillBeSent") => event["params"]["type"] != "Document",
            _ => false,
        };
        events.into_iter().filter(of).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
