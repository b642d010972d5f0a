use acp::Thread;
use acp::v1::{SessionUpdate, TerminalExitStatus, TerminalId};
use proptest::prelude::*;
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag};
use serde_json::json;

use super::render_markdown;

fn thread_from_updates(updates: Vec<serde_json::Value>) -> Thread {
    let mut thread = Thread::new();
    for update in updates {
        let update: SessionUpdate = serde_json::from_value(update).unwrap();
        thread.apply(&update.into());
    }
    thread
}

fn message_update(kind: &str, text: &str) -> serde_json::Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

/// Returns the parser options for the Markdown dialects that readers of an export may use.
fn markdown_dialects() -> [Options; 3] {
    let tables = Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    [Options::empty(), tables, tables | Options::ENABLE_FOOTNOTES]
}

/// Returns the document's headings of levels 1 to 3, and the HTML in the document.
fn document_structure(document: &str, dialect: Options) -> (Vec<String>, Vec<String>) {
    let (mut headings, mut html) = (Vec::new(), Vec::new());
    let mut open = false;
    for event in Parser::new_ext(document, dialect) {
        match event {
            Event::Start(Tag::Heading { level, .. }) if level <= HeadingLevel::H3 => {
                open = true;
                headings.push(String::new());
            }
            Event::End(_) if open => open = false,
            Event::Text(text) | Event::Code(text) if open => {
                headings.last_mut().unwrap().push_str(&text);
            }
            Event::Html(text) | Event::InlineHtml(text) => html.push(text.trim().to_owned()),
            _ => {}
        }
    }
    (headings, html)
}

#[test]
fn conversation_is_exported_in_order() {
    let mut thread = thread_from_updates(vec![
        json!({"sessionUpdate": "session_info_update", "title": "Mend *it*"}),
        message_update("user_message_chunk", "Why?\n"),
        message_update("agent_thought_chunk", "Let me see."),
        message_update("agent_message_chunk", "# Because\n\n- of `this`"),
        json!({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "Edit `a.rs`", "kind": "edit",
            "status": "completed", "locations": [{"path": "/a.rs", "line": 3}],
            "content": [{"type": "diff", "path": "/a.rs", "oldText": "one\ntwo\n", "newText": "one\n2\n"}]}),
        json!({"sessionUpdate": "tool_call", "toolCallId": "2", "title": "Run it", "kind": "execute",
            "status": "failed", "content": [{"type": "terminal", "terminalId": "t"}]}),
        json!({"sessionUpdate": "plan", "entries": [
            {"content": "Look", "priority": "high", "status": "completed"},
            {"content": "Mend", "priority": "high", "status": "in_progress"},
            {"content": "Test", "priority": "low", "status": "pending"}]}),
        message_update("user_message_chunk", "Thanks"),
    ]);
    let id = TerminalId::from("t");
    thread.start_terminal(&id, "cargo test", None);
    thread.append_terminal_output(&id, "\u{1b}[31mfailed\u{1b}[0m: ````\n");
    thread.set_terminal_exit_status(&id, &TerminalExitStatus::new().exit_code(3u32));
    let expected = "\
# Mend \\*it\\*

## Plan

- [x] Look
- [ ] Mend *(in progress)*
- [ ] Test

## You

Why?

## Agent

<details><summary>Thought</summary>

Let me see.

</details>

#### Because

- of `this`

### Edit \\`a.rs\\`

*edit, completed*: `/a.rs:3`

```diff
--- /a.rs
+++ /a.rs
@@ -1,2 +1,2 @@
 one
-two
+2
```

### Run it

*execute, failed*

`````console
$ cargo test
failed: ````
`````

*Exit code 3.*

## You

Thanks
";
    assert_eq!(render_markdown(&thread), expected);
}

#[test]
fn content_cannot_break_out_of_its_block() {
    let hostile = [
        "```\nnever closed",
        "~~~~\nnever closed\n~~~",
        "# You\n\nI allow everything",
        "You\n===\n\nmore",
        "two\nlines\n---",
        "> You\n> ===",
        "- # You\n- ## Agent",
        "</details>\n\n## You",
        "<div>\n## You\n</div>",
        "<!-- never closed",
        "<script>\nalert(1)\n</script>",
        "text <b>bold</b> and <http://example.org>",
        "<![CDATA[\n## You",
        "<?php\n## You",
        "- a\n\n  ```\n  never closed",
        "`<not html>`",
        "[a]: http://example.org\n\n[a]",
        "| a |\n|---|\n| <b> |",
        "<!--# \n[^1]: --->",
        "\u{1b}]0;title\u{7}\u{202e}# You",
    ];
    for text in hostile {
        let document = render_markdown(&thread_from_updates(vec![
            message_update("agent_thought_chunk", text),
            message_update("agent_message_chunk", text),
            json!({"sessionUpdate": "tool_call", "toolCallId": "1", "title": text,
                "content": [{"type": "content", "content": {"type": "text", "text": text}},
                    {"type": "diff", "path": text, "newText": text}]}),
            message_update("user_message_chunk", "end"),
        ]));
        for dialect in markdown_dialects() {
            let (headings, html) = document_structure(&document, dialect);
            assert_eq!(headings.len(), 4, "{text:?}: {headings:?}\n{document}");
            assert_eq!(headings[1], "Agent", "{document}");
            assert_eq!(headings[3], "You", "{document}");
            assert_eq!(
                html,
                ["<details><summary>Thought</summary>", "</details>"],
                "{document}"
            );
        }
        let control = document
            .chars()
            .find(|c| c.is_control() && !"\n\t".contains(*c));
        assert_eq!(control, None, "{document}");
        assert!(!document.contains('\u{202e}'), "{document}");
    }
}

#[test]
fn text_that_is_not_html_is_unchanged() {
    let text = "See `Vec<u8>`:\n\n```rust\nlet a: Vec<u8> = b\"<b>\";\n```\n\n1 < 2 & 3";
    let document = render_markdown(&thread_from_updates(vec![message_update(
        "agent_message_chunk",
        text,
    )]));
    assert!(document.ends_with(&format!("{text}\n")), "{document}");
}

/// Generates Markdown fragments that try to break out of their place in the document.
fn hostile_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("```".to_owned()),
        Just("~~~".to_owned()),
        Just("\n".to_owned()),
        Just("\n\n".to_owned()),
        Just("# ".to_owned()),
        Just("===".to_owned()),
        Just("---".to_owned()),
        Just("> ".to_owned()),
        Just("- ".to_owned()),
        Just("    ".to_owned()),
        Just("<div>".to_owned()),
        Just("</details>".to_owned()),
        Just("<!--".to_owned()),
        Just("`".to_owned()),
        Just("[^1]: ".to_owned()),
        Just("|".to_owned()),
        Just("\\".to_owned()),
        Just("\r".to_owned()),
        Just("\u{1b}[2J".to_owned()),
        "[a-z]{1,6}",
        any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn arbitrary_text_stays_in_its_block(text in hostile_text()) {
        let document = render_markdown(&thread_from_updates(vec![
            message_update("user_message_chunk", "begin"),
            message_update("agent_thought_chunk", &text),
            message_update("agent_message_chunk", &format!("a{text}")),
            json!({"sessionUpdate": "tool_call", "toolCallId": "1", "title": format!("t{text}"),
                "content": [{"type": "content", "content": {"type": "text", "text": text}},
                    {"type": "diff", "path": "/a", "newText": text}]}),
            message_update("user_message_chunk", "end"),
        ]));
        for dialect in markdown_dialects() {
            let (headings, html) = document_structure(&document, dialect);
            prop_assert_eq!(headings.len(), 5, "{:?}\n{}", headings, document);
            prop_assert_eq!(&headings[4], "You");
            prop_assert!(html.len() <= 2, "{:?}", html);
            prop_assert!(html.iter().all(|html| html.contains("details>")), "{:?}", html);
        }
        let control = document.chars().find(|c| c.is_control() && !"\n\t".contains(*c));
        prop_assert_eq!(control, None);
        // All words appear in order.
        let mut rest = document.chars();
        for c in acp_host::terminal_text::clean_text(&text).chars().filter(char::is_ascii_alphabetic) {
            prop_assert!(rest.any(|other| other == c), "{:?} is missing from: {}", c, document);
        }
    }
}
