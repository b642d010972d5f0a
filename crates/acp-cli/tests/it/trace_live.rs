//! Tests of `acp trace live`: the page in a browser, messages by hand, and who may do what.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::browser::Browser;
use crate::common::patient::TimedReader;
use crate::common::{CommandResult, TestProject};

mod after_end;
mod long;
mod pairs;

/// A text that would be markup, if it were not text.
const HOSTILE_TEXT: &str = "<img src=x onerror=harm()>";

/// An agent that appends each line that it gets to the file `received`. It responds to requests by hand, and to nothing
/// else. For a line with `begin`, it writes only half of a line, and for the next one the rest.
const AGENT: &str = r#"while IFS= read -r line; do
  printf '%s\n' "$line" >> received
  id=$(printf '%s' "$line" | sed -n 's/.*"id":"\(hand-[^"]*\)".*/\1/p')
  case "$line" in
    *'"begin"'*) printf '{"half":"' ;;
    *'"finish"'*) printf 'line"}\n' ;;
    *'"exit"'*) exit 7 ;;
  esac
  if [ -n "$id" ]; then
    printf '{"jsonrpc":"2.0","id":"%s","result":{"sessions":[],"asked":"by hand"}}\n' "$id"
  fi
done"#;

/// The time limit for something that happens on its own.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A client that has started `acp trace live`, or a user that has.
struct LiveTrace {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<TimedReader>,
    stderr: BufReader<TimedReader>,
    /// The address of the page, with the token.
    url: String,
}

impl LiveTrace {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(TimedReader::new(child.stderr.take().unwrap()));
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let url = line.strip_prefix("acp: page of the trace: ");
        let url = url.unwrap_or_else(|| panic!("{line}")).trim().to_owned();
        Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(TimedReader::new(child.stdout.take().unwrap())),
            stderr,
            child,
            url,
        }
    }

    /// Starts the command with the agent of these tests, and records to the file `trace`.
    fn start_with_agent(project: &TestProject) -> Self {
        Self::start(project.acp_command(&["trace", "live", "trace", "--", "sh", "-c", AGENT]))
    }

    fn address(&self) -> &str {
        let address = self.url.strip_prefix("http://").unwrap();
        address.split_once('/').unwrap().0
    }

    fn token(&self) -> &str {
        self.url.split_once('#').unwrap().1
    }

    fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.stdin
            .as_mut()
            .unwrap()
            .write_all(bytes.as_ref())
            .unwrap();
    }

    fn read_line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    /// Sends a request with these headers, besides `Host` and the token. Returns the response.
    fn request(&self, request: &str, headers: &[(&str, &str)], body: &str) -> String {
        let token = format!("Bearer {}", self.token());
        let own = [("Host", self.address()), ("Authorization", token.as_str())];
        send_request(self.address(), request, &[&own, headers].concat(), body)
    }

    /// Sends a message by hand, and returns the response.
    fn send_by_hand(&self, to: &str, message: &str, expects_response: bool) -> String {
        let body = json!({"to": to, "text": message, "expects_response": expects_response});
        self.request("POST /send", &[], &body.to_string())
    }

    /// Closes stdin, and waits for the command to exit.
    fn finish(mut self) -> CommandResult {
        self.stdin = None;
        self.finish_after_agent()
    }

    fn finish_after_agent(mut self) -> CommandResult {
        let mut rest = Vec::new();
        self.stdout.read_to_end(&mut rest).unwrap();
        let mut errors = String::new();
        self.stderr.read_to_string(&mut errors).unwrap();
        let mut ended = CommandResult::from_output(self.child.wait_with_output().unwrap());
        ended.stdout = String::from_utf8_lossy(&rest).into_owned();
        ended.stderr = errors;
        ended
    }

    /// Ends the command, which shows a file, with a signal.
    fn stop(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Sends a request with exactly these headers, and returns the response.
fn send_request(address: &str, request: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("{request} HTTP/1.1\r\nConnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

/// Opens a stream of events, and returns it as soon as its list exists.
fn open_stream(address: &str, headers: &[(&str, &str)]) -> BufReader<TimedReader> {
    let mut text = "GET /events HTTP/1.1\r\n".to_owned();
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("{text}\r\n").as_bytes()).unwrap();
    let mut stream = BufReader::new(TimedReader::new(stream));
    let mut line = String::new();
    while !line.starts_with("event: start") {
        line.clear();
        assert_ne!(stream.read_line(&mut line).unwrap(), 0);
    }
    stream
}

/// Waits until a condition is true. Polls, since files change on their own.
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < TIMEOUT, "never: {what}");
        std::thread::yield_now();
    }
}

/// Waits until the agent of these tests has received this many lines, and returns all it has received.
fn wait_for_received(project: &TestProject, lines: usize) -> String {
    let read = || std::fs::read_to_string(project.file("received")).unwrap_or_default();
    wait_until("the agent has received the lines", || {
        read().lines().count() >= lines
    });
    read()
}

fn read_records(project: &TestProject) -> Vec<Value> {
    let file = project.read_file("trace");
    file.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}")))
        .collect()
}

fn open_page(url: &str) -> Option<Browser> {
    let mut browser = Browser::start()?;
    browser.call("Page.navigate", json!({ "url": url }));
    browser
        .wait_for("/^(live|recording ended)$/.test(document.getElementById('state')?.textContent)");
    Some(browser)
}

/// Waits until a row of the table contains these texts.
fn wait_for_row(browser: &mut Browser, texts: &[&str]) {
    browser.wait_for(&format!(
        "[...document.querySelectorAll('tr.row')].some((row) => {}.every((text) => row.innerText.includes(text)))",
        json!(texts)
    ));
}

/// Types a text into a field, as a user does.
fn type_into(browser: &mut Browser, id: &str, text: &str) {
    browser.evaluate(&format!("document.getElementById('{id}').focus()"));
    browser.evaluate(&format!("document.getElementById('{id}').select()"));
    browser.call("Input.insertText", json!({ "text": text }));
}

fn press(browser: &mut Browser, key: &str, code: u32) {
    let text = if key == "Enter" { "\r" } else { key };
    for kind in ["keyDown", "keyUp"] {
        let event = json!({"type": kind, "key": key, "windowsVirtualKeyCode": code, "text": text});
        browser.call("Input.dispatchKeyEvent", event);
    }
}

/// Returns the names in the rows of the table, as soon as they are read.
fn shown_names(browser: &mut Browser) -> Vec<String> {
    browser.wait_for(
        "document.querySelector('#rows tr.row') !== null && document.querySelector('#rows .missing') === null",
    );
    let names = browser
        .evaluate("[...document.querySelectorAll('tr.row .open')].map((open) => open.textContent)");
    serde_json::from_value(names).unwrap()
}

/// Returns the unexpected events: the page may only fetch from its server.
fn unexpected(browser: &mut Browser, address: &str) -> Vec<Value> {
    let own = format!("http://{address}/");
    let is_own = |event: &Value| {
        let url = event["params"]["request"]["url"].as_str();
        url.is_some_and(|url| url.starts_with(&own))
    };
    // Browsers ask for an icon by themselves.
    let is_icon = |event: &Value| event.to_string().contains("favicon.ico");
    let events = browser.console_errors().into_iter();
    events
        .filter(|event| !is_own(event) && !is_icon(event))
        .collect()
}

#[test]
fn page_shows_each_new_message_while_an_editor_works() {
    let project = TestProject::new();
    let script = project.write_turn_script(r#"{"say": "Hello."}"#);
    let command = ["trace", "live", "trace", "--", crate::common::ACP];
    let mut command = project.acp_command(&command);
    command.args(["agent", "--script", &script]);
    let mut trace = LiveTrace::start(command);
    let Some(mut browser) = open_page(&trace.url) else {
        return;
    };
    browser.evaluate("window.isSamePage = true");
    trace.write("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}\n");
    assert!(trace.read_line().contains("\"id\":1,\"result\""));
    wait_for_row(&mut browser, &["client →", "initialize #1"]);
    // The response, with the time that it took.
    wait_for_row(&mut browser, &["← agent", "initialize =1"]);
    browser.wait_for(
        "/^[0-9.]+ (µs|ms|s)$/.test(document.querySelector('tr.response .took').textContent)",
    );
    let new = json!({"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": project.path(), "mcpServers": []}});
    trace.write(format!("{new}\n"));
    wait_for_row(&mut browser, &["session/new =2"]);
    let hostile = json!({"jsonrpc": "2.0", "id": 3, "method": HOSTILE_TEXT, "params": {"text": HOSTILE_TEXT}});
    trace.write(format!("{hostile}\n"));
    wait_for_row(&mut browser, &[HOSTILE_TEXT, "#3"]);
    wait_for_row(&mut browser, &[HOSTILE_TEXT, "=3"]);
    // A broken rule is shown at its message.
    wait_for_row(&mut browser, &[HOSTILE_TEXT, "#3", "finding"]);
    // The keyboard selects the last message, which is the error response, and opens it.
    press(&mut browser, "k", 75);
    press(&mut browser, "Enter", 13);
    browser.wait_for("document.querySelectorAll('#message pre').length === 2");
    let json = browser.evaluate_text("document.querySelector('#message pre').textContent");
    assert!(json.starts_with("{\n  \"jsonrpc\": \"2.0\",\n"), "{json}");
    browser.take_picture("live.png");
    assert_eq!(browser.evaluate("document.images.length"), 0);
    assert_eq!(browser.evaluate("window.isSamePage"), true);
    assert_eq!(
        unexpected(&mut browser, trace.address()),
        Vec::<Value>::new()
    );
    trace.finish().expect_code(0);
    browser.wait_for("document.getElementById('state').className === 'ended'");
}

/// Writes a trace with a message of each kind.
fn write_trace(project: &TestProject) {
    let header = r#"{"acp_trace":1,"started":"2026-01-01T00:00:00Z","command":["my-agent"],"by":"acp","secrets":"redacted"}"#;
    let records = [
        r#"{"t":1000,"from":"client","len":1,"msg":{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"one","prompt":[{"type":"text","text":"Say ümläut"}]}}}"#,
        r#"{"t":2000,"from":"agent","len":1,"msg":{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"one","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}}}}"#,
        r#"{"t":3000,"from":"agent","len":1,"msg":{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"two","update":{"sessionUpdate":"plan","entries":[]}}}}"#,
        r#"{"t":4000,"from":"agent","len":1,"msg":{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"needle"}}}"#,
        r#"{"t":5000,"stderr":"a warning"}"#,
    ];
    project.write_file("trace", &format!("{header}\n{}\n", records.join("\n")));
}

#[test]
fn filters_and_search_select_messages_and_the_counts_say_what_is_hidden() {
    let project = TestProject::new();
    write_trace(&project);
    let trace = LiveTrace::start(project.acp_command(&["trace", "live", "trace"]));
    let Some(mut browser) = open_page(&trace.url) else {
        return;
    };
    let counts = |browser: &mut Browser, text: &str| {
        browser.wait_for(&format!(
            "document.getElementById('counts').textContent === {}",
            json!(text)
        ));
    };
    let select = |browser: &mut Browser, id: &str, value: &str| {
        browser.evaluate(&format!(
            "(() => {{ const field = document.getElementById('{id}'); field.value = '{value}'; field.dispatchEvent(new Event('change')); }})()"
        ));
    };
    counts(&mut browser, "5 messages");
    // Nothing can be sent to a file.
    assert_eq!(
        browser.evaluate("document.getElementById('sending').hidden"),
        true
    );
    select(&mut browser, "from", "client");
    counts(&mut browser, "1 of 5 messages");
    select(&mut browser, "from", "");
    counts(&mut browser, "5 messages");
    select(&mut browser, "session", "two");
    counts(&mut browser, "1 of 5 messages");
    assert_eq!(shown_names(&mut browser), ["plan"]);
    browser.evaluate("document.getElementById('clear').click()");
    counts(&mut browser, "5 messages");
    type_into(&mut browser, "method", "*_chunk session/prompt");
    counts(&mut browser, "3 of 5 messages");
    browser.evaluate("document.getElementById('clear').click()");
    counts(&mut browser, "5 messages");
    browser.evaluate("document.getElementById('errors').click()");
    counts(&mut browser, "1 of 5 messages");
    assert_eq!(shown_names(&mut browser), ["session/prompt =1"]);
    browser.evaluate("document.getElementById('clear').click()");
    counts(&mut browser, "5 messages");
    type_into(&mut browser, "text", "ÜMLÄUT");
    counts(&mut browser, "1 of 5 messages");
    assert_eq!(shown_names(&mut browser), ["session/prompt #1"]);
    // A filter also applies to what is recorded later.
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(project.file("trace"))
        .unwrap();
    writeln!(file, r#"{{"t":6000,"stderr":"other"}}"#).unwrap();
    writeln!(file, r#"{{"t":7000,"stderr":"Ümläute"}}"#).unwrap();
    counts(&mut browser, "2 of 7 messages");
    type_into(&mut browser, "method", "a{");
    browser.wait_for(
        "document.getElementById('problem').textContent.startsWith('not a method glob: ')",
    );
    assert_eq!(browser.evaluate("document.images.length"), 0);
    trace.stop();
}

#[test]
fn message_by_hand_waits_for_the_end_of_a_line_and_reaches_the_agent_whole() {
    let project = TestProject::new();
    let mut trace = LiveTrace::start_with_agent(&project);
    trace.write("{\"jsonrpc\":\"2.0\",\"method\":\"one\"}\n{\"jsonrpc\":\"2.0\",");
    wait_for_received(&project, 1);
    let message = "{\n \"method\": \"by/hand\",\n \"id\": 1,\n \"params\": {\"apiKey\": \"sk-0123456789abcdef0123456789abcdef\"}\n}";
    // It waits: the editor is in the middle of a line.
    let response = trace.send_by_hand("agent", message, true);
    assert!(response.starts_with("HTTP/1.1 202 "), "{response}");
    let busy = trace.send_by_hand("agent", message, true);
    assert!(busy.starts_with("HTTP/1.1 400 "), "{busy}");
    assert!(busy.contains("still waits for the end of a line"), "{busy}");
    trace.write("\"method\":\"two\"}\n");
    let received = wait_for_received(&project, 3);
    let lines: Vec<&str> = received.lines().collect();
    assert_eq!(lines[0], "{\"jsonrpc\":\"2.0\",\"method\":\"one\"}");
    assert_eq!(lines[1], "{\"jsonrpc\":\"2.0\",\"method\":\"two\"}");
    let by_hand: Value = serde_json::from_str(lines[2]).unwrap();
    assert_eq!(by_hand["method"], "by/hand");
    // The agent gets what the user wrote, except for the id.
    assert_eq!(
        by_hand["params"]["apiKey"],
        "sk-0123456789abcdef0123456789abcdef"
    );
    let id = by_hand["id"].as_str().unwrap();
    // Short enough to read, and with random text, so that no request of the editor has it.
    assert!(id.starts_with("hand-") && id.ends_with("-1"), "{id}");
    assert!(id.len() <= 12, "{id}");
    // The response does not reach the editor, whose own line is the first that it reads.
    trace.write("{\"begin\":1}\n{\"finish\":1}\n");
    assert_eq!(trace.read_line(), "{\"half\":\"line\"}\n");
    let ended = trace.finish().expect_code(0);
    assert_eq!(ended.stdout, "");
    let records = read_records(&project);
    let of_id: Vec<&Value> = records
        .iter()
        .filter(|record| record["msg"]["id"] == id)
        .collect();
    assert_eq!(of_id.len(), 2, "{of_id:?}");
    assert_eq!(
        (&of_id[0]["from"], &of_id[0]["hand"]),
        (&json!("client"), &json!(true))
    );
    assert_eq!(
        (&of_id[1]["from"], &of_id[1]["hand"]),
        (&json!("agent"), &Value::Null)
    );
    // The trace has no secrets, not even those sent by hand.
    assert!(!project.read_file("trace").contains("sk-0123456789"));
    project
        .acp_command(&["trace", "show", "trace"])
        .output()
        .map(CommandResult::from_output)
        .unwrap()
        .expect_code(0)
        .expect_stdout(&["(by hand)"]);
}

#[test]
fn message_by_hand_reaches_the_client_between_the_lines_of_the_agent() {
    let project = TestProject::new();
    let mut trace = LiveTrace::start_with_agent(&project);
    trace.write("{\"begin\":1}\n");
    wait_for_received(&project, 1);
    // The half line has arrived as soon as the client has it.
    let mut half = [0; 9];
    trace.stdout.read_exact(&mut half).unwrap();
    assert_eq!(&half, b"{\"half\":\"");
    let notification = "{\"method\": \"session/update\", \"params\": {}}";
    let response = trace.send_by_hand("client", notification, false);
    assert!(response.starts_with("HTTP/1.1 202 "), "{response}");
    trace.write("{\"finish\":1}\n");
    assert_eq!(trace.read_line(), "line\"}\n");
    assert_eq!(
        trace.read_line(),
        "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{}}\n"
    );
    // The client's response to a request by hand does not reach the agent.
    let sent = trace.send_by_hand("client", "{\"method\":\"fs/read_text_file\"}", true);
    assert!(sent.starts_with("HTTP/1.1 200 "), "{sent}");
    let request: Value = serde_json::from_str(&trace.read_line()).unwrap();
    let id = request["id"].as_str().unwrap();
    assert!(sent.contains(id), "{sent}");
    trace.write(format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"result\":{{}}}}\n"
    ));
    trace.write("{\"own\":1}\n");
    let received = wait_for_received(&project, 3);
    assert_eq!(received, "{\"begin\":1}\n{\"finish\":1}\n{\"own\":1}\n");
    for (text, reason) in [
        (
            "{\"method\": }",
            "not a JSON object: expected value at line 1 column 12",
        ),
        ("[1]", "not a JSON object"),
        ("{\"params\":{}}", "a message needs a `method`"),
    ] {
        let rejected = trace.send_by_hand("agent", text, true);
        assert!(rejected.starts_with("HTTP/1.1 400 "), "{rejected}");
        assert!(rejected.contains(reason), "{rejected}");
    }
    trace.finish().expect_code(0);
}

#[test]
fn box_sends_a_message_and_its_response_is_only_in_the_page() {
    let project = TestProject::new();
    let mut trace = LiveTrace::start_with_agent(&project);
    let Some(mut browser) = open_page(&trace.url) else {
        return;
    };
    browser.evaluate("document.getElementById('sending').open = true");
    type_into(&mut browser, "send-text", "{\"method\": }");
    browser.evaluate("document.getElementById('send-button').click()");
    browser.wait_for("document.getElementById('send-result').textContent === 'Not sent: not a JSON object: expected value at line 1 column 12'");
    type_into(
        &mut browser,
        "send-text",
        "{\n\"method\": \"session/list\",\n\"params\": {\"n\": 1.50}\n}",
    );
    browser.evaluate("document.getElementById('send-button').click()");
    browser.wait_for(
        "document.getElementById('send-result').textContent.startsWith('Sent to the agent at ')",
    );
    wait_for_row(
        &mut browser,
        &["client →", "session/list #\"hand-", "by hand"],
    );
    wait_for_row(
        &mut browser,
        &["← agent", "session/list =\"hand-", "by hand"],
    );
    browser.take_picture("sent.png");
    let received = wait_for_received(&project, 1);
    assert!(received.contains("\"params\":{\"n\": 1.50}"), "{received}");
    assert_eq!(received.lines().count(), 1);
    assert_eq!(
        unexpected(&mut browser, trace.address())
            .into_iter()
            // The rejected message.
            .filter(|event| !event.to_string().contains("400 (Bad Request)"))
            .collect::<Vec<_>>(),
        Vec::<Value>::new()
    );
    trace.write("{\"begin\":1}\n{\"finish\":1}\n");
    assert_eq!(trace.read_line(), "{\"half\":\"line\"}\n");
    let ended = trace.finish().expect_code(0);
    assert_eq!(ended.stdout, "");
}

#[test]
fn requests_without_the_token_or_from_elsewhere_are_refused() {
    let project = TestProject::new();
    write_trace(&project);
    let trace = LiveTrace::start(project.acp_command(&["trace", "live", "trace"]));
    let (address, token) = (trace.address(), trace.token());
    let port = address.rsplit(':').next().unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    assert_eq!(token.len(), 64);
    let bearer = format!("Bearer {token}");
    let status = |request: &str, headers: &[(&str, &str)]| {
        let response = send_request(address, request, headers, "");
        response.split(' ').nth(1).unwrap().to_owned()
    };
    let own = [("Host", address), ("Authorization", bearer.as_str())];
    let with = |header| [own[0], own[1], header];
    let own_origin = format!("http://{address}");
    // Each stream of events has a list, as long as it is open.
    let rows = "GET /rows?list=1&from=0&count=9";
    assert_eq!(status(rows, &own), "404");
    let _stream = open_stream(address, &own);
    assert_eq!(status(rows, &own), "200");
    assert_eq!(status(rows, &with(("Origin", &own_origin))), "200");
    // Without the token, nothing of the trace is shown.
    let page = send_request(address, "GET /", &[own[0]], "");
    assert!(
        page.starts_with("HTTP/1.1 200 ") && !page.contains("my-agent"),
        "{page}"
    );
    assert!(
        page.contains("content-security-policy: default-src 'none'; script-src 'self';"),
        "{page}"
    );
    assert!(page.contains("frame-ancestors 'none'"), "{page}");
    assert!(page.contains("referrer-policy: no-referrer"), "{page}");
    for path in [
        "/rows?list=1&from=0&count=9",
        "/find?list=1&line=2",
        "/events",
        "/message?list=1&at=100",
    ] {
        let request = format!("GET {path}");
        assert_eq!(status(&request, &[own[0]]), "401", "{path}");
        assert_eq!(
            status(&request, &[own[0], ("Authorization", "Bearer x")]),
            "401"
        );
        let in_query = format!(
            "{request}{}token={token}",
            if path.contains('?') { '&' } else { '?' }
        );
        assert_eq!(status(&in_query, &[own[0]]), "401", "{path}");
        // DNS rebinding: another name that resolves to this address.
        for host in [&format!("evil.example:{port}"), "127.0.0.1", "127.0.0.1:1"] {
            assert_eq!(status(&request, &[("Host", host), own[1]]), "403", "{host}");
        }
        for origin in ["http://evil.example", "null", "http://127.0.0.1:1"] {
            assert_eq!(
                status(&request, &with(("Origin", origin))),
                "403",
                "{origin}"
            );
        }
        assert_eq!(
            status(&request, &with(("Sec-Fetch-Site", "cross-site"))),
            "403"
        );
    }
    assert_eq!(status("POST /send", &[own[0]]), "401");
    assert_eq!(
        status("POST /send", &with(("Origin", "http://evil.example"))),
        "403"
    );
    // A file cannot be sent to, and only messages of the trace can be read.
    assert_eq!(status("POST /send", &own), "409");
    for at in ["0", "1", "99999999"] {
        assert_eq!(
            status(&format!("GET /message?list=1&at={at}"), &own),
            "404",
            "{at}"
        );
    }
    trace.stop();
}

#[test]
fn bytes_are_passed_on_unchanged() {
    let project = TestProject::new();
    let command = ["trace", "live", "--", "cat"];
    let mut trace = LiveTrace::start(project.acp_command(&command));
    let mut random = fastrand::Rng::with_seed(7);
    let mut bytes: Vec<u8> = std::iter::repeat_with(|| random.u8(..))
        .take(600_000)
        .collect();
    bytes.push(b'\n');
    for turn in 0..2 {
        // `cat` sends everything back. The pipes are smaller than that.
        let mut stdin = trace.stdin.take().unwrap();
        let sent = bytes.clone();
        let writer = std::thread::spawn(move || {
            stdin.write_all(&sent).unwrap();
            stdin
        });
        let mut read = vec![0; bytes.len()];
        trace.stdout.read_exact(&mut read).unwrap();
        assert!(read == bytes, "turn {turn}: the bytes differ");
        trace.stdin = Some(writer.join().unwrap());
        if turn == 0 {
            // From now on, lines are searched for the response. `cat` returns the request itself, which is no response.
            let sent = trace.send_by_hand("agent", "{\"method\":\"a\"}", true);
            assert!(sent.starts_with("HTTP/1.1 200 "), "{sent}");
            assert!(trace.read_line().contains("\"method\":\"a\""));
        }
    }
    // Nothing is held back that is not a line yet when the stream ends.
    trace.write("no line end");
    let ended = trace.finish().expect_code(0);
    assert_eq!(ended.stdout, "no line end");
}

#[test]
fn command_ends_with_the_agent_or_the_editor_and_leaves_nothing() {
    let project = TestProject::new();
    let start = || {
        let args = [
            "trace",
            "live",
            "--address-file",
            "address",
            "--",
            "sh",
            "-c",
            AGENT,
        ];
        let mut command = project.acp_command(&args);
        command.env("TMPDIR", project.path_outside(""));
        LiveTrace::start(command)
    };
    let temporary = || {
        let names = std::fs::read_dir(project.path_outside("")).unwrap();
        names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with("acp-trace-"))
            .collect::<Vec<_>>()
    };
    let mut trace = start();
    assert_eq!(project.read_file("address").trim(), trace.url);
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&project.file("address")), 0o600);
        let directory = project.path_outside(&temporary()[0]);
        assert_eq!(mode(&directory), 0o700);
        assert_eq!(mode(&directory.join("live.trace")), 0o600);
    }
    trace.write("{\"exit\":1}\n");
    let ended = trace.finish_after_agent().expect_code(3);
    assert!(ended.stderr.contains("the agent exited: "), "{ended:?}");
    assert!(!project.file("address").exists());
    assert_eq!(temporary(), Vec::<String>::new());
    start().finish().expect_code(0);
    assert_eq!(temporary(), Vec::<String>::new());
}

#[test]
fn open_uses_an_address_that_works_once() {
    use std::os::unix::fs::PermissionsExt;
    let project = TestProject::new();
    write_trace(&project);
    let programs = project.file("bin");
    std::fs::create_dir(&programs).unwrap();
    project.write_file(
        "bin/xdg-open",
        "#!/bin/sh\nprintf '%s\\n' \"$1\" > opened.new\nmv opened.new opened\n",
    );
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(programs.join("xdg-open"), executable).unwrap();
    let mut command = project.acp_command(&["trace", "live", "--open", "trace"]);
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", programs.display()));
    let trace = LiveTrace::start(command);
    wait_until("the browser is opened", || project.file("opened").exists());
    let opened = project.read_file("opened");
    assert!(!opened.contains(trace.token()), "{opened}");
    let Some(mut browser) = open_page(opened.trim()) else {
        return;
    };
    wait_for_row(&mut browser, &["a warning"]);
    // The page has exchanged the code for the token, so that it can be reloaded.
    assert_eq!(browser.evaluate_text("location.href"), trace.url);
    let code = opened.trim().split_once("#code=").unwrap().1.to_owned();
    let again = trace.request("POST /sign-in", &[], &code);
    assert!(again.starts_with("HTTP/1.1 403 "), "{again}");
    trace.stop();
}

#[test]
fn invalid_command_lines_are_rejected() {
    let project = TestProject::new();
    project.write_file("text", "no trace\n");
    for (args, error) in [
        (
            &["trace", "live"][..],
            "neither a trace nor an agent command",
        ),
        (&["trace", "live", "missing"], "missing: "),
        (&["trace", "live", "text"], "text: not a trace file"),
        (
            &["trace", "live", "text", "--", "cat"],
            "file already exists; use --force",
        ),
    ] {
        let output = project
            .acp_command(args)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        CommandResult::from_output(output)
            .expect_code(2)
            .expect_stderr(error);
    }
}
