//! Tests of the HTML page for a trace.

use super::*;
use serde_json::{Value, json};

/// Text that attacks the browser or the user who views the page.
const HOSTILE_TEXT: &str =
    "</script><img src=x onerror=alert(1)><!--\u{2028}\u{1b}[31mred\u{202e}\u{0}]]>&amp;\"'";

/// A trace that a test builds line by line.
struct PageTrace(String, u64);

impl PageTrace {
    fn new() -> Self {
        let header = json!({"acp_trace": 1, "started": "2026-01-01T00:00:00Z", "command": ["my-agent", HOSTILE_TEXT],
            "by": HOSTILE_TEXT, "secrets": "redacted"});
        Self(format!("{header}\n"), 0)
    }

    fn record(mut self, mut record: Value) -> Self {
        self.1 += 1000;
        record["t"] = json!(self.1);
        self.0.push_str(&format!("{record}\n"));
        self
    }

    fn message(self, from: &str, message: Value) -> Self {
        self.record(json!({"from": from, "len": 10, "msg": message}))
    }

    fn update(self, update: Value) -> Self {
        let params = json!({"sessionId": HOSTILE_TEXT, "update": update});
        self.message(
            "agent",
            json!({"jsonrpc": "2.0", "method": "session/update", "params": params}),
        )
    }

    fn render_page(&self, findings: &[PageFinding]) -> String {
        let mut out = Vec::new();
        let reader = TraceReader::new(self.0.as_bytes()).unwrap();
        write_page(reader, findings, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }
}

fn sample_trace() -> PageTrace {
    let text = json!({"type": "text", "text": HOSTILE_TEXT});
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": HOSTILE_TEXT, "kind": HOSTILE_TEXT, "status": HOSTILE_TEXT,
        "rawInput": {HOSTILE_TEXT: HOSTILE_TEXT}, "locations": [{"path": HOSTILE_TEXT, "line": 3}],
        "content": [{"type": "diff", "path": HOSTILE_TEXT, "oldText": "one\n", "newText": format!("one\n{HOSTILE_TEXT}\n")},
            {"type": "terminal", "terminalId": "t"}, {"type": "content", "content": text}]});
    PageTrace::new()
        .message("client", json!({"jsonrpc": "2.0", "id": HOSTILE_TEXT, "method": "session/prompt",
            "params": {"sessionId": HOSTILE_TEXT, "prompt": [text, {"type": "image", "mimeType": HOSTILE_TEXT, "data": HOSTILE_TEXT}]}}))
        .update(json!({"sessionUpdate": "agent_thought_chunk", "content": text}))
        .update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Hel"}}))
        .update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "lo"}}))
        .update(call)
        .message("agent", json!({"jsonrpc": "2.0", "id": 7, "method": "session/request_permission",
            "params": {"sessionId": HOSTILE_TEXT, "toolCall": {"toolCallId": "c"}, "options": [
                {"optionId": "o", "name": HOSTILE_TEXT, "kind": "allow_once"}, {"optionId": "p", "name": "Never", "kind": "reject_once"}]}}))
        .message("client", json!({"jsonrpc": "2.0", "id": 7, "result": {"outcome": {"outcome": "selected", "optionId": "p"}}}))
        .message("agent", json!({"jsonrpc": "2.0", "id": 8, "method": "terminal/create",
            "params": {"sessionId": HOSTILE_TEXT, "command": "echo", "args": [HOSTILE_TEXT]}}))
        .message("client", json!({"jsonrpc": "2.0", "id": 8, "result": {"terminalId": "t"}}))
        .message("agent", json!({"jsonrpc": "2.0", "id": 9, "method": "terminal/output", "params": {"sessionId": HOSTILE_TEXT, "terminalId": "t"}}))
        .message("client", json!({"jsonrpc": "2.0", "id": 9, "result": {"output": "printed\n", "truncated": false}}))
        .message("agent", json!({"jsonrpc": "2.0", "id": 10, "method": "terminal/output", "params": {"sessionId": HOSTILE_TEXT, "terminalId": "t"}}))
        .message("client", json!({"jsonrpc": "2.0", "id": 10,
            "result": {"output": "printed\nmore\n", "truncated": false, "exitStatus": {"exitCode": 4}}}))
        .update(json!({"sessionUpdate": "plan", "entries": [{"content": HOSTILE_TEXT, "priority": "high", "status": "completed"}]}))
        .message("agent", json!({"jsonrpc": "2.0", "id": HOSTILE_TEXT, "result": {"stopReason": "end_turn"}}))
        .message("agent", json!({"jsonrpc": "2.0", "id": 99, "error": {"code": -32603, "message": HOSTILE_TEXT}}))
        .message("agent", json!({"jsonrpc": "2.0", "method": HOSTILE_TEXT, "params": {HOSTILE_TEXT: HOSTILE_TEXT}}))
        .record(json!({"from": "agent", "len": 3, "noise": HOSTILE_TEXT}))
        .record(json!({"from": "agent", "len": 300, "cut": HOSTILE_TEXT}))
        .record(json!({"stderr": HOSTILE_TEXT}))
        .record(json!({"event": "failed", "from": "agent", "message": HOSTILE_TEXT}))
}

/// Returns the content of the elements that start with `begins`.
fn elements_starting_with<'a>(page: &'a str, begins: &str) -> Vec<&'a str> {
    let parts = page.split(begins).skip(1);
    parts
        .map(|part| part.split("</script>").next().unwrap())
        .collect()
}

fn page_index(page: &str) -> Value {
    serde_json::from_str(
        elements_starting_with(page, "<script type=\"application/json\" id=\"index\">")[0],
    )
    .unwrap()
}

fn page_lines(page: &str) -> Vec<Value> {
    elements_starting_with(page, "<script type=\"application/json\" class=\"block\">\n")
        .iter()
        .flat_map(|block| block.lines())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn peer_content_is_never_markup() {
    let finding = PageFinding {
        line: 3,
        level: "MUST".to_owned(),
        who: Some(Side::Agent),
        rule: HOSTILE_TEXT.to_owned(),
        text: HOSTILE_TEXT.to_owned(),
    };
    let page = sample_trace().render_page(&[finding]);
    let own = [STYLE, SCRIPT].map(str::len).iter().sum::<usize>();
    assert!(page.len() > own);
    // Every tag must be one of the page's own. A `<` from a peer is an entity in text, and an escape in data.
    let without = page.replace(SCRIPT, "").replace(STYLE, "");
    for wrong in [
        "<img",
        "onerror=alert(1)>",
        "<!--",
        "]]>",
        "\u{2028}",
        "\u{1b}",
        "\u{202e}",
        "\u{0}",
    ] {
        let data_only = matches!(wrong, "onerror=alert(1)>" | "]]>" | "\u{2028}" | "\u{202e}");
        let markup = page_markup(&without);
        let place = if data_only { &markup } else { &without };
        assert!(!place.contains(wrong), "{wrong:?}");
    }
    let ends = without.matches("</script>").count();
    assert_eq!(ends, without.matches("<script").count());
    assert_eq!(
        page_lines(&page)[0]["params"]["prompt"][0]["text"],
        json!(HOSTILE_TEXT)
    );
}

/// Returns the markup of a page, without the JSON data.
fn page_markup(page: &str) -> String {
    let mut parts = page.split("<script type=\"application/json\"");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |all, part| {
        all + part.split_once("</script>").unwrap().1
    })
}

#[test]
fn content_security_policy_allows_only_the_embedded_script_and_style() {
    let page = sample_trace().render_page(&[]);
    let policy = page
        .split("Content-Security-Policy\" content=\"")
        .nth(1)
        .unwrap();
    let policy = policy.split('"').next().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"));
    assert!(!policy.contains("unsafe") && !policy.contains("http"));
    let script = elements_starting_with(&page, "<script>");
    assert_eq!(script.len(), 1);
    assert!(policy.contains(&csp_hash(script[0])));
    let style = page.split("<style>").nth(1).unwrap();
    assert!(policy.contains(&csp_hash(style.split("</style>").next().unwrap())));
    for outside in ["src=", "href=", "@import", "url(", "://"] {
        let without = page.replace(HOSTILE_TEXT, "");
        assert!(
            !STYLE.contains(outside) && !SCRIPT.contains(outside),
            "{outside}"
        );
        assert!(
            !page_markup(&without)
                .replace("src=x onerror", "")
                .contains(outside),
            "{outside}"
        );
    }
    assert!(!SCRIPT.contains("innerHTML ="));
}

#[test]
fn every_record_is_listed_and_responses_link_to_requests() {
    let trace = sample_trace();
    let page = trace.render_page(&[]);
    let records = trace.0.lines().count() - 1;
    let index = page_index(&page);
    for column in [
        "t", "line", "name", "session", "id", "mate", "len", "redacted", "summary",
    ] {
        assert_eq!(index[column].as_array().unwrap().len(), records, "{column}");
    }
    assert_eq!(index["kind"], "qnnnnqaqaqaqanaenxxsv");
    assert_eq!(index["from"].as_str().unwrap().len(), records);
    assert_eq!(page_lines(&page).len(), records);
    // The fifteenth record is the response to the prompt.
    assert_eq!(index["mate"][0], 14);
    assert_eq!(index["mate"][14], 0);
    assert_eq!(index["mate"][15], -1);
    assert_eq!(index["bad"], "000000000000000101101");
}

#[test]
fn session_is_rendered_as_the_user_saw_it() {
    let page = sample_trace().render_page(&[]);
    let told = page.split("<template").nth(1).unwrap();
    let told = told.split("</template>").next().unwrap();
    let mut rest = told;
    for part in [
        "Person",
        "&lt;/script&gt;&lt;img",
        "Thought",
        "Hello",
        "asked: ",
        "→ <b>Never</b>",
        "class=\"plus\">+&lt;/script",
        "$ echo &lt;/script",
        "printed\nmore\n",
        "exit code 4",
        "turn: end_turn",
        "Plan",
        "<li class=\"completed\">",
    ] {
        let at = rest.find(part);
        let at = at.unwrap_or_else(|| panic!("{part:?} is missing or out of order: {told}"));
        rest = &rest[at + part.len()..];
    }
    assert_eq!(told.matches("printed").count(), 1);
    assert!(
        told.contains("data-row=\"2\""),
        "the message must start at row 2: {told}"
    );
}

#[test]
fn page_reports_a_truncated_trace_and_stays_small() {
    let mut trace = PageTrace::new();
    for _ in 0..20_000 {
        trace = trace.update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "word "}}));
    }
    trace.0.push_str("{\"t\":1,\"x");
    let page = trace.render_page(&[]);
    assert!(page.contains("The trace ends here in the middle of a record"));
    assert_eq!(page_lines(&page).len(), 20_000);
    assert!(elements_starting_with(&page, "class=\"block\">").len() > 1);
    assert!(
        page.len() < trace.0.len() * 2,
        "{} of {}",
        page.len(),
        trace.0.len()
    );
    // Chunks are shown as one message.
    let told = page.split("<template").nth(1).unwrap();
    assert_eq!(told.matches("class=\"item").count(), 1);
}

#[test]
fn embedded_json_is_on_one_line_and_keeps_its_value() {
    let json = "{\"a\":\r\n\"<\\\\<\\u003c\"}";
    let safe = blocks::escape_markup(json);
    assert!(!safe.contains(['<', '\r', '\n']));
    let read = |json: &str| serde_json::from_str::<Value>(json).unwrap();
    assert_eq!(read(&safe), read(json));
}

#[test]
fn version_2_messages_appear_once_and_turns_end_at_idle() {
    let hello = json!([{"type": "text", "text": "Say hello"}]);
    let page = PageTrace::new()
        .message("client", json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 2}}))
        .message("agent", json!({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 2}}))
        .message("client", json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt",
            "params": {"sessionId": HOSTILE_TEXT, "prompt": hello}}))
        .message("agent", json!({"jsonrpc": "2.0", "id": 1, "result": {"messageId": "m1"}}))
        .update(json!({"sessionUpdate": "user_message", "messageId": "m1", "content": hello}))
        .update(json!({"sessionUpdate": "agent_message_chunk", "messageId": "m2", "content": {"type": "text", "text": "Hi"}}))
        .update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Look", "kind": "read", "status": "completed"}))
        .update(json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"}))
        .render_page(&[]);
    let told = page.split("<template").nth(1).unwrap();
    let told = told.split("</template>").next().unwrap();
    assert_eq!(told.matches("Say hello").count(), 1, "{told}");
    assert_eq!(told.matches("turn: ").count(), 1, "{told}");
    assert!(
        told.contains("Hi") && told.contains("<b>Look</b>"),
        "{told}"
    );
    assert!(told.contains("turn: end_turn"), "{told}");
}

#[test]
fn empty_trace_produces_a_page() {
    let page = PageTrace::new().render_page(&[]);
    assert_eq!(page_index(&page)["t"], json!([]));
    assert!(page_lines(&page).is_empty() && !page.contains("<template"));
    assert!(page.ends_with("</body></html>\n"));
}
