//! Tests of the page of `acp serve --live`, in a browser.
#![cfg(unix)]

use std::io::Write;
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::common::browser::Browser;
use crate::common::{CommandResult, TestProject};
use crate::serve::Server;
use crate::serve_users::add_user;

/// A title that would be markup, if it were not escaped.
const HOSTILE_TEXT: &str = "<img src=x onerror=harm()>";

/// Starts a server, and a browser that has signed in with the link that the server has printed.
fn start(project: &TestProject) -> Option<(Server, Browser)> {
    start_with(project, &["--live"])
}

fn start_with(project: &TestProject, args: &[&str]) -> Option<(Server, Browser)> {
    let mut browser = Browser::start()?;
    let mut server = Server::start(project, args);
    let line = server.wait_for("in a browser: ");
    let url = line.trim().rsplit(' ').next().unwrap().to_owned();
    assert!(url.contains("/sign-in?code="), "{url}");
    navigate(&mut browser, &url);
    browser.wait_for("document.getElementById('list') !== null");
    // The link works only once.
    let path = url.split_once(server.address()).unwrap().1;
    let again = server.get(path, "");
    assert!(again.starts_with("HTTP/1.1 403"), "{again}");
    Some((server, browser))
}

fn navigate(browser: &mut Browser, url: &str) {
    browser.call("Page.navigate", json!({ "url": url }));
}

/// Opens a new session in the project.
fn open_new_session(browser: &mut Browser) {
    // The list is filled by the script, which then also handles the form.
    browser.wait_for("document.getElementById('list')?.shown !== undefined");
    browser.wait_for("document.querySelector('#new input[name=cwd]')?.value.length > 1");
    browser.evaluate("document.querySelector('#new button').click()");
    browser.wait_for("document.querySelector('#state .state')?.textContent === 'idle'");
}

/// Types a prompt, and sends it with Enter.
fn send_prompt(browser: &mut Browser, text: &str) {
    browser.evaluate("document.querySelector('#prompt textarea').focus()");
    browser.call("Input.insertText", json!({ "text": text }));
    for kind in ["keyDown", "keyUp"] {
        let key = json!({ "type": kind, "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r" });
        browser.call("Input.dispatchKeyEvent", key);
    }
}

fn wait_for_text(browser: &mut Browser, element: &str, text: &str) {
    let condition = format!(
        "document.getElementById('{element}')?.innerText.includes({})",
        json!(text)
    );
    browser.wait_for(&condition);
}

/// Returns the unexpected events: the page may only fetch from its server.
fn unexpected(browser: &mut Browser, server: &Server) -> Vec<Value> {
    let own = format!("http://{}/", server.address());
    let is_own = |event: &Value| {
        let url = event["params"]["request"]["url"].as_str();
        url.is_some_and(|url| url.starts_with(&own))
    };
    let events = browser.console_errors().into_iter();
    // Browsers ask for an icon by themselves.
    let is_icon = |event: &Value| event.to_string().contains("favicon.ico");
    events
        .filter(|event| !is_own(event) && !is_icon(event))
        .collect()
}

#[test]
fn session_is_started_prompted_and_its_question_answered_in_the_browser() {
    let project = TestProject::new();
    let Some((server, mut browser)) = start(&project) else {
        return;
    };
    open_new_session(&mut browser);
    send_prompt(
        &mut browser,
        "/run echo one > made; echo output $((40 + 2))",
    );
    // The question shows the whole command.
    wait_for_text(
        &mut browser,
        "questions",
        "$ echo one > made; echo output $((40 + 2))",
    );
    wait_for_text(&mut browser, "state", "waits for an answer");
    assert!(browser.evaluate_text("document.title").starts_with("(1) "));
    browser.take_picture("question.png");
    assert!(!project.file("made").exists());
    browser.evaluate("document.querySelector('#questions button[data-choice=allow_once], #questions button').click()");
    wait_for_text(&mut browser, "thread", "output 42");
    wait_for_text(&mut browser, "state", "idle");
    assert!(browser.evaluate("document.getElementById('questions').childElementCount") == 0);
    assert_eq!(project.read_file("made"), "one\n");
    browser.take_picture("answered.png");
    // On the width of a phone, nothing is cut off.
    let phone = json!({"width": 360, "height": 700, "deviceScaleFactor": 2, "mobile": true});
    browser.call("Emulation.setDeviceMetricsOverride", phone);
    assert_eq!(
        browser.evaluate("document.scrollingElement.scrollWidth"),
        360
    );
    browser.take_picture("phone.png");
    assert_eq!(unexpected(&mut browser, &server), Vec::<Value>::new());
}

#[test]
fn one_turn_is_shown_by_run_watch_and_page_and_the_terminal_sees_the_answer_of_the_page() {
    let project = TestProject::new();
    let Some((server, mut browser)) = start(&project) else {
        return;
    };
    // The server is also the local one of this directory.
    project
        .run_shell(
            "acp run --session build --no-wait '/run echo shared > made; echo output $((40 + 2))'",
        )
        .expect_code(0)
        .expect_stderr("watch with: acp sessions watch build");
    let mut watch = project.acp_command(&["sessions", "watch", "build"]);
    let watch = watch
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_text(&mut browser, "list", "waits for an answer");
    browser.take_picture("list.png");
    browser.evaluate("document.querySelector('#list a').click()");
    wait_for_text(
        &mut browser,
        "questions",
        "$ echo shared > made; echo output $((40 + 2))",
    );
    wait_for_text(&mut browser, "thread", "/run echo shared");
    browser.evaluate("document.querySelector('#questions button').click()");
    wait_for_text(&mut browser, "thread", "output 42");
    wait_for_text(&mut browser, "state", "idle");
    assert_eq!(project.read_file("made"), "shared\n");
    // A run on the terminal continues the same session, and the page shows it.
    project
        .run_shell("acp run --session build --allow all '/run echo from the terminal'")
        .expect_code(0)
        .expect_stdout(&["from the terminal"]);
    wait_for_text(&mut browser, "thread", "from the terminal");
    drop(server);
    let watched = CommandResult::from_output(watch.wait_with_output().unwrap());
    assert!(watched.stdout.contains("output 42"), "{watched:?}");
}

#[test]
fn agent_s_text_is_never_markup() {
    let project = TestProject::new();
    project.write_file("hostile.txt", HOSTILE_TEXT);
    let Some((server, mut browser)) = start(&project) else {
        return;
    };
    open_new_session(&mut browser);
    send_prompt(&mut browser, &format!("/read hostile.txt {HOSTILE_TEXT}"));
    wait_for_text(&mut browser, "thread", HOSTILE_TEXT);
    send_prompt(&mut browser, &format!("/run echo '{HOSTILE_TEXT}'"));
    wait_for_text(&mut browser, "questions", HOSTILE_TEXT);
    assert_eq!(browser.evaluate("document.images.length"), 0);
    assert_eq!(browser.evaluate("typeof window.harm"), "undefined");
    assert_eq!(unexpected(&mut browser, &server), Vec::<Value>::new());
}

/// An agent with two kinds of subagents: in a session of its own, and in the session of its parent. It waits for a file
/// before it ends the turn.
const AGENT_WITH_SUBAGENTS: &str = r#"
to() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%s","update":%s}}\n' "$1" "$2"; }
call() { to "$1" '{"sessionUpdate":"tool_call","toolCallId":"'$2'","title":"'"$3"'","kind":"read","status":"in_progress"'"$4"'}'; }
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/^.*"id":\([^,}]*\)[,}].*$/\1/')
  case $line in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1}}\n' "$id";;
    *'"session/new"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s"}}\n' "$id";;
    *'"session/prompt"'*)
      call s a 'Look around'
      call s a1 'Read <b>one</b>' ',"_meta":{"claudeCode":{"parentToolUseId":"a"}}'
      to s '{"sessionUpdate":"subagent_update","sessionId":"c","title":"Count files","state":{"state":"running"}}'
      to s '{"sessionUpdate":"session_message","messageId":"m1","senderSessionId":"s","recipientSessionId":"c","recipientMessageId":"m2","content":[{"type":"text","text":"Count <i>them</i>"}]}'
      to c '{"sessionUpdate":"session_message","messageId":"m2","senderSessionId":"s","recipientSessionId":"c","senderMessageId":"m1","content":[{"type":"text","text":"Count <i>them</i>"}]}'
      call c c1 'List folder'
      while [ ! -e go ]; do sleep 0.1; done
      call s a2 'Read two' ',"_meta":{"claudeCode":{"parentToolUseId":"a"}}'
      call c c2 'List more'
      printf '{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}\n' "$id";;
  esac
done
"#;

#[test]
fn work_of_subagents_is_folded_under_the_subagent_and_stays_open() {
    let project = TestProject::new();
    project.write_file("agent.sh", AGENT_WITH_SUBAGENTS);
    let agent = ["--live", "--", "sh", "agent.sh"];
    let Some((server, mut browser)) = start_with(&project, &agent) else {
        return;
    };
    open_new_session(&mut browser);
    send_prompt(&mut browser, "go");
    wait_for_text(&mut browser, "thread", "Look around");
    wait_for_text(&mut browser, "thread", "Count files");
    let folded = |n: u8| format!("document.querySelectorAll('#thread details.work')[{n}]");
    browser.wait_for(&format!("{} !== undefined", folded(1)));
    for n in [0, 1] {
        assert_eq!(browser.evaluate(&format!("{}.open", folded(n))), false);
    }
    assert!(
        !browser
            .evaluate_text("document.getElementById('thread').innerText")
            .contains("one")
    );
    for n in [0, 1] {
        browser.evaluate(&format!("{}.querySelector('summary').click()", folded(n)));
    }
    wait_for_text(&mut browser, "thread", "Read <b>one</b>");
    wait_for_text(&mut browser, "thread", "List folder");
    wait_for_text(&mut browser, "thread", "running");
    // The subagent's task is in its work, and only there.
    wait_for_text(&mut browser, "thread", "Message from the parent session");
    let text = browser.evaluate_text("document.getElementById('thread').innerText");
    assert_eq!(text.matches("Count <i>them</i>").count(), 1, "{text}");
    browser.take_picture("subagents.png");
    // What the user has opened stays open when there is more.
    project.write_file("go", "");
    wait_for_text(&mut browser, "thread", "Read two");
    wait_for_text(&mut browser, "thread", "List more");
    wait_for_text(&mut browser, "thread", "Read <b>one</b>");
    assert_eq!(unexpected(&mut browser, &server), Vec::<Value>::new());
}

/// Sends a request as it is, and returns the first line of the response.
fn status_of(server: &Server, request: &str) -> String {
    use std::io::Read;
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    let _ = stream.read_to_string(&mut response);
    response.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn observer_sees_the_turn_and_the_page_offers_nothing_else() {
    let project = TestProject::new();
    let watcher = add_user(&project, &["watcher", "--can", "look"]);
    let Some((server, mut browser)) = start(&project) else {
        return;
    };
    // The owner asks something that nobody answers yet.
    open_new_session(&mut browser);
    let session = browser.evaluate_text("location.href");
    send_prompt(&mut browser, "/run echo output $((40 + 2))");
    wait_for_text(&mut browser, "state", "waits for an answer");
    let Some(mut observer) = Browser::start() else {
        return;
    };
    navigate(&mut observer, &format!("http://{}/", server.address()));
    observer.wait_for("document.querySelector('input[name=token]') !== null");
    observer.evaluate("document.querySelector('input[name=token]').focus()");
    observer.call("Input.insertText", json!({ "text": watcher.expose() }));
    observer.evaluate("document.querySelector('form button').click()");
    wait_for_text(&mut observer, "list", "waits for an answer");
    assert!(
        observer
            .evaluate("document.querySelector('#new')")
            .is_null()
    );
    navigate(&mut observer, &session);
    wait_for_text(&mut observer, "thread", "echo output");
    observer.take_picture("observer.png");
    let shown = observer.evaluate_text("document.querySelector('.dock').innerText");
    assert!(shown.contains("You may not send prompts"), "{shown}");
    assert!(shown.contains("You may not answer questions"), "{shown}");
    for element in ["#prompt", "#settings", "#questions button"] {
        let is_visible =
            format!("(document.querySelector('{element}')?.offsetParent ?? null) !== null");
        assert_eq!(observer.evaluate(&is_visible), false, "{element}");
        assert_eq!(browser.evaluate(&is_visible), true, "{element}");
    }
    browser.evaluate("document.querySelector('#questions button[data-choice=allow_once], #questions button').click()");
    wait_for_text(&mut observer, "thread", "output 42");
}

#[test]
fn page_needs_a_sign_in_and_rejects_other_hosts_and_origins() {
    let project = TestProject::new();
    let server = Server::start(&project, &["--live"]);
    let address = server.address().to_owned();
    let get = |path: &str, host: &str, headers: &str| {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n");
        status_of(&server, &request)
    };
    let post = |path: &str, headers: &str, body: &str| {
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        );
        status_of(&server, &request)
    };
    assert!(get("/", &address, "").contains("200"));
    for path in [
        "/sessions",
        "/session?agent=agent&id=x&cwd=/",
        "/events?agent=agent&id=x&cwd=/",
    ] {
        assert!(get(path, &address, "").contains("401"), "{path}");
        assert!(
            get(path, &address, "Cookie: acp_page=wrong\r\n").contains("401"),
            "{path}"
        );
    }
    assert!(post("/new", "Content-Type: application/json\r\n", "{}").contains("401"));
    assert!(get("/", "evil.example", "").contains("403"));
    assert!(get("/", &address, "Origin: http://evil.example\r\n").contains("403"));
    assert!(post("/sign-in", "", "token=wrong").contains("403"));
    let token = server.token();
    let form = format!("token={}", token.expose());
    assert!(post("/sign-in", "Origin: http://evil.example\r\n", &form).contains("403"));
    assert!(post("/sign-in", &format!("Origin: http://{address}\r\n"), &form).contains("200"));
    // The policy lets the page use only what comes from its server.
    let page = server.get("/", "");
    assert!(
        page.to_lowercase()
            .contains("content-security-policy: default-src 'none'"),
        "{page}"
    );
    // The agents' own endpoint still needs the token: the page's cookie is not one.
    assert!(get("/acp", &address, "").contains("401"));
}

#[test]
fn server_without_live_agents_has_no_page() {
    let project = TestProject::new();
    let server = Server::start(&project, &[]);
    let response = server.get("/", "");
    assert!(response.starts_with("HTTP/1.1 404"), "{response}");
}
