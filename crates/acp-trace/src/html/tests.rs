//! Tests of the page of a trace.

use super::*;
use serde_json::{Value, json};

/// Text that attacks the browser or the user who views the page.
const HOSTILE: &str =
    "</script><img src=x onerror=alert(1)><!--\u{2028}\u{1b}[31mred\u{202e}\u{0}]]>&amp;\"'";

/// A trace that a test builds line by line.
struct PageTrace(String, u64);

impl PageTrace {
    fn new() -> Self {
        let header = json!({"acp_trace": 1, "started": "2026-01-01T00:00:00Z", "command": ["my-agent", HOSTILE],
            "by": HOSTILE, "secrets": "redacted"});
        Self(format!("{header}\n"), 0)
    }

    fn record(mut self, mut record: Value) -> Self {
        self.1 += 1000;
        record["t"] = json!(self.1);
        self.0.push_str(&format!("{record}\n"));
        self
    }

    fn said(self, from: &str, message: Value) -> Self {
        self.record(json!({"from": from, "len": 10, "msg": message}))
    }

    fn update(self, update: Value) -> Self {
        let params = json!({"sessionId": HOSTILE, "update": update});
        self.said(
            "agent",
            json!({"jsonrpc": "2.0", "method": "session/update", "params": params}),
        )
    }

    fn page(&self, findings: &[PageFinding]) -> String {
        let mut out = Vec::new();
        let reader = TraceReader::new(self.0.as_bytes()).unwrap();
        page(reader, findings, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }
}

fn conversation() -> PageTrace {
    let text = json!({"type": "text", "text": HOSTILE});
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": HOSTILE, "kind": HOSTILE, "status": HOSTILE,
        "rawInput": {HOSTILE: HOSTILE}, "locations": [{"path": HOSTILE, "line": 3}],
        "content": [{"type": "diff", "path": HOSTILE, "oldText": "one\n", "newText": format!("one\n{HOSTILE}\n")},
            {"type": "terminal", "terminalId": "t"}, {"type": "content", "content": text}]});
    PageTrace::new()
        .said("client", json!({"jsonrpc": "2.0", "id": HOSTILE, "method": "session/prompt",
            "params": {"sessionId": HOSTILE, "prompt": [text, {"type": "image", "mimeType": HOSTILE, "data": HOSTILE}]}}))
        .update(json!({"sessionUpdate": "agent_thought_chunk", "content": text}))
        .update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Hel"}}))
        .update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "lo"}}))
        .update(call)
        .said("agent", json!({"jsonrpc": "2.0", "id": 7, "method": "session/request_permission",
            "params": {"sessionId": HOSTILE, "toolCall": {"toolCallId": "c"}, "options": [
                {"optionId": "o", "name": HOSTILE, "kind": "allow_once"}, {"optionId": "p", "name": "Never", "kind": "reject_once"}]}}))
        .said("client", json!({"jsonrpc": "2.0", "id": 7, "result": {"outcome": {"outcome": "selected", "optionId": "p"}}}))
        .said("agent", json!({"jsonrpc": "2.0", "id": 8, "method": "terminal/create",
            "params": {"sessionId": HOSTILE, "command": "echo", "args": [HOSTILE]}}))
        .said("client", json!({"jsonrpc": "2.0", "id": 8, "result": {"terminalId": "t"}}))
        .said("agent", json!({"jsonrpc": "2.0", "id": 9, "method": "terminal/output", "params": {"sessionId": HOSTILE, "terminalId": "t"}}))
        .said("client", json!({"jsonrpc": "2.0", "id": 9, "result": {"output": "printed\n", "truncated": false}}))
        .said("agent", json!({"jsonrpc": "2.0", "id": 10, "method": "terminal/output", "params": {"sessionId": HOSTILE, "terminalId": "t"}}))
        .said("client", json!({"jsonrpc": "2.0", "id": 10,
            "result": {"output": "printed\nmore\n", "truncated": false, "exitStatus": {"exitCode": 4}}}))
        .update(json!({"sessionUpdate": "plan", "entries": [{"content": HOSTILE, "priority": "high", "status": "completed"}]}))
        .said("agent", json!({"jsonrpc": "2.0", "id": HOSTILE, "result": {"stopReason": "end_turn"}}))
        .said("agent", json!({"jsonrpc": "2.0", "id": 99, "error": {"code": -32603, "message": HOSTILE}}))
        .said("agent", json!({"jsonrpc": "2.0", "method": HOSTILE, "params": {HOSTILE: HOSTILE}}))
        .record(json!({"from": "agent", "len": 3, "noise": HOSTILE}))
        .record(json!({"from": "agent", "len": 300, "cut": HOSTILE}))
        .record(json!({"stderr": HOSTILE}))
        .record(json!({"event": "failed", "from": "agent", "message": HOSTILE}))
}

/// Returns the content of the elements that start with `begins`.
fn inside<'a>(page: &'a str, begins: &str) -> Vec<&'a str> {
    let parts = page.split(begins).skip(1);
    parts
        .map(|part| part.split("</script>").next().unwrap())
        .collect()
}

fn index(page: &str) -> Value {
    serde_json::from_str(inside(page, "<script type=\"application/json\" id=\"index\">")[0])
        .unwrap()
}

fn lines(page: &str) -> Vec<Value> {
    inside(page, "<script type=\"application/json\" class=\"block\">\n")
        .iter()
        .flat_map(|block| block.lines())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn nothing_that_a_peer_sends_is_markup() {
    let finding = PageFinding {
        line: 3,
        level: "MUST".to_owned(),
        who: Some(Side::Agent),
        rule: HOSTILE.to_owned(),
        text: HOSTILE.to_owned(),
    };
    let page = conversation().page(&[finding]);
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
        let markup = markup(&without);
        let place = if data_only { &markup } else { &without };
        assert!(!place.contains(wrong), "{wrong:?}");
    }
    let ends = without.matches("</script>").count();
    assert_eq!(ends, without.matches("<script").count());
    assert_eq!(
        lines(&page)[0]["params"]["prompt"][0]["text"],
        json!(HOSTILE)
    );
}

/// Returns the markup of a page, without its data.
fn markup(page: &str) -> String {
    let mut parts = page.split("<script type=\"application/json\"");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |all, part| {
        all + part.split_once("</script>").unwrap().1
    })
}

#[test]
fn the_policy_knows_the_script_and_the_style_and_lets_nothing_else_in() {
    let page = conversation().page(&[]);
    let policy = page
        .split("Content-Security-Policy\" content=\"")
        .nth(1)
        .unwrap();
    let policy = policy.split('"').next().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"));
    assert!(!policy.contains("unsafe") && !policy.contains("http"));
    let script = inside(&page, "<script>");
    assert_eq!(script.len(), 1);
    assert!(policy.contains(&csp_hash(script[0])));
    let style = page.split("<style>").nth(1).unwrap();
    assert!(policy.contains(&csp_hash(style.split("</style>").next().unwrap())));
    for outside in ["src=", "href=", "@import", "url(", "://"] {
        let without = page.replace(HOSTILE, "");
        assert!(
            !STYLE.contains(outside) && !SCRIPT.contains(outside),
            "{outside}"
        );
        assert!(
            !markup(&without)
                .replace("src=x onerror", "")
                .contains(outside),
            "{outside}"
        );
    }
    assert!(!SCRIPT.contains("innerHTML ="));
}

#[test]
fn all_records_are_in_it_and_answers_find_their_requests() {
    let trace = conversation();
    let page = trace.page(&[]);
    let records = trace.0.lines().count() - 1;
    let index = index(&page);
    for column in [
        "t", "line", "name", "session", "id", "mate", "len", "redacted", "summary",
    ] {
        assert_eq!(index[column].as_array().unwrap().len(), records, "{column}");
    }
    assert_eq!(index["kind"], "qnnnnqaqaqaqanaenxxsv");
    assert_eq!(index["from"].as_str().unwrap().len(), records);
    assert_eq!(lines(&page).len(), records);
    // The fifteenth record is the response to the prompt.
    assert_eq!(index["mate"][0], 14);
    assert_eq!(index["mate"][14], 0);
    assert_eq!(index["mate"][15], -1);
    assert_eq!(index["bad"], "000000000000000101101");
}

#[test]
fn a_session_is_told_as_a_person_saw_it() {
    let page = conversation().page(&[]);
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
        let at = at.unwrap_or_else(|| panic!("{part:?} is missing or too early: {told}"));
        rest = &rest[at + part.len()..];
    }
    assert_eq!(told.matches("printed").count(), 1);
    assert!(
        told.contains("data-row=\"2\""),
        "the message begins there: {told}"
    );
}

#[test]
fn a_trace_that_was_cut_off_says_so_and_a_page_is_not_much_larger_than_its_trace() {
    let mut trace = PageTrace::new();
    for _ in 0..20_000 {
        trace = trace.update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "word "}}));
    }
    trace.0.push_str("{\"t\":1,\"x");
    let page = trace.page(&[]);
    assert!(page.contains("The trace ends here in the middle of a record"));
    assert_eq!(lines(&page).len(), 20_000);
    assert!(inside(&page, "class=\"block\">").len() > 1);
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
fn data_has_no_line_ends_and_stays_the_same_json() {
    let json = "{\"a\":\r\n\"<\\\\<\\u003c\"}";
    let safe = blocks::escape_markup(json);
    assert!(!safe.contains(['<', '\r', '\n']));
    let read = |json: &str| serde_json::from_str::<Value>(json).unwrap();
    assert_eq!(read(&safe), read(json));
}

#[test]
fn in_version_2_a_message_is_told_once_and_a_turn_ends_when_the_agent_is_idle() {
    let hello = json!([{"type": "text", "text": "Say hello"}]);
    let page = PageTrace::new()
        .said("client", json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 2}}))
        .said("agent", json!({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 2}}))
        .said("client", json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt",
            "params": {"sessionId": HOSTILE, "prompt": hello}}))
        .said("agent", json!({"jsonrpc": "2.0", "id": 1, "result": {"messageId": "m1"}}))
        .update(json!({"sessionUpdate": "user_message", "messageId": "m1", "content": hello}))
        .update(json!({"sessionUpdate": "agent_message_chunk", "messageId": "m2", "content": {"type": "text", "text": "Hi"}}))
        .update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Look", "kind": "read", "status": "completed"}))
        .update(json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"}))
        .page(&[]);
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
fn a_trace_of_nothing_is_a_page() {
    let page = PageTrace::new().page(&[]);
    assert_eq!(index(&page)["t"], json!([]));
    assert!(lines(&page).is_empty() && !page.contains("<template"));
    assert!(page.ends_with("</body></html>\n"));
}
